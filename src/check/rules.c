/* The rules of docs/certificate.md: every number is at least the true quantity, every lip and out at least what the
 * rule makes of the confirmed numbers.  X is the size that enters; a node hands on its stated out.
 *
 * Why the rules hold (s: |f(x) - f(x')| for two inputs of the region):
 *   sequence  constants multiply, regions follow each other;  mix: the triangle inequality
 *   linear    |W e| <= ||W|| |e|;  position: a shift;  pointwise: secant slopes within [1 - hi, hi], f(z)/z in [0, 1]
 *   norms     J = diag(g) C (I - z z^T/d) / sd, sd >= sqrt(eps), 0 <= I - z z^T/d <= I; |z| <= min(sqrt d, X/sd(X))
 *   mlp       f(h) - f(h') = D (h - h') with D diagonal in [lo, hi]: keep I + mix c W_out D W_in = (keep I + mix c m
 *             W_out W_in) + mix c W_out T^-1 (D - m) T W_in.  For all our activations lo + hi = 1 or lo = 0, hi = 1:
 *             m = 1/2 exactly, r = hi - 1/2.  So joint and joint_half are about the same matrix.
 * Numbers may be "inf", which is above everything; NaN, negative and other strings are refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/ck.h"

ck_fields ck_open(ck *c, const ck_node *n, const cJSON *json, const char *rule, const char *part)
{
    ck_fields f = { c, n, json, part, 0 };
    const cJSON *r = ck_take(&f, "rule", true);
    if (!cJSON_IsString(r) || strcmp(r->valuestring, rule) != 0)
        ck_fail(c, "%s (%s): its rule must be %s", n->path, part, rule);
    return f;
}

const cJSON *ck_take(ck_fields *f, const char *key, bool needed)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(f->json, key);
    if (found)
        f->taken++;
    else if (needed)
        ck_fail(f->c, "%s (%s): %s is missing", f->n->path, f->part, key);
    return found;
}

double ck_number(ck_fields *f, const char *key, bool needed)
{
    const cJSON *j = ck_take(f, key, needed);
    if (!j) return 0;
    if (cJSON_IsString(j) && strcmp(j->valuestring, "inf") == 0) return INFINITY;
    const double v = cJSON_GetNumberValue(j);
    if (!(v >= 0) || isinf(v)) ck_fail(f->c, "%s (%s): %s is not a number >= 0", f->n->path, f->part, key);
    return v;
}

void ck_close(ck_fields *f)
{
    if (f->taken != cJSON_GetArraySize(f->json))
        ck_fail(f->c, "%s (%s): it has a field that the rule does not know", f->n->path, f->part);
}

void ck_at_least(ck_fields *f, const char *key, double stated, double proved)
{
    if (stated >= proved)
        f->c->out->numbers++;
    else
        ck_fail(f->c, "%s (%s): %s is stated as %.17g, but only %.17g can be proved", f->n->path, f->part, key, stated,
                proved);
}

void ck_prove(ck_fields *f, const char *key, double stated, const ck_gram *g)
{
    double proved;
    bool memory = true;
    if (ck_over(f->c)) return;
    const bool holds = ck_gram_prove(g, stated, &proved, &memory);
    if (!memory) f->c->status = taut_no_memory("a proof of a norm");
    ck_at_least(f, key, stated, holds ? stated : proved);
}

void ck_prove_view(ck_fields *f, const char *key, double stated, ck_view w, double err)
{
    if (w.rows < w.cols) w = ck_turn(w);
    double *square = ck_room(f->c, w.cols * w.cols);
    ck_gram g = { 0 };
    if (!square || !ck_gram_begin(&g, w.cols) || !ck_square(square, w))
        f->c->status = taut_no_memory("a Gram matrix");
    else
        ck_gram_add(&g, square, w.rows, 1, err);
    ck_prove(f, key, stated, &g);
    ck_gram_end(&g);
    free(square);
}

double ck_bias(ck_fields *f, const char *key, const ck_view *b)
{
    const double stated = ck_number(f, key, b->f != NULL);
    if (b->f) ck_at_least(f, key, stated, ck_length(b));
    return stated;
}

double ck_slope(const ck *c)
{
    static const double hi[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1 };
    const double h = hi[(int)c->v[ACTIVATION]];
    return h == 1 ? 1 : ck_next(h); /* the decimals are the true maxima to 17 digits */
}

