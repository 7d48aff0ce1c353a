/* Softmax attention around an example: token t of the input is within m_t of the computed x_t.  In head h, s the scale:
 *     without RoPE  u_i = |W_K^T q_i|,       w_j = W_Q^T k_j,      n = ||W_K^T W_Q||
 *     with RoPE     u_i = ||W_K|| |q_i|,     w_j = ||W_Q|| k_j,    n = ||W_K|| ||W_Q||      (q, k turned)
 * Away from x value j moves by nv m_j at most, nv = |W_V|_F, w_j by n m_j, and a logit, but for what all keys of a row share, by
 *     E_i = s max_j ( m_i |w_j - d| + u_i m_j + n m_i m_j )       for any vector d,
 * so that a share P becomes at most p = P g / (1 + (g - 1) P), g = e^(2 E_i): it grows by e^E_i at most, the others shrink so.
 * Sums over shares, which make 1, of squares of lengths:
 *     spread(a) = min( max_j a_j, e^E_i sqrt(sum_j P_ij a_j^2) )
 *     V_i = spread(V_ij),  V_ij = |v_j - c_i| + nv m_j  (any c_i),      K_i = spread(|w_j - d| + n m_j)
 * Row i moves by  sum_j P_ij W_V e_j + sum_j P_ij (v_j - o_i) dS_ij,  dS_ij = s (q_i.W_K e_j + (k_j - kbar_i).W_Q e_i), and with
 * U_i = s (u_i + n m_i) by Cauchy-Schwarz the second sum is at most  U_i V_i sqrt(sum_j P_ij |e_j|^2) + s V_i K_i |e_i|  long.
 * W_O adds up the heads, but for the first sum, which the proof's families bound (mean):
 *     tokens:  mean + ||W_O|| max_i ( |(U_i V_i)_h| + |(s V_i K_i)_h| )
 *     flat:    sqrt(max_j sum_i max_h p_ij) mean + ||W_O|| ( sqrt(max_j sum_ih p_ij (U_i V_i)^2) + max_i |(s V_i K_i)_h| ).
 * By tokens e_j reaches row i with no more than
 *     G_ij = out_norm |(r_h p_ij)_h| + ||W_O|| |(U_i p_ij (V_ij + D_i))_h|,  and  ||W_O|| |(s V_i K_i)_h|  more where i = j,
 * of the best family, D_i >= |o_i - c_i|: V_i, or (g - 1) sum_j P_ij V_ij + max_j nv m_j if c_i is o_i at x, but for rounding.
 * Heads that are left out of the proof have W_O W_V = 0: they add nothing. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

typedef struct {
    int64_t index;
    double n, nv, *u, *far; /* as above; u_i; |w_j - d| */
    double longest;         /* of its values */
} head;

typedef struct {
    double to, *r; /* out_norm, and r_h of every head */
} family;

/* Room for a row: shares, later p_ij; V_ij; o_i; of all heads so far the largest p_ij, and squares of the two parts of G_ij. */
typedef struct {
    double *p, *v, *o, *best, *keys, *means; /* means: (families, t) */
    family *family;
    int64_t families;
} row;

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
    h->longest = ck_longest(columns(a->v, at, dh));
    h->u = ck_room(c, 2 * t, sizeof *h->u), h->far = h->u + t;
    for (int64_t j = 0; j < t; j++)
        for (int64_t i = 0; i < w.cols; i++) d[i] += w.v[j * w.ld + i] / (double)t;
    for (int64_t j = 0; j < t; j++) {
        h->u[j] = key * ck_length(ck_rows(u, j, 1));
        h->far[j] = (rope ? query : 1) * (apart(w.v + j * w.ld, d, w.cols) + w.err);
    }
}

/* The most that a share p becomes; where g is infinite fmin takes the 1. */
static double grown(double p, double g) { return fmin(1, g * p / (1 + (g - 1) * p) * (1 + 8 * CK_U)); }

