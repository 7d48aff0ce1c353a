/* ProbSparse attention: cpu against ref, adjoint, the derivative, which queries are picked, and softmax attention itself
 * where all of them are. */
#include "base/rng.h"
#include "kernels/pair.h"

static void compare(const taut_sparse *s)
{
    const int64_t width = s->heads * s->dh, nq = s->n * s->tq * width, nk = s->n * s->tk * width;
    const double dh = (double)s->dh, a = s->scale, many = (double)s->tq, keys = (double)s->tk;
    pair q = pair_new(nq, 1), k = pair_new(nk, 1), v = pair_new(nk, 1), c = pair_new(s->n * s->heads * s->top, 0);
    pair tq = pair_new(nq, 1), tk = pair_new(nk, 1), tv = pair_new(nk, 1), o = pair_new(nq, 0), go = pair_new(nq, 1);
    pair gq = pair_new(nq, 0), gk = pair_new(nk, 0), gv = pair_new(nk, 0);
    const double f = 6 * (dh + 8) * UNIT * a * dh + (keys + 2 * dh + 400 + many) * UNIT;
    const double sum = (keys + 4) * UNIT * (s->causal ? keys : 1), tl = 2 * a * dh;
    ref->sparse_pick(R(&c), R(&q), R(&k), s);
    pair_sync(&c);
    SAME_BITS(o, (ref->sparse(R(&o), R(&c), R(&q), R(&k), R(&v), s), cpu->sparse(o.f, c.f, q.f, k.f, v.f, s)));
    pair_near(&o, NULL, f + sum, 0, "sparse");
    SAME_BITS(o, (ref->sparse_jvp(R(&o), R(&tq), R(&tk), R(&tv), R(&c), R(&q), R(&k), R(&v), s),
                  cpu->sparse_jvp(o.f, tq.f, tk.f, tv.f, c.f, q.f, k.f, v.f, s)));
    pair_near(&o, NULL, f * (2 + 4 * tl) + sum, 0, "sparse_jvp");
    SAME_BITS(gk, (ref->sparse_vjp(R(&gq), R(&gk), R(&gv), R(&go), R(&c), R(&q), R(&k), R(&v), s),
                   cpu->sparse_vjp(gq.f, gk.f, gv.f, go.f, c.f, q.f, k.f, v.f, s)));
    pair_near(&gq, NULL, f * a * dh * 5, 0, "sparse_vjp: q");
    pair_near(&gk, NULL, f * a * dh * 4 * many, 0, "sparse_vjp: k");
    pair_near(&gv, NULL, f * many + (many + 4) * UNIT * many, 0, "sparse_vjp: v");
    const double left = dot(go.d, o.d, nq);
    const double right = dot(gq.d, tq.d, nq) + dot(gk.d, tk.d, nk) + dot(gv.d, tv.d, nk);
    CHECK_NEAR(left, right, 1e-12 * (double)(nq + nk + 1) * (1 + tl) * keys, "adjoint");
    pair *all[] = { &q, &k, &v, &c, &tq, &tk, &tv, &o, &go, &gq, &gk, &gv };
    for (int i = 0; i < 12; i++) pair_free(all[i]);
}

/* All queries look: exact attention, causal or not. */
static void exact(bool causal)
{
    enum { N = 2, H = 2, T = 7, D = 3, LEN = N * H * T * D };
    const taut_sparse s = { N, H, T, T, D, 4, T, 0.6, causal, 5 };
    const taut_attn a = { .n = N, .heads = H, .tq = T, .tk = T, .dh = D, .scale = 0.6, .causal = causal };
    double q[LEN], k[LEN], v[LEN], o[LEN], want[LEN], lse[N * H * T], c[N * H * T];
    fill(q, LEN), fill(k, LEN), fill(v, LEN);
    ref->sparse_pick((taut_real *)c, (taut_real *)q, (taut_real *)k, &s);
    ref->sparse((taut_real *)o, (taut_real *)c, (taut_real *)q, (taut_real *)k, (taut_real *)v, &s);
    ref->attention((taut_real *)want, (taut_real *)lse, (taut_real *)q, (taut_real *)k, (taut_real *)v, &a);
    for (int i = 0; i < LEN; i++) CHECK_NEAR(o[i], want[i], 1e-14, "softmax attention");
}

/* One query scores one drawn key far above the others: it is the one that looks; the rest get the mean, or running sums. */
static void picked(void)
{
    enum { T = 6 };
    const taut_sparse s = { 1, 1, T, T, 1, 9, 1, 1, false, 77 };
    double q[T] = { 0.1, 0.1, 0.1, 5, 0.1, 0.1 }, k[T] = { 0 }, v[T] = { 1, 2, 3, 4, 5, 6 }, o[T], c[1];
    const int64_t drawn = (int64_t)taut_rng_below(77, 3 * 9 + 4, T);
    k[drawn] = 2;
    pair qf = pair_new(T, 0), kf = pair_new(T, 0), cf = pair_new(1, 0);
    cpu->put(qf.f, q, T), cpu->put(kf.f, k, T);
    ref->sparse_pick((taut_real *)c, (taut_real *)q, (taut_real *)k, &s);
    cpu->sparse_pick(cf.f, qf.f, kf.f, &s);
    cpu->get(cf.d, cf.f, 1);
    CHECK(c[0] == 3 && cf.d[0] == 3, "the query that stands out");
    ref->sparse((taut_real *)o, (taut_real *)c, (taut_real *)q, (taut_real *)k, (taut_real *)v, &s);
    CHECK_NEAR(o[0], 3.5, 1e-15, "the mean");
    CHECK_LE(fabs(o[3] - v[drawn]), 0.01, "what it looks at");
    taut_sparse later = s;
    later.causal = true;
    ref->sparse((taut_real *)o, (taut_real *)c, (taut_real *)q, (taut_real *)k, (taut_real *)v, &later);
    CHECK(o[0] == 1 && o[2] == 6 && o[5] == 21, "running sums");
    q[1] = NAN;
    ref->sparse_pick((taut_real *)c, (taut_real *)q, (taut_real *)k, &s);
    CHECK(c[0] == 3, "NaN is not picked before a number");
    pair_free(&qf), pair_free(&kf), pair_free(&cf);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++) {
        const int64_t tq = rng_int(1, 40), tk = case_no % 2 ? tq : rng_int(1, 40);
        compare(&(taut_sparse){ rng_int(0, 3), rng_int(1, 3), tq, tk, rng_int(1, 9), rng_int(1, 12), rng_int(1, tq),
                                0.5, case_no % 2, (uint64_t)rng_int(0, 1000) });
    }
    exact(false);
    exact(true);
    picked();
    return test_end("sparse", "worst error / promised = %.3f", worst);
}
