/* Attention: every norm of its proof, then lip and out.  Head h has M_h = W_O^h W_V^h; s is the scale of the logits, c
 * the output's factor.  Every family of numbers t_h, r_h >= 1/t_h, weighs the heads: y_i = c [t_h M_h] (xi_i^h / t_h) +
 * constant, xi_i = sum_j P_ij x_j.
 *
 * Softmax.  Without RoPE S_ij = u_i.x_j + (what has no j), u_i = s W_K^T (W_Q x_i + b_Q).  xi_i moves by sum_j P_ij (I +
 * (x_j - xi_i) u_i^T) e_j + s Cov_i A e_i, A = W_K^T W_Q.  By Cauchy-Schwarz with weights P_ij, and as sum_j P_ij (x_j -
 * xi_i) = 0, the first part is at most sqrt((1 + |u_i|^2 X^2) sum_j P_ij |e_j|^2), the second at most s X^2 |A e_i|:
 *     keys = out_norm sqrt(sigma + in^2), or mean + out_norm in, the two parts each with a family of its own,
 *     queries = out_norm s X query_norm;     sum_h r_h^2 |u_i^h|^2 X^2 <= in^2.
 * With RoPE u_ij depends on j (only the second form), |u_ij| <= s ||W_K^h|| |q_i|, keys reach ||W_K^h|| X + |b_K^h|.
 * The same formulas serve both: without RoPE A stands for W_Q, W_K^T b_Q for b_Q, and key = 1, key_bias = 0.
 *
 * Cosine.  n(z) = z / sqrt(|z|^2 + eps) has |n| = sin a, |Dn| <= cos a / sqrt(eps), and |n| <= p(Z) where |z| <= Z.
 * Values are x_j, or n(v_j) with F_h = W_O^h for M_h; they lie within R, so the logits move xi_i by at most R sqrt(sum_j
 * P_ij dS_ij^2) (Popoviciu), and |dS_ij| <= tau/sqrt(eps) times each of max(k, q), sqrt(k^2 + p_k^2 q^2), p_q k + p_k q,
 * with k = |W_K e_j|, q = |W_Q e_i|.
 *
 * With queries the first tokens ask and the others are read: the same formulas with e_i of the one and e_j of the other kind, so
 * that in norm flat the two parts are at most as long as their hypotenuse.
 *
 * Windows: a key that is not seen has P_ij = 0, and nothing above counts keys.
 *
 * flat: adding up rows costs sqrt(count), count >= sum_i max_h P^h_ij.  P_ij = 1 / (1 + sum over the other keys of
 * exp(difference of logits)); logits of a row differ by at most E, and with ALiBi by slope times distance, where the
 * nearest key has the largest share and the others are at most 1, 2, ... further away. */
#include <stdio.h>
#include <string.h>

#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { HEADS, SCALE, TO, CAUSAL, EPS = 6 }; /* constants that are where they are in several rules */
enum { Q, K, V, OUT, SIDES };
typedef struct {
    int64_t index;
    ck_mat w[SIDES];                               /* W_Q (or A), W_K, W_V; M_h^T, or W_O^hT where values are n(v) */
    ck_square square[SIDES];                       /* of A and M_h^T, which several norms need */
    double norm[SIDES], reach[SIDES], shift, most; /* of W; how far its vectors reach; |b_Q|; E */
    double r, span;                                /* r_h of this family; times R if values are n(v) */
} head;
typedef struct {
    ck *c;
    const ck_node *n;
    head *head;
    ck_mat *list;
    ck_square *squares;
    double *by, x, scale, mean, both, keys, logits, grown; /* the least of all families so far */
    int64_t count, dh, asked;                              /* asked: tokens that are read */
    bool cosine, rope, values;
} attention;

/* Of stated norms and reaches, of which 0 is exact: nothing is 0 times something, however far that reaches. */
static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

