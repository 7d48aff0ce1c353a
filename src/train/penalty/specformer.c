/* With u, v the unit singular vectors of the largest singular value s:  ds/dW = u v^T.  est_top_pair finds them by power
 * iteration from the row sums of a fixed pattern, so the same weights give the same bits. */
#include <string.h>

#include "train/constrain/hold.h"
#include "train/penalty/penalty.h"

enum { ITERATIONS = 32 }; /* each is worth eight */

static double weight_of(const taut_penalty_spec *s, const char *path)
{
    const size_t len = strlen(path);
    const char *end = len > 13 ? path + len - 13 : "";
    if (strcmp(end, "attn.q.weight") == 0) return s->query;
    if (strcmp(end, "attn.k.weight") == 0) return s->key;
    return strcmp(end, "attn.v.weight") == 0 ? s->value : 0;
}

int64_t taut_specformer_work(const taut_model *m, const taut_penalty_spec *s)
{
    int64_t most = 0;
    for (int i = 0; s->kind == TAUT_SPECFORMER && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t side = p->rows < p->cols ? p->rows : p->cols;
        const int64_t need = 2 * side * side + side + p->rows + p->cols + taut_sums_len(1) + taut_sums_len(2);
        if (weight_of(s, m->weight[i].path) > 0 && need > most) most = need;
    }
    return most;
}

void taut_specformer_add(const taut_model *m, const taut_penalty_spec *s, taut_sum *sum, taut_span work)
{
    const taut_kernels *k = m->k;
    for (int i = 0; s->kind == TAUT_SPECFORMER && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const double weight = weight_of(s, m->weight[i].path);
        if (!(weight > 0)) continue;
        taut_span room = work;
        taut_real *u = taut_take(&room, p->rows), *v = taut_take(&room, p->cols);
        k->axpby(v, 0, v, 0, p->cols);
        k->sum_rows(v, p->value, p->rows, p->cols, 1); /* the sum of the rows of W, which is seldom across its top */
        taut_sum *top = taut_take_sums(&room, 1);
        est_top_pair(k, top, u, v, p->value, p->rows, p->cols, ITERATIONS, room);
        k->gemm(p->grad, u, v, p->rows, p->cols, 1, false, false, weight, 1);
        k->sum_op(sum, TAUT_SUM_ADD, weight, sum, top, 1);
    }
}
