/* Nearest centres and means over clusters: cpu against ref, adjoint, empty clusters, no keys, a cluster of
 * one, far from the origin. */
#include "kernels/pair.h"

static void nearest(const taut_group *g, double offset)
{
    const int64_t width = g->heads * g->dh;
    pair k = pair_new(g->n * g->t * width, 1), centre = pair_new(g->n * g->m * width, 1);
    pair c = pair_new(g->n * g->heads * g->t, 0);
    for (int64_t i = 0; i < k.len; i++) k.d[i] += offset;
    for (int64_t i = 0; i < centre.len; i++) centre.d[i] += offset;
    pair_sync(&k), pair_sync(&centre);
    SAME_BITS(c, (ref->nearest(R(&c), R(&k), R(&centre), g), cpu->nearest(c.f, k.f, centre.f, g)));
    double *got = doubles(c.len);
    cpu->get(got, c.f, c.len);
    const double room = 4 * ((double)g->dh + 4) * UNIT * (double)g->dh * pow(2 * (fabs(offset) + 1), 2);
    for (int64_t at = 0; at < c.len; at++) {
        const int64_t i = at % g->t, h = at / g->t % g->heads, e = at / g->t / g->heads;
        double far[2] = { 0 };
        for (int64_t d = 0; d < g->dh; d++) {
            const double x = k.d[((e * g->t + i) * g->heads + h) * g->dh + d];
            const double a = centre.d[((e * g->m + (int64_t)got[at]) * g->heads + h) * g->dh + d];
            const double b = centre.d[((e * g->m + (int64_t)c.d[at]) * g->heads + h) * g->dh + d];
            far[0] += (x - a) * (x - a), far[1] += (x - b) * (x - b);
        }
        CHECK_LE(far[0], far[1] + room, "as near as promised");
    }
    free(got);
    pair_free(&k), pair_free(&centre), pair_free(&c);
}

static void means(const taut_group *g, bool first)
{
    const int64_t width = g->heads * g->dh, keys = g->n * g->t * width, groups = g->n * g->m * width;
    const int64_t square = first ? groups * g->dh : 0;
    const double few = ((double)g->t + 8) * 0x1p-52 * 64, dh = (double)g->dh;
    pair k = pair_new(keys, 4), v = pair_new(keys, 4), tk = pair_new(keys, 1), tv = pair_new(keys, 1);
    pair kb = pair_new(groups, 1), vb = pair_new(groups, 1), ln = pair_new(g->n * g->heads * g->m, 1);
    pair cross = pair_new(square, 1), c = pair_new(g->n * g->heads * g->t, 0);
    pair gkb = pair_new(groups, 1), gvb = pair_new(groups, 1), gcross = pair_new(square, 1);
    pair gk = pair_new(keys, 1), gv = pair_new(keys, 1);
    for (int64_t i = 0; i < c.len; i++) c.d[i] = (double)rng_int(0, g->m - 1);
    pair_sync(&c);
#define MAYBE(p) (first ? (p) : NULL)
    SAME_BITS(kb, (ref->cluster_means(R(&kb), R(&vb), R(&ln), MAYBE(R(&cross)), R(&c), R(&k), R(&v), g),
                   cpu->cluster_means(kb.f, vb.f, ln.f, MAYBE(cross.f), c.f, k.f, v.f, g)));
    pair_near(&kb, NULL, few, 2 * UNIT, "means of keys");
    pair_near(&vb, NULL, few, 2 * UNIT, "means of values");
    pair_near(&ln, NULL, 0, 2 * UNIT, "logn");
    pair_near(&cross, NULL, 32 * few, 2 * UNIT, "cross");
    SAME_BITS(vb, (ref->cluster_means_jvp(R(&kb), R(&vb), MAYBE(R(&cross)), R(&tk), R(&tv), R(&c), R(&k), R(&v), g),
                   cpu->cluster_means_jvp(kb.f, vb.f, MAYBE(cross.f), tk.f, tv.f, c.f, k.f, v.f, g)));
    pair_near(&kb, NULL, few, 2 * UNIT, "jvp: keys");
    pair_near(&vb, NULL, few, 2 * UNIT, "jvp: values");
    pair_near(&cross, NULL, 32 * few, 2 * UNIT, "jvp: cross");
    SAME_BITS(gk, (ref->cluster_means_vjp(R(&gk), R(&gv), R(&gkb), R(&gvb), MAYBE(R(&gcross)), R(&c), R(&k), R(&v), g),
                   cpu->cluster_means_vjp(gk.f, gv.f, gkb.f, gvb.f, MAYBE(gcross.f), c.f, k.f, v.f, g)));
    pair_near(&gk, NULL, 16 * dh * few, 2 * UNIT, "vjp: keys");
    pair_near(&gv, NULL, 16 * dh * few, 2 * UNIT, "vjp: values");
    const double left = dot(gkb.d, kb.d, groups) + dot(gvb.d, vb.d, groups) + dot(gcross.d, cross.d, square);
    const double right = dot(gk.d, tk.d, keys) + dot(gv.d, tv.d, keys);
    CHECK_NEAR(left, right, 1e-12 * (1 + 64 * (double)(keys + groups + square)), "adjoint");
    pair *all[] = { &k, &v, &tk, &tv, &kb, &vb, &ln, &cross, &c, &gkb, &gvb, &gcross, &gk, &gv };
    for (int i = 0; i < 14; i++) pair_free(all[i]);
}

static void corners(void)
{
    const taut_group g = { 1, 1, 0, 2, 3, 1, 1 }, none = { 1, 1, 0, 0, 3, 1, 1 };
    double k[] = { 1, 5 }, c[2], centre[] = { 0, 9, 4 }, kb[3], vb[3], ln[3];
    ref->nearest((taut_real *)c, (taut_real *)k, (taut_real *)centre, &g);
    CHECK(c[0] == 0 && c[1] == 2, "nearest");
    ref->cluster_means((taut_real *)kb, (taut_real *)vb, (taut_real *)ln, NULL, (taut_real *)c, (taut_real *)k,
                       (taut_real *)k, &g);
    CHECK(kb[0] == 1 && kb[1] == 0 && kb[2] == 5 && ln[0] == 0 && ln[1] == -INFINITY, "an empty cluster");
    ref->cluster_means((taut_real *)kb, (taut_real *)vb, (taut_real *)ln, NULL, (taut_real *)c, (taut_real *)k,
                       (taut_real *)k, &none);
    CHECK(kb[0] == 0 && ln[0] == 0 && ln[1] == -INFINITY, "no keys at all");
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t t = rng_int(1, case_no % 5 ? 9 : 400);
        const taut_group g = { rng_int(1, 3), rng_int(1, 3), 0, t, rng_int(1, 7), rng_int(1, 6), 1 };
        nearest(&g, case_no % 3 ? 0 : 100);
        means(&g, case_no % 2);
    }
    corners();
    return test_end("cluster", "worst error / promised = %.3f", worst);
}