/* A head's matrices, their norms and how far their vectors reach. */
static void read_head(attention *a, head *h, const cJSON *json)
{
    static const char *const name[] = { "query", "key", "value" };
    ck *c = a->c;
    char part[24], bias[16];
    const int sides = a->values ? 3 : a->cosine || a->rope ? 2 : 1;
    ck_mat b[OUT] = { { 0 } }, o = ck_rows(ck_turn(c, a->n->w[3]), h->index * a->dh, a->dh);
    snprintf(part, sizeof part, "head %d", (int)h->index);
    ck_fields f = ck_open(c, a->n->path, json, "head", part);
    ck_take(&f, "index");
    for (int s = Q; s <= V; s++) {
        h->w[s] = ck_rows(a->n->w[s], h->index * a->dh, a->dh);
        if (a->n->w[4 + s].v) b[s] = ck_rows(ck_turn(c, a->n->w[4 + s]), h->index * a->dh, a->dh);
    }
    h->w[OUT] = a->values ? o : ck_product(c, h->w[V], o);
    if (sides == 1) { /* A and W_K^T b_Q in the place of W_Q and b_Q */
        h->w[Q] = ck_product(c, h->w[K], h->w[Q]);
        if (b[Q].v) b[Q] = ck_product(c, h->w[K], b[Q]);
        h->norm[K] = 1, h->reach[K] = a->x;
    }
    for (int s = Q; s < sides; s++) {
        snprintf(bias, sizeof bias, "%s_bias", name[s]);
        h->norm[s] = ck_claim_norm(&f, name[s], h->w[s]);
        const double shift = ck_claim(&f, bias, ck_length(b[s])), z = (h->norm[s] ? h->norm[s] * a->x : 0) + shift;
        const double p = ck_over(z, ck_below(sqrt(ck_below(ck_below(z * z) + a->n->k[EPS]))));
        h->reach[s] = a->cosine && z > 0 ? fmin(1, p) : z;
        if (s == Q) h->shift = shift;
    }
    h->most = times(times(2 * a->scale, h->reach[K]), h->reach[Q]);
    ck_close(&f);
}

/* ||[by_h W^h]||, one below the other.  Factors far from 1 are brought there by a power of two, which the norm follows; one
 * that is smaller by far than the largest is raised, and so is the norm.  W^h = 0 adds nothing, whatever its factor is. */
static double stacked(ck_fields *f, const attention *a, const char *key, int side)
{
    double most = 0;
    int power = 0;
    const bool thick = a->count && a->head[0].w[side].rows >= a->head[0].w[side].cols; /* more of X than of X^T X */
    for (int64_t i = 0; i < a->count; i++) {
        head *h = a->head + i;
        a->list[i] = h->w[side];
        if (thick && !h->square[side].g.v) h->square[side] = ck_squared(a->c, h->w[side]);
        a->squares[i] = h->square[side];
        if (isnan(a->by[i])) a->by[i] = INFINITY;
        if (ck_length(a->list[i]) == 0) a->by[i] = 0;
        most = fmax(most, fabs(a->by[i]));
    }
    const struct ck_block *mark = a->c->blocks;
    if (most < INFINITY) frexp(most, &power);
    for (int64_t i = 0; i < a->count; i++)
        if (a->by[i] != 0) a->by[i] = fmax(ldexp(fabs(a->by[i]), -power), 0x1p-190);
    const double stated = ck_stated(f, key), near = ldexp(stated, -power);
    const double proved = thick ? ck_square_norm(a->c, ck_square_sum(a->c, a->squares, a->by, a->count), near)
                                : ck_norm(a->c, ck_stack(a->c, a->list, a->by, a->count), near);
    ck_give_back(a->c, mark);
    if (near > 0 && near < 1e-290) return ck_accept(f, key, stated, INFINITY); /* no longer exact */
    return ck_accept(f, key, stated, proved <= near ? stated : ldexp(proved, power));
}

