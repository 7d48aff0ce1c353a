/* Rules that are a matrix or less, and norm layers.  Why they hold, for two inputs x, x' of the region, X the size that enters:
 *   linear         |W e| <= ||W|| |e|.  channel: W = diag(a).  scale: W = factor I.  centernorm: W = factor diag(g) C.
 *                  position: a shift.  sinusoid: a shift by pairs (sin, cos)
 *   prefix         one more token, which does not move.  tokens: some of the tokens
 *   maxmin         sorting brings vectors no further from each other and keeps their lengths
 *   pointwise      secant slopes of f lie in [lo, hi], |lo| <= hi; f(z)/z in [0, 1], of abs in [-1, 1]
 *   neighbours     every token comes three times
 *   halve          the largest of at most three tokens, entry by entry; each token is in at most two windows
 *   pool           one token; or the mean of T, of length at most 1/sqrt(T) times that of all T together
 *   l2pool         of every feature the length over T tokens, and | |a| - |b| | <= |a - b|
 *   concat         T tokens as one, as long as all T together
 *   norm layers    C = I - 1 1^T/d takes the mean away (I where not centred); J = diag(g) C (I - z z^T/d) / sd with
 *                  0 <= I - z z^T/d <= I and sd >= sqrt(eps);  |z| <= min(sqrt(d), X / sqrt(X^2/d + eps)) */
#include "check/ck.h"

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

/* lip multiplies differences, grow multiplies lengths, shift is added to lengths. */
ck_bound ck_simple(ck_fields *f, ck_node *n, double x)
{
    const double root = sqrt((double)n->tokens);
    double lip = 1, grow, shift = 0;
    if (ck_is(n, "linear")) lip = ck_claim_norm(f, "norm", n->w[0]);
    if (ck_is(n, "scale")) lip = fabs(n->k[0]);
    if (ck_is(n, "pointwise")) lip = fabs(n->k[1]);
    if (ck_is(n, "channel")) lip = claim_diagonal(f, n->w[0], false);
    if (ck_is(n, "centernorm")) lip = fabs(n->k[0]) * claim_diagonal(f, n->w[0], true);
    if (ck_is(n, "linear") || ck_is(n, "centernorm")) shift = ck_claim(f, "bias", ck_length(n->w[1]));
    if (ck_is(n, "position")) shift = ck_claim(f, "longest", ck_longest(n->w[0]));
    if (ck_is(n, "prefix")) x = fmax(x, ck_claim(f, "longest", ck_length(n->w[0])));
    if (ck_is(n, "sinusoid")) shift = sqrt((double)((n->width + 1) / 2));
    if (ck_is(n, "neighbours")) lip = sqrt(3);
    if (ck_is(n, "halve")) lip = sqrt(fmin(3, (double)n->tokens));
    if (ck_is(n, "concat") || ck_is(n, "l2pool")) lip = root;
    grow = lip;
    if (ck_is(n, "halve") && f->c->out->flat) lip = n->tokens < 3 ? 1 : sqrt(2);
    if (ck_is(n, "pointwise")) lip *= ck_slopes(n->k[0]).hi;
    if ((ck_is(n, "concat") || ck_is(n, "l2pool")) && f->c->out->flat) lip = 1;
    if (ck_is(n, "pool") && n->k[0] != 0 && f->c->out->flat) lip = ck_over(1, ck_below(root));
    return (ck_bound){ lip, grow * x + shift };
}

ck_bound ck_norm_layer(ck_fields *f, ck_node *n, double x)
{
    const double d = (double)n->w[0].cols, eps = n->k[0], norm = claim_diagonal(f, n->w[0], n->k[1] != 0);
    n->norm = norm;
    const double sd = ck_below(sqrt(ck_below(ck_below(ck_below(x * x) / d) + eps)));
    return (ck_bound){ norm == 0 ? 0 : ck_over(norm, ck_below(sqrt(eps))),
                       norm * fmin(sqrt(d), ck_over(x, sd)) + ck_length(n->w[1]) };
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

void ck_run_simple(ck *c, const ck_node *n, ck_mat *x)
{
    const bool layer = ck_is(n, "layernorm"), center = ck_is(n, "centernorm");
    if (ck_is(n, "linear")) *x = ck_affine(c, *x, 1, n->w[0], n->w[1]);
    for (int64_t i = 0; i < x->rows * x->ld && ck_is(n, "position"); i++) x->v[i] += n->w[0].v[i];
    if (ck_is(n, "position")) x->err = CK_U * ck_longest(*x);
    for (int64_t i = 0; i < x->rows * x->ld && ck_is(n, "maxmin"); i += 2) {
        const double a = x->v[i], b = x->v[i + 1];
        x->v[i] = fmax(a, b), x->v[i + 1] = fmin(a, b);
    }
    if (ck_is(n, "pointwise")) ck_activate(x, n->k[0], n->k[1]);
    if (center || (layer && n->k[1] != 0)) ck_centre(x);
    if (layer) ck_divide(x, x->cols, (double)x->cols, n->k[0]);
    if (layer || ck_is(n, "channel")) ck_weigh(x, 1, n->w[0], n->w[1]);
    if (center || ck_is(n, "scale")) ck_weigh(x, n->k[0], n->w[0], n->w[1]);
}

bool ck_pairs(const ck_node *n) { return n->k[0] == 2 && n->width % 2 == 0; }
bool ck_near_fits(const ck_node *n) { return n->k[0] <= (double)n->width; }
bool ck_some_fit(const ck_node *n) { return n->k[0] + n->k[1] <= (double)n->tokens; }
