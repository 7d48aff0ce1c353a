/* Proves a Lipschitz constant of a stored model, shows which layer spends it, certifies predictions, writes the proof. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli.h"

static void print_falls(const cJSON *o)
{
    const cJSON *row;
    char lip[32], so_far[32], out[32];
    printf("  %-26s %-10s %12s %12s %12s\n", "layer", "rule", "times", "so far", "tokens within");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "waterfall"))
        printf("  %-26s %-10s %12s %12s %12s\n", cli_word(row, "layer"), cli_word(row, "rule"),
               cli_up(lip, row, "times"), cli_up(so_far, row, "so_far"), cli_up(out, row, "within"));
}

static void print_vacuity(const cJSON *o)
{
    char lip[32], radius[32];
    const double pair = cli_number(o, "pair_ratio"), bound = cli_number(o, "lip");
    printf("how empty is it?  pairs of inputs move the %s by up to %.3g a unit, the bound allows %s",
           strstr(cli_word(o, "maps"), "features") ? "features" : "logits", pair, cli_up(lip, o, "lip"));
    if (pair > 0 && isfinite(bound)) printf(" (%.3g times as much)", bound / pair);
    if (!cJSON_GetObjectItem(o, "median_margin")) {
        printf("; the longest input is %.3g\n", cli_number(o, "longest_input"));
        return;
    }
    printf(";\n  the median margin is %.3g, the median certified radius %s, the longest input %.3g\n",
           cli_number(o, "median_margin"), cli_down(radius, o, "median_radius"), cli_number(o, "longest_input"));
}

static void print_units(const cJSON *o)
{
    const cJSON *unit;
    char lip[32], factor[32];
    printf("the same constant in other units (--norm proves its own, usually smaller):\n");
    cJSON_ArrayForEach(unit, cJSON_GetObjectItem(o, "units"))
        printf("  norm %-6s %-4s %12s  times %-10s %s\n", cli_word(unit, "norm"),
               strcmp(cli_word(unit, "unit"), "rms") == 0 ? "RMS" : "l2", cli_up(lip, unit, "lip"),
               cli_up(factor, unit, "factor"), cli_word(unit, "reason"));
}

/* What holds near each example. */
static void print_local(const cJSON *o)
{
    char room[32], lip[32], all[32], radius[32];
    printf("around each example, moved by up to %s: %s-Lipschitz in the median (everywhere: %s)",
           cli_down(room, cJSON_GetObjectItem(o, "region"), "room"), cli_up(lip, o, "median_local_lip"),
           cli_up(all, o, "lip"));
    if (cJSON_GetObjectItem(o, "median_local_radius"))
        printf(", median certified radius %s", cli_down(radius, o, "median_local_radius"));
    putchar('\n');
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "local_accuracy"))
        printf("  by these, moved less than %-10s %6.2f %%  of %.0f examples\n", cli_down(radius, row, "radius"),
               100 * cli_number(row, "accuracy"), cli_number(o, "n_ex"));
}

static void print_examples(const cJSON *o, double room)
{
    const cJSON *row;
    const double count = cli_number(o, "n_ex"), silent = cli_number(o, "abstained");
    char text[32];
    if (!(silent >= count)) print_vacuity(o);
    if (silent > 0)
        printf("no answer to %.0f of %.0f examples, which count as wrong: %s\n", silent, count, cli_word(o, "why"));
    const bool off = cJSON_GetObjectItem(o, "tolerance") != NULL;
    if (cJSON_GetObjectItem(o, "for") && cli_number(o, "tolerance") >= 1e300)
        printf("nothing is certified for the kernels %s: a module of this model has no bound on their rounding, or "
               "their rounding grows too large\n",
               cli_word(o, "for"));
    else if (cJSON_GetObjectItem(o, "for"))
        printf("radii hold for what the kernels %s compute: their logits are proved to be within %s of those in real "
               "arithmetic\n",
               cli_word(o, "for"), cli_up(text, o, "tolerance"));
    else if (off)
        printf("radii hold for any runtime whose logits are within %s of those in real arithmetic\n",
               cli_down(text, o, "tolerance"));
    if (cJSON_GetObjectItem(o, "local")) print_local(o);
    if (cJSON_GetObjectItem(o, "local_accuracy")) printf("by the constant of everywhere:\n");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "certified_accuracy"))
    {
        const double radius = cli_number(row, "radius");
        printf("%s %-10s %6.2f %%  of %.0f examples",
               radius == 0 ? "accuracy, nothing moved  " : "certified, moved less than", taut_number_down(text, radius),
               100 * cli_number(row, "accuracy"), count);
        if (off && radius > 0) printf("  (%.2f %% in real arithmetic)", 100 * cli_number(row, "exact"));
        printf("\n");
        if (!(room > 0)) break;
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "linf_accuracy"))
        printf("certified, each number moved by at most %2.0f/255 %6.2f %%  (within %s in l2)\n",
               cli_number(row, "levels"), 100 * cli_number(row, "accuracy"), cli_up(text, row, "l2"));
}

