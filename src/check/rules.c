/* The rules of docs/certificate.md: every number is at least the true quantity, every lip and out at least what the
 * rule makes of the stated numbers.  X is the size that enters; a node hands on its stated out.
 *
 * Why the rules hold, for two inputs x, x' of the region:
 *   sequence, mix  constants multiply, regions follow each other; the triangle inequality
 *   linear         |W e| <= ||W|| |e|.  position: a shift.  pointwise: secant slopes in [lo, hi], f(z)/z in [0, 1]
 *   norm layers    J = diag(g) C (I - z z^T/d) / sd, 0 <= I - z z^T/d <= I, sd >= sqrt(eps);
 *                  |z| <= min(sqrt d, X/sd(X))
 *   mlp            f(h) - f(h') = D (h - h'), D diagonal in [lo, hi], so keep I + mix c W_out D W_in is (keep I + mix c
 *                  m W_out W_in) + mix c W_out T^-1 (D - m) T W_in.  lo = 1 - hi for GELU and SiLU, as f'(-z) = 1 -
 *                  f'(z), and [0, 1] for ReLU and tanh: m = 1/2 exactly, r = hi - 1/2, and joint and joint_half are
 *                  about the same matrix.
 * A number may be "inf", which is above everything; NaN, negative numbers and other words are refused. */
#include <string.h>

#include "check/ck.h"

ck_fields ck_open(ck *c, const ck_node *n, const cJSON *json, const char *rule, const char *part)
{
    ck_fields f = { c, n->path, part, json, 0 };
    if (strcmp(ck_word(&f, "rule"), rule) != 0) ck_fail(c, "%s (%s): its rule must be %s", n->path, part, rule);
    return f;
}

const cJSON *ck_take(ck_fields *f, const char *key)
{
    const cJSON *found = ck_get(f->json, key);
    f->taken += found != NULL;
    return found;
}

const char *ck_word(ck_fields *f, const char *key)
{
    const cJSON *found = ck_take(f, key);
    return cJSON_IsString(found) ? found->valuestring : found ? "?" : "";
}

void ck_close(ck_fields *f)
{
    if (f->taken != cJSON_GetArraySize(f->json))
        ck_fail(f->c, "%s (%s): it has a field that the rule does not know", f->path, f->part);
}

double ck_stated(ck_fields *f, const char *key)
{
    const cJSON *j = ck_take(f, key);
    const bool inf = cJSON_IsString(j) && strcmp(j->valuestring, "inf") == 0;
    const double v = inf ? INFINITY : j ? cJSON_GetNumberValue(j) : 0;
    if (!(v >= 0) || isinf(v) != inf) ck_fail(f->c, "%s (%s): %s is not a number >= 0", f->path, f->part, key);
    return v;
}

/* The one place where a number is accepted. */
static double accept(ck_fields *f, const char *key, double stated, double proved)
{
    if (!(stated >= proved))
        ck_fail(f->c, "%s (%s): %s is stated as %.17g, but only %.17g can be proved", f->path, f->part, key, stated,
                proved);
    f->c->out->numbers += ck_get(f->json, key) != NULL;
    return stated;
}

double ck_claim(ck_fields *f, const char *key, double proved) { return accept(f, key, ck_stated(f, key), proved); }

double ck_claim_norm(ck_fields *f, const char *key, const ck_gram *g)
{
    const double stated = ck_stated(f, key);
    return accept(f, key, stated, ck_gram_norm(f->c, g, stated));
}

double ck_claim_view(ck_fields *f, const char *key, ck_view w, double err)
{
    if (w.rows < w.cols) w = ck_turn(w);
    ck_gram *g = ck_gram_new(f->c, w.cols);
    ck_gram_add(f->c, &g, (const double[]){ 1 }, 1, w, err);
    return ck_claim_norm(f, key, g);
}

double ck_slope(const ck *c)
{
    static const double hi[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1 };
    const double h = hi[(int)c->r.activation];
    return h == 1 ? 1 : ck_next(h); /* the decimals are the true maxima to 17 digits */
}

