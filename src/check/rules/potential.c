/* potential and sll:  I - 2 W^T T^-1 D W is symmetric, and 0 <= W^T |T|^-1 W <= ratio I.  As lo <= 0 <= hi, its eigenvalues lie
 * in [1 - 2 ratio hi, 1 - 2 ratio lo], if T < 0 in [1 + 2 ratio lo, 1 + 2 ratio hi].  SLL has t_i >= sum_j |G_ij| q_j/q_i,
 * G = W W^T, q > 0: the absolute row sums of Q^-1 T^-1 G Q, Q = diag(q), are at most 1, so ratio = 1 (Gershgorin). */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

static const ck_mat none;

/* The diagonal of |T|: |s|, or SLL's t_i = 2^-40 + sum_j |G_ij| q_j/q_i, each with a relative error of at most *off.
 * G_ij is off by gamma |w_i| |w_j|, w_i the rows of W; exp is trusted to 4 units in the last place, and its argument
 * has been rounded. */
static ck_mat dominant(ck *c, const ck_node *n, double *off)
{
    const int64_t hidden = n->w[0].rows;
    const double *log_q = n->w[2].v, gamma = ck_gamma((double)n->w[0].cols + 80);
    ck_mat t = ck_new(c, 1, hidden), turned = ck_turn(c, n->w[0]), g = { 0 };
    if (ck_is(n, "sll")) g = ck_product(c, turned, turned);
    *off = 0;
    for (int64_t i = 0; i < hidden; i++) {
        double lost = 0;
        t.v[i] = g.v ? 0x1p-40 : fabs(log_q[0]);
        for (int64_t j = 0; j < g.rows; j++) {
            if (ck_length(ck_rows(n->w[0], i, 1)) == 0 || ck_length(ck_rows(n->w[0], j, 1)) == 0)
                continue; /* G_ij = 0 */
            const double apart = log_q[j] - log_q[i], ratio = exp(apart);
            t.v[i] += fabs(g.v[i * g.ld + j]) * ratio;
            lost += (1 + fabs(apart)) * ck_length(ck_rows(n->w[0], j, 1)) * ratio;
        }
        lost = 1.01 * gamma * ck_length(ck_rows(n->w[0], i, 1)) * lost / t.v[i];
        if (g.v) *off = fmax(*off, lost < 0.01 ? lost + ck_gamma(2 * (double)hidden + 16) : INFINITY);
    }
    return t;
}

/* The largest |1 - 2 ratio D| for slopes D in s, and at least 1; if T < 0 (turned), of |1 + 2 ratio D|. */
static double reflected(ck_range s, double ratio, bool turned)
{
    const double down = turned ? -s.lo : s.hi, up = turned ? s.hi : -s.lo, r = 2 * ratio;
    return r < INFINITY ? fmax(1, fmax(r * down - 1, 1 + r * up)) : INFINITY;
}

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    const bool sll = ck_is(n, "sll"), turned = !sll && n->w[2].v[0] < 0;
    double off, square = 0;
    const ck_mat t = dominant(f->c, n, &off);
    for (int64_t i = 0; i < n->w[1].cols; i++)
        if (n->w[1].v[i] != 0)
            square += ck_over(n->w[1].v[i] * n->w[1].v[i], ck_below(t.v[i] * ck_below(1 - 1.1 * off)));
    const double norm = sll ? 1 : ck_claim_norm(f, "norm", n->w[0]), bias = ck_claim(f, "bias", sqrt(square));
    const double ratio = sll ? 1 : ck_over(norm * norm, t.v[0]);
    return (ck_bound){ reflected(ck_slopes(n->k[0]), ratio, turned),
                       x * reflected(ck_ratio(n->k[0]), ratio, turned) + 2 * sqrt(ratio) * bias };
}

static void run(ck *c, const ck_node *n, ck_mat *x)
{
    double off;
    ck_mat t = dominant(c, n, &off), h = ck_affine(c, *x, 1, n->w[0], n->w[1]);
    ck_activate(&h, n->k[0], 1);
    for (int64_t i = 0; i < t.cols; i++) t.v[i] = 1 / t.v[i];
    h.err += (1.1 * off + 2 * CK_U) * ck_longest(h);
    ck_weigh(&h, ck_is(n, "potential") && n->w[2].v[0] < 0 ? 2 : -2, t, none);
    ck_mat y = ck_affine(c, h, 1, ck_turn(c, n->w[0]), none);
    for (int64_t i = 0; i < y.rows * y.ld; i++) y.v[i] += x->v[i];
    y.err += CK_U * ck_longest(y);
    *x = y;
}

const ck_rule ck_rule_potential = { .name = "potential",
                                    .prove = prove,
                                    .run = run,
                                    .constants = { "curve" },
                                    .tensors = { { "weight", "hd" }, { "?bias", "h" }, { "scale", "1" } } };
const ck_rule ck_rule_sll = { .name = "sll",
                              .prove = prove,
                              .run = run,
                              .constants = { "curve" },
                              .tensors = { { "weight", "hd" }, { "?bias", "h" }, { "log_q", "h" } } };