static const char *token(char into[16], const cJSON *swap, const char *text, const char *id)
{
    snprintf(into, 16, "#%.0f", cli_number(swap, id));
    return cJSON_GetObjectItem(swap, text) ? cli_word(swap, text) : into;
}

/* Which tokens can be swapped, and what the search found. */
static void print_swaps(const cJSON *o)
{
    const cJSON *row, *near = cJSON_GetObjectItem(o, "nearest");
    char apart[32], id[2][16];
    printf("swaps of tokens in %.0f texts, %.0f of one token in each:\n", cli_number(o, "texts"), cli_number(o, "all"));
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "at_once"))
    {
        const double swaps = cli_number(row, "swaps");
        printf("  %2.0f at once: proved to leave the answer %6.2f %%", swaps,
               floor(1e4 * cli_number(row, "ways")) / 100);
        if (swaps > 1)
            printf(" or more (any of %.2f %% of all swaps together)", floor(1e4 * cli_number(row, "covered")) / 100);
        printf("; found that turn it in %.2f %% of the texts\n", 100 * cli_number(row, "turned"));
    }
    if (near)
        printf("  the nearest that is not covered: '%s' for '%s' in text %.0f, %s apart\n",
               token(id[0], near, "to_text", "to"), token(id[1], near, "from_text", "from"),
               cli_number(near, "example"), cli_up(apart, near, "distance"));
    if (cli_number(o, "contradictions") > 0)
        printf("CONTRADICTION: %.0f swaps that are proved to leave the answer change it\n",
               cli_number(o, "contradictions"));
    else if (cli_number(o, "held") > 0)
        printf("  the search made %.0f forward passes, %.0f of them with covered swaps: no contradiction\n",
               cli_number(o, "tried"), cli_number(o, "held"));
    else
        printf("  the search made %.0f forward passes; no swap is covered, so none could contradict the proof\n",
               cli_number(o, "tried"));
}

static void print(const cJSON *o, bool units)
{
    char lip[32], rms[32];
    const double room = cli_number(cJSON_GetObjectItem(o, "region"), "room");
    print_falls(o);
    printf("proved: %s-Lipschitz from %s, norm %s, l2 (%s in RMS units)\n", cli_up(lip, o, "lip"), cli_word(o, "maps"),
           cli_word(o, "norm"), cli_up(rms, o, "lip_rms"));
    printf("  %s%s\n", cli_word(o, "about"), room > 0 ? " (--radius 0: not moved)" : "");
    if (cli_number(o, "lip_series") > cli_number(o, "lip"))
        printf("  %s-Lipschitz from the series: the rows that the decoder knows stand twice in an input\n",
               cli_up(lip, o, "lip_series"));
    if (units) print_units(o);
    if (cJSON_GetObjectItem(o, "no_constant")) printf("  %s\n", cli_word(o, "no_constant"));
    if (cJSON_GetObjectItem(o, "n_ex")) print_examples(o, room);
    if (cJSON_GetObjectItem(o, "swaps")) print_swaps(cJSON_GetObjectItem(o, "swaps"));
}

/* --rows R; 0 would mean the data's own, so the least row there is stands for it. */
static double rows_of(const cli_args *a)
{
    const char *given = cli_text(a, "--rows", NULL);
    if (given && strcmp(given, "inf") == 0) return INFINITY;
    return given ? fmax(cli_real(a, "--rows", 0, 0, 1e300), 0x1p-1074) : 0;
}

/* The matrices of a proof come and go, and the system clears a page whenever it gives one: what is given back is kept. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that it takes */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

