/* Softmax attention around an example: every token of the input is within m of the computed x.  In head h, s the scale:
 *     without RoPE  u_i = |W_K^T q_i|,       w_j = W_Q^T k_j,      n = ||W_K^T W_Q||
 *     with RoPE     u_i = ||W_K|| |q_i|,     w_j = ||W_Q|| k_j,    n = ||W_K|| ||W_Q||      (q, k turned)
 * Away from x a value moves by nv m at most, nv = |W_V|_F, w_j by n m, and a logit, but for what all keys of a row share, by
 *     E_i = s m (u_i + max_j |w_j - d| + n m)       for any vector d,
 * so that a share becomes at most e^(2 E_i) as large.  Sums over shares, which make 1, of squares of lengths a_j + more:
 *     spread(a) = min( max_j a_j, e^E_i sqrt(sum_j P_ij a_j^2) ),    V_i of |v_j - c_i| + nv m (any c_i), K_i of |w_j - d| + n m.
 * Row i moves by  sum_j P_ij W_V e_j + sum_j P_ij (v_j - o_i) dS_ij,  dS_ij = s (q_i.W_K e_j + (k_j - kbar_i).W_Q e_i), and with
 * U_i = s (u_i + n m) by Cauchy-Schwarz the second sum is at most  U_i V_i sqrt(sum_j P_ij |e_j|^2) + s V_i K_i |e_i|  long.  W_O
 * adds up the heads, but for the first sum, which the proof's families bound (mean):
 *     tokens:  mean + ||W_O|| max_i ( |(U_i V_i)_h| + |(s V_i K_i)_h| )
 *     flat:    sqrt(max_j sum_i max_h p_ij) mean + ||W_O|| ( sqrt(max_j sum_ih p_ij (U_i V_i)^2) + max_i |(s V_i K_i)_h| ),
 * p_ij = min(1, e^(2 E_i) P_ij).  Heads that are left out of the proof have W_O W_V = 0: they add nothing. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

typedef struct {
    int64_t index;
    double n, nv, *u, *far; /* as above; u_i; |w_j - d| */
} head;

static double most_of(double a, double b) { return isnan(b) ? INFINITY : fmax(a, b); }

static double number(const cJSON *json, const char *key)
{
    const cJSON *v = ck_get(json, key);
    return v ? cJSON_IsString(v) ? INFINITY : cJSON_GetNumberValue(v) : 0;
}

static ck_mat columns(ck_mat m, int64_t first, int64_t count)
{
    return (ck_mat){ m.v + first, m.err, m.rows, count, m.ld };
}

/* |a - b| from above. */
static double apart(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = a[i] - b[i];
        sum += d * d;
    }
    return sqrt(sum) * (1 + 8 * CK_U) + 1e-140;
}

/* Once for a head: what does not depend on the row. */
static void read_head(ck *c, head *h, const ck_attended *a, const cJSON *json)
{
    const int64_t t = a->v.rows, dh = a->dh, at = h->index * dh;
    const bool rope = ck_constant(a->n, "rope") != 0;
    const ck_mat none = { 0 }, q = columns(a->q, at, dh), k = columns(a->k, at, dh);
    const double query = number(json, "query"), key = rope ? number(json, "key") : 1;
    const ck_mat u = rope ? q : ck_affine(c, q, 1, ck_turn(c, ck_rows(a->n->w[1], at, dh)), none);
    const ck_mat w = rope ? k : ck_affine(c, k, 1, ck_turn(c, ck_rows(a->n->w[0], at, dh)), none);
    double *d = ck_room(c, w.cols, sizeof *d);
    h->n = query * key;
    h->nv = ck_length(ck_rows(a->n->w[2], at, dh));
    h->u = ck_room(c, 2 * t, sizeof *h->u), h->far = h->u + t;
    for (int64_t j = 0; j < t; j++)
        for (int64_t i = 0; i < w.cols; i++) d[i] += w.v[j * w.ld + i] / (double)t;
    for (int64_t j = 0; j < t; j++) {
        h->u[j] = key * ck_length(ck_rows(u, j, 1));
        h->far[j] = (rope ? query : 1) * (apart(w.v + j * w.ld, d, w.cols) + w.err);
    }
}

