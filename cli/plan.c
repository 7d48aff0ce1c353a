/* Which caps meet a Lipschitz budget?  Prints them, the recipe that realises them, and what published formulas say. */
#include "train/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "bound/print.h"
#include "cli.h"

typedef struct {
    taut_budget b;
    int64_t mlp, vocab;
    double target, embed, position, cap;
    const char *attention, *activation;
    bool l2;
} question;

static const char *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh" };

/* The index of a word in a list; one clear line and exit when it is not there. */
static int choose(const cli_args *a, const char *name, const char *def, const char *const *words, int count)
{
    const char *text = cli_text(a, name, def);
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    fprintf(stderr, "taut plan: %s %s is not one of", name, text);
    for (int i = 0; i < count; i++) fprintf(stderr, " %s", words[i]);
    fputc('\n', stderr);
    exit(EXIT_BAD);
}

static question ask(const cli_args *a)
{
    static const char *const attentions[] = { "inv_sqrt_head", "inv_head", "inv_width" };
    static const char *const units[] = { "rms", "l2" }, *const norms[] = { "none" };
    question q = { .target = cli_real(a, "--target", 0, 1e-300, 1e300) };
    taut_budget *b = &q.b;
    b->depth = cli_int(a, "--depth", 3, 1, 128);
    b->width = cli_int(a, "--width", 256, 1, 1 << 24);
    b->heads = cli_int(a, "--heads", 4, 1, 4096);
    const double d = (double)b->width, head = d / (double)b->heads;
    const double scales[] = { 1 / sqrt(head), 1 / head, 1 / d };
    const int scale = choose(a, "--attention", "inv_width", attentions, 3);
    q.attention = attentions[scale], b->scale = scales[scale];
    b->out = cli_real(a, "--out-scale", 1 / (3 * sqrt((double)b->heads)), 0, 1e6);
    b->curve = (taut_curve)choose(a, "--activation", "gelu", curves, 5);
    b->factor = cli_real(a, "--activation-factor", 1 / 1.1289, 1e-6, 1e6);
    b->alpha = cli_real(a, "--alpha", 0, 0, 1);
    b->rope = cli_flag(a, "--rope");
    b->head = cli_real(a, "--head-cap", 1, 1e-9, 1e9);
    b->logit = cli_real(a, "--logit-scale", 1, 1e-6, 1e6);
    b->qk = cli_real(a, "--qk", 1, 1e-6, 1e6);
    q.embed = cli_real(a, "--embed", b->rope ? 1 : 0.75, 1e-9, 1e9);
    q.position = b->rope ? 0 : cli_real(a, "--position", 0.25, 0, 1e9);
    b->size = q.embed + q.position;
    q.mlp = cli_int(a, "--mlp", 4 * b->width, 1, 1 << 24);
    q.vocab = cli_int(a, "--vocab", 0, 0, 1 << 24);
    q.l2 = choose(a, "--units", "rms", units, 2) == 1;
    (void)choose(a, "--norm", "none", norms, 1);
    return q;
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

/* ---- printing ---- */

static void key(const char *name, double value)
{
    char text[32];
    taut_number_print(text, value);
    printf("%s = %s\n", name, text);
}

static void print_recipe(const question *q)
{
    const taut_budget *b = &q->b;
    printf(
        "[model]\nwidth = %lld\ndepth = %lld\nheads = %lld\nmlp = %lld\nnorm = none\nresidual = convex\nbias = false\n"
        "tied = false\npositions = %s\nattention_scale = %s\n",
        (long long)b->width, (long long)b->depth, (long long)b->heads, (long long)q->mlp,
        b->rope            ? "rope"
        : q->position == 0 ? "none"
                           : "learned",
        q->attention);
    key("attention_out", b->out);
    printf("activation = %s\n", curves[b->curve]);
    key("activation_factor", b->factor);
    if (b->alpha > 0) key("residual_alpha", b->alpha);
    if (b->logit != 1) key("logit_scale", b->logit);
    printf("init = orthogonal\nzero_out = true\n\n[train]\noptimiser = muon\n\n[constrain]\nmethod = softcap\n");
    key("target_lipschitz", q->target);
    printf("norm = tokens\nunits = %s\n", q->l2 ? "l2" : "rms");
    key("cap", q->cap);
    if (b->qk != 1) key("cap_qk", b->qk * q->cap);
    key("cap_head", b->head);
    key("embed", q->embed);
    if (q->position > 0) key("position", q->position);
}

/* A cap is what the proof assumes: never printed above what it is.  wide: its factor from RMS->RMS to a spectral norm. */
static void print_cap(const char *name, double cap, double wide)
{
    char rms[32], spectral[32];
    printf("#   %-10s %s (%s)\n", name, taut_number_down(rms, cap), taut_number_down(spectral, cap * wide));
}

static void print_plan(const question *q)
{
    const taut_budget *b = &q->b;
    const taut_budget_bound n = up_budget(b, q->cap);
    const double grow = sqrt((double)q->mlp / (double)b->width), target = rms_target(q);
    char lip[32], asked[32], from[32], size[32];
    printf("# L <= %s in %s units, by the largest token: proved %s for every network under these caps,\n"
           "# for tokens that enter the first block with an RMS of at most %s (they leave the last with at most %s)\n",
           up_text(asked, (taut_up){ q->target }), q->l2 ? "l2" : "RMS", up_text(lip, up_in_units(q, n.lip)),
           taut_number_down(from, b->size), up_text(size, n.size));
    printf("# caps (RMS->RMS; as spectral norms in brackets):\n");
    print_cap("q k", b->qk * q->cap, 1);
    print_cap("v o", q->cap, 1);
    print_cap("mlp.in", q->cap, grow);
    print_cap("mlp.out", q->cap, 1 / grow);
    printf("#   head       %s\n", taut_number_down(size, b->head));
    printf("# attention scale %.9g, output factor %.9g\n", b->scale, b->out);
    printf("# printed, unsound: code of the enforced paper %.4f, its theorem D.1 %.4f\n\n",
           printed_cap(printed_by_code, b, target), printed_cap(printed_by_theorem, b, target));
    print_recipe(q);
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
    cJSON_AddNumberToObject(o, "token_rms", n.size.v);
    cJSON_AddNumberToObject(o, "printed_code_cap", printed_cap(printed_by_code, b, target));
    cJSON_AddNumberToObject(o, "printed_theorem_cap", printed_cap(printed_by_theorem, b, target));
    return o;
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

/* Caps are assumed, constants concluded. */
static void print_row(const char *name, const double caps[3], const double at[2])
{
    char text[32];
    printf("%-38s", name);
    for (int t = 0; t < 3; t++) printf(" %9s", taut_number_down(text, caps[t]));
    for (int c = 0; c < 2; c++) printf(" %10s", taut_number_up(text, at[c]));
    printf("\n");
}

static int print_table(bool json)
{
    static const double targets[] = { 2, 6, 10 };
    cJSON *list = cJSON_CreateArray();
    if (!json)
        printf("Depth 3, width 256, 4 heads, GELU/1.1289, blocks only: the cap of every matrix for which L is\n"
               "%-38s %9s %9s %9s %10s %10s\n",
               "", "2", "6", "10", "L(cap 1)", "L(cap 2)");
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
        if (!json) print_row(r->name, caps, at);
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", r->name);
        cJSON_AddBoolToObject(o, "sound", !r->printed);
        cJSON_AddItemToObject(o, "caps", cJSON_CreateDoubleArray(caps, 3));
        cJSON_AddItemToObject(o, "lipschitz", cJSON_CreateDoubleArray(at, 2));
        cJSON_AddItemToArray(list, o);
    }
    if (!json) {
        cJSON_Delete(list);
        return EXIT_DONE;
    }
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "table", list);
    return cli_json(o);
}

