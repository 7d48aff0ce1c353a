/* Attention: every norm of its proof, then lip and out.  Head h has M_h = W_O^h W_V^h and A_h = W_K^hT W_Q^h.
 *
 * Without RoPE S_ij = u_i.x_j + (what has no j), u_i = s W_K^T (W_Q x_i + b_Q), and the mean token xi_i = sum_j P_ij x_j
 * moves by sum_j P_ij (I + (x_j - xi_i) u_i^T) e_j + s Cov_i A e_i.  By Cauchy-Schwarz with weights P_ij, as sum_j P_ij
 * (x_j - xi_i) = 0, the first part is at most sqrt((1 + |u_i|^2 X^2) sum_j P_ij |e_j|^2), the second s X^2 |A e_i|.
 * y_i = c sum_h M_h xi_i^h + constant = c [t_h M_h] (xi^h / t_h), and 1/t_h <= r_h: a family (t, r) gives
 *     keys = out_norm sqrt(sigma + in^2) or, the two parts each with its own family, mean + out_norm in;
 *     queries = out_norm s X^2 logit_norm;     sum_h r_h^2 |u_i^h|^2 <= (s (X logit_norm + |(r_h b_h)|))^2.
 * With RoPE u_ij depends on j (only the second form), |u_ij| <= s ||W_K^h|| |q_i|, and keys reach ||W_K|| X + |b_K|.
 * flat: sum over rows costs sqrt(count), count >= sum_i max_h P^h_ij; P_ij <= 1 / (1 + sum over the other keys of
 * e^-(difference of logits)), and logits of a row differ by at most E, with ALiBi also by slope times distance, where
 * the nearest key is the worst and the others are at distances at most 1, 2, ... more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/ck.h"

enum { FAMILIES = 3 };
typedef struct {
    int64_t index;
    double query, key, query_bias, key_bias, logit;
    double most; /* E */
} head;
typedef struct {
    double *t, *r;
    ck_gram out, logit, query;
    double out_norm, logit_norm, query_norm, sigma, b;
} family;
typedef struct {
    ck_fields *f;
    ck_node *n;
    head *heads;
    int64_t count, dh, d;
    family fam[FAMILIES];
    int families;
    double x, s;
    bool rope;
    double *product, *square;
} attention;

/* Rows h*dh .. of W (or, of the output matrix, columns). */
static ck_view part(const attention *a, int which, int64_t h)
{
    ck_view v = which == 3 ? ck_turn(a->n->w[3]) : a->n->w[which];
    v.f += h * a->dh * v.down;
    v.rows = a->dh;
    return v;
}
static ck_view bias_part(const attention *a, int which, int64_t h)
{
    ck_view v = a->n->b[which];
    if (v.f) v.f += h * a->dh;
    v.cols = a->dh;
    return v;
}

/* At least |W b|: every entry is a sum of products of float32 numbers, each product exact. */
static double image(ck_view w, const ck_view *b)
{
    double sum = 0;
    for (int64_t i = 0; i < w.rows && b->f; i++) {
        double y = 0, size = 0;
        for (int64_t j = 0; j < w.cols; j++) {
            const double p = ck_at(&w, i, j) * ck_at(b, 0, j);
            y += p;
            size += fabs(p);
        }
        const double e = ck_add(fabs(y), ck_mul(1.01 * ck_gamma((double)w.cols), size));
        sum = ck_add(sum, ck_mul(e, e));
    }
    return ck_sqrt(sum);
}

/* square = (A^T B)^T (A^T B) or, outer, (A^T B)(A^T B)^T; returns the Frobenius error of A^T B. */
static double square_product(attention *a, ck_view left, ck_view right, bool outer)
{
    ck_view p = { NULL, a->product, a->d, a->d, a->d, 1 };
    memset(a->product, 0, (size_t)(a->d * a->d) * sizeof *a->product);
    if (ck_over(a->f->c)) return INFINITY;
    if (!ck_tn(a->product, a->d, left, right, 1, false) || !ck_square(a->square, outer ? ck_turn(p) : p))
        a->f->c->status = taut_no_memory("a head's matrices");
    return ck_mul(1.01 * ck_gamma(ck_roundings(a->dh)), ck_mul(ck_length(&left), ck_length(&right)));
}

