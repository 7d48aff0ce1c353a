/* Linear, alone and tied to a table.  Witness: the top singular vector of a diagonal W attains ||W||. */
#include "laws.h"
#include "stated.h"

static taut_module *make(taut_shape in) { return taut_linear(rng_int(1, 6), in.d, rng_int(0, 1), TAUT_INIT_NORMAL, 1); }

static void witness(void)
{
    law l;
    law_begin(&l, taut_linear(3, 3, true, TAUT_INIT_NORMAL, 1), (taut_shape){ 1, 2, 3 });
    double *w = (double *)l.seen[0]->value;
    memset(w, 0, 9 * 8);
    w[0] = 0.5, w[4] = -2, w[8] = 1;
    for (int n = 0; n < 2; n++) {
        const taut_answer b = law_ask(&l, (taut_norm)n, 1);
        CHECK_LE(b.lip.v, stated_at_most(2 * (1 + 1e-9), 2), "witness: ||diag(.5, -2, 1)|| = 2");
        CHECK_LE(2, b.lip.v, "witness: and not below");
        CHECK_LE(2 * (1 - 1e-9), slope_at(&l, (taut_norm)n, 60), "witness: attained");
    }
    law_end(&l);
}

/* A tied layer owns only its bias, and its gradient goes into the table's. */
static void tied(void)
{
    double value[6] = { 1, 2, 3, 4, 5, 6 }, grad[6] = { 0 };
    taut_param table = { .name = "table",
                         .rows = 3,
                         .cols = 2,
                         .role = TAUT_TABLE,
                         .value = (taut_real *)value,
                         .grad = (taut_real *)grad };
    law l;
    law_begin(&l, taut_linear_tied(&table, true), (taut_shape){ 1, 1, 2 });
    CHECK(l.params == 1, "tied: the table belongs to somebody else");
    law_adjoint(&l);
    law_derivative(&l);
    memset(grad, 0, sizeof grad);
    l.v[0] = 0, l.v[1] = 1, l.v[2] = 0;
    law_vjp(&l);
    for (int i = 0; i < 6; i++) CHECK_NEAR(grad[i], i / 2 == 1 ? l.x[i % 2] : 0, 0, "tied: gradient in the table");
    law_end(&l);
}

int main(void)
{
    test_begin();
    laws(make, 1);
    witness();
    tied();
    return test_end("linear", "worst slope / bound = %.6f", law_worst);
}
