/* What is this model, or what is this taut?  With --bound also its proved Lipschitz constant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void print_taut(const cJSON *o)
{
    printf("taut %s, kernels %s, %.0f threads\n%s\n%s\n", cli_word(o, "version"), cli_word(o, "kernels"),
           cli_number(o, "threads"), cli_word(o, "blas"), cli_word(o, "compiler"));
}

static void print_bounds(const cJSON *o)
{
    const bool series = strcmp(cli_word(o, "arch"), "forecaster") == 0;
    char tokens[32], flat[32];
    printf("proved Lipschitz constant, %s,\n  %s\n", series ? "rows to forecasts" : "inputs to logits",
           cli_word(o, "about"));
    printf("  largest token (l2):  %s\n  flat (l2):           %s\n", cli_up(tokens, o, "bound_tokens"),
           cli_up(flat, o, "bound_flat"));
    if (series) printf("  taut certify knows how long the rows of its data are, and may prove less of those\n");
}

static void print_model(const cJSON *o, const char *model)
{
    const char *tokenizer = cli_word(o, "tokenizer");
    char *path = cli_path(model, "model.safetensors");
    const cJSON *t, *side = cJSON_GetObjectItem(o, "image");
    printf("%s: %s, ", path ? path : model, cli_word(o, "arch"));
    printf("width %.0f, depth %.0f, ", cli_number(o, "width"), cli_number(o, "depth"));
    if (cli_number(o, "heads") > 0) printf("heads %.0f, ", cli_number(o, "heads"));
    if (side)
        printf("images of %d x %d x %d in %.0f classes, ", cJSON_GetArrayItem(side, 0)->valueint,
               cJSON_GetArrayItem(side, 1)->valueint, cJSON_GetArrayItem(side, 2)->valueint, cli_number(o, "classes"));
    else
        printf("context %.0f, %.0f tokens%s%s%s, ", cli_number(o, "context"), cli_number(o, "tokens"),
               *tokenizer ? " (" : "", tokenizer, *tokenizer ? ")" : "");
    printf("%.0f weights\n", cli_number(o, "weights"));
    cJSON_ArrayForEach(t, cJSON_GetObjectItem(o, "tensors"))
        printf("  %-28s %7.0f x %.0f\n", cli_word(t, "name"), cli_number(t, "rows"), cli_number(t, "cols"));
    if (cJSON_GetObjectItem(o, "bound_tokens")) print_bounds(o);
    free(path);
}

static void print(const cli_args *a, const cJSON *o)
{
    if (a->operands == 0)
        print_taut(o);
    else if (cJSON_GetObjectItem(o, "family"))
        cli_print_load(o);
    else
        print_model(o, a->operand[0]);
}

static int run(const cli_args *a)
{
    const char *kernels = a->operands ? NULL : cli_table(a);
    if (a->operands) cli_look(a);
    const taut_describe_options options = { .size = sizeof options,
                                            .recipe = cli_text(a, "--recipe", NULL),
                                            .seed = cli_seed(a),
                                            .bound = cli_flag(a, "--bound") };
    char *json = NULL;
    if (a->operands ? taut_describe_file(&json, a->operand[0], &options) : taut_build_json(&json, kernels))
        return cli_fail(a);
    cJSON *o = cli_answer(a, json);
    if (!cli_flag(a, "--json")) print(a, o);
    cJSON_Delete(o);
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--recipe", "INI", "of a checkpoint without config.json: what its [model] is" },
    { "--bound", NULL, "also prove a Lipschitz constant from the stored weights, for inputs that are not moved" },
    { NULL, NULL, NULL },
};

const cli_command cli_info = {
    "info",
    "[MODEL]",
    "describes a model, a Hugging Face checkpoint, or this program",
    "taut info runs/tiny --bound",
    0,
    1,
    options,
    run,
};