static void softmax(attention *a, ck_fields *f, double to)
{
    double sigma = 0, shift = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const head *h = a->head + i;
        a->by[i] = h->r * h->norm[K];
        sigma += h->r * h->r;
        shift = ck_hypot(shift, a->by[i] * h->shift);
    }
    const double sx = times(a->scale, a->x), in = times(sx, times(a->x, stacked(f, a, "logit_norm", Q)) + shift);
    for (int64_t i = 0; i < a->count; i++) a->by[i] = a->head[i].r * a->head[i].reach[K];
    a->mean = fmin(a->mean, to * sqrt(sigma));
    a->keys = fmin(a->keys, times(to, in));
    if (!a->rope) a->both = fmin(a->both, to * ck_hypot(sqrt(sigma), in));
    a->logits = fmin(a->logits, times(to, times(sx, stacked(f, a, "query_norm", Q))));
    a->grown = fmin(a->grown, times(to, sqrt(sigma) * a->x));
}

static void cosine(attention *a, ck_fields *f, double to, double root)
{
    const double slope = ck_over(1, ck_below(sqrt(a->n->k[EPS]))), far = a->values ? 1 : a->x;
    double sigma = 0, value = 0, both = 0, key = 0, near = 0, grown = 0;
    for (int64_t i = 0; i < a->count; i++) {
        head *h = a->head + i;
        h->span = a->values ? h->r * h->reach[V] : h->r;
        sigma = ck_hypot(sigma, h->r), grown = ck_hypot(grown, h->span);
        value = ck_hypot(value, h->r * h->norm[V]);
        both = ck_hypot(both, h->span * fmax(h->norm[K], h->norm[Q]));
        key = ck_hypot(key, h->span * h->norm[K]);
        near = ck_hypot(near, h->span * h->reach[Q] * h->norm[K]);
        a->by[i] = h->span * h->reach[K];
    }
    const double query = stacked(f, a, "query_norm", Q);
    for (int64_t i = 0; i < a->count; i++) a->by[i] = a->head[i].span;
    const double all_keys = stacked(f, a, "key_norm", K);
    for (int64_t i = 0; i < a->count; i++) a->by[i] = a->head[i].span * a->head[i].reach[Q];
    const double all_near = stacked(f, a, "key_norm_near", K);
    for (int64_t i = 0; i < a->count; i++) a->by[i] = a->head[i].r;
    const double all_values = a->values ? stacked(f, a, "value_norm", V) : 0;
    if (a->c->out->flat) both = INFINITY, key = root * all_keys, near = root * all_near, value = all_values;
    const double logits = fmin(both, fmin(ck_hypot(key, query), near + query));
    a->mean = fmin(a->mean, to * (a->values ? slope * value : sigma));
    a->logits = fmin(a->logits, times(to, times(logits, times(a->scale * slope, far))));
    a->grown = fmin(a->grown, times(to, grown * far));
}

/* Of windows: so many rows can meet a key, and each sees at least so many keys (docs/modules/window.md). */
static void in_windows(const ck_node *n, int64_t *rows, int64_t *seen)
{
    const double t = (double)n->tokens, size = ck_constant(n, "size"), all = ck_constant(n, "global");
    const bool causal = ck_constant(n, "causal") != 0;
    if (all == 0) *rows = (int64_t)fmin(t, (causal ? 2 : 3) * size);
    *seen = causal ? 1 : (int64_t)fmin(t, size + 1 + all);
}

/* The largest possible sum over queries of one key's share; terms of the denominators are rounded down, libm is trusted
 * to 4 ulp.  sum[i] = q + q^2 + ..., one term for each other key that is seen; without ALiBi q = 1. */
