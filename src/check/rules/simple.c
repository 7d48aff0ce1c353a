/* Rules that are a matrix or less, and norm layers.  Why they hold, for two inputs x, x' of the region, X the size that enters:
 *   linear         |W e| <= ||W|| |e|.  channel: W = diag(a).  scale: W = factor I.  centernorm: W = factor diag(g) C.
 *                  position: a shift.  sinusoid: a shift by pairs (sin, cos)
 *   maxmin         sorting brings vectors no further from each other and keeps their lengths
 *   pointwise      secant slopes of f lie in [lo, hi], |lo| <= hi; f(z)/z in [0, 1], of abs in [-1, 1]
 *   norm layers    C = I - 1 1^T/d takes the mean away (I where not centred); J = diag(g) C (I - z z^T/d) / sd with
 *                  0 <= I - z z^T/d <= I and sd >= sqrt(eps);  |z| <= min(sqrt(d), X / sqrt(X^2/d + eps)) */
#include <stdlib.h>

#include "check/examples/examples.h"
#include "check/rules/rules.h"

/* Is the stated mu >= ||diag(g) C||?  Without C (not centred) the norm is max |g|.  With C let l <= mu^2.  If every
 * g_i^2 <= l: yes.  If g_1^2 alone is above l and all others are below, let sum' leave out i = 1.  Every
 * y = C x has |y| <= |x| and sum y_i = 0, so that by Cauchy-Schwarz
 *     y_1^2 = (sum' y_i)^2 <= sum' (l - g_i^2) y_i^2 * sum' 1/(l - g_i^2).
 * Hence (g_1^2 - l) sum' 1/(l - g_i^2) <= 1 implies sum g_i^2 y_i^2 <= l |y|^2: yes.  Squares of float32 numbers are
 * exact in double. */
static double claim_diagonal(ck_fields *f, ck_mat g, bool centred)
{
    const double mu = ck_stated(f, "norm"), l = ck_below(mu * mu);
    double most = 0, sum = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < g.cols; i++)
        if (fabs(g.v[i]) > most || isnan(g.v[i])) most = fabs(g.v[at = i]); /* NaN stays: nothing is above it */
    for (int64_t i = 0; i < g.cols; i++)
        if (i != at) sum += ck_over(1, -(g.v[i] * g.v[i] - l));
    return ck_accept(f, "norm", mu, centred && (most * most - l) * sum <= 1 ? fmin(mu, most) : most);
}

static ck_bound affine(double norm, double x, double shift) { return (ck_bound){ norm, norm * x + shift }; }

static ck_bound linear(ck_fields *f, ck_node *n, double x)
{
    const double norm = ck_claim_norm(f, "norm", n->w[0]);
    return affine(norm, x, ck_claim(f, "bias", ck_length(n->w[1])));
}

static ck_bound channel(ck_fields *f, ck_node *n, double x) { return affine(claim_diagonal(f, n->w[0], false), x, 0); }

static ck_bound centernorm(ck_fields *f, ck_node *n, double x)
{
    const double norm = fabs(n->k[0]) * claim_diagonal(f, n->w[0], true);
    return affine(norm, x, ck_claim(f, "bias", ck_length(n->w[1])));
}

static ck_bound scale(ck_fields *f, ck_node *n, double x)
{
    (void)f;
    return affine(fabs(n->k[0]), x, 0);
}

static ck_bound position(ck_fields *f, ck_node *n, double x)
{
    return affine(1, x, ck_claim(f, "longest", ck_longest(n->w[0])));
}

static ck_bound sinusoid(ck_fields *f, ck_node *n, double x)
{
    (void)f;
    return affine(1, x, sqrt((double)((n->width + 1) / 2)));
}

static ck_bound maxmin(ck_fields *f, ck_node *n, double x)
{
    (void)f, (void)n;
    return affine(1, x, 0);
}

static ck_bound pointwise(ck_fields *f, ck_node *n, double x)
{
    (void)f;
    return (ck_bound){ fabs(n->k[1]) * ck_slopes(n->k[0]).hi, fabs(n->k[1]) * x };
}

