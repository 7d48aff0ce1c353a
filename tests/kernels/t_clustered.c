/* Attention to clusters: cpu against ref with and without the first-order term, adjoint, an empty cluster, a
 * case known to all digits, and the identity that makes it what it is: softmax attention in which every key of
 * a cluster has the logit of the cluster's mean. */
#include "kernels/pair.h"

/* the first-order arguments, where they are wanted */
#define MAYBE(p) (first ? (p) : NULL)

static void compare(const taut_group *g, bool first)
{
    const int64_t width = g->heads * g->dh, queries = g->n * g->tq * width, groups = g->n * g->m * width;
    const int64_t square = first ? groups * g->dh : 0;
    const double dh = (double)g->dh, s = g->scale, many = (double)g->tq;
    pair q = pair_new(queries, 1), kb = pair_new(groups, 1), vb = pair_new(groups, 1);
    pair ln = pair_new(g->n * g->heads * g->m, 3), cross = pair_new(square, 1);
    pair tq = pair_new(queries, 1), tkb = pair_new(groups, 1), tvb = pair_new(groups, 1), tcross = pair_new(square, 1);
    pair o = pair_new(queries, 1), go = pair_new(queries, 1), gq = pair_new(queries, 1), gkb = pair_new(groups, 1);
    pair gvb = pair_new(groups, 1), gcross = pair_new(square, 1);
    for (int64_t i = 1; i < ln.len; i++)
        if (i % g->m && rng_int(0, 4) == 0) ln.d[i] = -INFINITY;
    pair_sync(&ln);
    const double f = 6 * (dh + 8) * UNIT * (s * dh + 3) + ((double)g->m + 2 * dh + 400 + many / 64) * UNIT;
    const double y = 1 + (first ? s * dh : 0), tl = 2 * s * dh; /* the largest entries of y_j and tl */
    SAME_BITS(o, (ref->clustered(R(&o), R(&q), R(&kb), R(&vb), R(&ln), MAYBE(R(&cross)), g),
                  cpu->clustered(o.f, q.f, kb.f, vb.f, ln.f, MAYBE(cross.f), g)));
    pair_near(&o, NULL, f * y, 0, "clustered");
    SAME_BITS(o,
              (ref->clustered_jvp(R(&o), R(&tq), R(&tkb), R(&tvb), MAYBE(R(&tcross)), R(&q), R(&kb), R(&vb), R(&ln),
                                  MAYBE(R(&cross)), g),
               cpu->clustered_jvp(o.f, tq.f, tkb.f, tvb.f, MAYBE(tcross.f), q.f, kb.f, vb.f, ln.f, MAYBE(cross.f), g)));
    pair_near(&o, NULL, f * (2 * y + 4 * tl * y), 0, "clustered_jvp");
    SAME_BITS(
        gkb, (ref->clustered_vjp(R(&gq), R(&gkb), R(&gvb), MAYBE(R(&gcross)), R(&go), R(&q), R(&kb), R(&vb), R(&ln),
                                 MAYBE(R(&cross)), g),
              cpu->clustered_vjp(gq.f, gkb.f, gvb.f, MAYBE(gcross.f), go.f, q.f, kb.f, vb.f, ln.f, MAYBE(cross.f), g)));
    pair_near(&gq, NULL, f * s * dh * (4 * y + 1), 0, "clustered_vjp: q");
    pair_near(&gkb, NULL, f * s * dh * 4 * y * many, 0, "clustered_vjp: kbar");
    pair_near(&gvb, NULL, f * many, 0, "clustered_vjp: vbar");
    pair_near(&gcross, NULL, f * s * many, 0, "clustered_vjp: cross");
    const double left = dot(go.d, o.d, queries);
    const double right = dot(gq.d, tq.d, queries) + dot(gkb.d, tkb.d, groups) + dot(gvb.d, tvb.d, groups) +
                         dot(gcross.d, tcross.d, square);
    CHECK_NEAR(left, right, 1e-12 * (double)(queries + groups + square + 1) * (1 + tl) * y, "adjoint");
    pair *all[] = { &q, &kb, &vb, &ln, &cross, &tq, &tkb, &tvb, &tcross, &o, &go, &gq, &gkb, &gvb, &gcross };
    for (int i = 0; i < 15; i++) pair_free(all[i]);
}

static void known(void)
{
    static const double q[] = { 1, 0, .5, -1 }, k[] = { 1, 0, .8, .2, -1, .5, -.9, .7 };
    static const double v[] = { 1, 2, 0, 1, 3, -1, 2, -2 }, centre[] = { 1, 0, -1, 0 };
    static const double zero[] = { 0.9255939838809317, 0.8616090241786021, 1.0348889508535728, 0.6976665737196407 };
    static const double one[] = { 0.9496640582389689, 0.8856790985366393, 1.0808302668613703, 0.7436078897274383 };
    const taut_group g = { 1, 1, 2, 4, 2, 2, sqrt(0.5) };
    double c[4], kb[4], vb[4], ln[2], cross[8], o[4];
    ref->nearest((taut_real *)c, (const taut_real *)k, (const taut_real *)centre, &g);
    ref->cluster_means((taut_real *)kb, (taut_real *)vb, (taut_real *)ln, (taut_real *)cross, (taut_real *)c,
                       (const taut_real *)k, (const taut_real *)v, &g);
    CHECK(c[0] == 0 && c[1] == 0 && c[2] == 1 && c[3] == 1, "P1: clusters");
    CHECK_NEAR(kb[0] - .9, 0, 1e-15, "P1: Kbar");
    for (int first = 0; first < 2; first++) {
        ref->clustered((taut_real *)o, (const taut_real *)q, (taut_real *)kb, (taut_real *)vb, (taut_real *)ln,
                       first ? (taut_real *)cross : NULL, &g);
        for (int i = 0; i < 4; i++) CHECK_NEAR(o[i], first ? one[i] : zero[i], 1e-15, first ? "P1: y_1" : "P1: Y_q");
    }
}

/* P8: Y_q = alpha_q^T V, alpha_q the softmax of the logits of each key's own cluster mean. */
static void identity(void)
{
    enum { T = 9, M = 3, D = 2 };
    const taut_group g = { 1, 1, 1, T, M, D, 0.7 };
    double q[D], k[T * D], v[T * D], c[T], kb[M * D], vb[M * D], ln[M], o[D], want[D] = { 0 }, sum = 0;
    fill(q, D), fill(k, T * D), fill(v, T * D);
    for (int i = 0; i < T; i++) c[i] = (double)rng_int(0, M - 1);
    ref->cluster_means((taut_real *)kb, (taut_real *)vb, (taut_real *)ln, NULL, (taut_real *)c, (taut_real *)k,
                       (taut_real *)v, &g);
    ref->clustered((taut_real *)o, (taut_real *)q, (taut_real *)kb, (taut_real *)vb, (taut_real *)ln, NULL, &g);
    for (int i = 0; i < T; i++) {
        const double a = exp(g.scale * dot(q, kb + (int)c[i] * D, D));
        sum += a;
        for (int d = 0; d < D; d++) want[d] += a * v[i * D + d];
    }
    for (int d = 0; d < D; d++) CHECK_NEAR(o[d], want[d] / sum, 1e-14, "P8: identity");
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const taut_group g = { rng_int(1, 2), rng_int(1, 3),   rng_int(0, case_no % 5 ? 6 : 300), 0, rng_int(1, 9),
                               rng_int(1, 7), pow(3, rng_pm()) };
        compare(&g, case_no % 2);
        identity();
    }
    known();
    return test_end("clustered", "worst error / promised = %.3f", worst);
}
