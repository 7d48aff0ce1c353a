/* Which rank steps which weights: every element has one owner, matrices are whole, shares are as equal as those allow; and
 * the gradient's norm is the same number for any number of ranks. */
#include "train/owned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float32.h"
#include "harness.h"
#include "train/sum_tree.h"

enum { WEIGHTS = 6, RANKS = 9 };

static taut_param params[WEIGHTS] = {
    { .rows = 50, .cols = 12, .role = TAUT_TABLE },  { .rows = 1, .cols = 12, .role = TAUT_VECTOR },
    { .rows = 12, .cols = 40, .role = TAUT_MATRIX }, { .rows = 40, .cols = 12, .role = TAUT_MATRIX },
    { .rows = 50, .cols = 12, .role = TAUT_MATRIX }, { .rows = 1, .cols = 50, .role = TAUT_VECTOR },
};
static char paths[WEIGHTS][4];
static taut_weight weights[WEIGHTS];

static taut_model model_of(const taut_kernels *k)
{
    taut_model m = { .k = k, .weight = weights, .weights = WEIGHTS };
    for (int i = 0; i < WEIGHTS; i++) {
        snprintf(paths[i], sizeof paths[i], "w%d", i);
        weights[i] = (taut_weight){ &params[i], paths[i], m.slab };
        m.slab += (params[i].rows * params[i].cols + 15) / 16 * 16;
    }
    return m;
}

static void cuts(const taut_model *m, int count)
{
    int64_t next = 0, widest = 0;
    for (int r = 0; r < count; r++) {
        const taut_owned o = taut_owned_by(m, r, count);
        CHECK(o.lo == next && o.hi >= o.lo, "one owner each");
        next = o.hi;
        if (o.hi - o.lo > widest) widest = o.hi - o.lo;
        const taut_model part = taut_owned_weights(m, o);
        int seen = 0;
        for (int i = 0; i < m->weights; i++) {
            const taut_weight *w = &m->weight[i];
            const taut_owned of = taut_owned_of(o, w);
            if (of.lo == of.hi) continue;
            seen++;
            CHECK(w >= part.weight && w < part.weight + part.weights, "the weights of a rank");
            CHECK(of.lo % w->param->cols == 0 && of.hi % w->param->cols == 0, "whole rows");
            if (w->param->role != TAUT_TABLE) CHECK(of.lo == 0 && of.hi == taut_weight_len(w), "whole matrices");
        }
        CHECK(seen == part.weights, "and no others");
    }
    CHECK(next == m->slab, "all of them");
    CHECK_LE((double)widest, (double)m->slab / count + 700, "equal as far as matrices allow"); /* the largest has 650 */
    const taut_owned bias = taut_owned_of(taut_owned_by(m, count - 1, count), &m->weight[5]);
    CHECK(bias.hi == 50 || count > 4, "a bias lies with the matrix before it");
}

/* What each rank would sum up, gathered as messages would. */
static double square(const taut_model *m, int count, int64_t *sums)
{
    static double all[4096];
    int64_t n = 0;
    double sum = 0;
    for (int r = 0; r < count; r++) {
        taut_sum_tree *t = NULL;
        const taut_ranks one = { .rank = r, .count = count };
        CHECK(taut_sum_tree_create(&t, m, &one, count) == TAUT_OK, taut_last_error());
        taut_real *room = taut_reals(m->k, taut_sums_len(t->squares + 1));
        taut_span span = { room, taut_sums_len(t->squares + 1), m->k->elem };
        taut_sum *s = taut_take_sums(&span, t->squares + 1);
        taut_sum_tree_squares(t, s);
        CHECK(m->k->read(all + n, s, t->squares) == TAUT_OK, taut_last_error());
        n += t->squares;
        m->k->release(room);
        taut_sum_tree_free(t);
    }
    for (int64_t i = 0; i < n; i++) sum += all[i];
    *sums = n;
    return sum;
}

int main(void)
{
    test_begin();
    const taut_kernels *k = taut_kernels_find("cpu");
    taut_model m = model_of(k);
    double x[4096], exact = 0;
    m.grads = taut_reals(k, m.slab);
    for (int64_t i = 0; i < m.slab; i++) {
        x[i] = taut_float32(sin((double)(3 * i + 1)) * pow(10, (double)(i % 5)));
        exact += x[i] * x[i];
    }
    k->put(m.grads, x, m.slab);
    int64_t first, sums;
    const double one = square(&m, 1, &first);
    CHECK_LE(fabs(one - exact), 1e-12 * exact, "the square of the norm");
    for (case_no = 1; case_no <= RANKS; case_no++) {
        cuts(&m, (int)case_no);
        CHECK(square(&m, (int)case_no, &sums) == one && sums == first, "the same for any number of ranks");
    }
    k->release(m.grads);
    return test_end("owned", "1 to %d ranks, one owner each, one norm", RANKS);
}