static ck_bound norm_layer(ck_fields *f, ck_node *n, double x)
{
    const double d = (double)n->w[0].cols, eps = n->k[0], norm = claim_diagonal(f, n->w[0], n->k[1] != 0);
    n->norm = norm;
    const double sd = ck_below(sqrt(ck_below(ck_below(ck_below(x * x) / d) + eps)));
    const double steep = eps > 0 ? ck_over(norm, ck_below(sqrt(eps))) : INFINITY; /* at 0: 0/0 at a constant token */
    return (ck_bound){ norm == 0 && eps > 0 ? 0 : steep, norm * fmin(sqrt(d), ck_over(x, sd)) + ck_length(n->w[1]) };
}

static void run_linear(ck *c, const ck_node *n, ck_mat *x) { *x = ck_affine(c, *x, 1, n->w[0], n->w[1]); }

static void run_position(ck *c, const ck_node *n, ck_mat *x)
{
    (void)c;
    for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] += n->w[0].v[i];
    x->err = CK_U * ck_longest(*x);
}

static int larger_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void run_maxmin(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t group = (int64_t)n->k[0], each = x->cols / group;
    (void)c;
    for (int64_t i = 0; i < x->rows * each; i++)
        qsort(x->v + i / each * x->ld + i % each * group, (size_t)group, sizeof *x->v, larger_first);
}

static void run_pointwise(ck *c, const ck_node *n, ck_mat *x)
{
    (void)c;
    ck_activate(x, n->k[0], n->k[1]);
}

static void run_weights(ck *c, const ck_node *n, ck_mat *x)
{
    (void)c;
    const bool layer = ck_is(n, "layernorm"), center = ck_is(n, "centernorm");
    if (center || (layer && n->k[1] != 0)) ck_centre(x);
    if (layer) ck_divide(x, x->cols, (double)x->cols, n->k[0]);
    ck_weigh(x, center || ck_is(n, "scale") ? n->k[0] : 1, n->w[0], n->w[1]);
}

static bool steady(const ck_node *n) { return n->k[0] >= 0 && (n->k[1] != 0 || !n->w[1].v); }
static bool long_enough(const ck_node *n) { return n->w[0].rows >= n->tokens; }
static bool groups(const ck_node *n) { return n->width % (int64_t)n->k[0] == 0; }

#define DIAGONAL                            \
    {                                       \
        { "weight", "d" }, { "?bias", "d" } \
    }
const ck_rule ck_rule_linear = { .name = "linear",
                                 .prove = linear,
                                 .run = run_linear,
                                 .constants = { "?tied" },
                                 .tensors = { { "weight", "od" }, { "?bias", "o" } } };
const ck_rule ck_rule_position = {
    .name = "position", .prove = position, .run = run_position, .fits = long_enough, .tensors = { { "weight", "pd" } }
};
const ck_rule ck_rule_sinusoid = { .name = "sinusoid", .prove = sinusoid, .run = ck_not_run };
const ck_rule ck_rule_scale = { .name = "scale", .prove = scale, .run = run_weights, .constants = { "factor" } };
const ck_rule ck_rule_maxmin = {
    .name = "maxmin", .prove = maxmin, .run = run_maxmin, .fits = groups, .constants = { "#group" }
};
const ck_rule ck_rule_channel = {
    .name = "channel", .prove = channel, .run = run_weights, .tensors = { { "weight", "d" } }
};
const ck_rule ck_rule_centernorm = {
    .name = "centernorm", .prove = centernorm, .run = run_weights, .constants = { "factor" }, .tensors = DIAGONAL
};
const ck_rule ck_rule_layernorm = { .name = "layernorm",
                                    .prove = norm_layer,
                                    .run = run_weights,
                                    .fits = steady,
                                    .constants = { "eps", "?centred" },
                                    .tensors = DIAGONAL };
const ck_rule ck_rule_pointwise = {
    .name = "pointwise", .prove = pointwise, .run = run_pointwise, .constants = { "curve", "factor" }
};
