/* Attention: ref against a softmax matrix written out here, adjointness, differences, T3 of
 * our test vectors; cpu against ref with the promise of its comments, entry by entry; masks, poison. */
#include "kernels/pair.h"

enum { Q, K, V, TQ, TK, TV, GO, INPUTS };
typedef struct {
    taut_attn a;
    pair in[INPUTS], o, lse, to, gq, gk, gv;
} attn_case;

static int64_t row_at(const taut_attn *a, int64_t t, int64_t e, int64_t h, int64_t i)
{
    return ((e * t + i) * a->heads + h) * a->dh;
}

static attn_case case_new(taut_attn a, double size)
{
    attn_case c = { .a = a };
    const int64_t over = a.n * a.tq * a.heads * a.dh, under = a.n * a.tk * a.heads * a.dh;
    for (int i = 0; i < INPUTS; i++) c.in[i] = pair_new(i == Q || i == TQ || i == GO ? over : under, size);
    c.o = pair_new(over, 1);
    c.to = pair_new(over, 1);
    c.gq = pair_new(over, 1);
    c.gk = pair_new(under, 1);
    c.gv = pair_new(under, 1);
    c.lse = pair_new(a.n * a.heads * a.tq, 1);
    return c;
}

static void case_free(attn_case *c)
{
    for (int i = 0; i < INPUTS; i++) pair_free(&c->in[i]);
    pair *rest[] = { &c->o, &c->to, &c->gq, &c->gk, &c->gv, &c->lse };
    for (int i = 0; i < 6; i++) pair_free(rest[i]);
}

static void run_forward(attn_case *c)
{
    ref->attention(R(&c->o), R(&c->lse), R(&c->in[Q]), R(&c->in[K]), R(&c->in[V]), &c->a);
    cpu->attention(c->o.f, c->lse.f, c->in[Q].f, c->in[K].f, c->in[V].f, &c->a);
}

static void run_jvp(attn_case *c)
{
    ref->attention_jvp(R(&c->to), R(&c->in[TQ]), R(&c->in[TK]), R(&c->in[TV]), R(&c->in[Q]), R(&c->in[K]), R(&c->in[V]),
                       &c->a);
    cpu->attention_jvp(c->to.f, c->in[TQ].f, c->in[TK].f, c->in[TV].f, c->in[Q].f, c->in[K].f, c->in[V].f, &c->a);
}

static void run_vjp(attn_case *c)
{
    ref->attention_vjp(R(&c->gq), R(&c->gk), R(&c->gv), R(&c->in[GO]), R(&c->o), R(&c->lse), R(&c->in[Q]), R(&c->in[K]),
                       R(&c->in[V]), &c->a);
    cpu->attention_vjp(c->gq.f, c->gk.f, c->gv.f, c->in[GO].f, c->o.f, c->lse.f, c->in[Q].f, c->in[K].f, c->in[V].f,
                       &c->a);
}

static bool sees(const taut_attn *a, int64_t i, int64_t j) { return !(a->causal && j > i + a->tk - a->tq); }

static double pen(const taut_attn *a, int64_t h, int64_t i, int64_t j) /* what ALiBi takes off */
{
    return a->alibi ? pow(2, -8.0 * (double)(h + 1) / (double)a->heads) * fabs((double)(i + a->tk - a->tq - j)) : 0;
}

static double adot(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += fabs(x[c] * y[c]);
    return sum;
}

/* The whole matrix of one head: logits s, weights p, and the bound `off` on the error of a float logit. */
static double matrix(const attn_case *c, int64_t e, int64_t h, double *s, double *p)
{
    const taut_attn *a = &c->a;
    double off = 0;
    for (int64_t i = 0; i < a->tq; i++) {
        double sum = 0;
        const double *q = c->in[Q].d + row_at(a, a->tq, e, h, i);
        for (int64_t j = 0; j < a->tk; j++) {
            const double *k = c->in[K].d + row_at(a, a->tk, e, h, j), bias = pen(a, h, i, j);
            s[i * a->tk + j] = sees(a, i, j) ? a->scale * dot(q, k, a->dh) - bias : -INFINITY;
            sum += exp(s[i * a->tk + j]);
            off = fmax(off, promise_logit(promised, a->dh) * fabs(a->scale) * adot(q, k, a->dh) +
                                promise_alibi(promised) * bias);
        }
        for (int64_t j = 0; j < a->tk; j++) p[i * a->tk + j] = sum > 0 ? exp(s[i * a->tk + j]) / sum : 0;
    }
    return off;
}

