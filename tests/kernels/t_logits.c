/* The promises of attention's logits, where nothing else hides their errors: two keys whose logits are large and nearly the
 * same, so that the weights show what the logits are off by. */
#include "kernels/pair.h"

/* o of queries that see two keys, with the values 1 and -1; off[i]: the promise of a logit of query i. */
static void judge(taut_attn a, pair *q, pair *k, const double *off, const char *what)
{
    pair v = pair_new(a.tk * a.heads * a.dh, 0), o = pair_new(q->len, 0), lse = pair_new(a.heads * a.tq, 0);
    double *tol = doubles(o.len);
    for (int64_t i = 0; i < v.len; i++) v.d[i] = i < v.len / 2 ? 1 : -1;
    pair_sync(&v);
    ref->attention(R(&o), R(&lse), R(q), R(k), R(&v), &a);
    cpu->attention(o.f, lse.f, q->f, k->f, v.f, &a);
    for (int64_t i = 0; i < o.len; i++) tol[i] = 2 * off[i] + promise_attention_mean(promised, a.tk);
    pair_near(&o, tol, 0, 0, what);
    pair_free(&v), pair_free(&o), pair_free(&lse);
    free(tol);
}

/* Logits of about 1000, of products of one number. */
static void products(void)
{
    enum { QUERIES = 600 };
    const taut_attn a = { .n = 1, .heads = 1, .tq = QUERIES, .tk = 2, .dh = 1, .scale = 0.97 };
    pair q = pair_new(QUERIES, 0), k = pair_new(2, 0);
    double off[QUERIES];
    for (int64_t i = 0; i < QUERIES; i++) q.d[i] = 32.5 + rng_unit();
    k.d[0] = 32.1 + 0.1 * rng_unit();
    k.d[1] = k.d[0] + 0.001 * rng_unit();
    pair_sync(&q), pair_sync(&k);
    for (int64_t i = 0; i < QUERIES; i++) off[i] = promise_logit(promised, 1) * a.scale * q.d[i] * fmax(k.d[0], k.d[1]);
    judge(a, &q, &k, off, "o by products");
    pair_free(&q), pair_free(&k);
}

/* Queries far before all keys: ALiBi takes hundreds away from both logits, which are 0 otherwise. */
static void slopes(void)
{
    enum { QUERIES = 9000, HEADS = 7 };
    const taut_attn a = { .n = 1, .heads = HEADS, .tq = QUERIES, .tk = 2, .dh = 1, .scale = 1, .alibi = true };
    pair q = pair_new(QUERIES * HEADS, 0), k = pair_new(2 * HEADS, 0);
    double *off = doubles(q.len);
    for (int64_t i = 0; i < q.len; i++)
        off[i] = promise_alibi(promised) * exp2(-8.0 * (double)(i % HEADS + 1) / HEADS) *
                 fabs((double)(i / HEADS + 2 - QUERIES - 1)); /* from the further key */
    judge(a, &q, &k, off, "o by slopes");
    pair_free(&q), pair_free(&k);
    free(off);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(20); case_no++) products();
    slopes();
    return test_end("logits", "worst error / promised = %.3f", worst);
}
