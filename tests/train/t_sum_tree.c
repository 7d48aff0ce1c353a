/* The gradient of a step is the sum over its micro-batches in one order, which this states once more: over n of them it is that
 * over the first 2^k, the largest power of two below n, plus that over the rest. */
#include "train/sum_tree.h"

#include <math.h>
#include <string.h>

#include "harness.h"

enum { SLAB = 37, MOST = 21 };

/* A number of leaf i at place e whose sums depend on their order. */
static double leaf_value(int64_t i, int64_t e)
{
    return sin(1.0 + (double)(7 * i + 3 * e)) * pow(10, (double)((i * 5 + e) % 7));
}

static double expected(int64_t lo, int64_t n, int64_t e)
{
    int64_t k = 1;
    if (n == 1) return leaf_value(lo, e);
    while (k * 2 < n) k *= 2;
    return expected(lo, k, e) + expected(lo + k, n - k, e);
}

typedef struct {
    const taut_model *m;
    int64_t next;
    bool rising, empty;
} seen;

static void leaf(void *arg, int64_t i)
{
    seen *s = arg;
    double x[SLAB], before[SLAB];
    s->m->k->get(before, s->m->grads, SLAB);
    for (int e = 0; e < SLAB; e++) {
        if (before[e] != 0) s->empty = false;
        x[e] = leaf_value(i, e);
    }
    if (i != s->next++) s->rising = false;
    s->m->k->put(s->m->grads, x, SLAB);
}

static void one_rank(int64_t leaves)
{
    const taut_kernels *k = taut_kernels_find("ref");
    double got[SLAB], numbers[MOST];
    taut_sum_tree *t = NULL;
    const taut_ranks alone = { .count = 1 };
    taut_model m = { .k = k, .slab = SLAB, .grads = taut_reals(k, SLAB) };
    seen s = { &m, 0, true, true };
    CHECK(taut_sum_tree_create(&t, &m, &alone, leaves) == TAUT_OK, taut_last_error());
    taut_sum_tree_gradients(t, leaf, &s);
    k->get(got, m.grads, SLAB);
    int wrong = 0;
    for (int e = 0; e < SLAB; e++) wrong += got[e] != expected(0, leaves, e);
    CHECK(wrong == 0, "sums in this order");
    CHECK(s.next == leaves && s.rising, "each leaf once, in order");
    CHECK(s.empty, "each begins at 0");
    for (int64_t i = 0; i < leaves; i++) numbers[i] = leaf_value(i, 5);
    CHECK(taut_sum_tree_number(t, numbers, 1) == expected(0, leaves, 5), "numbers in the same order");
    taut_sum_tree_free(t);
    k->release(m.grads);
}

static void too_many(void)
{
    taut_sum_tree *t = NULL;
    const taut_ranks three = { .rank = 1, .count = 3 };
    taut_model m = { .k = taut_kernels_find("ref"), .slab = SLAB };
    CHECK(taut_sum_tree_create(&t, &m, &three, 2) == TAUT_BAD_CONFIG, "more ranks than leaves");
    CHECK(strstr(taut_last_error(), "3 ranks, and a step has train.accumulate = 2"), "says why");
    taut_sum_tree_free(t);
}

int main(void)
{
    test_begin();
    for (case_no = 1; case_no <= MOST; case_no++) one_rank(case_no);
    too_many();
    return test_end("sum_tree", "1 to %d leaves, one order", MOST);
}
