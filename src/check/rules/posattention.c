/* The rule of attention by position alone.  The input decides nothing but the values, so the map is affine:
 *     y_i = W_O [g_h sum_j q^h_ij W_V^h x_j]_h + b_O,     each row of q^h probabilities.
 * tokens: a mean is no longer than the longest of what it is taken of.  flat: ||q||^2 <= (largest column sum) * 1; with
 * a_k = exp(w[k]) causal column j has the sum over k of a_k / Z_{k+j}, Z_i = a_0 + ... + a_i, so column 0 is heaviest,
 * at the full length.  Otherwise a column may be heavier in a shorter sequence, whose rows have fewer keys to share
 * with: every column of every length is added up.  The heads below each other are A = [g_h q^h (x) W_V^h]_h, and A^T A <=
 * I (x) sum_h g_h^2 c_h W_V^hT W_V^h.  On a torus every column of q is a shift of the first row turned round: its sum is 1.
 * The largest logit is taken off before exp.  What underflows is below 1e-290, which is added; a difference of more
 * than 750 underflows, so that rounding it is 750 u at most.  A quotient is good to t + 32 roundings and that, twice. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { HEADS, CAUSAL, FAR, ROW };
enum { V, O, BIAS, TABLE, GAIN };
enum { MANY = 1024 }; /* tokens whose columns are added up for every length, which takes their cube */

static bool causal(const ck_node *n) { return n->k[CAUSAL] != 0; }
static int64_t zero_of(const ck_node *n) { return causal(n) ? 0 : n->w[TABLE].cols / 2; }

/* The logit of query i and key j for head h: by i - j, or by the shift from j to i round the torus. */
double ck_logit(const ck_node *n, int64_t h, int64_t i, int64_t j)
{
    const int64_t row = (int64_t)n->k[ROW], cols = n->w[TABLE].cols;
    const int64_t at = row == 0
                           ? zero_of(n) + i - j
                           : (i / row - j / row + cols / row) % (cols / row) * row + (i % row - j % row + row) % row;
    return n->w[TABLE].v[h * n->w[TABLE].ld + at];
}

/* As the tree lists them; else fl32(1/sqrt(1 + where the head looks at the start)), to nearest, as the model is built; on a
 * torus 1. */
static double gain(const ck_node *n, int64_t h)
{
    const int64_t context = n->w[TABLE].cols - zero_of(n);
    if (n->w[GAIN].v) return n->w[GAIN].v[h];
    if (n->k[ROW] != 0) return 1;
    const int64_t away = n->k[FAR] != 0 && h > 0 ? (int64_t)1 << (h < 40 ? h : 40) : h;
    return ck_root(1 + (double)(away < context ? away : context - 1));
}

/* That of every feature's head. */
ck_mat ck_gains(ck *c, const ck_node *n)
{
    const ck_mat g = ck_new(c, 1, n->w[V].rows);
    for (int64_t i = 0; i < g.cols; i++) g.v[i] = gain(n, i / (g.cols / n->w[TABLE].rows));
    return g;
}

/* z[i] is the sum of row i, of a sequence of `len` tokens; causal rows have the same sum in all of them. */
static double heaviest(ck *c, const ck_node *n, int64_t h, int64_t t)
{
    const ck_mat table = ck_rows(n->w[TABLE], h, 1);
    if (!isfinite(ck_length(table))) return INFINITY;
    if (n->k[ROW] != 0) return 1;
    if (!causal(n) && t > MANY) ck_give_up(c, n, "too many tokens to add up the columns of every length");
    double *a = ck_room(c, table.cols + t, sizeof *a), *z = a + table.cols, top = *table.v, most = 0;
    for (int64_t k = 0; k < table.cols; k++) top = fmax(top, table.v[k]);
    for (int64_t k = 0; k < table.cols; k++) a[k] = exp(table.v[k] - top);
    a += zero_of(n);
    for (int64_t i = 0; i < t && causal(n); i++) z[i] = a[i] + (i ? z[i - 1] : 0);
    for (int64_t len = causal(n) ? t : 1; len <= t; len++) {
        for (int64_t i = 0; i + 1 < len && !causal(n); i++) z[i] += a[i - (len - 1)]; /* one key more */
        for (int64_t k = 0; k < len && !causal(n); k++) z[len - 1] += a[k];           /* one row more */
        for (int64_t j = 0; j < (causal(n) ? 1 : len); j++) {
            double sum = 0;
            for (int64_t i = 0; i < len; i++) sum += fmin(1, (a[i - j] + 1e-290) / z[i]);
            most = fmax(most, sum);
        }
    }
    return fmin(most * (1 + ck_gamma(2 * (double)t + 64 + 2 * 750)), (double)t); /* no quotient is above 1 */
}

static bool fits(const ck_node *n)
{
    const ck_mat table = n->w[TABLE], gains = n->w[GAIN];
    const int64_t row = (int64_t)n->k[ROW];
    for (int64_t h = 0; h < gains.cols; h++)
        if (!(gains.v[h] > 0) || row != 0) return false;
    if (row != 0)
        return (double)table.rows == n->k[HEADS] && n->w[V].cols % table.rows == 0 && !causal(n) && n->k[FAR] == 0 &&
               table.cols == n->tokens && table.cols % row == 0;
    return (double)table.rows == n->k[HEADS] && n->w[V].cols % table.rows == 0 &&
           table.cols - zero_of(n) >= n->tokens && (causal(n) || table.cols % 2 == 1);
}

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    ck *c = f->c;
    const int64_t heads = n->w[TABLE].rows, d = n->w[V].cols, t = n->tokens;
    const cJSON *head = ck_heads(f, heads);
    ck_mat *part = ck_room(c, heads, sizeof *part);
    double *by = ck_room(c, heads, sizeof *by), mean = 0;
    for (int64_t h = 0; h < heads; h++, head = head->next) {
        ck_fields g = ck_open(c, n->path, head, "head", "head");
        if (ck_stated(&g, "index") != (double)h) ck_fail(c, "%s (head): its index must be %d", n->path, (int)h);
        part[h] = ck_rows(n->w[V], h * (d / heads), d / heads);
        const double norm = gain(n, h) * ck_claim_norm(&g, "norm", part[h]);
        mean += norm * norm;
        if (c->out->flat) by[h] = gain(n, h) * sqrt(ck_claim(&g, "column", heaviest(c, n, h, t)));
        ck_close(&g);
    }
    const double joint = c->out->flat ? ck_claim_norm(f, "joint", ck_stack(c, part, by, heads)) : sqrt(mean);
    const double out = ck_claim_norm(f, "out_norm", n->w[O]);
    const double size = sqrt(mean) * out * x + ck_claim(f, "bias", ck_length(n->w[BIAS]));
    return (ck_bound){ joint * out, size };
}

const ck_rule ck_rule_posattention = { .name = "posattention",
                                       .prove = prove,
                                       .run = ck_attend,
                                       .fits = fits,
                                       .constants = { "#heads", "?causal", "?far", "+row" },
                                       .tensors = { { "v.weight", "dd" },
                                                    { "o.weight", "dd" },
                                                    { "?o.bias", "d" },
                                                    { "distance.weight", "hs" },
                                                    { "?=gain", "h" } } };
