/* Attention and its vjp with products in tf32 and bf16, where a table has them: against ref, entry by entry, with the errors
 * that rounded factors and weights may make; masks, poison, the same bits twice. */
#include "kernels/pair.h"

enum { Q, K, V, GO, INPUTS };
typedef struct {
    taut_attn a;
    pair in[INPUTS], o, lse, gq, gk, gv;
} coarse_case;

static double u; /* of a factor that is rounded */

static int64_t row_at(const taut_attn *a, int64_t t, int64_t e, int64_t h, int64_t i)
{
    return ((e * t + i) * a->heads + h) * a->dh;
}

static coarse_case case_new(taut_attn a, double size)
{
    coarse_case c = { .a = a };
    const int64_t over = a.n * a.tq * a.heads * a.dh, under = a.n * a.tk * a.heads * a.dh;
    for (int i = 0; i < INPUTS; i++) c.in[i] = pair_new(i == Q || i == GO ? over : under, size);
    c.o = pair_new(over, 1), c.gq = pair_new(over, 1);
    c.gk = pair_new(under, 1), c.gv = pair_new(under, 1);
    c.lse = pair_new(a.n * a.heads * a.tq, 1);
    return c;
}

static void case_free(coarse_case *c)
{
    for (int i = 0; i < INPUTS; i++) pair_free(&c->in[i]);
    pair_free(&c->o), pair_free(&c->lse), pair_free(&c->gq), pair_free(&c->gk), pair_free(&c->gv);
}

static void forward(coarse_case *c)
{
    ref->attention(R(&c->o), R(&c->lse), R(&c->in[Q]), R(&c->in[K]), R(&c->in[V]), &c->a);
    cpu->attention(c->o.f, c->lse.f, c->in[Q].f, c->in[K].f, c->in[V].f, &c->a);
}

static void backward(coarse_case *c)
{
    ref->attention_vjp(R(&c->gq), R(&c->gk), R(&c->gv), R(&c->in[GO]), R(&c->o), R(&c->lse), R(&c->in[Q]), R(&c->in[K]),
                       R(&c->in[V]), &c->a);
    cpu->attention_vjp(c->gq.f, c->gk.f, c->gv.f, c->in[GO].f, c->o.f, c->lse.f, c->in[Q].f, c->in[K].f, c->in[V].f,
                       &c->a);
}

static double adot(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += fabs(x[c] * y[c]);
    return sum;
}

/* What may be off in o, lse, gq, gk and gv: every factor of a product by u of itself, so a logit by 2 u |q|.|k|, a weight by
 * twice that of itself once its row is divided; the weight, rounded, by u more.  What float rounds is a hundredth of u here. */
static void judge_head(const coarse_case *c, int64_t e, int64_t h, double *tol[5])
{
    const taut_attn *a = &c->a;
    const int64_t dh = a->dh;
    for (int64_t i = 0; i < a->tq; i++) {
        const int64_t qi = row_at(a, a->tq, e, h, i), one = (e * a->heads + h) * a->tq + i;
        const double *q = c->in[Q].d + qi, *go = c->in[GO].d + qi, *o = c->o.d + qi, lse = c->lse.d[one];
        double off = 0;
        for (int64_t j = 0; j < a->tk; j++)
            off = fmax(off, fabs(a->scale) * adot(q, c->in[K].d + row_at(a, a->tk, e, h, j), dh));
        off = expm1(2.02 * u * off);
        tol[1][one] = off + 1e-5 * (1 + fabs(lse));
        for (int64_t j = 0; j < a->tk; j++) {
            if (a->causal && j > i + a->tk - a->tq) continue;
            const int64_t kj = row_at(a, a->tk, e, h, j);
            const double *k = c->in[K].d + kj, *v = c->in[V].d + kj;
            const double far = a->alibi ? pow(2, -8.0 * (double)(h + 1) / (double)a->heads) *
                                              fabs((double)(i + a->tk - a->tq - j))
                                        : 0;
            const double w = exp(a->scale * dot(q, k, dh) - far - lse), size = adot(go, v, dh) + adot(go, o, dh);
            for (int64_t d = 0; d < dh; d++) {
                tol[0][qi + d] += w * fabs(v[d]) * (2.02 * off + 2.02 * u);
                tol[2][qi + d] += fabs(a->scale * k[d]) * w * size * (1.01 * off + 4.1 * u);
                tol[3][kj + d] += fabs(a->scale * q[d]) * w * size * (1.01 * off + 4.1 * u);
                tol[4][kj + d] += w * fabs(go[d]) * (1.01 * off + 2.02 * u);
            }
        }
    }
}

