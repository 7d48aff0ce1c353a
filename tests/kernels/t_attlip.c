/* AttLip's potential: ref against matrices written out here (T1 and T4 of docs/modules/attlip.md, the printed
 * Algorithm 4 that must not match), differences, large logits; cpu against ref with the promise of its comment, entry
 * by entry; poison. */
#include "kernels/pair.h"

typedef struct {
    taut_attn a;
    pair v, e, max, sum, col, mean, g, h;
    double f[4], cpu_f[4];
} lip_case;

static int64_t at(const taut_attn *a, int64_t e, int64_t h, int64_t i)
{
    return ((e * a->tq + i) * a->heads + h) * a->dh;
}

static lip_case case_new(taut_attn a, double size)
{
    lip_case c = { .a = a };
    const int64_t len = a.n * a.tq * a.heads * a.dh, rows = a.n * a.heads * a.tq;
    c.v = pair_new(len, size);
    c.e = pair_new(len, 1);
    c.g = pair_new(len, 1);
    c.h = pair_new(len, 1);
    pair *row[] = { &c.max, &c.sum, &c.col, &c.mean };
    for (int i = 0; i < 4; i++) *row[i] = pair_new(rows, 1);
    return c;
}

static void case_free(lip_case *c)
{
    pair *all[] = { &c->v, &c->e, &c->g, &c->h, &c->max, &c->sum, &c->col, &c->mean };
    for (int i = 0; i < 8; i++) pair_free(all[i]);
}

static void run_case(lip_case *c)
{
    taut_sum *f = table_sums(cpu, c->a.n, NAN);
    ref->attlip((taut_sum *)c->f, R(&c->max), R(&c->sum), R(&c->v), &c->a);
    ref->attlip_grad(R(&c->g), R(&c->col), R(&c->v), R(&c->max), R(&c->sum), &c->a);
    ref->attlip_hvp(R(&c->h), R(&c->mean), R(&c->e), R(&c->v), R(&c->max), R(&c->sum), R(&c->col), &c->a);
    cpu->attlip(f, c->max.f, c->sum.f, c->v.f, &c->a);
    CHECK(cpu->read(c->cpu_f, f, c->a.n) == TAUT_OK, "f can be read");
    cpu->release(f);
    cpu->attlip_grad(c->g.f, c->col.f, c->v.f, c->max.f, c->sum.f, &c->a);
    cpu->attlip_hvp(c->h.f, c->mean.f, c->e.f, c->v.f, c->max.f, c->sum.f, c->col.f, &c->a);
}

/* Everything of one head by its matrices: alpha (n, n), value, gradient, product with e. */
typedef struct {
    int64_t n, dh;
    double *alpha, *b, f, *col, *g, *h, V, F;
} dense;