/* ||diag(g) C|| <= mu?  Without C (RMSNorm) it is max |g|.  With C: let l <= mu^2.  If all g_i^2 <= l, yes.  If g_1^2
 * > l alone and the others are < l, then for sum y_i = 0 Cauchy-Schwarz gives y_1^2 = (sum' y_i)^2 <= sum' (l - g_i^2)
 * y_i^2 * sum' 1/(l - g_i^2), so (g_1^2 - l) sum' 1/(l - g_i^2) <= 1 makes sum g_i^2 y_i^2 <= l |y|^2.  Squares of
 * float32 numbers are exact. */
static bool norm_holds(const ck_view *g, bool centred, double mu)
{
    const double l = ck_below(mu * mu);
    double most = 0, sum = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < g->rows; i++)
        if (!(fabs(ck_at(g, i, 0)) <= most) && !isnan(most)) most = fabs(ck_at(g, at = i, 0));
    if (most <= mu || !centred) return most <= mu;
    for (int64_t i = 0; i < g->rows; i++) {
        const double gap = ck_sub_down(l, ck_at(g, i, 0) * ck_at(g, i, 0));
        if (i != at && !(gap > 0)) return false;
        if (i != at) sum = ck_add(sum, ck_div(1, gap));
    }
    return ck_mul(-ck_sub_down(l, most * most), sum) <= 1;
}