/* ||diag(g) C|| <= mu?  Without C (RMSNorm) it is max |g|.  With C: let l <= mu^2.  If all g_i^2 <= l, yes.  If g_1^2 > l
 * alone and the others are < l, then for sum y_i = 0 Cauchy-Schwarz gives y_1^2 = (sum' y_i)^2 <= sum' (l - g_i^2) y_i^2 *
 * sum' 1/(l - g_i^2), so (g_1^2 - l) sum' 1/(l - g_i^2) <= 1 makes sum g_i^2 y_i^2 <= l |y|^2.  Squares are exact. */
static bool norm_holds(const ck_view *g, bool centred, double mu)
{
    const double l = ck_below(mu * mu);
    double most = 0, sum = 0;
    int64_t at = 0, d = g->cols;
    for (int64_t i = 0; i < d; i++)
        if (!(fabs(ck_at(g, 0, i)) <= most)) most = fabs(ck_at(g, 0, at = i));
    if (most <= mu || !centred || isnan(most)) return most <= mu;
    for (int64_t i = 0; i < d; i++) {
        const double gi = ck_at(g, 0, i), gap = ck_sub_down(l, gi * gi);
        if (i == at) continue;
        if (!(gap > 0)) return false;
        sum = ck_add(sum, ck_div(1, gap));
    }
    return ck_mul(-ck_sub_down(l, most * most), sum) <= 1;
}

static void confirm_norm_layer(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const double d = c->v[WIDTH], eps = ck_float(c->v[EPS]), norm = ck_number(f, "norm", true);
    const bool center = n->kind == IS_CENTERNORM;
    double proved = norm;
    while (!norm_holds(&n->w[0], c->v[NORM] != RMSNORM, proved) && proved < INFINITY)
        proved = ck_add(proved, ck_add(1e-9 * proved, (proved - norm) + 0x1p-149)); /* for the message */
    ck_at_least(f, "norm", norm, proved);
    if (center) {
        const double r = ck_float(d / (d - 1));
        *lip = ck_mul(r, norm);
        *out = ck_add(ck_mul(*lip, x), ck_bias(f, "bias", &n->b[0]));
        return;
    }
    const double sd = ck_below(sqrt(ck_below(ck_below(x * x / d) + eps)));
    const double z = fmin(ck_sqrt(d), sd > 0 && isfinite(x) ? ck_div(x, sd) : INFINITY);
    *lip = norm == 0 ? 0 : ck_div(norm, ck_below(sqrt(eps)));
    if (!(eps > 0) && norm != 0) *lip = INFINITY;
    *out = ck_add(ck_mul(norm, z), n->b[0].f ? ck_length(&n->b[0]) : 0);
}

/* ||T W_in|| and ||W_out T^-1||, T_k = 2^e_k; W times a power of two is exact. */
static void confirm_units(ck_fields *f, ck_node *n, const cJSON *units, double in, double out)
{
    const int64_t hidden = n->w[0].rows, d = n->w[0].cols;
    double *a = ck_room(f->c, hidden * d), *b = ck_room(f->c, hidden * d);
    const cJSON *e = units ? units->child : NULL;
    if (cJSON_GetArraySize(units) != hidden) ck_fail(f->c, "%s (mlp): units must list every unit", n->path);
    for (int64_t k = 0; k < hidden && !ck_over(f->c); k++, e = e->next) {
        const double power = cJSON_GetNumberValue(e);
        if (!(fabs(power) <= 200) || power != floor(power)) {
            ck_fail(f->c, "%s (mlp): units must be whole numbers within 200", n->path);
            break;
        }
        for (int64_t i = 0; i < d; i++) {
            a[k * d + i] = ldexp(ck_at(&n->w[0], k, i), (int)power);
            b[k * d + i] = ldexp(ck_at(&n->w[1], i, k), -(int)power);
        }
    }
    ck_prove_view(f, "scaled_in", in, (ck_view){ NULL, a, hidden, d, d, 1 }, 0);
    ck_prove_view(f, "scaled_out", out, (ck_view){ NULL, b, hidden, d, d, 1 }, 0);
    free(a);
    free(b);
}