static dense dense_of(const lip_case *c, int64_t e, int64_t h)
{
    const taut_attn *a = &c->a;
    dense d = { a->tq, a->dh, NULL, NULL, 0, NULL, NULL, NULL, 0, 0 };
    d.alpha = doubles(d.n * d.n), d.b = doubles(d.n * d.n);
    d.col = doubles(d.n), d.g = doubles(d.n * a->dh), d.h = doubles(d.n * a->dh);
    for (int64_t i = 0; i < d.n; i++) {
        const double *vi = c->v.d + at(a, e, h, i), *ei = c->e.d + at(a, e, h, i);
        double top = -INFINITY, sum = 0, mean = 0;
        d.V = fmax(d.V, norm(vi, a->dh)), d.F = fmax(d.F, norm(ei, a->dh));
        for (int64_t j = 0; j < d.n; j++) {
            const double *vj = c->v.d + at(a, e, h, j), *ej = c->e.d + at(a, e, h, j);
            double s = 0, ds = 0;
            for (int64_t k = 0; k < a->dh; k++)
                s += (vi[k] + vj[k]) * (vi[k] + vj[k]), ds += (vi[k] + vj[k]) * (ei[k] + ej[k]);
            s = a->scale * s - a->near * pow(M_SQRT1_2, (double)h) * fabs((double)(i - j));
            d.alpha[i * d.n + j] = s, d.b[i * d.n + j] = 2 * a->scale * ds;
            top = fmax(top, s);
        }
        for (int64_t j = 0; j < d.n; j++) sum += d.alpha[i * d.n + j] = exp(d.alpha[i * d.n + j] - top);
        d.f += 0.5 * (top + log(sum));
        for (int64_t j = 0; j < d.n; j++) mean += (d.alpha[i * d.n + j] /= sum) * d.b[i * d.n + j];
        for (int64_t j = 0; j < d.n; j++) d.b[i * d.n + j] = d.alpha[i * d.n + j] * (d.b[i * d.n + j] - mean);
    }
    for (int64_t k = 0; k < d.n; k++) {
        double moved = 0;
        for (int64_t i = 0; i < d.n; i++) d.col[k] += d.alpha[i * d.n + k], moved += d.b[i * d.n + k];
        for (int64_t x = 0; x < a->dh; x++) {
            const double vk = c->v.d[at(a, e, h, k) + x], ek = c->e.d[at(a, e, h, k) + x];
            double g = (1 + d.col[k]) * vk, p = (1 + d.col[k]) * ek + moved * vk;
            for (int64_t i = 0; i < d.n; i++) {
                const double both = d.alpha[k * d.n + i] + d.alpha[i * d.n + k];
                g += both * c->v.d[at(a, e, h, i) + x];
                p += both * c->e.d[at(a, e, h, i) + x] +
                     (d.b[k * d.n + i] + d.b[i * d.n + k]) * c->v.d[at(a, e, h, i) + x];
            }
            d.g[k * a->dh + x] = a->scale * g, d.h[k * a->dh + x] = a->scale * p;
        }
    }
    return d;
}

static void dense_free(dense *d)
{
    double *all[] = { d->alpha, d->b, d->col, d->g, d->h };
    for (int i = 0; i < 5; i++) free(all[i]);
}

static double worst_logit(const taut_attn *a, double V)
{
    return 3 * (double)(a->dh + 8) * UNIT * a->scale * V * V + 4 * UNIT * a->near * (double)a->tq;
}

/* One head: ref is the matrices' answer, and cpu keeps its promise against ref. */
static void judge_head(const lip_case *c, int64_t e, int64_t h, const double *g, const double *p, const double *col)
{
    const taut_attn *a = &c->a;
    dense d = dense_of(c, e, h);
    const double L = worst_logit(a, d.V), R = 2 * L + (1000 + (double)a->tq / 32) * UNIT;
    const double Q = 8 * a->scale * d.V * d.F * (6 * R + (double)(4 * a->dh + 40) * UNIT);
    const double fine = 1e-13 * (1 + a->scale * d.V * d.V + a->near * (double)a->tq),
                 steep = fine * (1 + 8 * a->scale * d.V * d.F);
    for (int64_t k = 0; k < a->tq; k++) {
        const int64_t row = (e * a->heads + h) * a->tq + k;
        near(col[row], c->col.d[row], R * (1 + d.col[k]), "col");
        for (int64_t x = 0; x < a->dh; x++) {
            const int64_t i = at(a, e, h, k) + x;
            double sv = (1 + d.col[k]) * fabs(c->v.d[i]), se = (1 + d.col[k]) * fabs(c->e.d[i]);
            for (int64_t j = 0; j < d.n; j++) {
                const double both = d.alpha[k * d.n + j] + d.alpha[j * d.n + k];
                sv += both * fabs(c->v.d[at(a, e, h, j) + x]), se += both * fabs(c->e.d[at(a, e, h, j) + x]);
            }
            CHECK_NEAR(c->g.d[i], d.g[k * a->dh + x], fine * a->scale * (sv + 1), "T3: ref is the gradient");
            CHECK_NEAR(c->h.d[i], d.h[k * a->dh + x], steep * a->scale * (sv + se + 1), "T3: ref is the product");
            near(g[i], c->g.d[i], a->scale * R * sv + 1e-35, "g");
            near(p[i], c->h.d[i], a->scale * (R * se + Q * sv) + 1e-35, "h");
        }
    }
    dense_free(&d);
}

static double *floats_of(const pair *p)
{
    double *x = doubles(p->len);
    cpu->get(x, p->f, p->len);
    return x;
}