static int run(const cli_args *a)
{
    if (cli_flag(a, "--table")) return print_table(cli_flag(a, "--json"));
    if (!cli_flag(a, "--target")) return cli_refuse(a, "missing --target (see taut plan --help)");
    question q = ask(a);
    if (q.b.width % q.b.heads)
        return cli_refuse(a, "--width %lld is not a multiple of --heads %lld", (long long)q.b.width,
                          (long long)q.b.heads);
    if (q.l2 && q.vocab == 0) return cli_refuse(a, "--units l2 needs --vocab, the number of logits");
    if (taut_budget_solve(&q.cap, &q.b, rms_target(&q))) return cli_fail(a);
    if (cli_flag(a, "--json")) return cli_json(plan_json(&q));
    print_plan(&q);
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--target", "L", "the Lipschitz constant to stay at or under" },
    { "--depth", "N", "blocks (3)" },
    { "--width", "D", "features of a token (256)" },
    { "--heads", "H", "attention heads (4)" },
    { "--mlp", "M", "hidden units of an MLP (4 D)" },
    { "--attention", "S", "scale of the logits: inv_width, inv_head, inv_sqrt_head" },
    { "--out-scale", "C", "factor of the attention's output (1/(3 sqrt H))" },
    { "--rope", NULL, "rotary positions instead of learned ones" },
    { "--activation", "F", "gelu, gelu_tanh, relu, silu, tanh" },
    { "--activation-factor", "C", "times the activation (1/1.1289)" },
    { "--alpha", "A", "residuals (1-A) x + A f(x); 0: 1/(2 N)" },
    { "--embed", "C", "largest RMS of a token's embedding (1 with --rope, 0.75)" },
    { "--position", "C", "largest RMS of a learned position (0.25)" },
    { "--qk", "R", "caps of W_Q and W_K as a multiple of the others' (1)" },
    { "--head-cap", "C", "cap of the head (1)" },
    { "--logit-scale", "S", "times the logits (1)" },
    { "--norm", "none", "norm layers: none; the others have no constant that caps could set" },
    { "--units", "U", "rms or l2; l2 needs --vocab" },
    { "--vocab", "V", "number of logits" },
    { "--table", NULL, "the published caps beside ours, depth 3, width 256, 4 heads" },
    { NULL, NULL, NULL },
};

const cli_command cli_plan = {
    "plan",
    "",
    "caps that provably meet a Lipschitz budget",
    "taut plan --target 2 --depth 3 --width 256 --heads 4 --rope",
    0,
    0,
    options,
    run,
};
