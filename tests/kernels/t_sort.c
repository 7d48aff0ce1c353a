/* Sorted groups and their permutation: cpu against ref bit by bit, ties, NaN and infinity, any group size. */
#include "kernels/pair.h"

static void make_ties(pair *x, int64_t kind)
{
    static const double odd[] = { 0, -0.0, 1, INFINITY, -INFINITY, NAN };
    for (int64_t i = 0; i < x->len; i++) {
        if (kind == 1) x->d[i] = (double)rng_int(-2, 2);
        if (kind == 2 && rng_int(0, 2) == 0) x->d[i] = odd[rng_int(0, 5)];
    }
    pair_sync(x);
}

/* y is x permuted by order, sorted, NaN first, ties in their order. */
static void check_order(const double *y, const double *order, const double *x, int64_t g)
{
    for (int64_t k = 0; k < g; k++) {
        const int64_t from = (int64_t)order[k];
        CHECK(from >= 0 && from < g, "an index inside the group");
        CHECK(isnan(y[k]) ? isnan(x[from]) : y[k] == x[from], "y is a permutation of x");
        if (k == 0) continue;
        const bool same = y[k - 1] == y[k] || (isnan(y[k - 1]) && isnan(y[k]));
        CHECK(same || isnan(y[k - 1]) || y[k - 1] > y[k], "the largest first");
        if (same) CHECK(order[k - 1] < order[k], "ties stay in their order");
    }
}

static void compare(int64_t groups, int64_t g, int64_t kind)
{
    const int64_t len = groups * g;
    pair x = pair_new(len, 3), y = pair_new(len, 0), order = pair_new(len, 0), t = pair_new(len, 1),
         u = pair_new(len, 0), v = pair_new(len, 0);
    make_ties(&x, kind);
    SAME_BITS(y,
              (ref->sort_groups(R(&y), R(&order), R(&x), groups, g), cpu->sort_groups(y.f, order.f, x.f, groups, g)));
    pair_near(&y, NULL, 0, 0, "sorted");
    pair_near(&order, NULL, 0, 0, "order");
    for (int64_t i = 0; i < groups; i++) check_order(y.d + i * g, order.d + i * g, x.d + i * g, g);
    SAME_BITS(u, (ref->permute_groups(R(&u), R(&t), R(&order), groups, g, false),
                  cpu->permute_groups(u.f, t.f, order.f, groups, g, false)));
    pair_near(&u, NULL, 0, 0, "permuted");
    SAME_BITS(v, (ref->permute_groups(R(&v), R(&u), R(&order), groups, g, true),
                  cpu->permute_groups(v.f, u.f, order.f, groups, g, true)));
    pair_same(&v, &t, "there and back again");
    ref->permute_groups(R(&v), R(&x), R(&order), groups, g, false);
    for (int64_t i = 0; i < len; i++)
        CHECK(isnan(y.d[i]) ? isnan(v.d[i]) : v.d[i] == y.d[i], "the permutation is the one that sorted");
    pair_free(&x), pair_free(&y), pair_free(&order), pair_free(&t), pair_free(&u), pair_free(&v);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(120); case_no++) {
        const int64_t g = case_no % 3 == 0 ? 2 : rng_int(1, case_no % 7 ? 9 : 200);
        compare(rng_int(0, case_no % 11 ? 12 : 6000 / g), g, case_no % 4 % 3);
    }
    compare(3, 0, 0);
    return test_end("sort", "cpu = ref bit by bit");
}
