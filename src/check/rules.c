/* The rules of docs/certificate.md: every number is at least the true quantity, every lip and out at least what the rule
 * makes of the stated numbers.  X is the size that enters; a node hands on its stated out.
 *
 * Why the rules hold, for two inputs x, x' of the region:
 *   sequence, mix  constants multiply, regions follow each other; the triangle inequality
 *   linear         |W e| <= ||W|| |e|.  position: a shift.  pointwise: secant slopes in [lo, hi], f(z)/z in [0, 1]
 *   norm layers    J = diag(g) C (I - z z^T/d) / sd, 0 <= I - z z^T/d <= I, sd >= sqrt(eps); |z| <= min(sqrt d, X/sd(X))
 *   mlp            f(h) - f(h') = D (h - h'), D diagonal in [lo, hi], so keep I + mix c W_out D W_in is (keep I + mix c m
 *                  W_out W_in) + mix c W_out T^-1 (D - m) T W_in.  lo = 1 - hi for GELU and SiLU (f'(-z) = 1 - f'(z)), [0, 1]
 *                  for ReLU and tanh: m = 1/2 exactly, r = hi - 1/2, and joint and joint_half are about the same matrix.
 * A number may be "inf", which is above everything; NaN, negative numbers and other words are refused. */
#include <string.h>

#include "check/ck.h"

ck_fields ck_open(ck *c, const ck_node *n, const cJSON *json, const char *rule, const char *part)
{
    ck_fields f = { c, n, json, part, 0 };
    const char *word = cJSON_GetStringValue(ck_take(&f, "rule"));
    if (!word || strcmp(word, rule) != 0) ck_fail(c, "%s (%s): its rule must be %s", n->path, part, rule);
    return f;
}

const cJSON *ck_take(ck_fields *f, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(f->json, key);
    f->taken += found != NULL;
    return found;
}

void ck_close(ck_fields *f)
{
    if (f->taken != cJSON_GetArraySize(f->json))
        ck_fail(f->c, "%s (%s): it has a field that the rule does not know", f->n->path, f->part);
}

double ck_stated(ck_fields *f, const char *key)
{
    const cJSON *j = ck_take(f, key);
    const double v = cJSON_IsString(j) && strcmp(j->valuestring, "inf") == 0 ? INFINITY : cJSON_GetNumberValue(j);
    if (!j) return 0;
    if (!(v >= 0) || (isinf(v) && cJSON_IsNumber(j)))
        ck_fail(f->c, "%s (%s): %s is not a number >= 0", f->n->path, f->part, key);
    return v;
}

/* Compares; the one place where a number is accepted. */
static double accept(ck_fields *f, const char *key, double stated, double proved)
{
    if (!(stated >= proved))
        ck_fail(f->c, "%s (%s): %s is stated as %.17g, but only %.17g can be proved", f->n->path, f->part, key, stated,
                proved);
    f->c->out->numbers += cJSON_HasObjectItem(f->json, key);
    return stated;
}

double ck_claim(ck_fields *f, const char *key, double proved) { return accept(f, key, ck_stated(f, key), proved); }

double ck_claim_norm(ck_fields *f, const char *key, const ck_gram *g)
{
    double proved;
    const double stated = ck_stated(f, key);
    return accept(f, key, stated, ck_gram_holds(f->c, g, stated, &proved) ? stated : proved);
}

double ck_claim_view(ck_fields *f, const char *key, ck_view w, double err)
{
    const struct ck_block *mark = f->c->blocks;
    if (w.rows < w.cols) w = ck_turn(w);
    ck_gram *g = ck_gram_new(f->c, w.cols);
    ck_gram_add(f->c, &g, (const double[]){ 1 }, 1, w, err);
    const double stated = ck_claim_norm(f, key, g);
    ck_give_back(f->c, mark);
    return stated;
}

double ck_slope(const ck *c)
{
    static const double hi[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1 };
    const double h = hi[(int)c->r.activation];
    return h == 1 ? 1 : ck_next(h); /* the decimals are the true maxima to 17 digits */
}

double ck_longest(ck_view w)
{
    double most = 0;
    for (int64_t i = 0; i < w.rows; i++) most = fmax(most, ck_length(ck_rows(w, i, 1)));
    return most;
}

/* ||diag(g) C|| <= mu?  Without C (RMSNorm) it is max |g|.  With C: let l <= mu^2.  If all g_i^2 <= l, yes.  If g_1^2 > l alone
 * and the others are < l, then for sum y_i = 0 Cauchy-Schwarz gives y_1^2 = (sum' y_i)^2 <= sum' (l - g_i^2) y_i^2 * sum'
 * 1/(l - g_i^2), so (g_1^2 - l) sum' 1/(l - g_i^2) <= 1 makes sum g_i^2 y_i^2 <= l |y|^2.  Squares are exact. */