static void square_view(attention *a, ck_view w)
{
    if (!ck_over(a->f->c) && !ck_square(a->square, w)) a->f->c->status = taut_no_memory("a head's matrices");
}

/* Everything about one head: its own numbers, and its share in the families' stacks. */
static void confirm_head(attention *a, head *h, const cJSON *json, int64_t i)
{
    char what[32];
    snprintf(what, sizeof what, "head %lld", (long long)h->index);
    ck_fields f = ck_open(a->f->c, a->n, json, "head", what);
    const ck_view q = part(a, 0, h->index), k = part(a, 1, h->index), bq = bias_part(a, 0, h->index);
    const double s2 = 2 * a->s;
    ck_take(&f, "index", true);
    double err = square_product(a, part(a, 3, h->index), part(a, 2, h->index), true);
    for (int m = 0; m < a->families; m++) ck_gram_add(&a->fam[m].out, a->square, a->d, a->fam[m].t[i], err);
    if (!a->rope) {
        ck_gram own = { 0 };
        h->key_bias = ck_number(&f, "key_bias", bq.f != NULL);
        if (bq.f) ck_at_least(&f, "key_bias", h->key_bias, image(ck_turn(k), &bq));
        h->logit = ck_number(&f, "logit", true);
        err = square_product(a, k, q, false);
        if (!ck_gram_begin(&own, a->d))
            a->f->c->status = taut_no_memory("a head's matrices");
        else
            ck_gram_add(&own, a->square, a->d, 1, err);
        ck_prove(&f, "logit", h->logit, &own);
        ck_gram_end(&own);
        for (int m = 0; m < a->families; m++) ck_gram_add(&a->fam[m].logit, a->square, a->d, a->fam[m].r[i], err);
        h->most = ck_mul(s2, ck_mul(a->x, ck_add(ck_mul(a->x, h->logit), h->key_bias)));
        ck_close(&f);
        return;
    }
    const ck_view bk = bias_part(a, 1, h->index);
    h->query = ck_number(&f, "query", true);
    h->key = ck_number(&f, "key", true);
    ck_prove_view(&f, "query", h->query, q, 0);
    ck_prove_view(&f, "key", h->key, k, 0);
    h->query_bias = ck_bias(&f, "query_bias", &bq);
    h->key_bias = ck_bias(&f, "key_bias", &bk);
    const double reach = ck_add(ck_mul(h->key, a->x), h->key_bias);
    square_view(a, q);
    for (int m = 0; m < a->families; m++) {
        const double r = a->fam[m].r[i];
        ck_gram_add(&a->fam[m].logit, a->square, a->dh, ck_mul(r, h->key), 0);
        ck_gram_add(&a->fam[m].query, a->square, a->dh, ck_mul(r, reach), 0);
    }
    h->most = ck_mul(s2, ck_mul(reach, ck_add(ck_mul(h->query, a->x), h->query_bias)));
    ck_close(&f);
}

/* t_h > 0, r_h > 0 and r_h t_h >= 1, exactly: fma rounds the sign right. */
static void read_weights(attention *a, family *m, ck_fields *f)
{
    const cJSON *t = ck_take(f, "weights", true), *r = ck_take(f, "shares", true);
    if (cJSON_GetArraySize(t) != a->count || cJSON_GetArraySize(r) != a->count || !cJSON_IsArray(t) ||
        !cJSON_IsArray(r))
        ck_fail(a->f->c, "%s (family): weights and shares must list every head", a->n->path);
    m->t = ck_room(a->f->c, a->count);
    m->r = ck_room(a->f->c, a->count);
    if (ck_over(a->f->c)) return;
    t = t->child;
    r = r->child;
    for (int64_t i = 0; i < a->count; i++, t = t->next, r = r->next) {
        m->t[i] = cJSON_GetNumberValue(t);
        m->r[i] = cJSON_GetNumberValue(r);
        if (!(m->t[i] > 0 && m->r[i] > 0 && fma(m->t[i], m->r[i], -1) >= 0) || isinf(m->t[i] + m->r[i]))
            ck_fail(a->f->c, "%s (family): weight and share %lld are not positive with a product of at least 1",
                    a->n->path, (long long)i);
        m->sigma = ck_add(m->sigma, ck_mul(m->r[i], m->r[i]));
    }
    a->f->c->out->numbers += 2 * a->count;
}

