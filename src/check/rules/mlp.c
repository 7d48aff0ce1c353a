/* mlp, x -> W_out c f(W_in x + b_in) + b_out, alone or in keep x + mix of that:  f(h) - f(h') = D (h - h') with D diagonal in
 * [lo, hi].  Let m = (lo + hi)/2 and T = diag(2^units):
 *     keep I + mix c W_out D W_in = (keep I + mix c m W_out W_in) + mix c W_out T^-1 (D - m I) T W_in */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

/* diag(2^(sign e_k)) W, exactly; W itself where e is NULL. */
static ck_mat scaled(ck_fields *f, ck_mat w, const cJSON *e, int sign)
{
    ck_mat s = ck_stack(f->c, &w, (const double[]){ 1 }, 1);
    for (int64_t k = 0; e; k++, e = e->next) {
        const double power = cJSON_GetNumberValue(e);
        if (!(fabs(power) <= 200) || power != floor(power))
            ck_fail(f->c, "%s (mlp): units must be whole numbers within 200", f->path);
        for (int64_t i = 0; i < w.cols; i++) s.v[k * s.ld + i] = ldexp(s.v[k * s.ld + i], sign * (int)power);
    }
    s.err = 0;
    return s;
}

/* by * P + keep I; where keep is not 0, P is square. */
static ck_mat joined(ck *c, ck_mat p, double by, double keep)
{
    ck_mat j = ck_stack(c, &p, &by, 1);
    for (int64_t i = 0; i < j.rows && keep != 0; i++) j.v[i * j.ld + i] += keep;
    j.err += CK_U * ck_length(j);
    return j;
}

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    ck *c = f->c;
    const double keep = n->mixed ? n->up->k[0] : 0, mix = n->mixed ? n->up->k[1] : 1, kept = fabs(keep);
    const double mc = mix * n->k[1], hi = ck_slopes(n->k[0]).hi; /* of float32 numbers: exact */
    const double m = ck_ratio(n->k[0]).lo < 0 ? 0 : 0.5;         /* the middle, of f' and of f(z)/z: 0 for abs */
    const ck_mat turned = ck_turn(c, n->w[2]), p = ck_product(c, turned, n->w[0]);
    int64_t listed;
    const cJSON *units = ck_list(f, "units", &listed);
    if (units && listed != n->w[0].rows) ck_fail(c, "%s (mlp): units must list every unit", f->path);
    const double in = ck_claim_norm(f, "scaled_in", scaled(f, n->w[0], units, 1));
    const double product = fabs(mc) * in * ck_claim_norm(f, "scaled_out", scaled(f, turned, units, -1));
    const ck_mat both = joined(c, p, mc * m, keep);
    const double joint = ck_claim_norm(f, "joint", both), half = ck_claim_norm(f, "joint_half", both);
    const double hidden = ck_claim_norm(f, "norm_out", turned) * ck_claim(f, "bias_in", ck_length(n->w[1]));
    const double shift = fabs(n->k[1]) * hidden + ck_claim(f, "bias_out", ck_length(n->w[3]));
    return (ck_bound){ fmin(joint + (hi - m) * product, kept + hi * product),
                       x * fmin(half + (1 - m) * product, kept + product) + fabs(mix) * shift };
}

static void run(ck *c, const ck_node *n, ck_mat *x)
{
    *x = ck_affine(c, *x, 1, n->w[0], n->w[1]);
    ck_activate(x, n->k[0], n->k[1]);
    *x = ck_affine(c, *x, 1, n->w[2], n->w[3]);
}

/* At least the norm of what g stands for, a symmetric matrix >= 0: the root of its square's, and so on; at last by its length. */
static double gram_norm(ck *c, ck_mat g, int steps)
{
    int power;
    const double length = ck_length(g);
    if (steps == 0 || !(length > 0 && length < INFINITY)) return length;
    frexp(length, &power);
    ck_mat s = ck_new(c, g.rows,
                      g.cols); /* of length about 1: what underflows in its square is nothing beside 1e-290 */
    for (int64_t i = 0; i < g.rows * g.ld; i++) s.v[i] = ldexp(g.v[i], -power);
    s.err = ldexp(g.err, -power);
    ck_mat square = ck_product(c, s, s);
    square.err += 1e-290;
    return ldexp(sqrt(gram_norm(c, square, steps - 1)), power);
}

/* D_k of one unit, and in *e how far f' can be from it where z moves by up to r.  Computed slopes are within 1e-11. */
static double slope(double curve, double z, double r, double *e)
{
    const double whole = ck_slopes(curve).hi - ck_slopes(curve).lo,
                 middle = (ck_slopes(curve).hi + ck_slopes(curve).lo) / 2;
    const bool straight = curve == CK_RELU || curve == CK_ABS, turns = !(fabs(z) > r);
    *e = straight ? (turns ? whole / 2 : 0) : fmin(r + 1e-11, whole);
    return straight && turns ? middle : ck_slope_at(curve, z);
}

/* Around an example, token t within m_t of x: z_k = (W_in x + b_in)_k moves by at most |row k of W_in| m_t, and so
 *     keep I + mix c W_out diag(f') W_in = (keep I + mix c W_out diag(D) W_in) + mix c sum_k (f'_k - D_k) w_k v_k^T
 * with |f'_k - D_k| <= E_k; w_k the columns of W_out, v_k the rows of W_in. */
double ck_mlp_near(ck *c, const ck_node *n, ck_mat x, const double *m, double *each)
{
    const ck_mat in = n->w[0], turned = ck_turn(c, n->w[2]), z = ck_affine(c, x, 1, in, n->w[1]);
    const double keep = n->mixed ? n->up->k[0] : 0, mc = (n->mixed ? n->up->k[1] : 1) * n->k[1];
    double most = 0;
    if ((double)x.rows * (double)in.rows * (double)in.cols * (double)turned.cols > 0x1p23) return INFINITY;
    for (int64_t t = 0; t < x.rows; t++) {
        const struct ck_block *mark = c->blocks;
        ck_mat part = ck_stack(c, &in, (const double[]){ 1 }, 1);
        double rest = 0;
        for (int64_t k = 0; k < in.rows; k++) {
            double e;
            const double row = ck_length(ck_rows(in, k, 1));
            const double d = slope(n->k[0], z.v[t * z.ld + k], row * m[t] + z.err, &e);
            rest += e * row * ck_length(ck_rows(turned, k, 1));
            for (int64_t i = 0; i < in.cols; i++) part.v[k * part.ld + i] *= d;
        }
        part.err = CK_U * ck_length(part);
        const ck_mat both = joined(c, ck_product(c, turned, part), mc, keep),
                     wide = both.rows < both.cols ? ck_turn(c, both) : both;
        const double here = sqrt(gram_norm(c, ck_product(c, wide, wide), 14)) + fabs(mc) * rest;
        most = isnan(here) ? INFINITY : fmax(most, here);
        each[t] = fmin(each[t], here);
        ck_give_back(c, mark);
    }
    return most;
}

const ck_rule ck_rule_mlp = {
    .name = "mlp",
    .prove = prove,
    .run = run,
    .constants = { "curve", "factor" },
    .tensors = { { "in.weight", "hd" }, { "?in.bias", "h" }, { "out.weight", "oh" }, { "?out.bias", "o" } }
};
