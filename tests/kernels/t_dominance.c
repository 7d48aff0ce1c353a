/* Dominating diagonals: cpu against ref, the adjoint against differences, and what they are for:
 * G <= diag(1/r) for every symmetric G >= 0. */
#include "kernels/pair.h"

static pair symmetric(int64_t n, double size)
{
    pair g = pair_new(n * n, size);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) g.d[i * n + j] = g.d[j * n + i];
    for (int64_t i = 0; i < n; i++)
        if (rng_int(0, 3) == 0) g.d[i * n + (n - 1 - i)] = g.d[(n - 1 - i) * n + i] = 0;
    pair_sync(&g);
    return g;
}

static void compare(int64_t n, double spread, double eps)
{
    pair g = symmetric(n, pow(10, 2 * rng_pm())), l = pair_new(n, spread), r = pair_new(n, 0);
    pair gr = pair_new(n, 1), gg = pair_new(n * n, 0), gl = pair_new(n, 1), before = pair_bits(&gl);
    double *tol = doubles(n);
    SAME_BITS(r, (ref->dominance(R(&r), R(&g), R(&l), n, eps), cpu->dominance(r.f, g.f, l.f, n, eps)));
    pair_near(&r, NULL, 0x1p-150, promise_dominance(promised, n, spread), "dominance");
    pair_sync(&r);
    SAME_BITS(gg, (pair_restore(&gl, &before), ref->dominance_vjp(R(&gg), R(&gl), R(&gr), R(&r), R(&g), R(&l), n),
                   cpu->dominance_vjp(gg.f, gl.f, gr.f, r.f, g.f, l.f, n)));
    const double few = ((double)n + 8 + 2 * spread) * 0x1p-52; /* the sums and exponentials in double */
    pair_near(&gg, NULL, 0x1p-150, 2 * UNIT + few, "dominance_vjp: G");
    for (int64_t k = 0; k < n; k++) {
        double size = 0;
        for (int64_t i = 0; i < n; i++)
            size += fabs(gg.d[i * n + k] * g.d[i * n + k]) + fabs(gg.d[k * n + i] * g.d[k * n + i]);
        tol[k] = 2 * UNIT * (fabs(before.d[k]) + fabs(gl.d[k])) + (double)(2 * n + 8) * 0x1p-53 * size;
        tol[k] += UNIT * fabs(gl.d[k] - before.d[k]);
    }
    pair_near(&gl, tol, 0, 0, "dominance_vjp: l");
    pair_free(&g), pair_free(&l), pair_free(&r), pair_free(&gr), pair_free(&gg), pair_free(&gl);
    pair_free(&before);
    free(tol);
}

static double objective(const double *gr, const double *g, const double *l, int64_t n)
{
    double r[8];
    ref->dominance((taut_real *)r, (const taut_real *)g, (const taut_real *)l, n, 1e-3);
    return dot(gr, r, n);
}

/* G moves symmetrically, so both halves of gG count. */
static void derivative(int64_t n)
{
    double g[64], l[8], gr[8], r[8], gg[64], gl[8] = { 0 }, h = 1e-6;
    fill(g, 64), fill(l, 8), fill(gr, 8);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) g[i * n + j] = g[j * n + i];
    ref->dominance((taut_real *)r, (taut_real *)g, (taut_real *)l, n, 1e-3);
    ref->dominance_vjp((taut_real *)gg, (taut_real *)gl, (taut_real *)gr, (taut_real *)r, (taut_real *)g,
                       (taut_real *)l, n);
    const int64_t i = rng_int(0, n - 1), j = rng_int(0, n - 1);
    double up[64], down[64];
    memcpy(up, g, sizeof g), memcpy(down, g, sizeof g);
    h = fmin(h, fabs(g[i * n + j]) / 2);
    up[i * n + j] += h, down[i * n + j] -= h;
    if (i != j) up[j * n + i] += h, down[j * n + i] -= h;
    const double want = gg[i * n + j] + (i != j ? gg[j * n + i] : 0);
    const double slope = (objective(gr, up, l, n) - objective(gr, down, l, n)) / (2 * h);
    CHECK_NEAR(slope, want, 1e-5 * (1 + fabs(want)) * (1 + norm(r, n) * norm(r, n)), "gG");
    const double keep = l[i];
    l[i] = keep + 1e-6;
    const double high = objective(gr, g, l, n);
    l[i] = keep - 1e-6;
    CHECK_NEAR((high - objective(gr, g, l, n)) / 2e-6, gl[i], 1e-6 * (1 + norm(r, n) * norm(r, n)), "gl");
}

/* x^T (T - G) x >= 0 for G = V V^T. */
static void dominates(int64_t n)
{
    double v[64], g[64] = { 0 }, l[8], r[8], x[8];
    fill(v, n * n), fill(l, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) g[i * n + j] = dot(v + i * n, v + j * n, n);
    ref->dominance((taut_real *)r, (taut_real *)g, (taut_real *)l, n, 0);
    for (int k = 0; k < 20; k++) {
        double q = 0;
        fill(x, n);
        for (int64_t i = 0; i < n; i++) q += x[i] * (x[i] / r[i] - dot(g + i * n, x, n));
        CHECK_LE(-q, 1e-12, "T - G >= 0");
    }
}

static void poison(void)
{
    pair g = symmetric(3, 1), l = pair_new(3, 1), r = pair_new(3, 0);
    g.d[1] = g.d[3] = NAN;
    pair_sync(&g);
    ref->dominance(R(&r), R(&g), R(&l), 3, 1e-6);
    cpu->dominance(r.f, g.f, l.f, 3, 1e-6);
    CHECK(isnan(r.d[0]) && isnan(r.d[1]) && isfinite(r.d[2]), "poison keeps to its rows");
    pair_near(&r, NULL, 0, 2 * UNIT, "poison");
    pair_free(&g), pair_free(&l), pair_free(&r);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++) {
        compare(rng_int(0, case_no % 6 ? 20 : 150), pow(10, 2 * rng_unit() - 1), pow(10, -12 * rng_unit()));
        derivative(rng_int(1, 8));
        dominates(rng_int(1, 8));
    }
    poison();
    return test_end("dominance", "worst error / promised = %.3f", worst);
}
