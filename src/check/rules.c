/* The rules of docs/certificate.md.  Every stated number must be at least the true quantity, and every stated lip and
 * out at least what the rule makes of the stated numbers.  X is the size that enters; a node hands on its stated out.
 *
 * Why the rules hold, for two inputs x, x' of the region:
 *   sequence       constants multiply, and the out of a part is the X of the next one.  mix: the triangle inequality.
 *                  parts: two modules, each on tokens of its own.  ask: x + f(x) in the first tokens
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
 *                  0 <= I - z z^T/d <= I and sd >= sqrt(eps);  |z| <= min(sqrt(d), X / sqrt(X^2/d + eps))
 *   mlp            f(h) - f(h') = D (h - h') with D diagonal in [lo, hi].  Let m = (lo + hi)/2 and T = diag(2^units):
 *                  keep I + mix c W_out D W_in
 *                      = (keep I + mix c m W_out W_in) + mix c W_out T^-1 (D - m I) T W_in
 *   potential, sll I - 2 W^T T^-1 D W is symmetric, and 0 <= W^T |T|^-1 W <= ratio I.  As lo <= 0 <= hi, its
 *                  eigenvalues lie in [1 - 2 ratio hi, 1 - 2 ratio lo], if T < 0 in [1 + 2 ratio lo, 1 + 2 ratio hi].
 *                  SLL has t_i >= sum_j |G_ij| q_j/q_i, G = W W^T, q > 0: the absolute row sums of Q^-1 T^-1 G Q,
 *                  Q = diag(q), are at most 1, so ratio = 1 (Gershgorin)
 *   attention      attention.c, posattention.c, attlip.c, rivals.c, plash.c */
#include <string.h>

#include "check/ck.h"

static const ck_mat none;

bool ck_is(const ck_node *n, const char *rule) { return strcmp(n->rule->name, rule) == 0; }

bool ck_has_parts(const ck_node *n) { return !n->rule->run || n->rule->run == ck_run_plash; }

double ck_constant(const ck_node *n, const char *key)
{
    for (int i = 0; i < CK_CONSTANTS && n->rule->constants[i]; i++)
        if (strcmp(n->rule->constants[i] + (strchr("#?~+", *n->rule->constants[i]) != NULL), key) == 0) return n->k[i];
    return 0;
}

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
static ck_bound simple(ck_fields *f, ck_node *n, double x)
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

static ck_bound norm_layer(ck_fields *f, ck_node *n, double x)
{
    const double d = (double)n->w[0].cols, eps = n->k[0], norm = claim_diagonal(f, n->w[0], n->k[1] != 0);
    const double sd = ck_below(sqrt(ck_below(ck_below(ck_below(x * x) / d) + eps)));
    return (ck_bound){ norm == 0 ? 0 : ck_over(norm, ck_below(sqrt(eps))),
                       norm * fmin(sqrt(d), ck_over(x, sd)) + ck_length(n->w[1]) };
}

static void run_simple(ck *c, const ck_node *n, ck_mat *x)
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

static ck_bound mlp(ck_fields *f, ck_node *n, double x)
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

static void run_mlp(ck *c, const ck_node *n, ck_mat *x)
{
    *x = ck_affine(c, *x, 1, n->w[0], n->w[1]);
    ck_activate(x, n->k[0], n->k[1]);
    *x = ck_affine(c, *x, 1, n->w[2], n->w[3]);
}

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

static ck_bound potential(ck_fields *f, ck_node *n, double x)
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

static void run_potential(ck *c, const ck_node *n, ck_mat *x)
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

/* (pixel - mean) / std for every channel, cut into patches: a diagonal map and a permutation.  Where this is the first
 * module of the body (node 2) of an image model, it reads p + e with p in [0, 1]^d and |e| <= room: a patch is no
 * longer than what the map makes of the farthest corner of [0, 1]^d, plus norm * room for e. */
static ck_bound pixels(ck_fields *f, ck_node *n, double x)
{
    const double each = n->k[2] * n->k[3];
    double most = 0, shifts = 0, corners = 0;
    for (int64_t i = 0; i < n->w[0].cols; i++) {
        const double s = n->w[0].v[i], b = n->w[1].v[i], far = fmax(fabs(b), fmax(fabs(s + b), fabs(-s - b)));
        most = fmax(most, fabs(s)), shifts += each * (b * b), corners += each * (far * far);
    }
    const double norm = ck_claim(f, "norm", most);
    if (!f->c->unit || n != f->c->nodes + 2) return (ck_bound){ norm, norm * x + ck_claim(f, "shift", sqrt(shifts)) };
    return (ck_bound){ norm, ck_claim(f, "corner", sqrt(corners)) + norm * f->c->out->room };
}

static void run_concat(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, n->tokens * n->width);
    for (int64_t i = 0; i < y.cols; i++) y.v[i] = x->v[i / x->cols * x->ld + i % x->cols];
    *x = y;
}

