#include "train/owned.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static bool is_table(const taut_param *p) { return p->role == TAUT_TABLE && !p->unit_rows; }
static bool begins(const taut_param *p) { return p->role == TAUT_MATRIX || p->role == TAUT_TABLE; }

/* Where the range of rank r begins: the cut nearest to its equal share. */
static int64_t cut(const taut_model *m, int r, int count)
{
    const int64_t want = m->slab / count * r + m->slab % count * r / count;
    int64_t before = 0, after = m->slab;
    if (r == count) return m->slab;
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        const int64_t end = w->offset + taut_weight_len(w);
        if (is_table(w->param) && w->offset <= want && want < end) return want - (want - w->offset) % w->param->cols;
        if (!begins(w->param)) continue;
        if (w->offset <= want) before = larger(before, w->offset);
        if (w->offset > want) after = smaller(after, w->offset);
    }
    return want - before <= after - want ? before : after;
}

taut_owned taut_owned_by(const taut_model *m, int rank, int count)
{
    return (taut_owned){ cut(m, rank, count), cut(m, rank + 1, count) };
}

taut_owned taut_owned_of(taut_owned o, const taut_weight *w)
{
    const int64_t lo = larger(o.lo - w->offset, 0), hi = smaller(o.hi - w->offset, taut_weight_len(w));
    return lo < hi ? (taut_owned){ lo, hi } : (taut_owned){ 0, 0 };
}

taut_model taut_owned_weights(const taut_model *m, taut_owned o)
{
    taut_model part = *m;
    int first = 0, end = m->weights;
    while (first < end && taut_owned_of(o, &m->weight[first]).hi == 0) first++;
    while (end > first && taut_owned_of(o, &m->weight[end - 1]).hi == 0) end--;
    part.weight += first, part.weights = end - first;
    return part;
}

void taut_owned_share(const taut_model *m, const taut_ranks *r, const taut_messages *to)
{
    const int64_t elem = (int64_t)m->k->elem;
    if (r->count == 1) return;
    const taut_owned mine = taut_owned_by(m, r->rank, r->count);
    for (int i = 0; i < r->count; i++) {
        const taut_owned theirs = taut_owned_by(m, i, r->count);
        if (i == r->rank) continue;
        to->receive(taut_at(m->k, m->values, theirs.lo), (theirs.hi - theirs.lo) * elem, i);
        to->send(taut_at(m->k, m->values, mine.lo), (mine.hi - mine.lo) * elem, i);
    }
    to->wait();
}