static double largest(const double *x, const taut_attn *a, int64_t t, int64_t e, int64_t h)
{
    double max = 0;
    for (int64_t i = 0; i < t; i++)
        for (int64_t c = 0; c < a->dh; c++) max = fmax(max, fabs(x[row_at(a, t, e, h, i) + c]));
    return max;
}

static void near_row(const pair *p, const double *got, int64_t at, int64_t dh, double tol, const char *what)
{
    for (int64_t c = 0; c < dh; c++) near(got[at + c], p->d[at + c], tol, what);
}

/* o, lse and to of one head. */
static void judge_rows(const attn_case *c, int64_t e, int64_t h, const double *p, double off, const double *o,
                       const double *lse, const double *to)
{
    const taut_attn *a = &c->a;
    const double vmax = largest(c->in[V].d, a, a->tk, e, h), wmax = largest(c->in[TV].d, a, a->tk, e, h);
    const double tiles = (double)a->tk / 64;
    for (int64_t i = 0; i < a->tq; i++) {
        const int64_t at = row_at(a, a->tq, e, h, i), one = (e * a->heads + h) * a->tq + i;
        double steep = 0;
        for (int64_t j = 0; j < a->tk; j++) {
            const int64_t kj = row_at(a, a->tk, e, h, j);
            if (sees(a, i, j))
                steep = fmax(steep, fabs(a->scale) * (adot(c->in[TQ].d + at, c->in[K].d + kj, a->dh) +
                                                      adot(c->in[Q].d + at, c->in[TK].d + kj, a->dh)));
        }
        for (int64_t d = 0; d < a->dh; d++) {
            double sum = 0;
            for (int64_t j = 0; j < a->tk; j++) sum += p[i * a->tk + j] * c->in[V].d[row_at(a, a->tk, e, h, j) + d];
            CHECK_NEAR(c->o.d[at + d], sum, 1e-12 * (1 + vmax), "ref is the softmax");
        }
        near(lse[one], c->lse.d[one], off + promise_lse(promised, a->tk, fabs(c->lse.d[one])), "lse");
        near_row(&c->o, o, at, a->dh, (2 * off + promise_attention_mean(promised, a->tk)) * vmax, "o");
        near_row(&c->to, to, at, a->dh,
                 (2 * off + (700 + tiles) * UNIT) * (wmax + 4 * steep * vmax) +
                     2 * ((double)(2 * a->dh) + by_table(6, 80)) * UNIT * steep * vmax,
                 "to");
    }
}