/* One row of one head, number `at` of those that count: U_i V_i, s V_i K_i, and what it adds to the row's. */
typedef struct {
    double keys, query;
} part;
static part one_row(const ck_attended *a, const head *h, const row *w, int64_t at, int64_t i, const double *m,
                    double off)
{
    const int64_t t = a->v.rows, dh = a->dh;
    const double scale = fabs(a->scale), *v = a->v.v + h->index * dh;
    double e = 0, v_most = 0, v_sum = 0, v_mean = 0, v_moved = 0, k_most = 0, k_sum = 0;
    ck_shares(a, w->p, h->index, i);
    for (int64_t d = 0; d < dh; d++) w->o[d] = 0;
    for (int64_t j = 0; j < t; j++)
        for (int64_t d = 0; d < dh; d++) w->o[d] += w->p[j] * v[j * a->v.ld + d];
    for (int64_t j = 0; j < t; j++) {
        if (!ck_sees(a, i, j)) continue;
        const double p = w->p[j] * (1 + off) + 1e-290, k = h->far[j] + h->n * m[j];
        const double to = apart(v + j * a->v.ld, w->o, dh) + a->v.err + h->nv * m[j];
        e = most_of(e, scale * (m[i] * h->far[j] + h->u[i] * m[j] + h->n * m[i] * m[j]));
        v_most = most_of(v_most, to), k_most = most_of(k_most, k), v_moved = most_of(v_moved, h->nv * m[j]);
        v_sum += p * to * to, k_sum += p * k * k, v_mean += p * to;
        w->v[j] = to;
    }
    const double grow = e < 300 ? exp(e) * (1 + 1e-14) : INFINITY, g = grow * grow;
    const double value = fmin(v_most, grow * sqrt(v_sum)), key = fmin(k_most, grow * sqrt(k_sum));
    const double from = fmin(value, (g - 1) * v_mean + v_moved + 3 * off * h->longest + a->v.err + 1e-140),
                 u = scale * (h->u[i] + h->n * m[i]);
    for (int64_t j = 0; j < t; j++) {
        w->p[j] = ck_sees(a, i, j) ? grown(w->p[j] * (1 + off) + 1e-290, g) : 0;
        if (w->p[j] == 0) continue;
        const double by_key = u * w->p[j] * (w->v[j] + from);
        w->best[j] = fmax(w->best[j], w->p[j]);
        w->keys[j] += by_key * by_key;
        for (int64_t f = 0; f < w->families; f++) {
            const double mean = w->family[f].r[at] * w->p[j];
            w->means[f * t + j] += mean * mean;
        }
    }
    return (part){ u * value, scale * value * key };
}

/* Row i of G N, all of whose parts have been added up. */
static void reach(const ck_attended *a, const row *w, double query, int64_t i, ck_mat in, ck_mat out)
{
    const double c = fabs(ck_constant(a->n, "out"));
    for (int64_t j = 0; j < in.rows; j++) {
        if (w->best[j] == 0) continue; /* not seen */
        double mean = INFINITY;
        for (int64_t f = 0; f < w->families; f++) mean = fmin(mean, w->family[f].to * sqrt(w->means[f * in.rows + j]));
        const double by = c * (mean + a->n->norm * (sqrt(w->keys[j]) + (i == j ? query : 0)));
        for (int64_t k = 0; k < in.cols; k++) out.v[i * out.ld + k] += by * in.v[j * in.ld + k];
    }
}

