/* Soft routing: cpu against ref, adjoint, masking, no keys at all, poison.  What is added up is measured by
 * the largest entries, so the tolerance is the promise or a little more. */
#include "kernels/pair.h"

static void compare(taut_group g)
{
    const int64_t width = g.heads * g.dh, keys = g.n * g.t * width, groups = g.n * g.m * width;
    const double dh = (double)g.dh, t = (double)g.t;
    pair k = pair_new(keys, 1), v = pair_new(keys, 1), tk = pair_new(keys, 1), tv = pair_new(keys, 1);
    pair p = pair_new(g.m * width, 1), kt = pair_new(groups, 1), vt = pair_new(groups, 1);
    pair gkt = pair_new(groups, 1), gvt = pair_new(groups, 1), gk = pair_new(keys, 1), gv = pair_new(keys, 1);
    pair gp = pair_new(g.m * width, 1), before = pair_bits(&gp);
    const double f = 6 * (dh + 4) * UNIT * g.scale * dh + ((double)g.m + dh + 400) * UNIT;
    SAME_BITS(kt, (ref->route(R(&kt), R(&vt), R(&k), R(&v), R(&p), &g), cpu->route(kt.f, vt.f, k.f, v.f, p.f, &g)));
    pair_near(&kt, NULL, f * t, 0, "route: keys");
    pair_near(&vt, NULL, f * t, 0, "route: values");
    SAME_BITS(vt, (ref->route_jvp(R(&kt), R(&vt), R(&tk), R(&tv), R(&k), R(&v), R(&p), &g),
                   cpu->route_jvp(kt.f, vt.f, tk.f, tv.f, k.f, v.f, p.f, &g)));
    pair_near(&kt, NULL, f * t * (1 + 2 * g.scale * dh), 0, "route_jvp: keys");
    pair_near(&vt, NULL, f * t * (1 + 2 * g.scale * dh), 0, "route_jvp: values");
    SAME_BITS(gp, (pair_restore(&gp, &before),
                   ref->route_vjp(R(&gk), R(&gv), R(&gp), R(&gkt), R(&gvt), R(&k), R(&v), R(&p), &g),
                   cpu->route_vjp(gk.f, gv.f, gp.f, gkt.f, gvt.f, k.f, v.f, p.f, &g)));
    pair_near(&gk, NULL, f * (1 + 4 * dh * g.scale), 0, "route_vjp: keys");
    pair_near(&gv, NULL, f, 0, "route_vjp: values");
    pair_near(&gp, NULL, 2 * UNIT + f * t * (double)g.n * 4 * dh * g.scale, 0, "route_vjp: prototypes");
    const double left = dot(gkt.d, kt.d, groups) + dot(gvt.d, vt.d, groups);
    const double right = dot(gk.d, tk.d, keys) + dot(gv.d, tv.d, keys);
    CHECK_NEAR(left, right, 1e-11 * (1 + (double)(keys + groups) * (1 + dh * dh * g.scale)), "adjoint");
    cpu->route_vjp(gk.f, gv.f, NULL, gkt.f, gvt.f, k.f, v.f, p.f, &g);
    pair *all[] = { &k, &v, &tk, &tv, &p, &kt, &vt, &gkt, &gvt, &gk, &gv, &gp, &before };
    for (int i = 0; i < 13; i++) pair_free(all[i]);
}

/* The rows of A sum to 1, so the groups together hold all there is. */
static void together(void)
{
    const taut_group g = { 1, 1, 0, 3, 4, 2, 1.5 };
    pair k = pair_new(6, 1), v = pair_new(6, 1), p = pair_new(8, 1), kt = pair_new(8, 1), vt = pair_new(8, 1);
    ref->route(R(&kt), R(&vt), R(&k), R(&v), R(&p), &g);
    cpu->route(kt.f, vt.f, k.f, v.f, p.f, &g);
    for (int c = 0; c < 2; c++) {
        double sum = 0, all = 0;
        for (int j = 0; j < 4; j++) sum += kt.d[2 * j + c];
        for (int i = 0; i < 3; i++) all += k.d[2 * i + c];
        CHECK_NEAR(sum, all, 1e-14, "nothing is lost");
    }
    pair_near(&kt, NULL, 1e-5, 0, "together");
    const taut_group none = { 1, 1, 0, 0, 4, 2, 1.5 };
    ref->route(R(&kt), R(&vt), R(&k), R(&v), R(&p), &none);
    cpu->route(kt.f, vt.f, k.f, v.f, p.f, &none);
    for (int i = 0; i < 8; i++) CHECK(kt.d[i] == 0 && vt.d[i] == 0, "no keys, no groups");
    pair_near(&kt, NULL, 0, 0, "no keys, no groups");
    pair_free(&k), pair_free(&v), pair_free(&p), pair_free(&kt), pair_free(&vt);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(40); case_no++) {
        const int64_t t = rng_int(0, case_no % 5 ? 9 : 700);
        compare((taut_group){ rng_int(1, 3), rng_int(1, 3), 0, t, rng_int(1, case_no % 3 ? 5 : 40), rng_int(1, 9),
                              pow(4, rng_pm()) });
    }
    compare((taut_group){ 1, 1, 0, rng_int(513, 520), 65, 3, 0.1 }); /* tiles of every kind, slices */
    compare((taut_group){ 1, 1, 0, 4096, 64, 64, 0.1 });             /* large enough for a device's library */
    compare((taut_group){ 1, 1, 0, 300, 1, 520, 0.01 });             /* long sums that are not over keys */
    together();
    return test_end("route", "worst error / promised = %.3f", worst);
}
