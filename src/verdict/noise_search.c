/* Noise that moves a forecast far: steepest ascent over noise on the rows of a series, from random starts.
 *
 * A row's noise is at most R long (l2 over its numbers) and comes wherever the row stands: to the encoder, and to the decoder
 * where it knows the row.  Time features and the rows that are asked for do not move: a part of what the bound is about.
 * Every step aims at the row of the forecast that has moved most and turns each row's noise its way, as far as it may.
 * Searched in float; the best that was found is measured again in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "model/pass.h"
#include "verdict/noise.h"

enum { WINDOWS = 8, STEPS = 24 };

typedef struct {
    const taut_model_spec *m;
    int64_t d, len, out; /* numbers of a row, of a window, of a forecast */
    taut_pass *pass;
    double *x, *noise, *best; /* a window; (seq, columns) of noise, and the best of it */
    double *y, *moved, *room; /* the forecast of x; of x and noise; (window) */
} search;

/* The forecast of x with noise. */
static void ask(search *s, double *y, const double *noise)
{
    const int64_t seq = s->m->seq, label = s->m->label, cols = s->m->columns;
    memcpy(s->room, s->x, (size_t)s->len * sizeof *s->room);
    for (int64_t i = 0; noise && i < seq; i++)
        for (int64_t c = 0; c < cols; c++) {
            const double e = noise[i * cols + c];
            s->room[(label + s->m->ahead + i) * s->d + c] += e;
            if (i >= seq - label) s->room[(i - seq + label) * s->d + c] += e;
        }
    taut_pass_forward_real(s->pass, s->room, 1);
    s->pass->m->k->get(y, s->pass->logits.data, s->out);
}

/* The row that has moved most. */
static double farthest(const search *s, int64_t *row)
{
    const int64_t wide = s->m->classes;
    double most = 0;
    for (int64_t j = 0; j < s->m->ahead; j++) {
        double square = 0;
        for (int64_t c = 0; c < wide; c++) square += pow(s->moved[j * wide + c] - s->y[j * wide + c], 2);
        if (!(square > most)) continue;
        most = square;
        *row = j;
    }
    return sqrt(most);
}

/* Every row of the noise turned the way that moves `row` further. */
static void climb(search *s, int64_t row, double radius)
{
    const int64_t seq = s->m->seq, label = s->m->label, cols = s->m->columns, wide = s->m->classes;
    const taut_kernels *k = s->pass->m->k;
    memset(s->room, 0, (size_t)s->out * sizeof *s->room);
    for (int64_t i = row * wide; i < (row + 1) * wide; i++) s->room[i] = s->moved[i] - s->y[i];
    k->put(s->pass->logits.data, s->room, s->out);
    taut_pass_input_grad(s->pass);
    k->get(s->room, s->pass->gx, s->len);
    for (int64_t i = 0; i < seq; i++) {
        double *e = s->noise + i * cols, square = 0;
        for (int64_t c = 0; c < cols; c++) {
            e[c] = s->room[(label + s->m->ahead + i) * s->d + c];
            if (i >= seq - label) e[c] += s->room[(i - seq + label) * s->d + c];
            square += e[c] * e[c];
        }
        const double scale = square > 0 ? radius * (1 - 0x1p-20) / sqrt(square) : 0;
        for (int64_t c = 0; c < cols; c++) e[c] *= scale;
    }
}

static double from_window(search *s, double radius, uint64_t key)
{
    const int64_t count = s->m->seq * s->m->columns;
    int64_t row = 0;
    double far = 0;
    for (int64_t i = 0; i < count; i++)
        s->noise[i] = radius / sqrt((double)s->m->columns) * (2 * taut_rng_unit(key, (uint64_t)i) - 1);
    memset(s->best, 0, (size_t)count * sizeof *s->best); /* where nothing moves the forecast */
    ask(s, s->y, NULL);
    for (int step = 0; step < STEPS; step++) {
        ask(s, s->moved, s->noise);
        const double now = farthest(s, &row);
        if (now > far) memcpy(s->best, s->noise, (size_t)count * sizeof *s->best);
        if (now > far) far = now;
        climb(s, row, radius);
    }
    return far;
}

static taut_status open_search(search *s, taut_model *m, bool backward)
{
    s->m = &m->spec;
    s->d = s->m->columns + s->m->marks;
    s->len = (s->m->seq + s->m->label + s->m->ahead) * s->d;
    s->out = s->m->ahead * s->m->classes;
    return taut_pass_create(&s->pass, m, 1, m->in.t, backward);
}

/* The same noise in double. */
static taut_status measure(search *s, double *found, const char *model)
{
    taut_model *exact = NULL;
    taut_status status = taut_model_open(&exact, model, taut_kernels_find("ref"), false);
    if (status) return status;
    int64_t row;
    s->pass = NULL;
    status = open_search(s, exact, false);
    if (!status) {
        ask(s, s->y, NULL);
        ask(s, s->moved, s->best);
        *found = fmax(*found, farthest(s, &row));
    }
    taut_pass_free(s->pass);
    taut_model_free(exact);
    return status;
}

static taut_status attack(search *s, taut_noise *n, taut_model *m, const char *path, const taut_source *data,
                          taut_split split)
{
    const int64_t all = taut_source_count(data, split), some = all < WINDOWS ? all : WINDOWS;
    double far = 0;
    int64_t best = 0;
    taut_status status = open_search(s, m, true);
    double *wanted = s->room; /* not looked at */
    for (int64_t i = 0; !status && i < some; i++) {
        const uint64_t key = taut_rng_key(1, TAUT_RNG_ATTACK, (uint64_t)i);
        data->ops->get(data, (taut_slot){ .reals = s->x, .wanted = wanted }, split, i * all / some);
        const double now = from_window(s, n->noise, key);
        if (now > far) far = now, best = i;
    }
    if (!status) { /* the noise of the best window once more: the others' is in its place */
        data->ops->get(data, (taut_slot){ .reals = s->x, .wanted = wanted }, split, best * all / some);
        from_window(s, n->noise, taut_rng_key(1, TAUT_RNG_ATTACK, (uint64_t)best));
    }
    taut_pass_free(s->pass);
    return status ? status : measure(s, &n->found, path);
}

taut_status taut_noise_find(taut_noise *n, const char *path, const taut_source *data, taut_split split)
{
    taut_model *m = NULL;
    taut_status status = taut_model_open(&m, path, taut_kernels_find("cpu"), false);
    if (status) return status;
    const taut_model_spec *spec = &m->spec;
    const int64_t noise = spec->seq * spec->columns, out = spec->ahead * spec->classes;
    const int64_t len = (spec->seq + spec->label + spec->ahead) * (spec->columns + spec->marks);
    double *room = taut_malloc((size_t)(2 * len + 2 * noise + 2 * out) * sizeof *room);
    search s = { .x = room, .room = room + len, .noise = room + 2 * len, .best = room + 2 * len + noise };
    s.y = room + 2 * len + 2 * noise, s.moved = s.y + out;
    status = room ? attack(&s, n, m, path, data, split) : taut_no_memory("a search");
    free(room);
    taut_model_free(m);
    return status;
}