static void random_case(taut_attn a, double size)
{
    coarse_case c = case_new(a, size);
    pair *all[5] = { &c.o, &c.lse, &c.gq, &c.gk, &c.gv };
    const char *const what[5] = { "o", "lse", "gq", "gk", "gv" };
    double *tol[5];
    for (int i = 0; i < 5; i++) tol[i] = doubles(all[i]->len);
    SAME_BITS(c.o, forward(&c));
    for (int64_t e = 0; e < a.n; e++)
        for (int64_t h = 0; h < a.heads; h++) judge_head(&c, e, h, tol);
    pair_near(&c.o, tol[0], 1e-5, 0, what[0]);
    pair_near(&c.lse, tol[1], 0, 0, what[1]);
    pair_sync(&c.o), pair_sync(&c.lse); /* the same o and lse for both */
    SAME_BITS(c.gk, backward(&c));
    for (int i = 2; i < 5; i++) pair_near(all[i], tol[i], 1e-5 * size * size, 0, what[i]);
    for (int i = 0; i < 5; i++) free(tol[i]);
    case_free(&c);
}

/* What is not finite reaches the results that see it and no other. */
static void poison(taut_attn a, int which, int64_t bad, double what)
{
    coarse_case c = case_new(a, 1);
    forward(&c);
    pair_sync(&c.o), pair_sync(&c.lse);
    c.in[which].d[row_at(&a, which == Q || which == GO ? a.tq : a.tk, 0, 0, bad)] = what;
    pair_sync(&c.in[which]);
    backward(&c);
    forward(&c);
    const pair *all[] = { &c.o, &c.gq, &c.gk, &c.gv };
    for (int x = 0; x < 4; x++) {
        double *got = doubles(all[x]->len);
        cpu->get(got, all[x]->f, all[x]->len);
        for (int64_t i = 0; i < all[x]->len; i++) CHECK(isfinite(got[i]) == isfinite(all[x]->d[i]), "poison: as ref");
        free(got);
    }
    case_free(&c);
}

static void all_cases(void)
{
    static const int64_t widths[] = { 1, 8, 40, 64, 65, 128, 160 }, lengths[] = { 1, 31, 64, 70, 129, 200 };
    for (int i = 0; i < effort(40); i++, case_no++) {
        taut_attn a = { .n = rng_int(1, 2), .heads = rng_int(1, 3), .dh = widths[rng_int(0, 6)] };
        a.tq = lengths[rng_int(0, 5)], a.tk = i % 2 ? a.tq : lengths[rng_int(0, 5)];
        a.causal = rng_int(0, 1) && a.tq <= a.tk, a.alibi = rng_int(0, 3) == 0;
        a.scale = 1 / sqrt((double)a.dh);
        random_case(a, i % 3 ? 1 : 3);
    }
    /* so many heads that a warp has 32 rows */
    random_case((taut_attn){ .n = 1, .heads = 66, .tq = 130, .tk = 130, .dh = 64, .scale = 0.125, .causal = true }, 1);
    random_case((taut_attn){ .n = 1, .heads = 66, .tq = 130, .tk = 140, .dh = 96, .scale = 0.1 }, 1);
    for (int which = Q; which < INPUTS; which++)
        for (int causal = 0; causal < 2; causal++) {
            const taut_attn a = { .n = 1, .heads = 2, .tq = 150, .tk = 150, .dh = 64, .scale = 0.1, .causal = causal };
            poison(a, which, 77, NAN), poison(a, which, 149, INFINITY), poison(a, which, 0, -INFINITY);
        }
}

int main(void)
{
    const char *name = getenv("TAUT_KERNELS");
    if (!name || strcmp(name, "cuda") != 0)
        return test_skip("tf32 and bf16 are for floats on a device: TAUT_KERNELS=cuda");
    pair_begin();
    const struct {
        taut_products how;
        double u;
    } all[] = { { TAUT_PRODUCTS_TF32, 0x1p-11 }, { TAUT_PRODUCTS_BF16, 0x1p-8 } };
    for (int i = 0; i < 2; i++) {
        CHECK(cpu->products(all[i].how) == TAUT_OK, "both are there");
        u = all[i].u;
        all_cases();
    }
    CHECK(cpu->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "and back");
    return test_end("attention by coarse products", "worst error / promised = %.3f", worst);
}