/* ||keep I + half W_out W_in||, half = mix c / 2 (exact: two float32 numbers); the product's rounding goes along. */
static void confirm_joint(ck_fields *f, ck_node *n, double keep, double half, double joint, double joint_half)
{
    const int64_t hidden = n->w[0].rows, d = n->w[0].cols;
    const double whole = ck_mul(half, ck_mul(ck_length(&n->w[0]), ck_length(&n->w[1])));
    const double err = ck_add(ck_mul(1.01 * ck_gamma(ck_roundings(hidden) + 3), whole),
                              ck_mul(ck_gamma(3), ck_mul(keep, ck_sqrt((double)d))));
    double *p = ck_room(f->c, d * d);
    if (p && !ck_tn(p, d, ck_turn(n->w[1]), n->w[0], 1, false)) f->c->status = taut_no_memory("W_out W_in");
    for (int64_t i = 0; i < d * d && p; i++) p[i] = half * p[i] + (i % (d + 1) == 0 ? keep : 0);
    const char *key = joint < joint_half ? "joint" : "joint_half";
    ck_prove_view(f, key, fmin(joint, joint_half), (ck_view){ NULL, p, d, d, d, 1 }, err);
    f->c->out->numbers++; /* the larger of the two as well */
    free(p);
}

static void confirm_mlp(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const double keep = n->mixed ? c->keep : 0, mix = n->mixed ? c->mix : 1, factor = ck_float(c->v[FACTOR]);
    const double in = ck_number(f, "scaled_in", true), to = ck_number(f, "scaled_out", true);
    const double joint = ck_number(f, "joint", true), joint_half = ck_number(f, "joint_half", true);
    const cJSON *units = ck_take(f, "units", false);
    n->norm_out = ck_number(f, "norm_out", true);
    ck_prove_view(f, "norm_out", n->norm_out, n->w[1], 0);
    if (units)
        confirm_units(f, n, units, in, to);
    else {
        ck_prove_view(f, "scaled_in", in, n->w[0], 0);
        if (to < n->norm_out)
            ck_prove_view(f, "scaled_out", to, n->w[1], 0);
        else
            c->out->numbers++;
    }
    const double mc = mix * factor, p = ck_mul(mc, ck_mul(in, to)), hi = ck_slope(c);
    confirm_joint(f, n, keep, mc / 2, joint, joint_half);
    const double shift = ck_add(ck_mul(factor, ck_mul(n->norm_out, ck_bias(f, "bias_in", &n->b[0]))),
                                ck_bias(f, "bias_out", &n->b[1]));
    *lip = fmin(ck_add(joint, ck_mul(ck_add(hi, -0.5), p)), ck_add(keep, ck_mul(hi, p)));
    *out = ck_add(ck_mul(x, fmin(ck_add(joint_half, p / 2), ck_add(keep, p))), ck_mul(mix, shift));
}

/* Children in order; sets lip and out of the chain. */
static void confirm_children(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const cJSON *of = ck_take(f, "of", true), *json = cJSON_IsArray(of) ? of->child : NULL;
    *lip = 1;
    *out = x;
    for (ck_node *k = n->first; k && !ck_over(f->c); k = k->next, json = json->next) {
        if (!json) ck_fail(f->c, "%s (%s): its part %s is missing", n->path, f->part, k->path);
        if (json) ck_confirm(f->c, k, json, *out);
        if (!json) return;
        *lip = ck_mul(*lip, k->lip);
        *out = k->out;
    }
    if (json) ck_fail(f->c, "%s (%s): it has more parts than the model", n->path, f->part);
}

static bool scope_is_mix(ck_fields *f)
{
    const cJSON *scope = ck_take(f, "scope", false);
    if (scope && (!cJSON_IsString(scope) || strcmp(scope->valuestring, "mix") != 0))
        ck_fail(f->c, "%s (%s): its scope can only be mix", f->n->path, f->part);
    return scope != NULL;
}

static void confirm_sequence(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const bool inside = n->parent && n->parent->kind == IS_MIX;
    bool passed = false;
    n->mixed = inside && scope_is_mix(f);
    confirm_children(f, n, x, lip, out);
    for (const ck_node *k = n->first; k; k = k->next) passed |= k->mixed;
    if (passed && !n->mixed) ck_fail(f->c, "%s (sequence): its scope must be mix, as that of its part", n->path);
    if (!n->mixed || passed) return;
    *lip = ck_add(f->c->keep, ck_mul(f->c->mix, *lip));
    *out = ck_add(ck_mul(f->c->keep, x), ck_mul(f->c->mix, *out));
}