static void confirm_family(attention *a, family *m, ck_fields *f)
{
    ck_prove(f, "out_norm", m->out_norm = ck_number(f, "out_norm", true), &m->out);
    ck_prove(f, "logit_norm", m->logit_norm = ck_number(f, "logit_norm", true), &m->logit);
    if (a->rope) ck_prove(f, "query_norm", m->query_norm = ck_number(f, "query_norm", true), &m->query);
    for (int64_t i = 0; i < a->count; i++) {
        const head *h = a->heads + i;
        m->b = ck_hypot(m->b, ck_mul(m->r[i], a->rope ? ck_mul(h->key, h->query_bias) : h->key_bias));
    }
    ck_close(f);
}

/* The largest possible sum over queries of one key's share.  Terms of the denominators are rounded down. */
static double count_most(const attention *a, int64_t tokens, bool causal, bool alibi, double *sum, double *power)
{
    double total = 0;
    int64_t seen = 1;
    for (int64_t i = 0; i < a->count; i++) sum[i] = 0, power[i] = 1;
    for (int64_t row = 0; row < tokens; row++) {
        double least = INFINITY;
        for (const int64_t sees = causal ? row + 1 : tokens; seen < sees; seen++)
            for (int64_t i = 0; i < a->count; i++) {
                const double slope = exp2(-8 * (double)(a->heads[i].index + 1) / a->f->c->v[HEADS]);
                if (alibi) power[i] = ck_below(power[i] * (exp(-slope * (1 + 1e-15)) * (1 - 2e-15)));
                sum[i] = ck_below(sum[i] + power[i]);
            }
        for (int64_t i = 0; i < a->count; i++) {
            const double low = exp(-a->heads[i].most) * (1 - 2e-15); /* libm within 4 ulp */
            least = fmin(least, low > 1e-300 && sum[i] > 0 ? ck_below(ck_below(low) * sum[i]) : 0);
        }
        total = ck_add(total, ck_div(1, ck_below(1 + fmax(least, 0))));
    }
    return total;
}

static void confirm_count(attention *a, double *count)
{
    ck *c = a->f->c;
    double *room = ck_room(c, 2 * a->count + 1);
    const bool there = cJSON_HasObjectItem(a->f->json, "count");
    *count = ck_number(a->f, "count", c->out->flat);
    if (there && room && !ck_over(c))
        ck_at_least(a->f, "count", *count,
                    count_most(a, c->out->tokens, c->v[ARCH] == 0, c->v[POSITIONS] == ALIBI, room, room + a->count));
    free(room);
}

static void combine(const attention *a, double count, double *lip, double *mean)
{
    const double x = a->x, none = a->count == 0 ? 0 : INFINITY;
    double both = none, in_part = none, queries = none;
    *mean = none;
    for (int m = 0; m < a->families; m++) {
        const family *k = a->fam + m;
        const double in = ck_mul(a->s, ck_mul(x, ck_add(ck_mul(x, k->logit_norm), k->b)));
        *mean = fmin(*mean, ck_mul(k->out_norm, ck_sqrt(k->sigma)));
        if (!a->rope) both = fmin(both, ck_mul(k->out_norm, ck_sqrt(ck_add(k->sigma, ck_mul(in, in)))));
        in_part = fmin(in_part, ck_mul(k->out_norm, in));
        queries = fmin(
            queries, ck_mul(k->out_norm, ck_mul(a->s, ck_mul(x, a->rope ? k->query_norm : ck_mul(x, k->logit_norm)))));
    }
    const double keys = fmin(both, ck_add(*mean, in_part));
    *lip = ck_add(a->f->c->out->flat ? ck_mul(ck_sqrt(count), keys) : keys, queries);
}

