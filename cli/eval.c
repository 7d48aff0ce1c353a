#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* What is proved of noise, and what was found. */
static void print_noise(const cJSON *o)
{
    char text[32], moved[32];
    const double moves = cli_number(o, "moves");
    if (isfinite(moves))
        printf("  proved: if no row moves by more than %s, no row of a forecast moves by more than %s,\n    %s\n",
               cli_down(moved, o, "noise"), cli_up(text, o, "moves"), cli_word(o, "about"));
    else
        printf("  nothing is proved: this model has no finite constant\n");
    printf("  found: noise that moves a row of a forecast by %.6g\n", cli_number(o, "found"));
    if (cli_number(o, "found") > moves)
        printf("  %s: up to %s of what was found may be rounding\n",
               cJSON_IsTrue(cJSON_GetObjectItem(o, "contradiction")) ? "a contradiction" : "no contradiction",
               cli_up(text, o, "rounding"));
}

static void print(const cJSON *o)
{
    printf("%s, %s split: ", cli_word(o, "data"), cli_word(o, "split"));
    if (cJSON_GetObjectItem(o, "mse"))
        printf("MSE %.4f  MAE %.4f   (%.0f windows, standardised)\n", cli_number(o, "mse"), cli_number(o, "mae"),
               cli_number(o, "windows"));
    else if (!cJSON_GetObjectItem(o, "perplexity"))
        printf("loss %.4f  accuracy %.2f %%   (%.0f %s)\n", cli_number(o, "loss"), 100 * cli_number(o, "accuracy"),
               cli_number(o, "targets"), cli_word(o, "counted"));
    else
        printf("loss %.4f  perplexity %.3f  accuracy %.2f %%   (%.0f targets in %.0f windows)\n", cli_number(o, "loss"),
               cli_number(o, "perplexity"), 100 * cli_number(o, "accuracy"), cli_number(o, "targets"),
               cli_number(o, "windows"));
    if (cJSON_GetObjectItem(o, "noise")) print_noise(o);
}

/* Which kernels the radii of a certificate are for, if any.  The word stands before the proof, in the first lines. */
static void read_for(char word[16], const char *path)
{
    char head[4096] = "";
    FILE *f = fopen(path, "rb");
    if (!f) return;
    head[fread(head, 1, sizeof head - 1, f)] = 0;
    fclose(f);
    const char *at = strstr(head, "\"for\":"), *proof = strstr(head, "\"proof\":");
    if (at && (!proof || at < proof) && sscanf(at, "\"for\": \"%15[!-~]", word) == 1) word[strcspn(word, "\"")] = 0;
}

/* A run's own certificate may be for other kernels than those that run. */
static void compare_kernels(const cli_args *a, const char *here)
{
    char word[16] = "", *path = cli_path(a->operand[0], "certificate.json");
    if (!path) return;
    if (strcmp(path, a->operand[0]) != 0) read_for(word, path); /* it is a folder */
    const bool same = strcmp(word, here) == 0 || (strcmp(word, "cpu") == 0 && strncmp(here, "cpu-", 4) == 0);
    if (*word && !same)
        fprintf(stderr, "taut eval: the radii in %s are for the kernels %s and say nothing of %s, which run here\n",
                path, word, here);
    free(path);
}

static int run(const cli_args *a)
{
    const bool train = cli_flag(a, "--train"), test = cli_flag(a, "--test");
    const taut_evaluate_options o = { .size = sizeof o,
                                      .kernels = cli_table(a),
                                      .seed = cli_seed(a),
                                      .data = cli_text(a, "--data", NULL),
                                      .split = train  ? "training"
                                               : test ? "test"
                                                      : "validation",
                                      .examples = cli_int(a, "--windows", 0, 0, 1 << 30),
                                      .slide = cli_int(a, "--slide", 0, 0, 1 << 30),
                                      .batch = cli_int(a, "--batch", 0, 1, 64),
                                      .noise = cli_real(a, "--noise", 0, 0, 1e9),
                                      .page = cli_text(a, "--plot", NULL) };
    char *json = NULL;
    if (train && test) return cli_refuse(a, "--train or --test, not both");
    if (cli_flag(a, "--noise") && !(o.noise > 0)) return cli_refuse(a, "--noise 0 moves nothing");
    if (taut_evaluate_file(&json, a->operand[0], &o)) return cli_fail(a);
    compare_kernels(a, o.kernels ? o.kernels : "cpu");
    cJSON *found = cli_answer(a, json);
    const bool beaten = cJSON_IsTrue(cJSON_GetObjectItem(found, "contradiction"));
    if (!cli_flag(a, "--json")) print(found);
    cJSON_Delete(found);
    return beaten ? EXIT_CONTRADICTION : EXIT_DONE;
}

static const cli_option options[] = {
    { "--data", "NAME", "another text, other images or another series than it was trained on" },
    { "--train", NULL, "the training split instead of the validation split" },
    { "--test", NULL, "the test split of a series" },
    { "--plot", "FILE", "a page of forecasts, and pictures beside it" },
    { "--noise", "R",
      "prove how far a forecast can move when each row moves by up to R, for rows no longer than the split's" },
    { "--windows", "N", "only N windows, or images, spread over the split (default: the whole split)" },
    { "--slide", "N", "the first N windows, one at every token; 1280: what the enforced paper validates on" },
    { "--batch", "N", "windows at a time" },
    { NULL, NULL, NULL },
};

const cli_command cli_eval = {
    "eval", "MODEL", "loss and accuracy of a model on its data", "taut eval runs/tiny --json", 1, 1, options, run,
};
