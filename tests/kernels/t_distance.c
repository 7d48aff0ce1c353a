/* Attention by position: cpu against ref within its promise; ref's adjoints against each other and against central
 * differences; rows that are probabilities; a table whose extremes would overflow exp. */
#include "kernels/pair.h"

static const double gains[] = { 1, 0.5, 0.25, 2, 3 };
static taut_real *gains_there; /* where the other table reads them */

static const taut_distance *there(const taut_distance *a)
{
    static taut_distance b;
    b = *a;
    b.gain = gains_there;
    return &b;
}

static taut_distance any(int64_t n, int64_t t)
{
    taut_distance a = { .n = n, .heads = rng_int(1, 5), .t = t, .dh = rng_int(1, 9), .gain = (const taut_real *)gains };
    if (t > 0 && rng_int(0, 2) == 0) {
        a.row = rng_int(1, t);
        while (t % a.row) a.row--;
        a.span = t;
        return a;
    }
    a.causal = rng_int(0, 1);
    a.span = a.causal ? t + rng_int(0, 3) : 2 * (t + rng_int(0, 3)) - 1;
    if (a.span < 1) a.span = 1;
    return a;
}

static void rows_are_probabilities(const pair *p, const taut_distance *a)
{
    for (int64_t r = 0; r < a->heads * a->t; r++) {
        double sum = 0;
        for (int64_t j = 0; j < a->t; j++) {
            const double x = p->d[r * a->t + j];
            CHECK(x >= 0 && (!a->causal || j <= r % a->t || x == 0), "no weight is negative, none on a masked key");
            sum += x;
        }
        CHECK_NEAR(sum, gains[r / a->t], 1e-14 * (double)(a->t + 8), "a row sums to its gain");
    }
    for (int64_t c = 0; a->row && c < a->heads * a->t; c++) {
        double sum = 0;
        for (int64_t i = 0; i < a->t; i++) sum += p->d[(c / a->t * a->t + i) * a->t + c % a->t];
        CHECK_NEAR(sum, gains[c / a->t], 1e-14 * (double)(a->t + 8), "on a torus a column does too");
    }
}

static void mixes(const taut_distance *a, const pair *p)
{
    const int64_t d = a->heads * a->dh, len = a->n * a->t * d, rows = a->n * a->t;
    pair v = pair_new(len, 1), o = pair_new(len, 0), mass = pair_new(len, 0), size = pair_bits(&v);
    double *tol = doubles(len);
    for (int64_t i = 0; i < len; i++) size.d[i] = fabs(v.d[i]);
    for (int back = 0; back < 2; back++) {
        SAME_BITS(o,
                  (ref->distance_mix(R(&o), R(p), R(&v), a, back), cpu->distance_mix(o.f, p->f, v.f, there(a), back)));
        ref->distance_mix(R(&mass), R(p), R(&size), a, back);
        for (int64_t i = 0; i < len; i++)
            tol[i] = promise_distance_mix(promised, a->t) * mass.d[i] +
                     (double)(a->t + 32) * by_table(0x1p-149, 0x1p-135);
        pair_near(&o, tol, 0, 0, "mix");
    }
    /* <go, P v> = <P^T go, v> = <gp(go, v), p> */
    pair go = pair_new(len, 1), gp = pair_new(p->len, 0), gm = pair_new(p->len, 0), gs = pair_bits(&go);
    double *gtol = doubles(p->len);
    SAME_BITS(gp, (ref->distance_mix_vjp(R(&gp), R(&go), R(&v), a), cpu->distance_mix_vjp(gp.f, go.f, v.f, there(a))));
    for (int64_t i = 0; i < len; i++) gs.d[i] = fabs(go.d[i]);
    ref->distance_mix_vjp(R(&gm), R(&gs), R(&size), a);
    for (int64_t i = 0; i < p->len; i++)
        gtol[i] = ((double)(a->n * a->dh) + by_table(8, 32)) * (UNIT * gm.d[i] + by_table(0, 0x1p-135));
    pair_near(&gp, gtol, 0, 0, "mix_vjp");
    ref->distance_mix(R(&o), R(p), R(&go), a, true);
    const double left = dot(o.d, v.d, len), right = dot(gp.d, p->d, p->len);
    ref->distance_mix(R(&o), R(p), R(&v), a, false);
    CHECK_NEAR(dot(o.d, go.d, len), left, 1e-12 * (double)(rows * d + 1), "adjoint in v");
    CHECK_NEAR(right, left, 1e-12 * (double)(rows * d + 1), "adjoint in p");
    pair_free(&v), pair_free(&o), pair_free(&mass), pair_free(&size), pair_free(&go), pair_free(&gp), pair_free(&gm);
    pair_free(&gs);
    free(tol), free(gtol);
}