static void random_case(taut_attn a, double size)
{
    lip_case c = case_new(a, size);
    for (int64_t i = 0; i < a.heads * a.dh && case_no % 5 == 4 && c.v.len > 0; i++) c.v.d[i] *= 12; /* a sink */
    pair_sync(&c.v);
    SAME_BITS(c.sum, run_case(&c));
    SAME_BITS(c.g, run_case(&c));
    SAME_BITS(c.h, run_case(&c));
    double *g = floats_of(&c.g), *h = floats_of(&c.h), *col = floats_of(&c.col);
    for (int64_t e = 0; e < a.n; e++) {
        double f = 0, L = 0;
        for (int64_t head = 0; head < a.heads; head++) {
            judge_head(&c, e, head, g, h, col);
            dense d = dense_of(&c, e, head);
            f += d.f;
            L = fmax(L, worst_logit(&a, d.V));
            dense_free(&d);
        }
        CHECK_NEAR(c.f[e], f, 1e-12 * (1 + fabs(f)), "ref is the value");
        near(c.cpu_f[e], c.f[e], (double)(a.tq * a.heads) * (2 * L + 400 * UNIT) + UNIT * fabs(f), "f");
    }
    CHECK_LE(-1e-12 * (1 + norm(c.h.d, c.h.len)), dot(c.e.d, c.h.d, c.h.len), "T4: e.He >= 0");
    free(g), free(h), free(col);
    case_free(&c);
}

/* T4: <e, H d> = <H e, d>; and both derivatives by differences. */
static void derivatives(taut_attn a)
{
    lip_case c = case_new(a, 1.5);
    const int64_t len = c.v.len;
    double *v = doubles(len), *e = doubles(len), *he = doubles(len), *g[2] = { doubles(len), doubles(len) },
           f[2] = { 0 };
    run_case(&c);
    memcpy(v, c.v.d, (size_t)len * 8), memcpy(e, c.e.d, (size_t)len * 8), memcpy(he, c.h.d, (size_t)len * 8);
    const double slope = dot(c.g.d, e, len), step = 1e-5;
    fill(c.e.d, len);
    run_case(&c);
    CHECK_NEAR(dot(c.e.d, he, len), dot(c.h.d, e, len), 1e-12 * (1 + norm(he, len) * norm(c.e.d, len)),
               "T4: symmetric");
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < len; i++) c.v.d[i] = v[i] + (side ? -step : step) * e[i];
        run_case(&c);
        memcpy(g[side], c.g.d, (size_t)len * 8);
        for (int64_t x = 0; x < a.n; x++) f[side] += c.f[x];
    }
    CHECK_NEAR((f[0] - f[1]) / (2 * step), slope, 1e-7 * (1 + fabs(slope)), "the gradient is the derivative");
    for (int64_t i = 0; i < len; i++)
        CHECK_NEAR((g[0][i] - g[1][i]) / (2 * step), he[i], 1e-6 * (1 + fabs(he[i])), "hvp");
    double *all[] = { v, e, he, g[0], g[1] };
    for (int i = 0; i < 5; i++) free(all[i]);
    case_free(&c);
}

/* out (3, 2) = x w^T or x w for the 2 x 2 matrix of T1 */
static void map(double *out, const double *x, bool trans)
{
    static const double w[2][2] = { { 1, 0.5 }, { 0, 1 } };
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 2; c++)
            out[2 * r + c] = trans ? x[2 * r] * w[c][0] + x[2 * r + 1] * w[c][1]
                                   : x[2 * r] * w[0][c] + x[2 * r + 1] * w[1][c];
}

