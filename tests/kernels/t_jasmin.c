/* The JaSMin penalty: g_1 and the exact singular value against Jacobi's eigenvalues of diag(x) - x x^T, gradients against
 * differences, cpu against ref, rows that are too short, one-hot rows. */
#include "kernels/jasmin.h"

#include "kernels/pair.h"

/* The largest eigenvalue of diag(x) - x x^T by power iteration on it, from the centred largest entry. */
static double top(const double *x, int64_t n)
{
    double v[64], w[64], size = 0;
    for (int64_t i = 0; i < n; i++) v[i] = x[i] * (1 + 0.1 * sin((double)i));
    for (int step = 0; step < 20000; step++) {
        double along = 0;
        size = 0;
        for (int64_t i = 0; i < n; i++) along += x[i] * v[i];
        for (int64_t i = 0; i < n; i++) w[i] = x[i] * (v[i] - along), size += w[i] * w[i];
        size = sqrt(size);
        for (int64_t i = 0; i < n; i++) v[i] = w[i] / size;
    }
    return size;
}

static void rows(void)
{
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t n = rng_int(2, 12);
        double x[12], gz[12], sum = 0;
        const double peak = 6 * rng_unit();
        for (int64_t i = 0; i < n; i++) sum += x[i] = exp(peak * rng_pm());
        for (int64_t i = 0; i < n; i++) x[i] /= sum;
        const taut_jasmin bound = { .eps = 1e-12 }, exact = { .exact = true, .eps = 1e-12 };
        const double g = exp(jasmin_row(gz, x, n, &bound)), s = exp(jasmin_row(gz, x, n, &exact)), t = top(x, n);
        CHECK_LE(t, s * (1 + 1e-9) + 1e-11, "s_1 is not below what power iteration finds");
        CHECK_NEAR(s, t, 1e-4 * t + 1e-11, "the singular value itself"); /* two near each other: it converges slowly */
        CHECK_LE(s, g * (1 + 1e-9) + 1e-11, "s_1 <= g_1");
        CHECK_LE(g, 1.1716 * s + 1e-11, "g_1 <= (4 - 2 sqrt 2) s_1");
    }
    const double hot[] = { 1, 0, 0 }, tie[] = { 0.4, 0.4, 0.2 }, near[] = { 1 - 1e-30, 1e-30 / 2, 1e-30 / 2 };
    double gz[3];
    for (int exact = 0; exact < 2; exact++) {
        const taut_jasmin p = { .exact = exact, .eps = 1e-6 }, fine = { .exact = exact, .eps = 1e-300 };
        CHECK_NEAR(jasmin_row(gz, hot, 3, &p), log(1e-6), 1e-12, "one-hot: the log of eps");
        CHECK(gz[0] == 0 && gz[1] == 0 && gz[2] == 0, "and nothing moves");
        jasmin_row(gz, tie, 3, &p);
        CHECK(isfinite(gz[0]) && isfinite(gz[1]) && fabs(gz[0] + gz[1] + gz[2]) < 1e-12, "a tie is finite");
        /* s_1 of (1 - 2e, e, e) is 3e to first order, g_1 too */
        CHECK_NEAR(jasmin_row(gz, near, 3, &fine), log(1.5e-30), 1e-6, "a nearly one-hot row keeps its digits");
    }
}

typedef struct {
    taut_attn a;
    taut_jasmin p;
    pair q, k, gq, gk;
} jcase;

