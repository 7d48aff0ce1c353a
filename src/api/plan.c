/* Which caps meet a Lipschitz budget: those, the recipe that realises them, and what published formulas say. */
#include "train/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"

typedef struct {
    taut_budget b;
    int64_t mlp, vocab;
    double target, embed, position, cap;
    const char *attention;
    bool l2;
} question;

static const char *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh" };

/* The index of a word in a list, 0 where none is given. */
static taut_status choose(int *index, const char *name, const char *word, const char *const *words, int count)
{
    char all[128] = "";
    *index = 0;
    for (int i = 0; word && i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            *index = i;
            return TAUT_OK;
        }
        strncat(all, " ", sizeof all - strlen(all) - 1);
        strncat(all, words[i], sizeof all - strlen(all) - 1);
    }
    return word ? taut_fail(TAUT_BAD_CALL, "%s %s is not one of%s", name, word, all) : TAUT_OK;
}

/* A number in [lo, hi], the default where 0 is given; where lo is 0, a negative number stands for it. */
static double number(taut_status *s, const char *name, double given, double def, double lo, double hi)
{
    const double v = given == 0 ? def : lo == 0 && given < 0 ? 0 : given;
    if (!*s && !(v >= lo && v <= hi)) *s = taut_fail(TAUT_BAD_CALL, "%s %g is not from %g to %g", name, given, lo, hi);
    return v;
}

static int64_t whole(taut_status *s, const char *name, int64_t given, int64_t def, int64_t hi)
{
    if (!*s && (given < 0 || given > hi))
        *s = taut_fail(TAUT_BAD_CALL, "%s %lld is not from 1 to %lld", name, (long long)given, (long long)hi);
    return given ? given : def;
}

static taut_status ask_words(question *q, const taut_plan_options *o)
{
    static const char *const attentions[] = { "inv_width", "inv_head", "inv_sqrt_head" };
    static const char *const units[] = { "rms", "l2" };
    const double d = (double)q->b.width, head = d / (double)q->b.heads;
    const double scales[] = { 1 / d, 1 / head, 1 / sqrt(head) };
    int scale = 0, curve = 0, unit = 0;
    taut_status s = choose(&scale, "attention", o->attention, attentions, 3);
    if (!s) s = choose(&curve, "activation", o->activation, curves, 5);
    if (!s) s = choose(&unit, "units", o->units, units, 2);
    q->attention = attentions[scale];
    q->b.scale = scales[scale];
    q->b.curve = (taut_curve)curve;
    q->l2 = unit == 1;
    return s;
}

static taut_status ask(question *q, const taut_plan_options *o)
{
    taut_status s = TAUT_OK;
    taut_budget *b = &q->b;
    if (!(o->target >= 1e-300 && o->target <= 1e300))
        return taut_fail(TAUT_BAD_CALL, "target %g is not a number from 1e-300 to 1e300", o->target);
    q->target = o->target;
    b->depth = whole(&s, "depth", o->depth, 3, 128);
    b->width = whole(&s, "width", o->width, 256, 1 << 24);
    b->heads = whole(&s, "heads", o->heads, 4, 4096);
    q->mlp = whole(&s, "mlp", o->mlp, 4 * b->width, 1 << 24);
    q->vocab = whole(&s, "vocab", o->vocab, 0, 1 << 24);
    b->out = number(&s, "out", o->out, 1 / (3 * sqrt((double)b->heads)), 0, 1e6);
    b->factor = number(&s, "factor", o->factor, 1 / 1.1289, 1e-6, 1e6);
    b->alpha = number(&s, "alpha", o->alpha, 0, 0, 1);
    b->rope = o->rope != 0;
    b->head = number(&s, "head", o->head, 1, 1e-9, 1e9);
    b->logit = number(&s, "logit", o->logit, 1, 1e-6, 1e6);
    b->qk = number(&s, "qk", o->qk, 1, 1e-6, 1e6);
    q->embed = number(&s, "embed", o->embed, b->rope ? 1 : 0.75, 1e-9, 1e9);
    q->position = b->rope ? 0 : number(&s, "position", o->position, 0.25, 0, 1e9);
    b->size = q->embed + q->position;
    if (!s && b->width % b->heads)
        s = taut_fail(TAUT_BAD_CALL, "width %lld is not a multiple of heads %lld", (long long)b->width,
                      (long long)b->heads);
    if (!s) s = ask_words(q, o);
    if (!s && q->l2 && q->vocab == 0) s = taut_fail(TAUT_BAD_CALL, "units l2 needs vocab, the number of logits");
    return s;
}

