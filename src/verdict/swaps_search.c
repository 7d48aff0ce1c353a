/* Swaps that may turn an answer.  To first order a swap at place t changes the margin of the answer by (e_b - e_a) . g_t, g the
 * margin's gradient: those that lower it most are tried.  The best uncovered one is kept, and the next is sought beside it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "verdict/swaps.h"

typedef struct {
    taut_swap swap;
    double slope;
} candidate;

typedef struct {
    const taut_certificate *c;
    taut_pass *pass;
    taut_swapped *out;
    int32_t *ids; /* as swapped so far */
    bool *kept;   /* places that are swapped already */
    int32_t predicted;
    double *logits;       /* all that a pass gives */
    double *gradient;     /* (tokens, width) */
    candidate *candidate; /* (tries) */
    int64_t tries;
} search;

/* How far the predicted class is ahead of the next, as computed; NaN: no answer.  *second: which is the next. */
static double margin(search *s, int32_t *second)
{
    taut_pass *p = s->pass;
    const taut_kernels *k = p->m->k;
    taut_pass_read(p, (taut_input){ s->ids, NULL }, 1);
    const taut_shape y = p->logits.shape;
    const double *z = s->logits + (y.t - 1) * y.d;
    k->get(s->logits, p->logits.data, taut_len(y));
    double best = -INFINITY;
    for (int32_t j = 0; j < y.d; j++) {
        if (isnan(z[j])) return NAN;
        if (j == s->predicted || z[j] <= best) continue;
        best = z[j];
        *second = j;
    }
    s->out->tried++;
    return z[s->predicted] - best;
}

/* The gradient of the margin at the ids as they are. */
static double climb(search *s)
{
    taut_pass *p = s->pass;
    int32_t second = 0;
    const double ahead = margin(s, &second);
    const taut_shape y = p->logits.shape;
    double *last = s->logits + (y.t - 1) * y.d;
    memset(s->logits, 0, (size_t)taut_len(y) * sizeof *s->logits);
    last[s->predicted] = 1;
    last[second] = -1;
    p->m->k->put(p->logits.data, s->logits, taut_len(y));
    taut_pass_input_grad(p);
    p->m->k->get(s->gradient, p->gx, s->c->tokens * p->m->in.d);
    return ahead;
}

static double slope(const search *s, int64_t place, int32_t to)
{
    const taut_param *table = &s->c->model->embed;
    const double *a = taut_ref_values(table) + s->ids[place] * table->cols,
                 *b = taut_ref_values(table) + to * table->cols, *g = s->gradient + place * table->cols;
    double sum = 0;
    for (int64_t i = 0; i < table->cols; i++) sum += (b[i] - a[i]) * g[i];
    return sum;
}

/* The swaps between two distances (from `least` on, below `most`) that lower the margin most, in no order; how many. */
static int64_t choose(search *s, double least, double most)
{
    const taut_param *table = &s->c->model->embed;
    int64_t count = 0, worst = 0;
    for (int64_t i = 0; i < s->c->tokens; i++)
        for (int32_t to = 0; to < table->rows && !s->kept[i]; to++) {
            if (to == s->ids[i]) continue;
            const double falls = slope(s, i, to);
            if (count == s->tries && !(falls < s->candidate[worst].slope)) continue;
            const double apart = up_row_distance(table, s->ids[i], to).v;
            if (!(apart >= least && apart < most)) continue;
            s->candidate[count < s->tries ? count++ : worst] = (candidate){ { i, s->ids[i], to, apart }, falls };
            for (int64_t j = 0; j < count; j++)
                if (j == 0 || s->candidate[j].slope > s->candidate[worst].slope) worst = j;
        }
    return count;
}

/* Covered swaps, one at a time: one that turns the answer by more than rounding could is a contradiction. */
static void hold(search *s)
{
    const double slack = up_mul((taut_up){ 2 }, s->c->round).v;
    int32_t second;
    const int64_t count = choose(s, 0, s->out->radius.v);
    for (int64_t i = 0; i < count; i++) {
        const taut_swap w = s->candidate[i].swap;
        s->ids[w.place] = w.to;
        s->out->beaten += margin(s, &second) < -slack;
        s->ids[w.place] = w.from;
    }
    s->out->held += count;
}