/* A head that is left out must have M_h = 0: every column of W_O^h or the row of W_V^h that it meets is 0. */
static void confirm_absent(attention *a, int64_t h)
{
    const ck_view v = part(a, 2, h), o = part(a, 3, h);
    for (int64_t k = 0; k < a->dh; k++) {
        ck_view row = v, col = o;
        row.f += k * row.down, row.rows = 1;
        col.f += k * col.down, col.rows = 1;
        if (ck_length(&row) == 0 || ck_length(&col) == 0) continue;
        ck_fail(a->f->c, "%s (attention): head %lld is not zero and may not be left out", a->n->path, (long long)h);
        return;
    }
}

/* The heads' indices and the families' weights, before any norm; returns the first family's JSON. */
static const cJSON *read_parts(attention *a, const cJSON *json)
{
    ck *c = a->f->c;
    int64_t next = 0, all = (int64_t)c->v[HEADS];
    for (; json && cJSON_HasObjectItem(json, "index") && a->count < all; json = json->next, a->count++) {
        const double index = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "index"));
        if (!(index >= (double)next && index < (double)all) || index != floor(index)) {
            ck_fail(c, "%s (attention): its heads are not in order", a->n->path);
            return NULL;
        }
        a->heads[a->count].index = (int64_t)index;
        for (; next < (int64_t)index; next++) confirm_absent(a, next);
        next++;
    }
    for (; next < all; next++) confirm_absent(a, next);
    return json;
}

static void run(attention *a, const cJSON *first)
{
    ck *c = a->f->c;
    ck_fields f[FAMILIES];
    const cJSON *json = read_parts(a, first);
    for (; json && a->families < FAMILIES && !ck_over(c); json = json->next) {
        family *m = a->fam + a->families;
        f[a->families++] = ck_open(c, a->n, json, "family", "family");
        read_weights(a, m, &f[a->families - 1]);
        if (!ck_gram_begin(&m->out, a->d) || !ck_gram_begin(&m->logit, a->d) || !ck_gram_begin(&m->query, a->d))
            c->status = taut_no_memory("the norms of the heads");
    }
    if (json) ck_fail(c, "%s (attention): it has parts that are neither heads nor one of three families", a->n->path);
    json = first;
    for (int64_t i = 0; i < a->count && !ck_over(c); i++, json = json->next) confirm_head(a, a->heads + i, json, i);
    for (int m = 0; m < a->families && !ck_over(c); m++) confirm_family(a, a->fam + m, &f[m]);
}

void ck_attention(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const int64_t d = n->w[0].cols, all = (int64_t)c->v[HEADS];
    attention a = { .f = f, .n = n, .dh = d / all, .d = d, .x = x, .s = c->scale, .rope = c->v[POSITIONS] == ROPE };
    const double factor = ck_float(c->v[ATT_OUT]);
    double count, mean;
    const cJSON *of = ck_take(f, "of", false);
    a.heads = (head *)ck_room(c, all * (int64_t)(sizeof(head) / sizeof(double)));
    a.product = ck_room(c, d * d);
    a.square = ck_room(c, d * d);
    if (!ck_over(c)) run(&a, cJSON_IsArray(of) ? of->child : NULL);
    if (!ck_over(c)) {
        confirm_count(&a, &count);
        combine(&a, count, lip, &mean);
        *lip = ck_mul(factor, *lip);
        const double value_bias = ck_number(f, "value_bias", n->b[2].f != NULL);
        if (n->b[2].f) ck_at_least(f, "value_bias", value_bias, image(n->w[3], &n->b[2]));
        *out = ck_add(ck_mul(factor, ck_add(ck_mul(mean, x), value_bias)), ck_bias(f, "bias", &n->b[3]));
    }
    for (int m = 0; m < FAMILIES; m++) {
        ck_gram_end(&a.fam[m].out);
        ck_gram_end(&a.fam[m].logit);
        ck_gram_end(&a.fam[m].query);
        free(a.fam[m].t);
        free(a.fam[m].r);
    }
    free(a.heads);
    free(a.product);
    free(a.square);
}
