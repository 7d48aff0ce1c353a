/* The rules of docs/certificate.md: the list of them all, and those that have parts.  Every stated number must be at least the
 * true quantity, and every stated lip and out at least what the rule makes of the stated numbers.  X is the size that enters; a
 * node hands on its stated out.
 *   sequence   constants multiply, and the out of a part is the X of the next one.  mix: the triangle inequality.
 *              parts: two modules, each on tokens of its own.  ask: x + f(x) in the first tokens
 * The others have files of their own, each of which says why they hold. */
#include <string.h>

#include "check/ck.h"

bool ck_is(const ck_node *n, const char *rule) { return strcmp(n->rule->name, rule) == 0; }

bool ck_has_parts(const ck_node *n) { return !n->rule->run || n->rule->run == ck_run_plash; }

double ck_constant(const ck_node *n, const char *key)
{
    for (int i = 0; i < CK_CONSTANTS && n->rule->constants[i]; i++)
        if (strcmp(n->rule->constants[i] + (strchr("#?~+", *n->rule->constants[i]) != NULL), key) == 0) return n->k[i];
    return 0;
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

#define HEADS "#heads", "scale", "out", "?causal", "?alibi", "~rope"
#define WEIGHTS \
    { "q.weight", "dd" }, { "k.weight", "dd" }, { "v.weight", "dd" }, { "o.weight", "dd" }
#define BIASES \
    { "?q.bias", "d" }, { "?k.bias", "d" }, { "?v.bias", "d" }, { "?o.bias", "d" }
/* clang-format off */
#define DEGREE { "degree*.weight", "oS" }
const ck_rule ck_rules[] = {
    { "sequence", sequence, NULL, NULL, { 0 }, { { 0 } } },
    { "mix", mix, NULL, NULL, { "keep", "mix" }, { { 0 } } },
    { "parts", sequence, NULL, NULL, { "#first" }, { { 0 } } },
    { "ask", mix, NULL, NULL, { "#first" }, { { 0 } } },
    { "tokens", ck_simple, ck_not_run, ck_some_fit, { "+first", "#count" }, { { 0 } } },
    { "neighbours", ck_simple, ck_not_run, ck_near_fits, { "#cols" }, { { 0 } } },
    { "halve", ck_simple, ck_not_run, NULL, { 0 }, { { 0 } } },
    { "sinusoid", ck_simple, ck_not_run, NULL, { 0 }, { { 0 } } },
    { "linear", ck_simple, ck_run_simple, NULL, { "?tied" }, { { "weight", "od" }, { "?bias", "o" } } },
    { "position", ck_simple, ck_run_simple, NULL, { 0 }, { { "weight", "td" } } },
    { "scale", ck_simple, ck_run_simple, NULL, { "factor" }, { { 0 } } },
    { "maxmin", ck_simple, ck_run_simple, ck_pairs, { "#group" }, { { 0 } } },
    { "channel", ck_simple, ck_run_simple, NULL, { 0 }, { { "weight", "d" } } },
    { "centernorm", ck_simple, ck_run_simple, NULL, { "factor" }, { { "weight", "d" }, { "?bias", "d" } } },
    { "layernorm", ck_norm_layer, ck_run_simple, NULL, { "eps", "?centred" }, { { "weight", "d" }, { "?bias", "d" } } },
    { "pointwise", ck_simple, ck_run_simple, NULL, { "curve", "factor" }, { { 0 } } },
    { "mlp", ck_mlp, ck_run_mlp, NULL, { "curve", "factor" },
      { { "in.weight", "hd" }, { "?in.bias", "h" }, { "out.weight", "oh" }, { "?out.bias", "o" } } },
    { "potential", ck_potential, ck_run_potential, NULL, { "curve" },
      { { "weight", "hd" }, { "?bias", "h" }, { "scale", "1" } } },
    { "sll", ck_potential, ck_run_potential, NULL, { "curve" }, { { "weight", "hd" }, { "?bias", "h" }, { "log_q", "h" } } },
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
    { "pixels", ck_pixels, ck_run_pixels, ck_image_fits, { "#height", "#width", "#patch_height", "#patch_width" },
      { { "=scale", "c" }, { "=shift", "c" } } },
    { "prefix", ck_simple, ck_run_prefix, NULL, { 0 }, { { "weight", "d" } } },
    { "pool", ck_simple, ck_run_pool, NULL, { "?mean" }, { { 0 } } },
    { "l2pool", ck_simple, ck_run_l2pool, NULL, { 0 }, { { 0 } } },
    { "concat", ck_simple, ck_run_concat, NULL, { 0 }, { { 0 } } },
    { NULL, NULL, NULL, NULL, { 0 }, { { 0 } } },
};
