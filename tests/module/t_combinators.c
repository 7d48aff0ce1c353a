/* mix, sequence, heads: laws in random trees, witnesses, and NULL children. */
#include "base/alloc.h"
#include "laws.h"

static taut_module *leaf(taut_shape in)
{
    switch (rng_int(0, 3)) {
    case 0:
        return taut_linear(in.d, in.d, true, TAUT_INIT_NORMAL, 1);
    case 1:
        return taut_pointwise((taut_curve)rng_int(0, 4), 1);
    case 2:
        return taut_rmsnorm(in.d, 0.1);
    default:
        return taut_position(in.t, in.d, 1);
    }
}

static taut_module *any_tree(taut_shape in)
{
    taut_module *const pair[] = { leaf(in), leaf(in) };
    const char *const names[] = { "a", "b" };
    switch (rng_int(0, 2)) {
    case 0:
        return taut_mix(taut_sequence(2, names, pair), rng_pm(), rng_pm());
    case 1:
        return taut_sequence(2, names, pair);
    default:
        return taut_heads(2, pair);
    }
}

/* 2 x + 3 (x + p) has slope 5; two scales in a row multiply; two side by side add in squares. */
static void witnesses(void)
{
    const char *const names[] = { "a", "b" };
    taut_module *const row[] = { taut_scale(2), taut_scale(-3) }, *const side[] = { taut_scale(3), taut_scale(4) };
    const struct {
        taut_module *m;
        double lip;
    } cases[] = { { taut_mix(taut_position(2, 2, 1), 2, 3), 5 },
                  { taut_sequence(2, names, row), 6 },
                  { taut_heads(2, side), 5 } };
    for (int i = 0; i < 3; i++) {
        law l;
        law_begin(&l, cases[i].m, (taut_shape){ 1, 2, 2 }, NULL);
        for (int n = 0; n < 2; n++) {
            CHECK_NEAR(law_ask(&l, (taut_norm)n, 1).lip.v, cases[i].lip, 1e-14, "witness: bound");
            CHECK_NEAR(slope_at(&l, (taut_norm)n, 60), cases[i].lip, 1e-9, "witness: attained");
        }
        law_end(&l);
    }
}

/* Allocation number n fails: the tree is NULL, and (under ASan) nothing leaks. */
static void out_of_memory(void)
{
    for (long n = 1; n < 12; n++) {
        const char *const names[] = { "a", "b" };
        taut_alloc_fail_at(n);
        taut_module *const pair[] = { taut_scale(2), taut_mix(taut_scale(3), 1, 1) };
        taut_module *m = n % 2 ? taut_sequence(2, names, pair) : taut_heads(2, pair);
        taut_alloc_fail_at(0);
        if (n <= 5) CHECK(m == NULL, "a failed allocation makes no tree");
        taut_module_free(m);
    }
}

int main(void)
{
    test_begin();
    laws(any_tree, 1);
    witnesses();
    out_of_memory();
    return test_end("combinators", "worst slope / bound = %.6f", law_worst);
}