static void confirm_mix(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const double keep = ck_number(f, "keep", true), mix = ck_number(f, "mix", true);
    if (keep != f->c->keep || mix != f->c->mix)
        ck_fail(f->c, "%s (mix): keep and mix are stated as %.17g and %.17g, the recipe says %.17g and %.17g", n->path,
                keep, mix, f->c->keep, f->c->mix);
    f->c->out->numbers += 2;
    confirm_children(f, n, x, lip, out);
    if (n->first->mixed) return;
    *lip = ck_add(keep, ck_mul(mix, *lip));
    *out = ck_add(ck_mul(keep, x), ck_mul(mix, *out));
}

/* May it answer for the mix around it?  Only if it is the only part of the sequence inside, dropout apart. */
static bool alone_in_mix(const ck_node *n)
{
    for (const ck_node *k = n->parent->first; k; k = k->next)
        if (k != n && k->kind != IS_DROPOUT) return false;
    return n->parent->parent && n->parent->parent->kind == IS_MIX;
}

static double longest_row(ck_view w)
{
    double most = 0;
    for (int64_t i = 0; i < w.rows; i++) {
        const ck_view row = { w.f + i * w.down, NULL, 1, w.cols, w.cols, 1 };
        most = fmax(most, ck_length(&row));
    }
    return most;
}

static void confirm_simple(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const double factor = ck_float(f->c->v[n->kind == IS_SCALE ? LOGIT_SCALE : FACTOR]);
    double number;
    *lip = 1;
    *out = x;
    switch (n->kind) {
    case IS_LINEAR:
        *lip = number = ck_number(f, "norm", true);
        ck_prove_view(f, "norm", number, n->w[0], 0);
        *out = ck_add(ck_mul(number, x), ck_bias(f, "bias", &n->b[0]));
        break;
    case IS_POSITION:
        number = ck_number(f, "longest", true);
        ck_at_least(f, "longest", number, longest_row(n->w[0]));
        *out = ck_add(x, number);
        break;
    case IS_SCALE:
    case IS_POINTWISE:
        *lip = ck_mul(factor, n->kind == IS_SCALE ? 1 : ck_slope(f->c));
        *out = ck_mul(factor, x);
        break;
    default:
        break; /* dropout: the identity when the network is used */
    }
}

void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x)
{
    static const char *const rules[] = { "sequence", "mix",       "linear",     "position", "scale",    "pointwise",
                                         "dropout",  "layernorm", "centernorm", "mlp",      "attention" };
    ck_fields f = ck_open(c, n, json, rules[n->kind], rules[n->kind]);
    const cJSON *name = ck_take(&f, "name", *n->name != 0);
    double lip = INFINITY, out = INFINITY;
    if (name && (!cJSON_IsString(name) || strcmp(name->valuestring, n->name) != 0))
        ck_fail(c, "%s (%s): it is not called %s in the certificate", n->path, f.part, n->name);
    n->in = x;
    if (ck_over(c)) return;
    if (n->kind == IS_MLP) n->mixed = alone_in_mix(n) && scope_is_mix(&f);
    switch (n->kind) {
    case IS_SEQUENCE:
        confirm_sequence(&f, n, x, &lip, &out);
        break;
    case IS_MIX:
        confirm_mix(&f, n, x, &lip, &out);
        break;
    case IS_LAYERNORM:
    case IS_CENTERNORM:
        confirm_norm_layer(&f, n, x, &lip, &out);
        break;
    case IS_MLP:
        confirm_mlp(&f, n, x, &lip, &out);
        break;
    case IS_ATTENTION:
        ck_attention(&f, n, x, &lip, &out);
        break;
    default:
        confirm_simple(&f, n, x, &lip, &out);
    }
    n->lip = ck_number(&f, "lip", true);
    n->out = ck_number(&f, "out", true);
    ck_at_least(&f, "lip", n->lip, lip);
    ck_at_least(&f, "out", n->out, out);
    ck_close(&f);
}