static bool norm_holds(const ck_view *g, bool centred, double mu)
{
    const double l = ck_below(mu * mu);
    double most = 0, sum = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < g->cols; i++)
        if (!(fabs(ck_at(g, 0, i)) <= most)) most = fabs(ck_at(g, 0, at = i));
    if (most <= mu || !centred || isnan(most)) return most <= mu;
    for (int64_t i = 0; i < g->cols; i++) {
        const double gi = ck_at(g, 0, i), gap = ck_sub_down(l, gi * gi);
        if (i != at && !(gap > 0)) return false;
        if (i != at) sum = ck_add(sum, ck_div(1, gap));
    }
    return ck_mul(-ck_sub_down(l, most * most), sum) <= 1;
}

static void norm_layer(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const double d = f->c->r.width, eps = ck_float(f->c->r.norm_eps), norm = ck_stated(f, "norm");
    double proved = norm;
    for (double more = 1e-9; !norm_holds(&n->w[0], f->c->r.norm != RMSNORM, proved) && more < 1e40; more *= 4)
        proved = (norm + 0x1p-140) * (1 + more); /* for the message */
    accept(f, "norm", norm, proved);
    if (n->kind == CENTER) {
        *lip = ck_mul(ck_float(d / (d - 1)), norm);
        *out = ck_add(ck_mul(*lip, x), ck_claim(f, "bias", ck_length(n->b[0])));
        return;
    }
    const double sd = ck_below(sqrt(ck_below(ck_below(ck_below(x * x) / d) + eps))), least = ck_below(sqrt(eps));
    const double z = fmin(ck_sqrt(d), sd > 0 && isfinite(x) ? ck_div(x, sd) : INFINITY);
    *lip = norm == 0 ? 0 : least > 0 ? ck_div(norm, least) : INFINITY;
    *out = ck_add(ck_mul(norm, z), ck_length(n->b[0]));
}

/* T W_in and (W_out T^-1)^T, T_k = 2^e_k, exactly; without units T = I. */
static void scaled(ck_fields *f, const ck_node *n, double *in, double *out)
{
    const int64_t hidden = n->w[0].rows, d = n->w[0].cols;
    const cJSON *units = ck_take(f, "units"), *e = units ? units->child : NULL;
    if (units && cJSON_GetArraySize(units) != hidden) ck_fail(f->c, "%s (mlp): units must list every unit", n->path);
    for (int64_t k = 0; k < hidden; k++, e = e ? e->next : NULL) {
        const double power = e ? cJSON_GetNumberValue(e) : 0;
        if (!(fabs(power) <= 200) || power != floor(power))
            ck_fail(f->c, "%s (mlp): units must be whole numbers within 200", n->path);
        for (int64_t i = 0; i < d; i++) {
            in[k * d + i] = ldexp(ck_at(&n->w[0], k, i), (int)power);
            out[k * d + i] = ldexp(ck_at(&n->w[1], i, k), -(int)power);
        }
    }
}

static void mlp(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const struct ck_block *mark = c->blocks;
    const int64_t hidden = n->w[0].rows, d = n->w[0].cols;
    const double keep = n->mixed ? c->keep : 0, mix = n->mixed ? c->mix : 1, factor = ck_float(c->r.activation_factor);
    const double mc = mix * factor, half = mc / 2, hi = ck_slope(c); /* mc: exact, two float32 numbers */
    double *a = ck_room(c, hidden * d, sizeof *a), *b = ck_room(c, hidden * d, sizeof *b);
    scaled(f, n, a, b);
    const double in = ck_claim_view(f, "scaled_in", (ck_view){ NULL, a, hidden, d, d, 1 }, 0);
    const double to = ck_claim_view(f, "scaled_out", (ck_view){ NULL, b, hidden, d, d, 1 }, 0);
    n->norm_out = ck_claim_view(f, "norm_out", n->w[1], 0);
    /* keep I + half W_out W_in: two more roundings of every entry */
    double *p = ck_room(c, d * d, sizeof *p), gamma = ck_product(c, p, ck_turn(n->w[1]), n->w[0]) + ck_gamma(4);
    const double err = ck_add(ck_mul(half * gamma, ck_mul(ck_length(n->w[0]), ck_length(n->w[1]))),
                              ck_mul(ck_gamma(4), ck_mul(keep, ck_sqrt((double)d))));
    for (int64_t i = 0; i < d * d; i++) p[i] = half * p[i] + (i % (d + 1) == 0 ? keep : 0);
    const double joint = ck_claim_view(f, "joint", (ck_view){ NULL, p, d, d, d, 1 }, err);
    const double joint_half = ck_claim_view(f, "joint_half", (ck_view){ NULL, p, d, d, d, 1 }, err);
    ck_give_back(c, mark);
    const double bias_in = ck_claim(f, "bias_in", ck_length(n->b[0])),
                 bias_out = ck_claim(f, "bias_out", ck_length(n->b[1]));
    const double product = ck_mul(mc, ck_mul(in, to));
    *lip = fmin(ck_add(joint, ck_mul(ck_add(hi, -0.5), product)), ck_add(keep, ck_mul(hi, product)));
    *out = ck_mul(x, fmin(ck_add(joint_half, product / 2), ck_add(keep, product)));
    *out = ck_add(*out, ck_mul(mix, ck_add(ck_mul(factor, ck_mul(n->norm_out, bias_in)), bias_out)));
}

