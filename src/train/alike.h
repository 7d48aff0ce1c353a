/* Matrices of one shape, which Muon, the polar constraint and Specformer take side by side: a device is idle with one. */
#ifndef TAUT_TRAIN_ALIKE_H
#define TAUT_TRAIN_ALIKE_H
#include "model/model.h"

enum { TAUT_SIDE_BY_SIDE = TAUT_MANY }; /* the most */

/* Not a matrix with rows of length 1: that steps as vectors do. */
static inline bool taut_is_matrix(const taut_param *p) { return p->role == TAUT_MATRIX && !p->unit_rows; }

static inline int64_t taut_parts_of(const taut_param *p) { return p->parts > 1 ? p->parts : 1; }

static inline bool taut_alike(const taut_param *p, const taut_param *q)
{
    return taut_is_matrix(p) && taut_is_matrix(q) && p->rows == q->rows && p->cols == q->cols &&
           taut_parts_of(p) == taut_parts_of(q);
}

/* How many like p go side by side: as many as a few dozen megabytes hold. */
static inline int taut_side_by_side(const taut_model *m, const taut_param *p)
{
    const int64_t most = ((int64_t)1 << 24) / (p->rows * p->cols > 0 ? p->rows * p->cols : 1);
    int count = 0;
    for (int i = 0; i < m->weights; i++) count += taut_alike(m->weight[i].param, p);
    if (count > most) count = most > 1 ? (int)most : 1;
    return count < TAUT_SIDE_BY_SIDE ? count : TAUT_SIDE_BY_SIDE;
}

/* The next of them, from weight number *at on: at most `most`, and *at moves behind the last.  0: there is none. */
static inline int taut_next_alike(const taut_weight *chosen[TAUT_SIDE_BY_SIDE], const taut_model *m, int *at,
                                  const taut_param *p, int most)
{
    int count = 0;
    for (; *at < m->weights && count < most; ++*at)
        if (taut_alike(m->weight[*at].param, p)) chosen[count++] = &m->weight[*at];
    return count;
}

/* Where `count` arrays of `len` numbers lie, one behind the other from `first` on. */
static inline void taut_lay_out(const taut_kernels *k, taut_real *at[TAUT_SIDE_BY_SIDE], taut_real *first, int count,
                                int64_t len)
{
    for (int j = 0; j < count; j++) at[j] = taut_at(k, first, j * len);
}

static inline bool taut_first_alike(const taut_model *m, int i)
{
    for (int j = 0; j < i; j++)
        if (taut_alike(m->weight[j].param, m->weight[i].param)) return false;
    return taut_is_matrix(m->weight[i].param);
}
#endif
