/* A Hugging Face checkpoint, or a built-in shape with random weights, stored as a model of taut's own. */
#include <stdio.h>

#include "cli.h"

/* What became of the checkpoint; weights that are no numbers are kept as they are, and said. */
static cJSON *report_of(const cJSON *model, const cli_args *a)
{
    cJSON *o = cJSON_Duplicate(cJSON_GetObjectItem(model, "checkpoint"), true);
    const double count = cJSON_GetNumberValue(cJSON_GetObjectItem(model, "not_finite"));
    const char *first = cJSON_GetStringValue(cJSON_GetObjectItem(model, "not_finite_in"));
    char line[256];
    if (!o) {
        o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "builtin", a->operand[0]);
        cJSON_AddNumberToObject(o, "seed", (double)cli_seed(a));
    }
    cJSON_AddNumberToObject(o, "not_finite", count);
    snprintf(line, sizeof line, "%.0f weight%s NaN or infinite, the first in %s: nothing can be proved of it", count,
             count == 1 ? " is" : "s are", first ? first : "");
    cJSON *notes = cJSON_GetObjectItem(o, "notes");
    if (count > 0 && notes) cJSON_AddItemToArray(notes, cJSON_CreateString(line));
    return o;
}

static int tell(const cli_args *a, const cJSON *model, const char *out)
{
    const cJSON *weights = cJSON_GetObjectItem(model, "weights");
    cJSON *report = report_of(model, a);
    if (cli_flag(a, "--json")) {
        cJSON_AddStringToObject(report, "out", out);
        cJSON_AddNumberToObject(report, "weights", cJSON_GetNumberValue(weights));
        return cli_json(report);
    }
    if (!cJSON_GetObjectItem(report, "builtin")) cli_print_load(report);
    printf("%s: %.0f weights\n", out, cJSON_GetNumberValue(weights));
    cJSON_Delete(report);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    const char *from = a->operand[0], *out = cli_text(a, "--out", NULL);
    const taut_open_options o = { .size = sizeof o,
                                  .kernels = "cpu", /* floats, as the file has */
                                  .seed = cli_seed(a),
                                  .tokenizer = cli_text(a, "--tokenizer", NULL),
                                  .recipe = cli_text(a, "--recipe", NULL),
                                  .ignore_unknown = cli_flag(a, "--ignore-unknown") };
    (void)cli_table(a);
    if (!out) return cli_refuse(a, "--out FILE is missing: where the model goes");
    if (cli_same_file(from, out)) return cli_refuse(a, "--out %s is the checkpoint itself", out);
    taut_net *net = NULL;
    char *json = NULL;
    taut_status s = taut_net_open(&net, from, &o);
    if (!s) s = taut_net_json(net, &json);
    cJSON *model = s ? NULL : cJSON_Parse(json);
    const char *note = cJSON_GetStringValue(cJSON_GetObjectItem(model, "note"));
    if (note) {
        cJSON_Delete(model);
        taut_string_free(json);
        taut_net_free(net);
        return cli_refuse(a, "%s: %s (--tokenizer names its folder, or bytes)", from, note);
    }
    if (!s) s = taut_net_save(net, out);
    const int code = s ? cli_fail(a) : tell(a, model, out);
    cJSON_Delete(model);
    taut_string_free(json);
    taut_net_free(net);
    return code;
}

static const cli_option options[] = {
    { "--out", "FILE", "where the model goes, as model.safetensors" },
    { "--recipe", "INI", "of a checkpoint without config.json, with PyTorch's names: what its [model] is" },
    { "--tokenizer", "DIR", "the folder of its tokenizer (default: the checkpoint's), or bytes" },
    { "--ignore-unknown", NULL, "leave out tensors that no such model has, instead of refusing" },
    { NULL, NULL, NULL },
};

const cli_command cli_convert = {
    "convert",
    "CHECKPOINT",
    "makes a model of a Hugging Face checkpoint, or of gpt2 or bert-base at random",
    "taut convert ~/models/gpt2 --out gpt2.safetensors",
    1,
    1,
    options,
    run,
};