/* The best covered swaps of k places, all at once. */
static void hold_together(search *s, int64_t k)
{
    const double slack = up_mul((taut_up){ 2 }, s->c->round).v, reach = taut_swaps_reach(s->c, s->out->radius, k).v;
    taut_swap made[TAUT_SWAPS_MOST];
    int64_t swaps = 0;
    int32_t second;
    for (; swaps < k; swaps++) {
        const int64_t count = choose(s, 0, reach);
        int64_t best = 0;
        for (int64_t i = 1; i < count; i++)
            if (s->candidate[i].slope < s->candidate[best].slope) best = i;
        if (count == 0) break;
        made[swaps] = s->candidate[best].swap;
        s->kept[made[swaps].place] = true;
    }
    for (int64_t i = 0; i < swaps; i++) s->ids[made[i].place] = made[i].to;
    if (swaps > 1) s->out->held++, s->out->beaten += margin(s, &second) < -slack;
    for (int64_t i = 0; i < swaps; i++) {
        s->ids[made[i].place] = made[i].from;
        s->kept[made[i].place] = false;
    }
}

/* One swap more: the one of those tried that leaves the smallest margin is kept.  True: it turned the answer. */
static bool swap_one(search *s, int64_t number)
{
    const int64_t count = choose(s, number == 0 ? s->out->radius.v : 0, INFINITY);
    double least = INFINITY;
    int32_t second;
    taut_swap best = { .place = -1 };
    for (int64_t i = 0; i < count; i++) {
        const taut_swap w = s->candidate[i].swap;
        s->ids[w.place] = w.to;
        const double ahead = margin(s, &second);
        s->ids[w.place] = w.from;
        if (!(ahead < least)) continue;
        least = ahead;
        best = w;
    }
    if (best.place < 0) return false;
    s->out->by[number] = best;
    s->ids[best.place] = best.to;
    s->kept[best.place] = true;
    return least < 0;
}

/* Swaps that were found together and are all covered together contradict the proof. */
static void judge(search *s, int64_t number)
{
    const double reach = taut_swaps_reach(s->c, s->out->radius, number).v;
    int64_t covered = 0;
    int32_t second;
    for (int64_t i = 0; i < number; i++) covered += s->out->by[i].distance < reach;
    s->out->turned = number;
    s->out->beaten += covered == number && margin(s, &second) < -up_mul((taut_up){ 2 }, s->c->round).v;
}

taut_status taut_swaps_search(taut_swapped *out, const taut_certificate *c, taut_pass *pass, const int32_t *ids,
                              int32_t predicted, const taut_swaps_way *way)
{
    const taut_shape y = taut_plan_of(c->model->root, c->model->in).out;
    search s = { .c = c, .pass = pass, .out = out, .predicted = predicted, .tries = way->tries };
    s.ids = taut_malloc((size_t)c->tokens * sizeof *s.ids);
    s.kept = taut_calloc((size_t)c->tokens, sizeof *s.kept);
    s.logits = taut_malloc((size_t)taut_len(y) * sizeof *s.logits);
    s.gradient = taut_malloc((size_t)(c->tokens * c->model->in.d) * sizeof *s.gradient);
    s.candidate = taut_malloc((size_t)way->tries * sizeof *s.candidate);
    const bool room = s.ids && s.kept && s.logits && s.gradient && s.candidate;
    if (room) {
        memcpy(s.ids, ids, (size_t)c->tokens * sizeof *s.ids);
        climb(&s);
        hold(&s);
        for (int64_t k = 2; k <= way->most; k++) hold_together(&s, k);
        for (int64_t k = 0; k < way->most && !out->turned; k++) {
            if (k) climb(&s);
            if (swap_one(&s, k)) judge(&s, k + 1);
        }
    }
    void *all[] = { s.ids, s.kept, s.logits, s.gradient, s.candidate };
    for (int i = 0; i < 5; i++) free(all[i]);
    return room ? TAUT_OK : taut_no_memory("a search for swaps");
}
