#include "train/sum_tree.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/between.h"

enum { LEAST = 256, MOST = 2048 }; /* elements of a stretch, stretches of a model */

static int64_t half(int64_t count)
{
    int64_t p = 1;
    while (2 * p < count) p *= 2;
    return p;
}

static int64_t levels(int64_t leaves)
{
    int64_t n = 0;
    for (int64_t p = 1; p < leaves; p *= 2) n++;
    return n;
}

/* Rank r has the leaves from begin(r) to begin(r + 1). */
static int64_t begin(const taut_sum_tree *t, int64_t r) { return t->leaves * r / t->ranks.count; }

static int64_t stretches_before(const taut_sum_tree *t, int64_t element)
{
    return (element + t->stretch - 1) / t->stretch;
}

/* The gradients that rank r needs: those of its weights, and the rest of a stretch. */
static taut_owned share(const taut_sum_tree *t, int r)
{
    taut_owned o = taut_owned_by(t->m, r, t->ranks.count);
    const int64_t end = stretches_before(t, o.hi) * t->stretch;
    if (o.lo < o.hi) o.hi = end < t->m->slab ? end : t->m->slab;
    return o;
}
static int64_t length(taut_owned o) { return o.hi - o.lo; }
static int owner(const taut_sum_tree *t, int64_t leaf)
{
    int r = 0;
    while (begin(t, r + 1) <= leaf) r++;
    return r;
}

/* Does one rank have all of it? */
static bool is_part(const taut_sum_tree *t, int64_t lo, int64_t hi) { return owner(t, lo) == owner(t, hi - 1); }

/* Calls see(t, lo, hi, arg) for the largest subtrees that one rank has, from left to right. */
static void each_part(taut_sum_tree *t, int64_t lo, int64_t hi, void (*see)(taut_sum_tree *, int64_t, int64_t, void *),
                      void *arg)
{
    const int64_t mid = lo + half(hi - lo);
    if (is_part(t, lo, hi)) {
        see(t, lo, hi, arg);
        return;
    }
    each_part(t, lo, mid, see, arg);
    each_part(t, mid, hi, see, arg);
}

static void count_part(taut_sum_tree *t, int64_t lo, int64_t hi, void *arg)
{
    (void)hi, (void)arg;
    t->others++;
    t->parts += owner(t, lo) == t->ranks.rank;
}

int64_t taut_sum_tree_len(const taut_model *m, int64_t leaves) { return levels(leaves) * m->slab; }

taut_status taut_sum_tree_create(taut_sum_tree **out, const taut_model *m, const taut_ranks *r, int64_t leaves)
{
    taut_sum_tree *t = *out = taut_calloc(1, sizeof *t);
    if (!t) return taut_no_memory("the sums of gradients");
    *t = (taut_sum_tree){ .m = m, .ranks = *r, .leaves = leaves };
    if (r->count > leaves)
        return taut_fail(TAUT_BAD_CONFIG,
                         "%d ranks, and a step has train.accumulate = %lld micro-batches to share: at most "
                         "that many ranks",
                         r->count, (long long)leaves);
    const bool several = r->count > 1 || r->to_itself;
    const taut_status s = several ? taut_between(&t->to, m->k, &t->ranks) : TAUT_OK;
    if (s) return s;
    t->first = begin(t, r->rank), t->end = begin(t, r->rank + 1);
    if (several) each_part(t, 0, leaves, count_part, NULL);
    const taut_owned owned = taut_owned_by(m, r->rank, r->count);
    t->stretch = LEAST;
    while (t->stretch * MOST < m->slab) t->stretch *= 2;
    t->squares = stretches_before(t, owned.hi) - stretches_before(t, owned.lo);
    const int64_t mine = length(share(t, r->rank)), own = taut_sum_tree_len(m, t->end - t->first);
    const int64_t len = own + t->parts * m->slab + t->others * mine;
    if (len && !(t->memory = taut_reals(m->k, len))) return taut_no_memory("the sums of gradients");
    t->wait = t->memory;
    t->part = taut_at(m->k, t->memory, own);
    t->in = taut_at(m->k, t->part, t->parts * m->slab);
    return TAUT_OK;
}

void taut_sum_tree_free(taut_sum_tree *t)
{
    if (t && t->memory) t->m->k->release(t->memory);
    if (t && t->to && t->to != t->ranks.m) t->to->close();
    free(t);
}

typedef struct {
    void (*leaf)(void *, int64_t);
    void *arg;
} leaves;

/* The sum over leaves that are all this rank's, in the gradients. */
static void sum_own(taut_sum_tree *t, int64_t lo, int64_t hi, const leaves *l)
{
    const taut_model *m = t->m;
    if (hi - lo == 1) {
        m->k->axpby(m->grads, 0, m->grads, 0, m->slab);
        l->leaf(l->arg, lo);
        return;
    }
    const int64_t mid = lo + half(hi - lo);
    taut_real *left = taut_at(m->k, t->wait, (levels(hi - lo) - 1) * m->slab); /* below, smaller levels are used */
    sum_own(t, lo, mid, l);
    m->k->axpby(left, 1, m->grads, 0, m->slab);
    sum_own(t, mid, hi, l);
    m->k->axpby(m->grads, 1, left, 1, m->slab);
}

/* A part that is this rank's is summed up, and each share of it begins its way to the rank that needs it, while the next part is
 * computed.  This rank's share of all parts: in `in`, from left to right. */
