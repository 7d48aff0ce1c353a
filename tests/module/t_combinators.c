/* mix, sequence, heads, borrow: laws in random trees, witnesses, NULL children; a tour finds every part where it stands. */
#include "base/alloc.h"
#include "base/float32.h"
#include "laws.h"
#include "stated.h"

static taut_module *leaf(taut_shape in)
{
    switch (rng_int(0, 3)) {
    case 0:
        return taut_linear(in.d, in.d, true, TAUT_INIT_NORMAL, 1);
    case 1:
        return taut_pointwise((taut_curve)rng_int(0, 5), 1);
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
        law_begin(&l, cases[i].m, (taut_shape){ 1, 2, 2 });
        for (int n = 0; n < 2; n++) {
            CHECK_STATED(law_ask(&l, (taut_norm)n, 1).lip.v, cases[i].lip, 3, 1e-14, "witness: bound");
            CHECK_NEAR(slope_at(&l, (taut_norm)n, 60), cases[i].lip, 1e-9, "witness: attained");
        }
        law_end(&l);
    }
}

/* A borrowed tree answers as the tree does, to the last bit, and leaves its weights to the owner. */
static void borrowed(void)
{
    for (case_no = 0; case_no < effort(40); case_no++) {
        const taut_shape in = { rng_int(1, 2), rng_int(1, 3), rng_int(1, 4) };
        law own, lent;
        law_begin(&own, any_tree(in), in);
        law_begin(&lent, taut_borrow(own.m), in);
        CHECK(lent.params == 0, "borrow: no weights of its own");
        memcpy(lent.x, own.x, (size_t)own.nx * 8);
        law_forward(&lent, lent.y);
        CHECK(memcmp(lent.y, own.y, (size_t)own.ny * 8) == 0, "borrow: the same function");
        law_adjoint(&lent), law_derivative(&lent);
        for (int n = 0; n < 2; n++) {
            const taut_up lip = law_ask(&own, (taut_norm)n, 2).lip;
            CHECK(law_ask(&lent, (taut_norm)n, 2).lip.v == up_state(NULL, "lip", lip).v,
                  "borrow: its bound, stated again");
        }
        law_bound(&lent);
        law_end(&lent), law_end(&own);
    }
}

/* Every part, run again on the input where it stands, gives what the next one stands on. */
static void look(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    static const char *const order[] = { "sequence", "scale", "mix", "sequence", "scale", "position" };
    static const int depths[] = { 0, 1, 1, 2, 3, 3 };
    static const double input[] = { 1, 1, 2, 2, 2, 6 };
    int *seen = arg;
    CHECK(*seen < 6 && strcmp(m->ops->kind, order[*seen]) == 0 && depth == depths[*seen], name);
    CHECK(*(const double *)(const void *)at.x.data == input[*seen], "tour: the input of a part");
    ++*seen;
}

/* x = 1: twice, then x + (3 x + p) */
static void tour(void)
{
    const char *const outer[] = { "twice", "" }, *const inner[] = { "thrice", "pos" };
    taut_module *const branch[] = { taut_scale(3), taut_position(1, 1, 1) };
    taut_module *const row[] = { taut_scale(2), taut_mix(taut_sequence(2, inner, branch), 1, 1) };
    law l;
    int seen = 0;
    law_begin(&l, taut_sequence(2, outer, row), (taut_shape){ 1, 1, 1 });
    l.x[0] = 1;
    law_forward(&l, l.y);
    taut_tour_parts(l.m, law_at(&l), look, &seen);
    CHECK(seen == 6, "tour: every part once");
    law_end(&l);
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

/* As many children as one likes, in all five answers, and from each of them the right point of a tour. */
static void long_row(void)
{
    enum { MANY = 300 };
    taut_module *row[MANY];
    law l;
    double whole = 1;
    for (int i = 0; i < MANY; i++) {
        const double factor = 1 + 0.25 * sin(i);
        row[i] = i % 3 ? taut_scale(taut_float32(factor)) : taut_position(2, 2, 1);
        whole *= i % 3 ? taut_float32(factor) : 1;
    }
    law_begin(&l, taut_sequence(MANY, NULL, row), (taut_shape){ 1, 2, 2 });
    law_adjoint(&l);
    for (int n = 0; n < 2; n++) {
        CHECK_NEAR(law_ask(&l, (taut_norm)n, 1).lip.v / whole, 1, 1e-6, "the bound of a long row");
        CHECK_NEAR(slope_at(&l, (taut_norm)n, 60) / whole, 1, 1e-9, "its slope");
    }
    law_end(&l);
}

int main(void)
{
    test_begin();
    long_row();
    laws(any_tree, 1);
    witnesses();
    borrowed();
    tour();
    out_of_memory();
    return test_end("combinators", "worst slope / bound = %.6f", law_worst);
}
