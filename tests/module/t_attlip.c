/* AttLip: the laws, T1's solution, the witness, every solver against every other, K steps and their jump. */
#include "laws.h"
#include "stated.h"

static taut_attlip_spec spec_of(int64_t width, int64_t heads, int64_t head_width)
{
    return (taut_attlip_spec){ .width = width,
                               .heads = heads,
                               .head_width = head_width,
                               .eta = 1,
                               .tol = 1e-12,
                               .slope_tol = 1e-15,
                               .init = TAUT_INIT_NORMAL,
                               .gain = 1 };
}

static void place(taut_attlip_spec *a) /* positions that count, or not */
{
    a->near = rng_int(0, 1) ? rng_unit() : 0;
    a->rope_base = rng_int(0, 1) ? 10 : 0;
}

static taut_module *random_attlip(taut_shape in)
{
    taut_attlip_spec a = spec_of(in.d, rng_int(1, 2), rng_int(1, 3));
    a.eta = 0.2 + 2 * rng_unit();
    a.learned = rng_int(0, 1);
    a.reflected = rng_int(0, 1);
    a.solver = rng_int(0, 3) ? TAUT_PROX_LBFGS : TAUT_PROX_NEWTON;
    place(&a);
    return taut_attlip(&a);
}

/* Unrolled steps: the laws of derivatives, away from jumps; there is no bound. */
static taut_module *random_unrolled(taut_shape in)
{
    taut_attlip_spec a = spec_of(in.d, rng_int(1, 2), rng_int(1, 3));
    a.steps = (int)rng_int(1, 3);
    a.solver = TAUT_PROX_DESCENT;
    a.unrolled = true;
    place(&a);
    a.learned = rng_int(0, 1);
    a.reflected = rng_int(0, 1);
    return taut_attlip(&a);
}

/* T1: prox and its exact local constant; T6: tokens may be reordered; T7: |prox x| <= |x|, prox 0 = 0. */
static void vector_t1(void)
{
    const double x[] = { 1, 0, 0, 2, -1, 1 }, w[] = { 1, 0.5, 0, 1 };
    const double want[] = { 0.4425095433003734, -0.21391623504122145, -0.1831445113603542,
                            0.5716042326523614, -0.5065784829773841,  0.3457511999872247 };
    static const int order[] = { 2, 0, 1 };
    taut_attlip_spec a = spec_of(2, 1, 2);
    law l;
    law_begin(&l, taut_attlip(&a), (taut_shape){ 1, 3, 2 });
    memcpy(l.seen[0]->value, w, sizeof w);
    memcpy(l.x, x, sizeof x);
    law_forward(&l, l.y);
    /* the module rounds 1/sqrt(2) to float: 2e-8 relative, and so for T1's digits */
    for (int i = 0; i < 6; i++) CHECK_NEAR(l.y[i], want[i], 1e-7, "T1 prox");
    CHECK_NEAR(slope_at(&l, TAUT_NORM_FLAT, 4000), 0.43047493873928616, 1e-7, "T1 local constant");
    CHECK_LE(norm(l.y, 6), norm(x, 6), "T7: prox does not grow");
    double keep[6];
    memcpy(keep, l.y, sizeof keep);
    for (int i = 0; i < 3; i++) memcpy(l.x + 2 * i, x + 2 * order[i], 16);
    law_forward(&l, l.y);
    for (int i = 0; i < 6; i++) CHECK_NEAR(l.y[i], keep[2 * order[i / 2] + i % 2], 1e-11, "T6: tokens in any order");
    memset(l.x, 0, 48);
    law_forward(&l, l.y);
    for (int i = 0; i < 6; i++) CHECK(l.y[i] == 0, "T7: prox 0 = 0");
    law_end(&l);
}

/* A direction that no head sees passes untouched: the constant is exactly 1, and -1 times it when nothing is kept. */
static void witness(void)
{
    for (int reflected = 0; reflected < 2; reflected++) {
        taut_attlip_spec a = spec_of(4, 1, 2);
        a.reflected = reflected;
        law l;
        law_begin(&l, taut_attlip(&a), (taut_shape){ 1, 3, 4 });
        CHECK_NEAR(law_climb(&l, TAUT_NORM_FLAT, 1, 2), 1, 1e-9, "witness: the constant 1 is attained");
        CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == 1, "bound 1");
        CHECK_STATED(law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v, sqrt(3), 1, 1e-15, "bound in norm tokens");
        const double factor = reflected ? 4e-12 : 2e-12; /* 2 k eta tol */
        CHECK_NEAR(law_ask(&l, TAUT_NORM_FLAT, 1).round.v / factor, 1, reflected ? 1e-2 : 1e-6, "defect");
        law_end(&l);
    }
}

/* Rotations alone, one token: R_0 = I.  Two tokens far apart under a steep slope do not see each other. */
static void positions(void)
{
    taut_attlip_spec a = spec_of(4, 2, 2);
    double y[3][4];
    for (int i = 0; i < 3; i++) {
        a.near = i == 1 ? 1e3 : 0;
        a.rope_base = i == 2 ? 10 : 0;
        law l;
        rng_state = 79;
        law_begin(&l, taut_attlip(&a), (taut_shape){ 1, i == 1 ? 2 : 1, 4 });
        for (int64_t j = 0; j < l.nx; j++) l.x[j] = 0.3 * (double)(j + 1);
        law_forward(&l, l.y);
        memcpy(y[i], l.y, sizeof y[i]);
        law_end(&l);
    }
    for (int j = 0; j < 4; j++) CHECK_NEAR(y[1][j], y[0][j], 1e-11, "too far away to be seen");
    for (int j = 0; j < 4; j++) CHECK(y[2][j] == y[0][j], "position 0 is not turned");
}