/* From the units that were asked for to RMS, rounded to the safe side. */
static double rms_target(const question *q)
{
    return q->l2 ? q->target * sqrt((double)q->b.width / (double)q->vocab) * (1 - 0x1p-50) : q->target;
}

static taut_up up_in_units(const question *q, taut_up rms)
{
    return q->l2 ? up_mul(rms, up_sqrt(up_div(up_int(q->vocab), lo_exact((double)q->b.width)))) : rms;
}

typedef struct {
    char text[1536];
    size_t len;
} recipe;

static void line(recipe *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(r->text + r->len, sizeof r->text - r->len, format, args);
    va_end(args);
    r->len += (size_t)n < sizeof r->text - r->len ? (size_t)n : sizeof r->text - r->len - 1;
}

static void key(recipe *r, const char *name, double value)
{
    char text[32];
    line(r, "%s = %s\n", name, taut_number_print(text, value));
}

static void add_recipe(cJSON *o, const question *q)
{
    const taut_budget *b = &q->b;
    recipe r = { "", 0 };
    line(&r, "[model]\nwidth = %lld\ndepth = %lld\nheads = %lld\nmlp = %lld\nnorm = none\nresidual = convex\n",
         (long long)b->width, (long long)b->depth, (long long)b->heads, (long long)q->mlp);
    line(&r, "bias = false\ntied = false\npositions = %s\nattention_scale = %s\n",
         b->rope            ? "rope"
         : q->position == 0 ? "none"
                            : "learned",
         q->attention);
    key(&r, "attention_out", b->out);
    line(&r, "activation = %s\n", curves[b->curve]);
    key(&r, "activation_factor", b->factor);
    if (b->alpha > 0) key(&r, "residual_alpha", b->alpha);
    if (b->logit != 1) key(&r, "logit_scale", b->logit);
    line(&r, "init = orthogonal\nzero_out = true\n\n[train]\noptimiser = muon\n\n[constrain]\nmethod = softcap\n");
    key(&r, "target_lipschitz", q->target);
    line(&r, "norm = tokens\nunits = %s\n", q->l2 ? "l2" : "rms");
    key(&r, "cap", q->cap);
    if (b->qk != 1) key(&r, "cap_qk", b->qk * q->cap);
    key(&r, "cap_head", b->head);
    key(&r, "embed", q->embed);
    if (q->position > 0) key(&r, "position", q->position);
    cJSON_AddStringToObject(o, "recipe", r.text);
}