static void norm_layer(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    const double d = f->c->r.width, eps = f->c->r.norm_eps, norm = ck_stated(f, "norm");
    accept(f, "norm", norm, norm_holds(&n->w[0], f->c->r.norm != RMSNORM, norm) ? norm : ck_longest(n->w[0]));
    if (n->kind == CENTER) {
        *lip = ck_mul((float)(d / (d - 1)), norm);
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
    const int64_t hidden = n->w[0].rows, d = n->w[0].cols;
    const double keep = n->mixed ? c->keep : 0, mix = n->mixed ? c->mix : 1, mc = mix * c->factor; /* exact */
    double *p = ck_room(c, d * d, sizeof *p), *a = ck_room(c, 2 * hidden * d, sizeof *a), *b = a + hidden * d;
    scaled(f, n, a, b);
    const double in = ck_claim_view(f, "scaled_in", ck_of(a, hidden, d), 0);
    const double to = ck_claim_view(f, "scaled_out", ck_of(b, hidden, d), 0);
    n->norm_out = ck_claim_view(f, "norm_out", n->w[1], 0);
    /* keep I + mc/2 W_out W_in; two more roundings of every entry */
    const double gamma = ck_product(c, p, ck_turn(n->w[1]), n->w[0]) + ck_gamma(4), hi = ck_slope(c);
    for (int64_t i = 0; i < d * d; i++) p[i] = mc / 2 * p[i] + (i % (d + 1) == 0 ? keep : 0);
    const double size = ck_add(ck_mul(mc, ck_mul(ck_length(n->w[0]), ck_length(n->w[1]))), ck_mul(keep, (double)d));
    const double err = ck_mul(gamma, size);
    const double joint = ck_claim_view(f, "joint", ck_of(p, d, d), err);
    const double joint_half = ck_claim_view(f, "joint_half", ck_of(p, d, d), err);
    const double product = ck_mul(mc, ck_mul(in, to)), bias_in = ck_claim(f, "bias_in", ck_length(n->b[0]));
    *lip = fmin(ck_add(joint, ck_mul(ck_add(hi, -0.5), product)), ck_add(keep, ck_mul(hi, product)));
    *out = ck_mul(x, fmin(ck_add(joint_half, product / 2), ck_add(keep, product)));
    const double shift = ck_add(ck_mul(c->factor, ck_mul(n->norm_out, bias_in)),
                                ck_claim(f, "bias_out", ck_length(n->b[1])));
    *out = ck_add(*out, ck_mul(mix, shift));
}

/* Does it answer for the mix around it?  An mlp may if it is the only part of the sequence inside, dropout apart. */
static bool answers_for_mix(ck_fields *f, const ck_node *n)
{
    const ck_node *up = n->kind == MLP ? n->parent->parent : n->parent;
    for (const ck_node *k = n->kind == MLP ? n->parent->first : NULL; k; k = k->next)
        if (k != n && k->kind != DROP) return false;
    const char *scope = cJSON_GetStringValue(ck_get(f->json, "scope"));
    return (n->kind == MLP || n->kind == SEQUENCE) && up && up->kind == MIX && scope && strcmp(scope, "mix") == 0 &&
           ++f->taken;
}

/* Sequence and mix: the parts in order; and keep x + mix f(x), unless the part inside has answered for that already. */
static void chain(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    ck *c = f->c;
    const cJSON *of = ck_take(f, "of"), *json = cJSON_IsArray(of) ? of->child : NULL;
    bool answered = false;
    if (n->kind == MIX && (ck_claim(f, "keep", c->keep) != c->keep || ck_claim(f, "mix", c->mix) != c->mix))
        ck_fail(c, "%s (mix): keep and mix must be %.17g and %.17g", n->path, c->keep, c->mix);
    *lip = 1;
    *out = x;
    for (ck_node *k = n->first; k; k = k->next) {
        const char *name = cJSON_GetStringValue(ck_get(json, "name"));
        k->in = k->out = *out, k->lip = 1;
        if (k->kind == DROP && (!name || strcmp(name, k->name) != 0)) continue; /* the identity may be left out */
        if (!json) ck_fail(c, "%s (%s): its part %s is missing", n->path, f->part, k->path);
        ck_confirm(c, k, json, *out);
        json = json->next;
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
    *lip = n->kind == LINEAR      ? ck_claim_view(f, "norm", n->w[0], 0)
           : n->kind == SCALE     ? (float)f->c->r.logit_scale
           : n->kind == POINTWISE ? ck_mul(f->c->factor, ck_slope(f->c))
                                  : 1;
    *out = ck_mul(n->kind == POINTWISE ? f->c->factor : *lip, x);
    if (n->kind == LINEAR) *out = ck_add(*out, ck_claim(f, "bias", ck_length(n->b[0])));
    if (n->kind == POSITION) *out = ck_add(x, ck_claim(f, "longest", ck_longest(n->w[0])));
}

/* What the node's rule makes of its numbers. */
static void rule(ck_fields *f, ck_node *n, double x, double *lip, double *out)
{
    if (n->kind <= MIX) chain(f, n, x, lip, out);
    if (n->kind >= LINEAR && n->kind <= DROP) simple(f, n, x, lip, out);
    if (n->kind == NORM || n->kind == CENTER) norm_layer(f, n, x, lip, out);
    if (n->kind == MLP) mlp(f, n, x, lip, out);
    if (n->kind == ATTENTION) ck_attention(f, n, x, lip, out);
}

void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x)
{
    static const char *const rules[] = { "sequence", "mix",       "linear",     "position", "scale",    "pointwise",
                                         "dropout",  "layernorm", "centernorm", "mlp",      "attention" };
    const struct ck_block *mark = c->blocks;
    ck_fields f = ck_open(c, n, json, rules[n->kind], rules[n->kind]);
    double lip = INFINITY, out = INFINITY;
    if (strcmp(ck_word(&f, "name"), n->name) != 0)
        ck_fail(c, "%s (%s): it must be called '%s'", n->path, f.part, n->name);
    n->in = x;
    n->mixed = answers_for_mix(&f, n);
    /* without numbers, and with lip and out infinite, it claims nothing */
    const bool silent = cJSON_GetArraySize(json) == f.taken + 2 && cJSON_IsString(ck_get(json, "lip")) && n->kind > MIX;
    if (!silent) rule(&f, n, x, &lip, &out);
    n->lip = ck_claim(&f, "lip", lip);
    n->out = ck_claim(&f, "out", out);
    ck_close(&f);
    ck_give_back(c, mark);
}