/* Patches are in row order, and so are the pixels within a patch. */
static void run_pixels(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t w = (int64_t)n->k[1], ph = (int64_t)n->k[2], pw = (int64_t)n->k[3], channels = n->w[0].cols;
    ck_mat y = ck_new(c, x->cols / (ph * pw * channels), ph * pw * channels);
    double far = 0;
    for (int64_t i = 0; i < x->cols; i++) {
        const int64_t ch = i % channels, col = i / channels % w, row = i / channels / w;
        const int64_t patch = row / ph * (w / pw) + col / pw, at = (row % ph * pw + col % pw) * channels + ch;
        const double scaled = n->w[0].v[ch] * x->v[i], shift = n->w[1].v[ch];
        y.v[patch * y.ld + at] = scaled + shift;
        far = fmax(far, fabs(scaled) + fabs(shift));
    }
    y.err = ck_gamma(2) * sqrt((double)y.cols) * far;
    *x = y;
}

static void run_prefix(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, x->rows + 1, x->cols);
    for (int64_t i = 0; i < y.rows * y.ld; i++) y.v[i] = i < y.ld ? n->w[0].v[i] : x->v[i - y.ld];
    *x = y;
}

static void run_pool(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t rows = n->k[0] != 0 ? x->rows : 1;
    ck_mat y = ck_new(c, 1, x->cols);
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < rows; t++) y.v[i] += x->v[t * x->ld + i];
        y.v[i] /= (double)rows;
    }
    y.err = ck_gamma((double)rows + 2) * ck_longest(*x);
    *x = y;
}

/* Of every feature a sum of squares, each rounded x->rows times at most, and a root.  Squares that
 * underflow lose less than 2^-1074 each, a root then less than 2^-537 sqrt(T), and all roots together less than 2^-480. */
static void run_l2pool(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, x->cols);
    (void)n;
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < x->rows; t++) y.v[i] += x->v[t * x->ld + i] * x->v[t * x->ld + i];
        y.v[i] = sqrt(y.v[i]);
    }
    y.err = ck_gamma((double)x->rows + 2) * sqrt((double)x->rows) * ck_longest(*x) + 0x1p-480;
    *x = y;
}

/* sequence: its parts one after the other.  parts: side by side, each reads tokens of its own. */
static ck_bound sequence(ck_fields *f, ck_node *n, double x)
{
    int64_t parts;
    const cJSON *json = ck_list(f, "of", &parts);
    const bool apart = ck_is(n, "parts");
    ck_bound all = { apart ? 0 : 1, apart ? 0 : x };
    for (ck_node *k = n + 1; k < n->end; k = k->end, json = json->next) {
        if (!json) ck_fail(f->c, "%s (%s): its part %s is missing", n->path, f->part, k->path);
        ck_confirm(f->c, k, json, apart ? x : all.out);
        n->defect = apart ? ck_hypot(n->defect, k->defect) : (n->defect > 0 ? k->lip * n->defect : 0) + k->defect;
        all = apart ? (ck_bound){ fmax(all.lip, k->lip), fmax(all.out, k->out) }
                    : (ck_bound){ all.lip * k->lip, k->out };
    }
    if (json) ck_fail(f->c, "%s (%s): it has more parts than the model", n->path, f->part);
    return all;
}

/* keep x + mix f(x), with keep = mix = 1 for ask.  A part of scope mix has answered for the whole already. */
static ck_bound mix(ck_fields *f, ck_node *n, double x)
{
    const bool asks = ck_is(n, "ask");
    const double keep = asks ? 1 : fabs(n->k[0]), by = asks ? 1 : fabs(n->k[1]);
    const ck_bound b = sequence(f, n, x);
    n->defect *= by;
    return n[1].mixed ? b : (ck_bound){ keep + by * b.lip, keep * x + by * b.out };
}

static bool pairs(const ck_node *n) { return n->k[0] == 2 && n->width % 2 == 0; }

static bool near_fits(const ck_node *n) { return n->k[0] <= (double)n->width; }
static bool some_fit(const ck_node *n) { return n->k[0] + n->k[1] <= (double)n->tokens; }

static bool image_fits(const ck_node *n)
{
    const double *k = n->k, size = k[0] * k[1] * (double)n->w[0].cols;
    return n->tokens == 1 && size == (double)n->width && fmod(k[0], k[2]) == 0 && fmod(k[1], k[3]) == 0;
}

#define HEADS "#heads", "scale", "out", "?causal", "?alibi", "~rope"
#define WEIGHTS \
    { "q.weight", "dd" }, { "k.weight", "dd" }, { "v.weight", "dd" }, { "o.weight", "dd" }
#define BIASES \
    { "?q.bias", "d" }, { "?k.bias", "d" }, { "?v.bias", "d" }, { "?o.bias", "d" }
#define DEGREE                 \
    {                          \
        "degree*.weight", "oS" \
    }