static jcase new_case(void)
{
    jcase c = { .a = { .n = rng_int(1, 3),
                       .heads = rng_int(1, 2),
                       .tk = case_no % 16 == 5 ? rng_int(90, 130) : rng_int(1, 9),
                       .dh = case_no % 16 == 9 || case_no % 32 == 5 ? rng_int(60, 140) : rng_int(1, 5) } };
    c.a.tq = case_no % 4 == 0 ? rng_int(1, 6) : c.a.tk;
    c.a.scale = 0.2 + 2 * rng_unit();
    c.a.causal = case_no % 3 == 1, c.a.alibi = case_no % 5 == 2;
    c.p = (taut_jasmin){ case_no % 2 ? rng_int(2, case_no % 16 == 5 ? TAUT_JASMIN_LARGEST : 4) : 0, case_no % 7 < 3,
                         rng_int(0, 1), 1e-4, 0.1 + rng_unit() };
    c.q = pair_new(c.a.n * c.a.heads * c.a.tq * c.a.dh, 1), c.k = pair_new(c.a.n * c.a.heads * c.a.tk * c.a.dh, 1);
    c.gq = pair_new(c.q.len, 1), c.gk = pair_new(c.k.len, 1);
    return c;
}

static double value_at(const jcase *c)
{
    double *a = doubles(c->q.len), *b = doubles(c->k.len);
    double v = 0;
    ref->attention_jasmin((taut_sum *)&v, (taut_real *)a, (taut_real *)b, R(&c->q), R(&c->k), &c->a, &c->p);
    free(a), free(b);
    return v / c->p.weight;
}

/* Central differences of the value; at a kink (the largest row changes, two entries pass) the smallest error over steps. */
static void gradient(const jcase *c, const double *g, pair *x)
{
    for (int i = 0; i < 4; i++) {
        const int64_t at = rng_int(0, x->len - 1);
        const double keep = x->d[at];
        double best = INFINITY;
        for (double h = 1e-4; h > 1e-7; h /= 8) {
            x->d[at] = keep + h;
            const double up = value_at(c);
            x->d[at] = keep - h;
            best = fmin(best, fabs((up - value_at(c)) / (2 * h) - g[at] / c->p.weight));
        }
        x->d[at] = keep;
        CHECK_LE(best, 1e-6 * (1 + fabs(g[at])), "the gradient is the derivative");
    }
}

static void kernels(void)
{
    for (case_no = 0; case_no < effort(120); case_no++) {
        jcase c = new_case();
        const pair gq = pair_copy(&c.gq), gk = pair_copy(&c.gk);
        pair got = pair_new(1, 0);
        double want = 1;
        taut_sum *sum = table_sums(cpu, 1, 1);
        ref->attention_jasmin((taut_sum *)&want, R(&c.gq), R(&c.gk), R(&c.q), R(&c.k), &c.a, &c.p);
        SAME_BITS(got, (cpu->put(c.gq.f, gq.d, gq.len), cpu->put(c.gk.f, gk.d, gk.len),
                        cpu->put_sum(sum, (const double[]){ 1 }, 1),
                        cpu->attention_jasmin(sum, c.gq.f, c.gk.f, c.q.f, c.k.f, &c.a, &c.p),
                        got.d[0] = table_sum(cpu, sum, 0)));
        cpu->release(sum);
        near(got.d[0], want, 1e-10 * (1 + fabs(want)), "value");
        pair_near(&c.gq, NULL, 1e-9, (double)(2 + c.a.tk) * UNIT, "gq");
        pair_near(&c.gk, NULL, 1e-9, 2 * UNIT, "gk");
        double *dq = doubles(gq.len), *dk = doubles(gk.len);
        for (int64_t i = 0; i < gq.len; i++) dq[i] = c.gq.d[i] - gq.d[i];
        for (int64_t i = 0; i < gk.len; i++) dk[i] = c.gk.d[i] - gk.d[i];
        gradient(&c, dq, &c.q);
        gradient(&c, dk, &c.k);
        if (c.a.tk <= (c.p.k > 1 ? c.p.k : 1))
            CHECK(want == 1 && norm(dq, gq.len) == 0 && norm(dk, gk.len) == 0, "rows that are too short do not count");
        free(dq), free(dk);
        pair_free(&c.q), pair_free(&c.k), pair_free(&c.gq), pair_free(&c.gk), pair_free(&got);
        free(gq.d), cpu->release(gq.f), free(gk.d), cpu->release(gk.f);
    }
}

int main(void)
{
    pair_begin();
    rows();
    kernels();
    return test_end("jasmin", "worst error / promised = %.3f", worst);
}