static double count_most(attention *a, bool causal, bool alibi)
{
    int64_t asking = ck_queries(a->n) ? ck_queries(a->n) : a->asked, sees = a->asked;
    if (ck_is(a->n, "window")) in_windows(a->n, &asking, &sees), causal = false;
    double total = 0, *sum = ck_room(a->c, 2 * a->count, sizeof *sum), *power = sum + a->count;
    if (fmax((double)asking, (double)sees) > 0x1p24) ck_give_up(a->c, a->n, "too many tokens to count");
    for (int64_t i = 0; i < a->count; i++) power[i] = 1;
    const int64_t rows = causal ? asking : asking > 0; /* without causal they are alike */
    for (int64_t row = 0, seen = 1; row < rows && a->count; row++) {
        double least = INFINITY;
        for (; seen < (causal ? row + 1 : sees); seen++)
            for (int64_t i = 0; i < a->count; i++) {
                const double slope = exp2(-8 * (double)(a->head[i].index + 1) / a->n->k[HEADS]) * (1 + 4e-15);
                power[i] = ck_below(power[i] * (alibi ? exp(-slope) * (1 - 4e-15) : 1));
                sum[i] = ck_below(sum[i] + power[i]);
            }
        for (int64_t i = 0; i < a->count; i++) {
            const double low = exp(-a->head[i].most) * sum[i] * (1 - 8e-15);
            least = fmin(least, low > 1e-290 ? low : 0);
        }
        total += 1 / ck_below(1 + least);
    }
    return causal ? total : (double)asking * total;
}

double ck_head_index(const cJSON *json)
{
    const char *rule = cJSON_GetStringValue(ck_get(json, "rule"));
    const cJSON *index = ck_get(json, "index");
    if (!rule || strcmp(rule, "head") != 0) return -1;
    return index ? cJSON_GetNumberValue(index) : 0;
}

/* The heads in order; one that is left out must have M_h = 0, each term of W_O^h W_V^h.  What follows are families. */
static const cJSON *read_heads(attention *a, const cJSON *json)
{
    const ck_mat o = ck_turn(a->c, a->n->w[3]);
    for (int64_t h = 0; h < (int64_t)a->n->k[HEADS]; h++) {
        const bool there = ck_head_index(json) == (double)h;
        for (int64_t k = h * a->dh; k < (h + 1) * a->dh && !there; k++)
            if (ck_length(ck_rows(o, k, 1)) > 0 && (a->values || ck_length(ck_rows(a->n->w[V], k, 1)) > 0))
                ck_fail(a->c, "%s: head %lld is missing or out of order", a->n->path, (long long)h);
        if (!there) continue;
        a->head[a->count].index = h;
        read_head(a, a->head + a->count++, json);
        json = json->next;
    }
    return json;
}

/* The weights t_h > 0 of a family, r_h >= 1/t_h, and its norms. */
static void family(attention *a, const cJSON *json, double root)
{
    ck_fields f = ck_open(a->c, a->n->path, json, "family", "family");
    int64_t count;
    const cJSON *t = ck_list(&f, "weights", &count);
    if (count != a->count) ck_fail(a->c, "%s (family): it must weigh every head", a->n->path);
    for (int64_t i = 0; i < a->count; i++, t = t->next) {
        a->by[i] = cJSON_GetNumberValue(t);
        if (!(a->by[i] > 0)) ck_fail(a->c, "%s (family): its weights must be above 0", a->n->path);
        a->head[i].r = ck_over(1, a->by[i]);
    }
    const double to = stacked(&f, a, "out_norm", OUT);
    if (a->cosine)
        cosine(a, &f, to, root);
    else
        softmax(a, &f, to);
    ck_close(&f);
}

int64_t ck_queries(const ck_node *n) { return (int64_t)ck_constant(n, "queries"); }

void ck_asked(const ck_node *n, int64_t *tokens, int64_t *width)
{
    (void)width;
    if (ck_queries(n)) *tokens = ck_queries(n);
}

const cJSON *ck_heads(ck_fields *f, int64_t heads)
{
    int64_t count;
    const cJSON *first = ck_list(f, "of", &count);
    if (count != heads)
        ck_fail(f->c, "%s (%s): it must have a part for each of its %d heads", f->path, f->part, (int)heads);
    return first;
}