/* One row of one head: U_i V_i, s V_i K_i, and its shares p_ij in s. */
typedef struct {
    double keys, query;
} part;
static part one_row(const ck_attended *a, const head *h, double *s, double *o, int64_t i, double moved, double off)
{
    const int64_t t = a->v.rows, dh = a->dh;
    const double scale = fabs(a->scale), *v = a->v.v + h->index * dh;
    double far = 0, v_most = 0, v_sum = 0, k_most = 0, k_sum = 0;
    ck_shares(a, s, h->index, i);
    for (int64_t d = 0; d < dh; d++) o[d] = 0;
    for (int64_t j = 0; j < t; j++)
        for (int64_t d = 0; d < dh; d++) o[d] += s[j] * v[j * a->v.ld + d];
    for (int64_t j = 0; j < t; j++) {
        if (!ck_sees(a, i, j)) continue;
        const double p = s[j] * (1 + off) + 1e-290, k = h->far[j] + h->n * moved;
        const double to = apart(v + j * a->v.ld, o, dh) + a->v.err + h->nv * moved;
        far = most_of(far, h->far[j]), v_most = most_of(v_most, to), k_most = most_of(k_most, k);
        v_sum += p * to * to, k_sum += p * k * k;
    }
    const double e = scale * moved * (h->u[i] + far + h->n * moved);
    const double grow = e < 300 ? exp(e) * (1 + 1e-14) : INFINITY;
    const double value = fmin(v_most, grow * sqrt(v_sum)), key = fmin(k_most, grow * sqrt(k_sum));
    for (int64_t j = 0; j < t; j++) s[j] = ck_sees(a, i, j) ? fmin(1, grow * grow * (s[j] * (1 + off) + 1e-290)) : 0;
    return (part){ scale * (h->u[i] + h->n * moved) * value, scale * value * key };
}

/* All rows, each through all heads. */
static double all_rows(ck *c, const ck_attended *a, const head *head, int64_t count, double moved)
{
    const int64_t t = a->v.rows;
    const double off = ck_shares_off(a);
    double *s = ck_room(c, 4 * t + a->dh, sizeof *s), *best = s + t, *shares = best + t, *keys = shares + t,
           *o = keys + t;
    double both = 0, query = 0, share = 0, key = 0;
    for (int64_t i = 0; i < t; i++) {
        double row_keys = 0, row_query = 0;
        for (int64_t j = 0; j < t; j++) best[j] = 0;
        for (int64_t h = 0; h < count; h++) {
            const part p = one_row(a, head + h, s, o, i, moved, off);
            row_keys = ck_hypot(row_keys, p.keys), row_query = ck_hypot(row_query, p.query);
            for (int64_t j = 0; j < t; j++) {
                best[j] = fmax(best[j], s[j]);
                keys[j] += s[j] * p.keys * p.keys;
            }
        }
        for (int64_t j = 0; j < t; j++) shares[j] += best[j];
        both = most_of(both, row_keys + row_query), query = most_of(query, row_query);
    }
    for (int64_t j = 0; j < t; j++) share = most_of(share, shares[j]), key = most_of(key, keys[j]);
    if (!c->out->flat) return a->n->mean + a->n->norm * both;
    return sqrt(fmin(share, a->n->count)) * a->n->mean + a->n->norm * (sqrt(key) + query);
}

double ck_attention_near(ck *c, const ck_node *n, ck_mat x, double moved)
{
    if (!(n->norm < INFINITY) || !(moved < INFINITY)) return INFINITY;
    const struct ck_block *mark = c->blocks;
    const ck_attended a = ck_projected(c, n, x);
    head *heads = ck_room(c, a.heads, sizeof *heads);
    int64_t count = 0;
    const cJSON *part;
    cJSON_ArrayForEach(part, ck_get(n->json, "of"))
    {
        if (ck_head_index(part) < 0) break; /* families */
        heads[count].index = (int64_t)ck_head_index(part);
        read_head(c, heads + count++, &a, part);
    }
    const double lip = fabs(ck_constant(n, "out")) * all_rows(c, &a, heads, count, moved);
    ck_give_back(c, mark);
    return isnan(lip) ? INFINITY : lip;
}

/* |C x'_t| >= |C x_t| - moved in every token t, and so its deviation is no smaller than of that.  (As 0 <= I - z z^T/d <= I, if
 * eps >= 0.)  What is so small that squares underflow counts as 0. */
double ck_slope_near(ck *c, const ck_node *n, ck_mat x, double moved)
{
    const double d = (double)x.cols, gamma = ck_gamma(d + 16);
    ck_mat z = ck_stack(c, &x, (const double[]){ 1 }, 1);
    z.err = 0;
    if (n->k[1] != 0) ck_centre(&z);
    const double off = moved + z.err;
    double most = n->k[0] >= 0 ? 0 : INFINITY;
    z.err = 0;
    for (int64_t t = 0; t < z.rows; t++) {
        const double low = -(off + 1e-120 - ck_length(ck_rows(z, t, 1)) * (1 - 4 * gamma)),
                     far = low > 1e-120 ? low : 0;
        const double slope = ck_over(n->norm, sqrt(far * far / d + n->k[0]) * (1 - 16 * CK_U));
        most = isnan(slope) ? INFINITY : fmax(most, slope);
    }
    return most;
}