static double widest(const double *x, int64_t len)
{
    double most = 0;
    for (int64_t i = 0; i < len; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* gq, gk, gv of one head: the errors of P and dS, carried through the three sums.  A device keeps only so many digits of a weight
 * below the largest that its row has, most; and of a weight that underflows, below 2^-126, it loses a product with an entry of
 * at most 2^14: small, in all. */
static void judge_vjp(const attn_case *c, int64_t e, int64_t h, const double *s, const double *p, double off,
                      const double *gq, const double *gk, const double *gv)
{
    const taut_attn *a = &c->a;
    const int64_t dh = a->dh;
    const double cut = by_table(0, 0x1p-38), small = by_table(1e-35, 0x1p-112 * (double)(a->tq + a->tk));
    double *tq = doubles(a->tq * dh), *tk = doubles(a->tk * dh), *tv = doubles(a->tk * dh);
    double *most_q = doubles(a->tq), *most_k = doubles(a->tk), *most_v = doubles(a->tk);
    for (int64_t i = 0; i < a->tq; i++)
        for (int64_t j = 0; j < a->tk; j++) {
            if (!sees(a, i, j)) continue;
            const int64_t qi = row_at(a, a->tq, e, h, i), kj = row_at(a, a->tk, e, h, j);
            const double *go = c->in[GO].d + qi, w = p[i * a->tk + j];
            const double size = adot(go, c->in[V].d + kj, dh) + adot(go, c->o.d + qi, dh);
            const double lse = c->lse.d[(e * a->heads + h) * a->tq + i];
            const double p_off = off + UNIT * (8 + fabs(s[i * a->tk + j] - lse) + by_table(1, 3) * fabs(lse));
            const double ds_off = w * size * (((double)dh + by_table(4, 40)) * UNIT + p_off);
            most_q[i] = fmax(most_q[i], w * size * widest(c->in[K].d + kj, dh));
            most_k[j] = fmax(most_k[j], w * size * widest(c->in[Q].d + qi, dh));
            most_v[j] = fmax(most_v[j], w * widest(go, dh));
            for (int64_t d = 0; d < dh; d++) {
                const double q = fabs(c->in[Q].d[qi + d]), k = fabs(c->in[K].d[kj + d]);
                tv[j * dh + d] += w * fabs(go[d]) * (p_off + UNIT * (300 + (double)a->tq / 64));
                tk[j * dh + d] += fabs(a->scale) * q * (ds_off + w * size * UNIT * (300 + (double)a->tq / 64));
                tq[i * dh + d] += fabs(a->scale) * k * (ds_off + w * size * UNIT * (300 + (double)a->tk / 64));
            }
        }
    for (int64_t i = 0; i < a->tq * dh; i++) {
        const int64_t at = row_at(a, a->tq, e, h, i / dh) + i % dh;
        near(gq[at], c->gq.d[at], tq[i] + cut * fabs(a->scale) * most_q[i / dh] * (double)a->tk + small, "gq");
    }
    for (int64_t j = 0; j < a->tk * dh; j++) {
        const int64_t at = row_at(a, a->tk, e, h, j / dh) + j % dh;
        near(gk[at], c->gk.d[at], tk[j] + cut * fabs(a->scale) * most_k[j / dh] * (double)a->tq + small, "gk");
        near(gv[at], c->gv.d[at], tv[j] + cut * most_v[j / dh] * (double)a->tq + small, "gv");
    }
    free(tq), free(tk), free(tv);
    free(most_q), free(most_k), free(most_v);
}

static double *floats_of(const pair *p)
{
    double *x = doubles(p->len);
    cpu->get(x, p->f, p->len);
    return x;
}

static void random_case(taut_attn a, double size)
{
    attn_case c = case_new(a, size);
    SAME_BITS(c.o, run_forward(&c));
    SAME_BITS(c.to, run_jvp(&c));
    double *o = floats_of(&c.o), *lse = floats_of(&c.lse), *to = floats_of(&c.to);
    pair o_ref = pair_bits(&c.o), lse_ref = pair_bits(&c.lse);
    pair_sync(&c.o); /* vjp: the same rounded o and lse for both */
    pair_sync(&c.lse);
    SAME_BITS(c.gk, run_vjp(&c));
    SAME_BITS(c.gq, run_vjp(&c));
    SAME_BITS(c.gv, run_vjp(&c));
    double *gq = floats_of(&c.gq), *gk = floats_of(&c.gk), *gv = floats_of(&c.gv);
    double *s = doubles(a.tq * a.tk), *p = doubles(a.tq * a.tk);
    for (int64_t e = 0; e < a.n; e++)
        for (int64_t h = 0; h < a.heads; h++) {
            const double off = matrix(&c, e, h, s, p);
            judge_vjp(&c, e, h, s, p, off, gq, gk, gv);
            memcpy(c.o.d, o_ref.d, (size_t)c.o.len * sizeof(double));
            memcpy(c.lse.d, lse_ref.d, (size_t)c.lse.len * sizeof(double));
            judge_rows(&c, e, h, p, off, o, lse, to);
        }
    run_vjp(&c); /* with ref's unrounded o and lse */
    const double left = dot(c.to.d, c.in[GO].d, c.to.len);
    const double right = dot(c.gq.d, c.in[TQ].d, c.gq.len) + dot(c.gk.d, c.in[TK].d, c.gk.len) +
                         dot(c.gv.d, c.in[TV].d, c.gv.len);
    const double scale = norm(c.to.d, c.to.len) * norm(c.in[GO].d, c.to.len) + norm(c.gq.d, c.gq.len) +
                         norm(c.gk.d, c.gk.len) + norm(c.gv.d, c.gv.len);
    CHECK_NEAR(left, right, 1e-12 * (1 + scale), "jvp and vjp are adjoint");
    double *all[] = { o, lse, to, gq, gk, gv, s, p };
    for (int i = 0; i < 8; i++) free(all[i]);
    pair_free(&o_ref);
    pair_free(&lse_ref);
    case_free(&c);
}

/* ref's jvp is d/dh of ref's forward at (q,k,v) + h (tq,tk,tv). */
static void derivative(taut_attn a)
{
    attn_case c = case_new(a, 1);
    const double h = 1e-5;
    double *up = doubles(c.o.len);
    run_jvp(&c);
    for (int side = 0; side < 2; side++) {
        for (int x = Q; x <= V; x++)
            for (int64_t i = 0; i < c.in[x].len; i++) c.in[x].d[i] += (side ? -2 : 1) * h * c.in[x + TQ].d[i];
        ref->attention(R(&c.o), R(&c.lse), R(&c.in[Q]), R(&c.in[K]), R(&c.in[V]), &c.a);
        if (side == 0) memcpy(up, c.o.d, (size_t)c.o.len * sizeof(double));
    }
    for (int64_t i = 0; i < c.o.len; i++)
        CHECK_NEAR(c.to.d[i], (up[i] - c.o.d[i]) / (2 * h), 1e-7, "jvp is the derivative");
    free(up);
    case_free(&c);
}

/* y (rows, 2) = x w^T, rows of w are outputs; or x w. */
static void map(double *y, const double *x, const double w[2][2], bool trans, bool add)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 2; c++) {
            const double v = trans ? x[2 * r] * w[c][0] + x[2 * r + 1] * w[c][1]
                                   : x[2 * r] * w[0][c] + x[2 * r + 1] * w[1][c];
            y[2 * r + c] = v + (add ? y[2 * r + c] : 0);
        }
}