bool ck_heads_fit(const ck_node *n)
{
    const int64_t heads = (int64_t)n->k[HEADS], d = n->w[Q].cols, asking = ck_queries(n);
    const double base = ck_constant(n, "rope");
    return d % heads == 0 && (base == 0 || (base >= 1 && d / heads % 2 == 0)) &&
           (asking == 0 || (ck_constant(n, "causal") == 0 && asking < n->tokens));
}

/* Below 0 n(z) is longer than 1, and has no bound; at 0 there is none at z = 0. */
static bool cosine_fits(const ck_node *n) { return ck_heads_fit(n) && n->k[EPS] >= 0; }

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    ck *c = f->c;
    const int64_t all = (int64_t)n->k[HEADS], d = n->w[Q].cols;
    attention a = { .c = c, .n = n, .x = x, .scale = fabs(n->k[SCALE]), .rope = ck_constant(n, "rope") != 0 };
    a.dh = d / all, a.asked = n->tokens - ck_queries(n), a.cosine = ck_is(n, "cosattention"),
    a.values = ck_constant(n, "values") != 0;
    a.head = ck_room(c, all, sizeof *a.head), a.list = ck_room(c, all, sizeof *a.list);
    a.squares = ck_room(c, all, sizeof *a.squares);
    a.by = ck_room(c, all, sizeof *a.by);
    int64_t parts;
    const cJSON *json = read_heads(&a, ck_list(f, "of", &parts));
    const double count = ck_claim(f, "count", count_most(&a, n->k[CAUSAL] != 0, ck_constant(n, "alibi") != 0));
    const double root = c->out->flat ? sqrt(count) : 1, to = fabs(n->k[TO]);
    a.mean = a.both = a.keys = a.logits = a.grown = a.count ? INFINITY : 0;
    for (; json; json = json->next) family(&a, json, root);
    const double keys = a.cosine ? a.mean : fmin(a.both, a.mean + a.keys);
    if (!a.cosine && !ck_queries(n) && ck_get(f->json, "o_norm")) n->norm = ck_claim_norm(f, "o_norm", n->w[3]);
    n->mean = a.mean, n->count = count;
    ck_mat b = { 0 };
    if (n->w[6].v && !a.values) b = ck_product(c, ck_turn(c, n->w[3]), ck_turn(c, n->w[6]));
    const double shift = ck_claim(f, "value_bias", ck_length(b));
    const double both = ck_queries(n) && c->out->flat ? ck_hypot(root * keys, a.logits) : root * keys + a.logits;
    const bool steady = !a.cosine || n->k[EPS] > 0;
    return (ck_bound){ steady ? to * both : INFINITY,
                       to * (a.grown + shift) + ck_claim(f, "bias", ck_length(n->w[7])) };
}

const ck_rule ck_rule_attention = { .name = "attention",
                                    .prove = prove,
                                    .run = ck_attend,
                                    .fits = ck_heads_fit,
                                    .shape = ck_asked,
                                    .constants = { "#heads", "scale", "out", "?causal", "?alibi", "~rope", "+queries" },
                                    .tensors = { CK_FOUR } };
const ck_rule ck_rule_cosattention = { .name = "cosattention",
                                       .prove = prove,
                                       .run = ck_attend,
                                       .fits = cosine_fits,
                                       .constants = { "#heads", "scale", "out", "?causal", "?alibi", "~rope", "eps",
                                                      "?values" },
                                       .tensors = { CK_FOUR } };
const ck_rule ck_rule_window = { .name = "window",
                                 .prove = prove,
                                 .run = ck_attend,
                                 .fits = ck_heads_fit,
                                 .constants = { "#heads", "scale", "out", "?causal", "#size", "+global" },
                                 .tensors = { CK_FOUR } };