static bool scope_is_mix(ck_fields *f)
{
    const cJSON *scope = ck_take(f, "scope");
    if (scope && (!cJSON_IsString(scope) || strcmp(scope->valuestring, "mix") != 0))
        ck_fail(f->c, "%s (%s): its scope can only be mix", f->n->path, f->part);
    return scope != NULL;
}

/* May an mlp answer for the mix around it?  Only if it is the only part of the sequence inside, dropout apart. */
static bool alone_in_mix(const ck_node *n)
{
    for (const ck_node *k = n->parent->first; k; k = k->next)
        if (k != n && k->kind != DROP) return false;
    return n->parent->parent->kind == MIX;
}

/* Sequence and mix: the parts in order; and keep x + mix f(x), unless the part inside has answered for that already. */
static void chain(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const cJSON *of = ck_take(f, "of"), *json = cJSON_IsArray(of) ? of->child : NULL;
    bool answered = false;
    if (n->kind == SEQUENCE && n->parent && n->parent->kind == MIX) n->mixed = scope_is_mix(f);
    if (n->kind == MIX && (ck_claim(f, "keep", c->keep) != c->keep || ck_claim(f, "mix", c->mix) != c->mix))
        ck_fail(c, "%s (mix): keep and mix must be %.17g and %.17g", n->path, c->keep, c->mix);
    *lip = 1;
    *out = x;
    for (ck_node *k = n->first; k; k = k->next, json = json->next) {
        if (!json) ck_fail(c, "%s (%s): its part %s is missing", n->path, f->part, k->path);
        ck_confirm(c, k, json, *out);
        *lip = ck_mul(*lip, k->lip);
        *out = k->out;
        answered |= k->mixed;
    }
    if (json) ck_fail(c, "%s (%s): it has more parts than the model", n->path, f->part);
    if (answered && n->kind == SEQUENCE && !n->mixed) ck_fail(c, "%s (sequence): its scope must be mix", n->path);
    if (answered || (n->kind == SEQUENCE && !n->mixed)) return;
    *lip = ck_add(c->keep, ck_mul(c->mix, *lip));
    *out = ck_add(ck_mul(c->keep, x), ck_mul(c->mix, *out));
}

/* Linear, position, scale, pointwise; dropout is the identity when the network is used. */
static void simple(ck_fields *f, const ck_node *n, double x, double *lip, double *out)
{
    const double factor = ck_float(n->kind == SCALE ? f->c->r.logit_scale : f->c->r.activation_factor);
    *lip = n->kind == LINEAR ? ck_claim_view(f, "norm", n->w[0], 0) : 1;
    *out = ck_mul(*lip, x);
    if (n->kind == LINEAR) *out = ck_add(*out, ck_claim(f, "bias", ck_length(n->b[0])));
    if (n->kind == POSITION) *out = ck_add(x, ck_claim(f, "longest", ck_longest(n->w[0])));
    if (n->kind != SCALE && n->kind != POINTWISE) return;
    *lip = ck_mul(factor, n->kind == SCALE ? 1 : ck_slope(f->c));
    *out = ck_mul(factor, x);
}

void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x)
{
    static const char *const rules[] = { "sequence", "mix",       "linear",     "position", "scale",    "pointwise",
                                         "dropout",  "layernorm", "centernorm", "mlp",      "attention" };
    ck_fields f = ck_open(c, n, json, rules[n->kind], rules[n->kind]);
    const cJSON *name = ck_take(&f, "name");
    const char *word = name ? cJSON_GetStringValue(name) : "";
    double lip, out;
    if (!word || strcmp(word, n->name) != 0) ck_fail(c, "%s (%s): its name must be '%s'", n->path, f.part, n->name);
    n->in = x;
    if (n->kind == MLP) n->mixed = alone_in_mix(n) && scope_is_mix(&f);
    if (n->kind == SEQUENCE || n->kind == MIX)
        chain(&f, n, x, &lip, &out);
    else if (n->kind == NORM || n->kind == CENTER)
        norm_layer(&f, n, x, &lip, &out);
    else if (n->kind == MLP)
        mlp(&f, n, x, &lip, &out);
    else if (n->kind == ATTENTION)
        ck_attention(&f, n, x, &lip, &out);
    else
        simple(&f, n, x, &lip, &out);
    n->lip = ck_claim(&f, "lip", lip);
    n->out = ck_claim(&f, "out", out);
    ck_close(&f);
}