/* T3: a head of three tokens, whole and causal, in both tables. */
static void vector_t3(bool causal)
{
    const double x[6] = { 1, 0, 0, 1, 1, 1 }, ones[6] = { 1, 1, 1, 1, 1, 1 };
    const double w[3][2][2] = { { { 1, 2 }, { 0, 1 } }, { { 1, 0 }, { 1, 1 } }, { { 2, 0 }, { 1, 1 } } };
    const taut_attn a = { .n = 1, .heads = 1, .tq = 3, .tk = 3, .dh = 2, .scale = M_SQRT1_2, .causal = causal };
    attn_case c = case_new(a, 1);
    for (int i = Q; i <= V; i++) {
        map(c.in[i].d, x, w[i], true, false);
        map(c.in[i + TQ].d, ones, w[i], true, false);
    }
    memcpy(c.in[GO].d, ones, sizeof ones);
    for (int i = 0; i < INPUTS; i++) pair_sync(&c.in[i]);
    run_forward(&c);
    run_jvp(&c);
    run_vjp(&c);
    const double tol = 2e-8, o[] = { 1.92384136, 1.64425749 }, to[] = { 2.19009964, 2.21410376 };
    const double whole[] = { 2.53622262, 1.63797911 }, masked[] = { 6.52331222, 2.2169732 };
    double s[9], p[9], gx[6];
    matrix(&c, 0, 0, s, p);
    const double want[] = { .3176632, .03807932, .64425749 };
    for (int j = 0; j < 3; j++) CHECK_NEAR(p[6 + j], want[j], tol, "T3 P");
    for (int d = 0; d < 2; d++) CHECK_NEAR(c.o.d[4 + d], o[d], tol, "T3 O");
    for (int d = 0; d < 2; d++) CHECK_NEAR(c.to.d[4 + d], to[d], tol, "T3 JVP"); /* row 2 sees all, causal or not */
    map(gx, c.gq.d, w[0], false, false);
    map(gx, c.gk.d, w[1], false, true);
    map(gx, c.gv.d, w[2], false, true);
    for (int d = 0; d < 2; d++) CHECK_NEAR(gx[d], causal ? masked[d] : whole[d], tol, "T3 VJP");
    pair_near(&c.o, NULL, 1e-6, 0, "T3 O in float");
    pair_near(&c.to, NULL, 1e-5, 0, "T3 JVP in float");
    pair_near(&c.gk, NULL, 1e-5, 0, "T3 VJP in float");
    case_free(&c);
}

/* Rows that saturate: logits of 60 and T of 1000 would leave nothing of the textbook form in float.
 * The truth is tv of the winning key plus e^-60 of the rest. */
static void saturated(void)
{
    const taut_attn a = { .n = 1, .heads = 1, .tq = 4, .tk = 300, .dh = 2, .scale = 1 };
    attn_case c = case_new(a, 1);
    for (int64_t i = 0; i < a.tq; i++) c.in[Q].d[2 * i] = 1, c.in[Q].d[2 * i + 1] = 0;
    for (int64_t j = 0; j < a.tk; j++) c.in[K].d[2 * j] = j == 277 ? 60 : 0;
    for (int64_t i = 0; i < c.in[TQ].len; i++) c.in[TQ].d[i] = 10;
    for (int i = 0; i < INPUTS; i++) pair_sync(&c.in[i]);
    run_jvp(&c);
    for (int64_t i = 0; i < c.to.len; i++)
        CHECK_NEAR(c.to.d[i], c.in[TV].d[2 * 277 + i % 2], 1e-14, "ref: saturated rows do not cancel");
    pair_near(&c.to, NULL, 1e-6, 0, "cpu: saturated rows do not cancel");
    case_free(&c);
}