/* T1, T2: known digits; the gradient as the paper prints it (Algorithm 4) is that of another potential. */
static void vector_t1(void)
{
    const double x[] = { 1, 0, 0, 2, -1, 1 }, d[] = { 1, -1, 0.5, 0, 0, 2 }, s = M_SQRT1_2;
    const double grad[] = { 1.4855759876756105, 2.0757406280356543,  4.487365069930318,
                            11.23711713925561,  0.27338362619992307, 2.293238757955443 };
    const double hvp[] = { 0.932041440198498, -0.5829130605478829, 2.867243331300791,
                           2.01979773137712,  1.242450937979197,   2.2589334367380145 };
    const double printed[] = { 3.1009, 3.4355, 7.3461, 18.3917, -0.1134, 3.9931 };
    lip_case c = case_new((taut_attn){ .n = 1, .heads = 1, .tq = 3, .tk = 3, .dh = 2, .scale = s }, 1);
    double out[6], off = 0;
    map(c.v.d, x, true), map(c.e.d, d, true);
    pair_sync(&c.v), pair_sync(&c.e);
    run_case(&c);
    CHECK_NEAR(c.f[0], 13.228737216704173, 1e-13, "T1 f");
    map(out, c.g.d, false);
    for (int i = 0; i < 6; i++) CHECK_NEAR(out[i], grad[i], 1e-13, "T1 gradient");
    for (int i = 0; i < 6; i++) off = fmax(off, fabs(out[i] - printed[i]));
    CHECK(off > 1, "T1: Algorithm 4 as printed is not the gradient");
    map(out, c.h.d, false);
    for (int i = 0; i < 6; i++) CHECK_NEAR(out[i], hvp[i], 1e-13, "T1 hvp");
    dense m = dense_of(&c, 0, 0);
    for (int k = 0; k < 3; k++) /* its lines 7 to 11: A + A^T before the column sums, and no scale */
        for (int y = 0; y < 2; y++) {
            double sum = 0, weight = 1;
            for (int i = 0; i < 3; i++) {
                const double both = m.alpha[3 * k + i] + m.alpha[3 * i + k];
                sum += both * c.v.d[2 * i + y], weight += both;
            }
            out[2 * k + y] = sum + weight * c.v.d[2 * k + y];
            CHECK_NEAR(out[2 * k + y], c.g.d[2 * k + y] / s + c.v.d[2 * k + y], 1e-13, "T2: what Algorithm 4 is");
        }
    double back[6];
    map(back, out, false);
    for (int i = 0; i < 6; i++) CHECK_NEAR(back[i], printed[i], 1e-4, "T2: the printed digits");
    dense_free(&m);
    case_free(&c);
}

/* Logits of 1e5: the rows of alpha still sum to 1, so col sums to the number of tokens. */
static void large_logits(void)
{
    lip_case c = case_new((taut_attn){ .n = 1, .heads = 1, .tq = 40, .tk = 40, .dh = 4, .scale = 0.5 }, 200);
    run_case(&c);
    double all = 0;
    for (int64_t i = 0; i < 40; i++) all += c.col.d[i];
    CHECK_NEAR(all, 40, 1e-11, "column sums add up, whatever the logits");
    case_free(&c);
}

static void poison(void)
{
    lip_case c = case_new((taut_attn){ .n = 2, .heads = 2, .tq = 9, .tk = 9, .dh = 3, .scale = 1 }, 1);
    c.v.d[at(&c.a, 0, 0, 2)] = NAN;
    pair_sync(&c.v);
    run_case(&c);
    double *g = floats_of(&c.g), *h = floats_of(&c.h);
    for (int64_t e = 0; e < 2; e++)
        for (int64_t head = 0; head < 2; head++)
            for (int64_t i = 0; i < 9; i++) {
                const int64_t k = at(&c.a, e, head, i);
                const bool bad = e == 0 && head == 0;
                CHECK(isnan(c.g.d[k]) == bad && isnan(c.h.d[k]) == bad, "poison stays in its head");
                CHECK(isnan(g[k]) == bad && isnan(h[k]) == bad, "poison: cpu as ref");
            }
    free(g), free(h);
    case_free(&c);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(24); case_no++) {
        const int large = case_no % 8 == 7;
        taut_attn a = { .n = rng_int(0, 3),
                        .heads = rng_int(1, 3),
                        .tq = rng_int(0, large ? 400 : 40),
                        .dh = rng_int(1, large ? 12 : 40),
                        .scale = 0.1 + rng_unit() };
        a.tk = a.tq;
        if (rng_int(0, 1)) a.near = 2 * rng_unit();
        random_case(a, case_no % 4 ? 0.7 : 2);
    }
    for (int i = 0; i < 3; i++)
        derivatives(
            (taut_attn){ .n = 2, .heads = 1 + i, .tq = 5, .tk = 5, .dh = 4 - i, .scale = 0.4, .near = 0.3 * i });
    vector_t1();
    large_logits();
    poison();
    return test_end("attlip", "worst error / promised = %.3f", worst);
}
