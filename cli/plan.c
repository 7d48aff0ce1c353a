/* Which caps meet a Lipschitz budget?  Prints them, the recipe that realises them, and what published formulas say. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* A cap is what the proof assumes: never printed above what it is.  wide: its factor from RMS->RMS to a spectral norm. */
static void print_cap(const char *name, double cap, double wide)
{
    char rms[32], spectral[32];
    printf("#   %-10s %s (%s)\n", name, taut_number_down(rms, cap), taut_number_down(spectral, cap * wide));
}

static void print_plan(const cJSON *o)
{
    const cJSON *caps = cJSON_GetObjectItem(o, "caps");
    const double grow = sqrt(cli_number(o, "mlp_over_width")), cap = cli_number(o, "cap");
    char lip[32], asked[32], from[32], size[32];
    printf("# L <= %s in %s units, by the largest token: proved %s for every network under these caps,\n"
           "# for tokens that enter the first block with an RMS of at most %s (they leave the last with at most %s)\n",
           cli_up(asked, o, "target"), strcmp(cli_word(o, "units"), "l2") == 0 ? "l2" : "RMS",
           cli_up(lip, o, "lipschitz"), cli_down(from, o, "enters_rms"), cli_up(size, o, "token_rms"));
    printf("# caps (RMS->RMS; as spectral norms in brackets):\n");
    print_cap("q k", cli_number(caps, "attn.q"), 1);
    print_cap("v o", cap, 1);
    print_cap("mlp.in", cap, grow);
    print_cap("mlp.out", cap, 1 / grow);
    printf("#   head       %s\n", cli_down(size, caps, "head"));
    printf("# attention scale %.9g, output factor %.9g\n", cli_number(o, "attention_scale"),
           cli_number(o, "attention_out"));
    printf("# printed, unsound: code of the enforced paper %.4f, its theorem D.1 %.4f\n\n",
           cli_number(o, "printed_code_cap"), cli_number(o, "printed_theorem_cap"));
    fputs(cli_word(o, "recipe"), stdout);
}

/* Caps are assumed, constants concluded. */
static void print_table(const cJSON *o)
{
    const cJSON *row, *v;
    char text[32];
    printf("Depth 3, width 256, 4 heads, GELU/1.1289, blocks only: the cap of every matrix for which L is\n"
           "%-38s %9s %9s %9s %10s %10s\n",
           "", "2", "6", "10", "L(cap 1)", "L(cap 2)");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "table"))
    {
        printf("%-38s", cli_word(row, "name"));
        cJSON_ArrayForEach(v, cJSON_GetObjectItem(row, "caps")) printf(" %9s", taut_number_down(text, v->valuedouble));
        cJSON_ArrayForEach(v, cJSON_GetObjectItem(row, "lipschitz"))
            printf(" %10s", taut_number_up(text, cJSON_IsNumber(v) ? v->valuedouble : INFINITY));
        printf("\n");
    }
}

/* A number that may be 0, which stands for the default in the library's options. */
static double or_none(const cli_args *a, const char *name, double hi)
{
    return cli_flag(a, name) && cli_real(a, name, 0, 0, hi) == 0 ? -1 : cli_real(a, name, 0, 0, hi);
}

static taut_plan_options ask(const cli_args *a)
{
    return (taut_plan_options){ .size = sizeof(taut_plan_options),
                                .target = cli_real(a, "--target", 0, 1e-300, 1e300),
                                .depth = cli_int(a, "--depth", 0, 1, 128),
                                .width = cli_int(a, "--width", 0, 1, 1 << 24),
                                .heads = cli_int(a, "--heads", 0, 1, 4096),
                                .mlp = cli_int(a, "--mlp", 0, 1, 1 << 24),
                                .vocab = cli_int(a, "--vocab", 0, 0, 1 << 24),
                                .units = cli_text(a, "--units", NULL),
                                .attention = cli_text(a, "--attention", NULL),
                                .activation = cli_text(a, "--activation", NULL),
                                .out = or_none(a, "--out-scale", 1e6),
                                .factor = cli_real(a, "--activation-factor", 0, 1e-6, 1e6),
                                .alpha = cli_real(a, "--alpha", 0, 0, 1),
                                .embed = cli_real(a, "--embed", 0, 1e-9, 1e9),
                                .position = or_none(a, "--position", 1e9),
                                .qk = cli_real(a, "--qk", 0, 1e-6, 1e6),
                                .head = cli_real(a, "--head-cap", 0, 1e-9, 1e9),
                                .logit = cli_real(a, "--logit-scale", 0, 1e-6, 1e6),
                                .rope = cli_flag(a, "--rope") };
}

static int run(const cli_args *a)
{
    const bool table = cli_flag(a, "--table");
    const char *norm = cli_text(a, "--norm", "none");
    char *json = NULL;
    cli_look(a);
    if (!table && !cli_flag(a, "--target")) return cli_refuse(a, "missing --target (see taut plan --help)");
    if (strcmp(norm, "none") != 0) return cli_refuse(a, "--norm %s is not one of none", norm);
    const taut_plan_options o = ask(a);
    if (table ? taut_plan_table(&json) : taut_plan_caps(&json, &o)) return cli_fail(a);
    cJSON *found = cli_answer(a, json);
    if (!cli_flag(a, "--json")) (table ? print_table : print_plan)(found);
    cJSON_Delete(found);
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