/* Every solver finds the same point; only the steps differ. */
static void solvers_agree(void)
{
    double *first = NULL;
    for (int solver = TAUT_PROX_LBFGS; solver <= TAUT_PROX_BARZILAI; solver++) {
        taut_attlip_spec a = spec_of(6, 2, 3);
        a.solver = (taut_prox_solver)solver;
        a.near = 0.5, a.rope_base = 10;
        a.tol = 1e-9; /* which the rounding of phi hides from a rule that looks at phi alone */
        law l;
        rng_state = 77;
        law_begin(&l, taut_attlip(&a), (taut_shape){ 2, 5, 6 });
        taut_solves log = { 0 };
        const taut_watcher watch = { .solved = taut_solves_add, .arg = &log };
        l.run.watch = &watch;
        law_forward(&l, l.y);
        CHECK(log.abstained == 0 && log.solves == 2, "every solver gets there");
        if (!first) first = memcpy(doubles(l.ny), l.y, (size_t)l.ny * 8);
        for (int64_t i = 0; i < l.ny; i++) CHECK_NEAR(l.y[i], first[i], 2e-9, "solvers agree");
        law_end(&l);
    }
    free(first);
}

/* A descent that is given too few steps says so, and one more than it needs changes nothing. */
static void few_steps(void)
{
    const int most[] = { 3, 0, 1999 };
    double y[3][4];
    for (int i = 0; i < 3; i++) {
        taut_attlip_spec a = spec_of(2, 1, 2);
        a.solver = TAUT_PROX_DESCENT;
        a.most = most[i];
        law l;
        rng_state = 78;
        law_begin(&l, taut_attlip(&a), (taut_shape){ 1, 2, 2 });
        taut_solves log = { 0 };
        const taut_watcher watch = { .solved = taut_solves_add, .arg = &log };
        l.run.watch = &watch;
        law_forward(&l, l.y);
        CHECK(log.abstained == (i == 0), "three steps are too few");
        CHECK(i > 0 || log.gradients == 4, "three steps were taken");
        memcpy(y[i], l.y, sizeof y[i]);
        law_end(&l);
    }
    for (int j = 0; j < 4; j++) CHECK(y[1][j] == y[2][j], "a limit that is not met changes nothing");
}

/* T10: the paper's K steps jump where a halving is added: x moves by one bit, y by 0.37. */
static void jump(void)
{
    taut_attlip_spec a = spec_of(1, 1, 1);
    a.steps = 1;
    a.solver = TAUT_PROX_DESCENT;
    law l;
    law_begin(&l, taut_attlip(&a), (taut_shape){ 1, 2, 1 });
    *(double *)l.seen[0]->value = 1;
    l.x[1] = 0.3;
    double left = -0.46, right = -0.44, y[2][2];
    for (int i = 0; i < 200 && nextafter(left, 0) < right; i++) {
        l.x[0] = left;
        law_forward(&l, y[0]);
        const double middle = 0.5 * (left + right);
        l.x[0] = middle;
        law_forward(&l, y[1]);
        *(fabs(y[1][0] - y[0][0]) > 0.1 ? &right : &left) = middle;
    }
    l.x[0] = left;
    law_forward(&l, y[0]);
    l.x[0] = right;
    law_forward(&l, y[1]);
    CHECK_LE(right - left, 1e-15, "T10: two neighbours");
    CHECK_NEAR(left, -0.45080375, 1e-6, "T10: where it jumps");
    CHECK_NEAR(hypot(y[1][0] - y[0][0], y[1][1] - y[0][1]), 0.368, 1e-3, "T10: how far");
    CHECK(isinf(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v), "T10: K steps have no bound");
    law_end(&l);
}

/* The first third of a training takes one step of three. */
static void fewer_steps(void)
{
    double y[2][12];
    for (int i = 0; i < 2; i++) {
        taut_attlip_spec a = spec_of(3, 1, 3);
        a.steps = i ? 3 : 1;
        a.solver = TAUT_PROX_DESCENT;
        law l;
        rng_state = 78;
        law_begin(&l, taut_attlip(&a), (taut_shape){ 1, 4, 3 });
        l.run.phase = (taut_phase){ .kind = TAUT_PHASE_TRAIN, .step = 2, .steps = 9 };
        law_forward(&l, y[i]);
        law_end(&l);
    }
    CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0, "one step of three is one step");
}

int main(void)
{
    test_begin();
    vector_t1();
    witness();
    positions();
    solvers_agree();
    few_steps();
    jump();
    fewer_steps();
    laws(random_attlip, 1);
    for (case_no = 0; case_no < effort(20); case_no++) {
        const taut_shape in = { rng_int(1, 2), rng_int(1, 4), rng_int(1, 5) };
        laws_hold(random_unrolled(in), in);
    }
    return test_end("attlip", "worst slope / bound = %.6f", law_worst);
}