static double objective(const double *w, const double *gp, const taut_distance *a)
{
    double *p = doubles(a->heads * a->t * a->t);
    ref->distance_softmax((taut_real *)p, (const taut_real *)w, a);
    const double sum = dot(p, gp, a->heads * a->t * a->t);
    free(p);
    return sum;
}

static void softmaxes(const taut_distance *a, double size)
{
    const int64_t len = a->heads * a->t * a->t, table = a->heads * a->span;
    pair w = pair_new(table, size), p = pair_new(len, 0), gp = pair_new(len, 1), gw = pair_new(table, 1);
    pair before = pair_bits(&gw);
    double *tol = doubles(table);
    SAME_BITS(p, (ref->distance_softmax(R(&p), R(&w), a), cpu->distance_softmax(p.f, w.f, there(a))));
    pair_near(&p, NULL, 0x1p-149, promise_distance_softmax(promised, a->t), "softmax");
    rows_are_probabilities(&p, a);
    pair_sync(&p);
    mixes(a, &p);
    SAME_BITS(gw, (pair_restore(&gw, &before), ref->distance_softmax_vjp(R(&gw), R(&gp), R(&p), a),
                   cpu->distance_softmax_vjp(gw.f, gp.f, p.f, there(a))));
    for (int64_t c = 0; c < table; c++) /* |gp| <= 1 and its mean too; a column gets at most 3 a query */
        tol[c] = UNIT * fabs(gw.d[c]) + 0x1p-40 * (fabs(before.d[c]) + 6 * (double)a->t);
    pair_near(&gw, tol, 0, 0, "softmax_vjp");
    if (table && a->t && size < 10) { /* the adjoint is the derivative */
        const int64_t c = rng_int(0, table - 1);
        const double keep = w.d[c], h = 1e-5;
        ref->distance_softmax(R(&p), R(&w), a);
        memcpy(gw.d, before.d, (size_t)table * 8);
        ref->distance_softmax_vjp(R(&gw), R(&gp), R(&p), a);
        w.d[c] = keep + h;
        const double up = objective(w.d, gp.d, a);
        w.d[c] = keep - h;
        const double slope = (up - objective(w.d, gp.d, a)) / (2 * h);
        CHECK_NEAR(gw.d[c] - before.d[c], slope, 1e-7 * (double)a->t, "softmax_vjp is the derivative");
    }
    pair_free(&w), pair_free(&p), pair_free(&gp), pair_free(&gw), pair_free(&before);
    free(tol);
}

static void poison(void)
{
    const taut_distance a = {
        .n = 1, .heads = 1, .t = 3, .dh = 1, .span = 3, .causal = true, .gain = (const taut_real *)gains
    };
    pair w = pair_new(3, 1), p = pair_new(9, 0);
    w.d[1] = NAN;
    pair_sync(&w);
    ref->distance_softmax(R(&p), R(&w), &a);
    cpu->distance_softmax(p.f, w.f, there(&a));
    pair_near(&p, NULL, 0, 2 * UNIT, "NaN");
    CHECK(p.d[0] == 1 && isnan(p.d[3]) && isnan(p.d[6]), "NaN reaches the rows that read it, and no other");
    pair_free(&w), pair_free(&p);
}

int main(void)
{
    pair_begin();
    gains_there = taut_reals(cpu, 5);
    cpu->put(gains_there, gains, 5);
    for (case_no = 0; case_no < effort(40); case_no++) {
        const taut_distance a = any(rng_int(0, 3), case_no < 20 ? case_no : rng_int(1, 20));
        softmaxes(&a, case_no % 4 == 3 ? 2000 : 3);
    }
    for (case_no = 40; case_no < 44; case_no++) {
        const taut_distance a = any(2, rng_int(60, 140));
        softmaxes(&a, 3);
    }
    poison();
    cpu->release(gains_there);
    return test_end("distance", "worst error / promised = %.3f", worst);
}