static int run(const cli_args *a)
{
    keep_memory();
    const bool hushed = cli_hush();
    const char *norm = cli_text(a, "--norm", NULL), *out = cli_text(a, "--out", NULL);
    const int64_t wanted = cli_int(a, "--n-ex", 0, 0, 1000000);
    const taut_certify_options o = { .size = sizeof o,
                                     .metric = !norm                       ? TAUT_OWN
                                               : strcmp(norm, "flat") == 0 ? TAUT_FLAT
                                                                           : TAUT_TOKENS,
                                     .room = cli_real(a, "--radius", wanted ? 1 : 0, 0, 1e300),
                                     .rows = rows_of(a),
                                     .data = cli_text(a, "--data", NULL),
                                     .examples = wanted,
                                     .local = cli_flag(a, "--local"),
                                     .progress = cli_show,
                                     .arg = "certifying examples",
                                     .swaps = cli_int(a, "--swaps", 0, 1, 16),
                                     .tries = cli_int(a, "--tries", 0, 1, 1000000),
                                     .tolerance = cli_real(a, "--tolerance", 0, 0, 1e300),
                                     .join = cli_text(a, "--join", NULL),
                                     .runs_on = cli_text(a, "--for", NULL),
                                     .kernels = cli_table(a) };
    if (norm && strcmp(norm, "tokens") != 0 && strcmp(norm, "flat") != 0)
        return cli_refuse(a,
                          "--norm is tokens (the largest token) or flat (l2 over everything), not %s; "
                          "docs/howto/choose_a_norm.md says what both mean in Linf",
                          norm);
    if (o.local && !wanted) return cli_refuse(a, "--local is about examples: say how many with --n-ex");
    if (o.swaps && !wanted) return cli_refuse(a, "--swaps is about examples: say how many with --n-ex");
    if (o.tolerance > 0 && !wanted) return cli_refuse(a, "--tolerance is about examples: say how many with --n-ex");
    if (o.runs_on && !wanted) return cli_refuse(a, "--for is about examples: say how many with --n-ex");
    if (o.runs_on && o.tolerance > 0) return cli_refuse(a, "--for makes a tolerance of its own: leave --tolerance");
    if (o.join && !wanted) return cli_refuse(a, "--join shares examples: say how many with --n-ex");
    if (o.join && o.swaps) return cli_refuse(a, "--join shares examples, and no --swaps");
    if (o.join && strcmp(o.kernels, "cuda64") == 0) return cli_refuse(a, "--join is for processes without a device");
    if (o.tries && !o.swaps) return cli_refuse(a, "--tries is for --swaps");
    if (out && cli_same_file(a->operand[0], out)) return cli_refuse(a, "--out %s is the model itself", out);
    taut_cert *c = NULL;
    char *json = NULL;
    taut_status s = taut_certify_file(&c, a->operand[0], &o);
    cli_bar_end();
    if (!s && out && !hushed) s = taut_cert_save(c, out);
    if (!s) s = taut_cert_report(c, &json);
    taut_cert_free(c);
    if (s) return cli_fail(a);
    cJSON *found = cli_answer(a, json);
    if (!cli_flag(a, "--json")) print(found, cli_flag(a, "--units"));
    const bool beaten = cli_number(cJSON_GetObjectItem(found, "swaps"), "contradictions") > 0;
    cJSON_Delete(found);
    return beaten ? EXIT_CONTRADICTION : EXIT_DONE;
}

static const cli_option options[] = {
    { "--norm", "N",
      "tokens (largest token moves) or flat (l2 over everything); default: that of the model's target, else flat for "
      "images, and where one token comes in and one out, as of most image models, the smaller proof, which is of "
      "both" },
    { "--radius", "R", "prove it also for inputs moved by up to R (default 1 with examples, else 0)" },
    { "--data", "NAME", "another text, other images or another series than it was trained on" },
    { "--rows", "R", "of a forecaster: for rows up to R long, or inf for any (default: the longest row of its data)" },
    { "--n-ex", "N",
      "certify N predictions on the validation split (an encoder: of the last token of a window, which is hidden)" },
    { "--units", NULL, "the constant also in RMS units and in the other norm, with the factors between them" },
    { "--local", NULL,
      "also around each example: its constant on the ball of radius R, and a radius by such constants; the file has "
      "what norm layers, softmax attention and perceptrons give of it" },
    { "--swaps", "K", "of a text: which swaps of up to K tokens provably leave the answers; others are tried" },
    { "--tries", "N", "swaps tried per example, covered ones and others each (default 64)" },
    { "--tolerance", "E",
      "radii that hold for a runtime of your own, whose every logit is within E of that in real arithmetic" },
    { "--for", "K", "radii that hold for what taut computes on the kernels K: cpu, wide, ref, cuda or cuda64" },
    { "--join", "DIR",
      "share the examples with every process that is given the same words and DIR; each ends with all of them" },
    { "--out", "FILE", "write the certificate, for taut check" },
    { NULL, NULL, NULL },
};

const cli_command cli_certify = {
    "certify",
    "MODEL",
    "proves a Lipschitz constant, and predictions that cannot be moved",
    "taut certify runs/tiny --n-ex 100 --out cert.json",
    1,
    1,
    options,
    run,
};
