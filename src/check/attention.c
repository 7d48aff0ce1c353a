/* Attention: every norm of its proof, then lip and out.  Head h has M_h = W_O^h W_V^h and A_h = W_K^hT W_Q^h.
 *
 * Without RoPE S_ij = u_i.x_j + (what has no j), u_i = s W_K^T (W_Q x_i + b_Q).  The mean token xi_i = sum_j P_ij x_j
 * moves by sum_j P_ij (I + (x_j - xi_i) u_i^T) e_j + s Cov_i A e_i.  By Cauchy-Schwarz with weights P_ij, and as sum_j
 * P_ij (x_j - xi_i) = 0, the first part is at most sqrt((1 + |u_i|^2 X^2) sum_j P_ij |e_j|^2), the second at most
 * s X^2 |A e_i|.
 * y_i = c sum_h M_h xi_i^h + constant = c [t_h M_h] (xi_i^h / t_h), and 1/t_h <= r_h.  So each family (t, r) gives
 *     keys = out_norm sqrt(sigma + in^2), or mean + out_norm in, the two parts each with a family of its own,
 *     queries = out_norm s X^2 logit_norm;     sum_h r_h^2 |u_i^h|^2 <= (s (X logit_norm + |(r_h b_h)|))^2.
 * With RoPE u_ij depends on j (only the second form), |u_ij| <= s ||W_K^h|| |q_i|, keys reach ||W_K^h|| X + |b_K^h|.
 * flat: adding up rows costs sqrt(count), count >= sum_i max_h P^h_ij.  P_ij = 1 / (1 + sum over the other keys of
 * exp(difference of logits)); logits of a row differ by at most E, and with ALiBi by slope times distance, where the
 * nearest key has the largest share and the others are at most 1, 2, ... further away. */
#include <stdio.h>

#include "check/ck.h"

enum { FAMILIES = 3 };
typedef struct {
    ck_fields f;
    char name[16];
    double *t, *r, sigma, b; /* b: |(r_h b_h)| */
    ck_gram *out, *logit, *query;
} family;
typedef struct {
    ck *c;
    const ck_node *n;
    double x, *most; /* most: E of every head */
    int64_t count, dh, d, *index;
    family fam[FAMILIES];
    int families;
    bool rope;
} attention;

static ck_view part(const attention *a, ck_view v, int64_t i) { return ck_rows(v, a->index[i] * a->dh, a->dh); }

/* At least |W b|. */
static double image(ck *c, ck_view w, ck_view b)
{
    double *p = ck_room(c, w.rows, sizeof *p), gamma = b.f ? ck_product(c, p, ck_turn(w), ck_turn(b)) : 0;
    return ck_add(ck_length(ck_of(p, 1, w.rows)), ck_mul(gamma, ck_mul(ck_length(w), ck_length(b))));
}