/* NaN in token `bad` of the keys or queries reaches exactly the results that see it. */
static void poison(taut_attn a, int which, int64_t bad)
{
    attn_case c = case_new(a, 1);
    const bool query = which == Q || which == TQ || which == GO;
    run_forward(&c);
    pair_sync(&c.o);
    pair_sync(&c.lse);
    c.in[which].d[row_at(&a, query ? a.tq : a.tk, 0, 0, bad)] = NAN;
    pair_sync(&c.in[which]);
    run_jvp(&c);
    run_vjp(&c);
    for (int64_t i = 0; i < a.tq; i++) {
        const bool touched = query ? i == bad && which != GO : sees(&a, i, bad);
        CHECK(isnan(c.to.d[row_at(&a, a.tq, 0, 0, i)]) == touched, "poison in jvp");
    }
    const pair *all[] = { &c.to, &c.gq, &c.gk, &c.gv };
    for (int x = 0; x < 4; x++) {
        double *got = floats_of(all[x]);
        for (int64_t i = 0; i < all[x]->len; i++) CHECK(isnan(got[i]) == isnan(all[x]->d[i]), "poison: cpu as ref");
        free(got);
    }
    if (which <= V) {
        run_forward(&c);
        double *got = floats_of(&c.o);
        for (int64_t i = 0; i < c.o.len; i++) CHECK(isnan(got[i]) == isnan(c.o.d[i]), "poison: forward");
        free(got);
    }
    case_free(&c);
}

/* Logits of 0 and one value everywhere: sums of it are rounded the same way again and again, most of all of these values. */
static void one_way(int64_t tk, double value)
{
    attn_case c = case_new((taut_attn){ .n = 1, .heads = 1, .tq = 1, .tk = tk, .dh = 4, .scale = 1 }, 0);
    for (int64_t i = 0; i < c.in[V].len; i++) c.in[V].d[i] = value;
    pair_sync(&c.in[V]);
    run_forward(&c);
    pair_near(&c.o, NULL, 0, promise_attention_mean(promised, tk), "o where roundings go one way");
    case_free(&c);
}

int main(void)
{
    pair_begin();
    one_way(1, 0x1.000022p+0), one_way(33, 0x1.e1e36p+0), one_way(130, 0x1.f8258p+0);
    one_way(200, 0x1.51d08p+0), one_way(250, 0x1.062b8p+0), one_way(256, 0x1.fc1fp+0);
    for (case_no = 0; case_no < effort(40); case_no++) {
        const int large = case_no % 10 == 9;
        pair_shift = case_no % 7 == 1;
        taut_attn a = { .n = rng_int(0, 3),
                        .heads = rng_int(1, 3),
                        .tq = rng_int(0, large ? 200 : 40),
                        .tk = rng_int(0, large ? 600 : 40),
                        .dh = rng_int(1, large ? 20 : 40),
                        .scale = 1.5 * rng_pm(),
                        .causal = rng_int(0, 1),
                        .alibi = rng_int(0, 2) == 0 };
        if (case_no % 3 == 0) a.tq = a.tk;
        random_case(a, case_no % 4 ? 1 : 4);
    }
    for (int causal = 0; causal < 2; causal++) /* so many queries that keys and values are packed once for all */
        random_case((taut_attn){ .n = 1, .heads = 1, .tq = 270, .tk = 520, .dh = 70, .scale = 0.1, .causal = causal },
                    1);
    for (int i = 0; i < 4; i++)
        derivative((taut_attn){
            .n = 2, .heads = 2, .tq = 5, .tk = 7 - i, .dh = 3, .scale = 0.7, .causal = i % 2, .alibi = i / 2 });
    vector_t3(false);
    vector_t3(true);
    saturated();
    for (int which = 0; which < INPUTS; which++) {
        poison((taut_attn){ .n = 2, .heads = 2, .tq = 70, .tk = 70, .dh = 3, .scale = 1, .causal = true }, which, 40);
        poison((taut_attn){ .n = 1, .heads = 1, .tq = 5, .tk = 9, .dh = 2, .scale = 1 }, which, 4);
    }
    poison((taut_attn){ .n = 1, .heads = 1, .tq = 270, .tk = 270, .dh = 3, .scale = 1, .causal = true }, V, 260);
    return test_end("attention", "worst error / promised = %.3f", worst);
}