/* clang-format off */
const ck_rule ck_rules[] = {
    { "sequence", sequence, NULL, NULL, { 0 }, { { 0 } } },
    { "mix", mix, NULL, NULL, { "keep", "mix" }, { { 0 } } },
    { "parts", sequence, NULL, NULL, { "#first" }, { { 0 } } },
    { "ask", mix, NULL, NULL, { "#first" }, { { 0 } } },
    { "tokens", simple, ck_not_run, some_fit, { "+first", "#count" }, { { 0 } } },
    { "neighbours", simple, ck_not_run, near_fits, { "#cols" }, { { 0 } } },
    { "halve", simple, ck_not_run, NULL, { 0 }, { { 0 } } },
    { "sinusoid", simple, ck_not_run, NULL, { 0 }, { { 0 } } },
    { "linear", simple, run_simple, NULL, { "?tied" }, { { "weight", "od" }, { "?bias", "o" } } },
    { "position", simple, run_simple, NULL, { 0 }, { { "weight", "td" } } },
    { "scale", simple, run_simple, NULL, { "factor" }, { { 0 } } },
    { "maxmin", simple, run_simple, pairs, { "#group" }, { { 0 } } },
    { "channel", simple, run_simple, NULL, { 0 }, { { "weight", "d" } } },
    { "centernorm", simple, run_simple, NULL, { "factor" }, { { "weight", "d" }, { "?bias", "d" } } },
    { "layernorm", norm_layer, run_simple, NULL, { "eps", "?centred" }, { { "weight", "d" }, { "?bias", "d" } } },
    { "pointwise", simple, run_simple, NULL, { "curve", "factor" }, { { 0 } } },
    { "mlp", mlp, run_mlp, NULL, { "curve", "factor" },
      { { "in.weight", "hd" }, { "?in.bias", "h" }, { "out.weight", "oh" }, { "?out.bias", "o" } } },
    { "potential", potential, run_potential, NULL, { "curve" },
      { { "weight", "hd" }, { "?bias", "h" }, { "scale", "1" } } },
    { "sll", potential, run_potential, NULL, { "curve" }, { { "weight", "hd" }, { "?bias", "h" }, { "log_q", "h" } } },
    { "attention", ck_attention, ck_attend, ck_heads_fit, { HEADS, "+queries" }, { WEIGHTS, BIASES } },
    { "cosattention", ck_attention, ck_attend, ck_heads_fit, { HEADS, "eps", "?values" }, { WEIGHTS, BIASES } },
    { "window", ck_attention, ck_attend, ck_heads_fit, { "#heads", "scale", "out", "?causal", "#size", "+global" },
      { WEIGHTS, BIASES } },
    { "cosformer", ck_cosformer, ck_run_cosformer, ck_linear_fits, { "#heads", "out", "#tokens", "eps", "+queries" },
      { WEIGHTS, BIASES } },
    { "performer", ck_performer, ck_run_performer, ck_linear_fits, { "#heads", "out", "scale", "+queries" },
      { WEIGHTS, BIASES, { "=directions", "r" } } },
    { "nystrom", ck_jumping, ck_jump, ck_linear_fits, { "#heads", "out", "scale", "#landmarks", "~steps", "+queries" },
      { WEIGHTS, BIASES } },
    { "clustered", ck_jumping, ck_jump, ck_linear_fits,
      { "#heads", "out", "scale", "#clusters", "~steps", "?first", "+queries" }, { WEIGHTS, BIASES } },
    { "probsparse", ck_jumping, ck_jump, ck_linear_fits, { "#heads", "out", "scale", "?causal", "#factor", "~seed" },
      { WEIGHTS, BIASES } },
    { "plash", ck_plash, ck_run_plash, ck_plash_fits, { "#heads", "out", "+queries", "scale", "~pair", "route" },
      { WEIGHTS, BIASES, { "prototypes", "md" }, { "kg.weight", "dd" }, { "vg.weight", "dd" } } },
    { "sketch", ck_sketch, ck_run_sketch, ck_sketch_fits, { "floor", "tau" },
      { { "=degrees", "k" }, { "=sizes", "k" }, { "=hash", "h" }, { "beta", "k" }, DEGREE, DEGREE, DEGREE, DEGREE } },
    { "l2attention", ck_l2attention, ck_attend, ck_heads_fit, { "#heads", "?tied" },
      { { "q.weight", "dd" }, { "v.weight", "dd" }, { "o.weight", "dd" } } },
    { "posattention", ck_posattention, ck_attend, ck_table_fits, { "#heads", "?causal", "?far", "+row" },
      { { "v.weight", "dd" }, { "o.weight", "dd" }, { "?o.bias", "d" }, { "distance.weight", "hs" } } },
    { "attlip", ck_attlip, ck_solve, ck_attlip_fits, { "#heads", "eta", "tol", "?reflected", "~steps", "near", "~rope" },
      { { "weight", "hd" }, { "?root", "1" } } },
    { "pixels", pixels, run_pixels, image_fits, { "#height", "#width", "#patch_height", "#patch_width" },
      { { "=scale", "c" }, { "=shift", "c" } } },
    { "prefix", simple, run_prefix, NULL, { 0 }, { { "weight", "d" } } },
    { "pool", simple, run_pool, NULL, { "?mean" }, { { 0 } } },
    { "l2pool", simple, run_l2pool, NULL, { 0 }, { { 0 } } },
    { "concat", simple, run_concat, NULL, { 0 }, { { 0 } } },
    { NULL, NULL, NULL, NULL, { 0 }, { { 0 } } },
};