static void see_part(taut_sum_tree *t, int64_t lo, int64_t hi, void *arg)
{
    const taut_model *m = t->m;
    const taut_kernels *k = m->k;
    const int me = t->ranks.rank, from = owner(t, lo);
    const int64_t mine = length(share(t, me));
    taut_real *here = taut_at(k, t->in, t->seen++ * mine);
    if (from != me) {
        t->to->receive(here, mine * (int64_t)k->elem, from);
        return;
    }
    taut_real *part = taut_at(k, t->part, t->at++ * m->slab);
    sum_own(t, lo, hi, arg);
    k->axpby(part, 1, m->grads, 0, m->slab);
    for (int r = 0; r < t->ranks.count; r++)
        if (r != me || t->ranks.to_itself)
            t->to->send(taut_at(k, part, share(t, r).lo), length(share(t, r)) * (int64_t)k->elem, r);
    if (t->ranks.to_itself)
        t->to->receive(here, mine * (int64_t)k->elem, me);
    else
        k->axpby(here, 1, taut_at(k, part, share(t, me).lo), 0, mine);
}

/* This rank's share of the sum over [lo, hi): in the place of its first part. */
static taut_real *sum_shares(taut_sum_tree *t, int64_t lo, int64_t hi, int64_t *number)
{
    const taut_kernels *k = t->m->k;
    const int64_t mine = length(share(t, t->ranks.rank)), mid = lo + half(hi - lo);
    if (is_part(t, lo, hi)) return taut_at(k, t->in, (*number)++ * mine);
    taut_real *left = sum_shares(t, lo, mid, number), *right = sum_shares(t, mid, hi, number);
    k->axpby(left, 1, right, 1, mine);
    return left;
}

void taut_sum_tree_gradients(taut_sum_tree *t, void (*leaf)(void *arg, int64_t i), void *arg)
{
    const taut_model *m = t->m;
    const taut_owned mine = share(t, t->ranks.rank);
    leaves l = { leaf, arg };
    int64_t number = 0;
    if (!t->to) {
        sum_own(t, 0, t->leaves, &l);
        return;
    }
    t->at = t->seen = 0;
    each_part(t, 0, t->leaves, see_part, &l);
    t->to->wait();
    const taut_real *sum = sum_shares(t, 0, t->leaves, &number);
    m->k->axpby(taut_at(m->k, m->grads, mine.lo), 1, sum, 0, length(mine));
}

void taut_sum_tree_squares(const taut_sum_tree *t, taut_sum *sums)
{
    const taut_model *m = t->m;
    const int64_t first = stretches_before(t, taut_owned_by(m, t->ranks.rank, t->ranks.count).lo);
    const int64_t whole = m->slab / t->stretch - first; /* the last of all may be shorter */
    const int64_t count = t->squares < whole ? t->squares : whole;
    const taut_real *g = taut_at(m->k, m->grads, first * t->stretch), *rest = taut_at(m->k, g, count * t->stretch);
    const int64_t left = m->slab % t->stretch;
    if (t->squares == 0) return;
    if (count > 0) m->k->dot(sums, g, t->stretch, g, t->stretch, count, t->stretch);
    if (count < t->squares) m->k->dot(taut_sum_at(sums, count), rest, left, rest, left, 1, left);
}

double taut_sum_tree_square(const taut_sum_tree *t, const double *mine)
{
    const int count = t->ranks.count;
    int64_t most = 0;
    for (int r = 0; r < count; r++) {
        const taut_owned o = taut_owned_by(t->m, r, count);
        const int64_t own = stretches_before(t, o.hi) - stretches_before(t, o.lo);
        if (own > most) most = own;
    }
    double *all = taut_calloc((size_t)(most * count + 1), sizeof *all), sum = 0;
    if (!all) return (double)NAN;
    for (int64_t i = 0; i < t->squares; i++) all[most * t->ranks.rank + i] = mine[i];
    if (count > 1) t->ranks.m->gather(all, most * (int64_t)sizeof *all);
    for (int64_t i = 0; i < most * count; i++) sum += all[i]; /* behind those of a rank: 0 */
    free(all);
    return sum;
}

static double sum_numbers(const double *x, int64_t lo, int64_t hi)
{
    if (hi - lo == 1) return x[lo];
    const int64_t mid = lo + half(hi - lo);
    return sum_numbers(x, lo, mid) + sum_numbers(x, mid, hi);
}

double taut_sum_tree_number(const taut_sum_tree *t, const double *mine, int64_t stride)
{
    const int count = t->ranks.count;
    const int64_t most = (t->leaves + count - 1) / count; /* leaves of a rank */
    double *all = taut_calloc((size_t)(most * count + t->leaves), sizeof *all);
    if (!all) return (double)NAN;
    double *block = all + most * t->ranks.rank, *row = all + most * count;
    for (int64_t i = t->first; i < t->end; i++) block[i - t->first] = mine[(i - t->first) * stride];
    if (count > 1) t->ranks.m->gather(all, most * (int64_t)sizeof *all);
    for (int r = 0; r < count; r++)
        for (int64_t i = begin(t, r); i < begin(t, r + 1); i++) row[i] = all[most * r + i - begin(t, r)];
    const double sum = sum_numbers(row, 0, t->leaves);
    free(all);
    return sum;
}