static cJSON *plan_json(const question *q)
{
    const taut_budget *b = &q->b;
    const taut_budget_bound n = up_budget(b, q->cap);
    const double target = rms_target(q);
    cJSON *o = cJSON_CreateObject(), *caps = cJSON_AddObjectToObject(o, "caps");
    static const char *const names[] = { "attn.q", "attn.k", "attn.v", "attn.o", "mlp.in", "mlp.out", "head" };
    for (int i = 0; i < 7; i++)
        cJSON_AddNumberToObject(caps, names[i], i < 2 ? b->qk * q->cap : i == 6 ? b->head : q->cap);
    cJSON_AddNumberToObject(o, "cap", q->cap);
    cJSON_AddNumberToObject(o, "target", q->target);
    cJSON_AddStringToObject(o, "units", q->l2 ? "l2" : "rms");
    cJSON_AddStringToObject(o, "norm", "tokens");
    cJSON_AddNumberToObject(o, "lipschitz", up_in_units(q, n.lip).v);
    cJSON_AddNumberToObject(o, "attention_scale", b->scale);
    cJSON_AddNumberToObject(o, "attention_out", b->out);
    cJSON_AddNumberToObject(o, "embed", q->embed);
    cJSON_AddNumberToObject(o, "position", q->position);
    cJSON_AddNumberToObject(o, "enters_rms", b->size);
    cJSON_AddNumberToObject(o, "token_rms", n.size.v);
    cJSON_AddNumberToObject(o, "mlp_over_width", (double)q->mlp / (double)b->width);
    cJSON_AddNumberToObject(o, "printed_code_cap", printed_cap(printed_by_code, b, target));
    cJSON_AddNumberToObject(o, "printed_theorem_cap", printed_cap(printed_by_theorem, b, target));
    add_recipe(o, q);
    return o;
}

taut_status taut_plan_caps(char **json, const taut_plan_options *options)
{
    taut_plan_options o;
    question q = { 0 };
    NEED(json);
    *json = NULL;
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = ask(&q, &o);
    if (!s) s = taut_budget_solve(&q.cap, &q.b, rms_target(&q));
    return taut_json_out(json, s ? NULL : plan_json(&q), s);
}

/* ---- the table of caps ---- */

typedef struct {
    const char *name;
    taut_printed printed; /* NULL: ours */
    double tau, out;      /* scale * width of a head */
    bool rope;
} row;

static const row table[] = {
    { "code of the paper (printed, unsound)", printed_by_code, 1, 1. / 3, true },
    { "theorem D.1 (printed, unsound)", printed_by_theorem, 1, 1. / 3, true },
    { "scale 1/d_head, out 1/3", NULL, 1, 1. / 3, false },
    { "scale 1/d_head, out 1/3, RoPE", NULL, 1, 1. / 3, true },
    { "scale 1/d, out 1/3", NULL, 0.25, 1. / 3, false },
    { "scale 1/d, out 1/3, RoPE", NULL, 0.25, 1. / 3, true },
    { "scale 1/d, out 1/6, RoPE", NULL, 0.25, 1. / 6, true },
    { "scale 1/d_head, out 1/10, RoPE", NULL, 1, 0.1, true },
};
enum { ROWS = sizeof table / sizeof *table };

taut_status taut_plan_table(char **json)
{
    static const double targets[] = { 2, 6, 10 };
    NEED(json);
    cJSON *all = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(all, "table");
    for (int i = 0; i < ROWS; i++) {
        const row *r = &table[i];
        const taut_budget b = { .depth = 3,
                                .width = 256,
                                .heads = 4,
                                .scale = r->tau / 64,
                                .out = r->out,
                                .factor = 1 / 1.1289,
                                .rope = r->rope,
                                .size = 1,
                                .head = 1,
                                .logit = 1,
                                .qk = 1 };
        double caps[3], at[2];
        for (int t = 0; t < 3; t++)
            caps[t] = r->printed ? printed_cap(r->printed, &b, targets[t]) : est_budget_cap(&b, targets[t]);
        for (int c = 0; c < 2; c++) at[c] = r->printed ? r->printed(&b, c + 1) : up_budget(&b, c + 1).lip.v;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", r->name);
        cJSON_AddBoolToObject(o, "sound", !r->printed);
        cJSON_AddItemToObject(o, "caps", cJSON_CreateDoubleArray(caps, 3));
        cJSON_AddItemToObject(o, "lipschitz", cJSON_CreateDoubleArray(at, 2));
        cJSON_AddItemToArray(list, o);
    }
    return taut_json_out(json, all, TAUT_OK);
}
