#include "attack/warn.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

static __attribute__((format(printf, 3, 4))) void say(taut_warnings *w, bool serious, const char *format, ...)
{
    char line[sizeof w->line[0]];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->line[i], line) == 0) return; /* once is enough */
    if (w->count == TAUT_WARNINGS) return;
    memcpy(w->line[w->count++], line, sizeof line);
    w->serious += serious;
}

static bool like_probabilities(const double *z, int64_t classes)
{
    double sum = 0;
    for (int64_t i = 0; i < classes; i++) {
        if (!(z[i] >= -1e-5 && z[i] <= 1 + 1e-5)) return false;
        sum += z[i];
    }
    return fabs(sum - 1) <= 1e-5;
}

static int64_t without_answer(const double *z, int64_t n, int64_t classes)
{
    int64_t none = 0;
    for (int64_t e = 0; e < n; e++) none += taut_argmax(z + e * classes, classes) < 0;
    return none;
}

/* The largest relative change over five passes with different random numbers; NaN that stays NaN is none. */
static double variation(taut_target *t, double *z, double *again, uint64_t *key, const double *x, int64_t n,
                        uint64_t seed)
{
    double most = 0;
    for (int pass = 0; pass < 5; pass++) {
        for (int64_t e = 0; e < n; e++)
            key[e] = taut_rng_key(taut_rng_key(seed, TAUT_RNG_ATTACK, (uint64_t)e), 64, (uint64_t)pass);
        taut_target_logits(t, pass ? again : z, x, key, NULL, n);
        for (int64_t e = 0; pass && e < n; e++) {
            const double *a = z + e * t->classes, *b = again + e * t->classes;
            double moved = 0, size = 0;
            for (int64_t i = 0; i < t->classes; i++) {
                if (isnan(a[i]) && isnan(b[i])) continue;
                moved += (a[i] - b[i]) * (a[i] - b[i]);
                size += a[i] * a[i];
            }
            if (!(sqrt(moved) <= most * sqrt(size))) most = sqrt(moved / size);
        }
    }
    return most;
}

static void look(taut_warnings *w, taut_target *t, double *z, double *loss, double *g, uint64_t *key, const double *x,
                 const int32_t *label, int64_t n, uint64_t seed)
{
    const double most = variation(t, z, loss, key, x, n, seed);
    const int64_t none = without_answer(z, n, t->classes);
    int64_t even = 0, flat = 0;
    if (none)
        say(w, true, "%lld of %lld inputs have no answer, which counts as wrong: a logit is NaN", (long long)none,
            (long long)n);
    if (!(most <= 1e-4))
        say(w, true, "the outputs vary by %.2g (relative) from pass to pass: a randomised model; use aa-rand", most);
    for (int64_t e = 0; e < n; e++) even += like_probabilities(z + e * t->classes, t->classes);
    if (even == n) say(w, true, "the logits look like probabilities: attack what is in front of the softmax");
    taut_target_slope(t, z, loss, g, x, key, NULL, n, TAUT_LOSS_CE, label, NULL);
    for (int64_t e = 0; e < n; e++) {
        int64_t zero = 0;
        for (int64_t i = 0; i < t->dim; i++) zero += g[e * t->dim + i] == 0;
        flat += zero == t->dim;
    }
    if (flat)
        say(w, true, "%lld of %lld inputs have gradient 0: attacks by gradient see nothing there; square needs none",
            (long long)flat, (long long)n);
}

static void few_classes(taut_warnings *w, const taut_target *t, const taut_profile *p)
{
    for (int i = 0; i < p->attacks; i++) {
        const taut_attack *a = &p->attack[i];
        const taut_loss loss = taut_loss_for(a->loss, t->classes);
        if (loss != a->loss)
            say(w, false, "%lld classes: %s uses the %s loss in the place of %s", (long long)t->classes, a->name,
                taut_loss_name(loss), taut_loss_name(a->loss));
        if (a->targets > t->classes - 1 && a->targets < 1 << 20)
            say(w, false, "%lld classes: %s has %lld targets, not %lld", (long long)t->classes, a->name,
                (long long)t->classes - 1, (long long)a->targets);
    }
}

taut_status taut_warn_before(taut_warnings *w, taut_target *t, const taut_profile *p, const double *x,
                             const int32_t *label, int64_t n, uint64_t seed)
{
    const size_t outputs = (size_t)(n * t->classes);
    double *z = taut_malloc((2 * outputs + (size_t)(n * t->dim)) * sizeof *z + (size_t)n * sizeof(uint64_t));
    if (!z) return taut_no_memory("a look at the model");
    double *loss = z + outputs, *g = loss + outputs;
    if (n > 0) look(w, t, z, loss, g, (void *)(g + n * t->dim), x, label, n, seed);
    few_classes(w, t, p);
    free(z);
    return TAUT_OK;
}

void taut_warn_after(taut_warnings *w, const taut_profile *p, const int64_t *broken, int64_t total)
{
    bool gradients = false;
    for (int i = 0; i < p->attacks; i++) {
        const double points = total > 0 ? 100 * (double)broken[i] / (double)total : 0;
        if (p->attack[i].kind != TAUT_SQUARE)
            gradients = true;
        else if (gradients && points > 0.2)
            say(w, true, "Square broke %.2f points more than the attacks by gradient: gradients may be masked", points);
    }
}