/* Everything about one head: its own numbers, and its share in the stacks of the families. */
static void head(attention *a, int64_t i, const cJSON *json)
{
    ck *c = a->c;
    const struct ck_block *mark = c->blocks;
    const ck_view *w = a->n->w, *b = a->n->b;
    const ck_view q = part(a, w[0], i), k = part(a, w[1], i), v = part(a, w[2], i), o = part(a, ck_turn(w[3]), i);
    const ck_view bq = ck_turn(part(a, ck_turn(b[0]), i)), bk = ck_turn(part(a, ck_turn(b[1]), i));
    double *p = ck_room(c, a->d * a->d, sizeof *p), by[1 + 2 * FAMILIES] = { 1 }, t[FAMILIES], err;
    ck_gram *own = ck_gram_new(c, a->d), *to[1 + 2 * FAMILIES] = { own }, *out[FAMILIES];
    char part_name[24];
    snprintf(part_name, sizeof part_name, "head %d", (int)a->index[i]);
    ck_fields f = ck_open(c, a->n, json, "head", part_name);
    ck_take(&f, "index");
    const double key = a->rope ? ck_claim_view(&f, "key", k, 0) : 1;
    const double bias = ck_claim(&f, "key_bias", a->rope ? ck_length(bk) : image(c, ck_turn(k), bq));
    const double query_bias = a->rope ? ck_claim(&f, "query_bias", ck_length(bq)) : 0;
    const double reach = ck_add(ck_mul(key, a->x), bias);
    for (int m = 0; m < a->families; m++) {
        family *g = a->fam + m;
        out[m] = g->out, t[m] = g->t[i];
        to[1 + m] = g->logit, by[1 + m] = ck_mul(g->r[i], key);
        to[1 + a->families + m] = g->query, by[1 + a->families + m] = ck_mul(g->r[i], reach);
        g->b = ck_hypot(g->b, ck_mul(g->r[i], a->rope ? ck_mul(key, query_bias) : bias));
    }
    err = ck_mul(ck_product(c, p, o, v), ck_mul(ck_length(o), ck_length(v)));
    ck_gram_add(c, out, t, a->families, ck_turn(ck_of(p, a->d, a->d)), err);
    err = a->rope ? 0 : ck_mul(ck_product(c, p, k, q), ck_mul(ck_length(k), ck_length(q)));
    ck_gram_add(c, to, by, 1 + a->families * (1 + a->rope), a->rope ? q : ck_of(p, a->d, a->d), err);
    const double norm = ck_mul(ck_claim_norm(&f, a->rope ? "query" : "logit", own), a->x);
    a->most[i] = ck_mul(2 * c->scale,
                        a->rope ? ck_mul(reach, ck_add(norm, query_bias)) : ck_mul(a->x, ck_add(norm, bias)));
    ck_close(&f);
    ck_give_back(c, mark);
}

/* A family: t_h > 0, r_h > 0 and r_h t_h >= 1, exactly: fma rounds the sign right. */
static void weights(attention *a, family *m, const cJSON *json)
{
    ck *c = a->c;
    snprintf(m->name, sizeof m->name, "family %d", (int)(m - a->fam));
    m->f = ck_open(c, a->n, json, "family", m->name);
    const cJSON *t = ck_take(&m->f, "weights"), *r = ck_take(&m->f, "shares");
    m->t = ck_room(c, 2 * a->count, sizeof *m->t);
    m->r = m->t + a->count;
    bool sound = cJSON_GetArraySize(t) == a->count && cJSON_GetArraySize(r) == a->count;
    for (int64_t i = 0; i < a->count && sound; i++) {
        t = i ? t->next : t->child, r = i ? r->next : r->child;
        m->t[i] = cJSON_GetNumberValue(t), m->r[i] = cJSON_GetNumberValue(r);
        sound = m->t[i] > 0 && m->r[i] > 0 && fma(m->t[i], m->r[i], -1) >= 0;
        m->sigma = ck_add(m->sigma, ck_mul(m->r[i], m->r[i]));
    }
    if (!sound) ck_fail(c, "%s (family): a weight is missing, or times its share below 1", a->n->path);
    m->out = ck_gram_new(c, a->d), m->logit = ck_gram_new(c, a->d), m->query = ck_gram_new(c, a->d);
}

/* The largest possible sum over queries of one key's share; terms of the denominators are rounded down, libm is trusted
 * to 4 ulp.  sum[i] = q + q^2 + ..., one term for each other key that is seen; without ALiBi q = 1. */