/* All rows, each through all heads; N becomes G N. */
static double all_rows(ck *c, const ck_attended *a, const head *head, int64_t count, row w, const double *m, ck_mat in,
                       ck_mat out)
{
    const int64_t t = a->v.rows;
    const double off = ck_shares_off(a);
    double *shares = ck_room(c, 2 * t, sizeof *shares), *keys = shares + t;
    double both = 0, query = 0, share = 0, key = 0;
    w.p = ck_room(c, (4 + w.families) * t + a->dh, sizeof *w.p);
    w.v = w.p + t, w.best = w.v + t, w.keys = w.best + t, w.means = w.keys + t, w.o = w.means + w.families * t;
    for (int64_t i = 0; i < t; i++) {
        double row_keys = 0, row_query = 0;
        for (int64_t j = 0; j < (2 + w.families) * t; j++) w.best[j] = 0; /* and keys, and means */
        for (int64_t h = 0; h < count; h++) {
            const part p = one_row(a, head + h, &w, h, i, m, off);
            row_keys = ck_hypot(row_keys, p.keys), row_query = ck_hypot(row_query, p.query);
            for (int64_t j = 0; j < t; j++) keys[j] += w.p[j] * p.keys * p.keys;
        }
        for (int64_t j = 0; j < t; j++) shares[j] += w.best[j];
        both = most_of(both, row_keys + row_query), query = most_of(query, row_query);
        reach(a, &w, row_query, i, in, out);
    }
    for (int64_t j = 0; j < t; j++) share = most_of(share, shares[j]), key = most_of(key, keys[j]);
    if (!c->out->flat) return a->n->mean + a->n->norm * both;
    return sqrt(fmin(share, a->n->count)) * a->n->mean + a->n->norm * (sqrt(key) + query);
}

static void read_family(ck *c, family *f, const cJSON *json, int64_t count)
{
    const cJSON *t = ck_get(json, "weights");
    f->to = number(json, "out_norm"), f->r = ck_room(c, count, sizeof *f->r);
    t = t ? t->child : NULL;
    for (int64_t h = 0; h < count && t; h++, t = t->next) f->r[h] = ck_over(1, cJSON_GetNumberValue(t));
}

double ck_attention_near(ck *c, const ck_node *n, ck_mat x, const double *m, ck_shape *s)
{
    const ck_mat in = s->n;
    const bool known = n->norm < INFINITY && s->r < INFINITY;
    s->n = known ? ck_new(c, in.rows, in.cols) : ck_shape_none(c, in.rows);
    if (!known) return INFINITY;
    const struct ck_block *mark = c->blocks;
    const ck_attended a = ck_projected(c, n, x);
    const cJSON *part, *of = ck_get(n->json, "of");
    head *heads = ck_room(c, a.heads, sizeof *heads);
    row w = { .family = ck_room(c, cJSON_GetArraySize(of), sizeof *w.family) };
    int64_t count = 0;
    cJSON_ArrayForEach(part, of)
    {
        if (ck_head_index(part) < 0)
            read_family(c, w.family + w.families++, part, count); /* they follow the heads */
        else {
            heads[count].index = (int64_t)ck_head_index(part);
            read_head(c, heads + count++, &a, part);
        }
    }
    const double lip = fabs(ck_constant(n, "out")) * all_rows(c, &a, heads, count, w, m, in, s->n);
    ck_give_back(c, mark);
    return isnan(lip) ? INFINITY : lip;
}

/* |C x'_t| >= |C x_t| - m_t in every token t, and so its deviation is no smaller than of that.  (As 0 <= I - z z^T/d <= I, if
 * eps >= 0.)  What is so small that squares underflow counts as 0. */
double ck_slope_near(ck *c, const ck_node *n, ck_mat x, const double *m, double *each)
{
    const double d = (double)x.cols, gamma = ck_gamma(d + 16);
    ck_mat z = ck_stack(c, &x, (const double[]){ 1 }, 1);
    z.err = 0;
    if (n->k[1] != 0) ck_centre(&z);
    const double off = z.err;
    double most = n->k[0] >= 0 ? 0 : INFINITY;
    z.err = 0;
    for (int64_t t = 0; t < z.rows && n->k[0] >= 0; t++) {
        const double low = -(m[t] + off + 1e-120 - ck_length(ck_rows(z, t, 1)) * (1 - 4 * gamma)),
                     far = low > 1e-120 ? low : 0;
        const double slope = ck_over(n->norm, sqrt(far * far / d + n->k[0]) * (1 - 16 * CK_U));
        most = isnan(slope) ? INFINITY : fmax(most, slope);
        each[t] = fmin(each[t], slope);
    }
    return most;
}