static double count_most(attention *a, bool causal, bool alibi)
{
    double total = 0, *sum = ck_room(a->c, 2 * a->count, sizeof *sum), *power = sum + a->count;
    for (int64_t i = 0; i < a->count; i++) power[i] = 1;
    for (int64_t row = 0, seen = 1; row < a->c->out->tokens && a->count; row++) {
        double least = INFINITY;
        for (; seen < (causal ? row + 1 : a->c->out->tokens); seen++)
            for (int64_t i = 0; i < a->count; i++) {
                const double slope = exp2(-8 * (double)(a->index[i] + 1) / a->c->r.heads) * (1 + 2e-15);
                power[i] = ck_below(power[i] * (alibi ? exp(-slope) * (1 - 2e-15) : 1));
                sum[i] = ck_below(sum[i] + power[i]);
            }
        for (int64_t i = 0; i < a->count; i++) {
            const double low = exp(-a->most[i]) * sum[i] * (1 - 4e-15);
            least = fmin(least, low > 1e-290 ? low : 0);
        }
        total = ck_add(total, ck_div(1, ck_below(1 + least)));
    }
    return total;
}

/* The heads in order, then the families; a head that is left out must have M_h = 0, each term of W_O^h W_V^h. */
static void parts(attention *a, const cJSON *of)
{
    ck *c = a->c;
    const cJSON *json = of ? of->child : NULL, *first = json;
    for (int64_t h = 0; h < (int64_t)c->r.heads; h++) {
        const bool there = cJSON_GetNumberValue(ck_get(json, "index")) == (double)h;
        a->index[a->count] = h;
        const ck_view v = part(a, a->n->w[2], a->count), o = part(a, ck_turn(a->n->w[3]), a->count);
        for (int64_t k = 0; k < a->dh && !there; k++)
            if (ck_length(ck_rows(v, k, 1)) > 0 && ck_length(ck_rows(o, k, 1)) > 0)
                ck_fail(c, "%s (attention): head %lld is missing or out of order", a->n->path, (long long)h);
        if (there) a->count++, json = json->next;
    }
    for (; json; json = json->next) {
        if (a->families == FAMILIES) ck_fail(c, "%s (attention): too many families", a->n->path);
        weights(a, &a->fam[a->families++], json);
    }
    for (int64_t i = 0; i < a->count; i++, first = first->next) head(a, i, first);
}

void ck_attention(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    attention a = { .c = c, .n = n, .x = x, .d = n->w[0].cols, .rope = c->r.positions == ROPE };
    a.dh = a.d / (int64_t)c->r.heads;
    a.most = ck_room(c, (int64_t)c->r.heads, sizeof *a.most);
    a.index = ck_room(c, (int64_t)c->r.heads, sizeof *a.index);
    parts(&a, ck_take(f, "of"));
    const double none = a.count ? INFINITY : 0, factor = c->r.attention_out, s = c->scale;
    double mean = none, both = none, in_part = none, queries = none, count = 1;
    for (int m = 0; m < a.families; m++) {
        family *g = a.fam + m;
        const double to = ck_claim_norm(&g->f, "out_norm", g->out),
                     logit = ck_claim_norm(&g->f, "logit_norm", g->logit);
        const double query = a.rope ? ck_claim_norm(&g->f, "query_norm", g->query) : ck_mul(x, logit);
        const double in = ck_mul(s, ck_mul(x, ck_add(ck_mul(x, logit), g->b)));
        ck_close(&g->f);
        mean = fmin(mean, ck_mul(to, ck_sqrt(g->sigma)));
        if (!a.rope) both = fmin(both, ck_mul(to, ck_sqrt(ck_add(g->sigma, ck_mul(in, in)))));
        in_part = fmin(in_part, ck_mul(to, in));
        queries = fmin(queries, ck_mul(to, ck_mul(s, ck_mul(x, query))));
    }
    if (c->out->flat || ck_get(f->json, "count"))
        count = ck_claim(f, "count", count_most(&a, c->r.arch == 0, c->r.positions == ALIBI));
    const double keys = fmin(both, ck_add(mean, in_part));
    *lip = ck_mul(factor, ck_add(c->out->flat ? ck_mul(ck_sqrt(count), keys) : keys, queries));
    *out = ck_mul(factor, ck_add(ck_mul(mean, x), ck_claim(f, "value_bias", image(c, n->w[3], n->b[2]))));
    *out = ck_add(*out, ck_claim(f, "bias", ck_length(n->b[3])));
}
