/* A checkpoint of another program, or a built-in shape with random weights, stored as a model of taut's own. */
#include <stdio.h>
#include <string.h>

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

/* "768 x 2304" */
static const char *shape_text(char dst[96], const cJSON *shape)
{
    const cJSON *n;
    size_t used = 0;
    if (!cJSON_IsArray(shape)) return "nothing";
    snprintf(dst, 96, "one number");
    cJSON_ArrayForEach(n, shape) if (used < 80)
        used += (size_t)snprintf(dst + used, 96 - used, "%s%.0f", used ? " x " : "", n->valuedouble);
    return dst;
}

enum { SHOWN = 24 }; /* lines of a list */

/* What was wanted and what is there, where that is why it failed. */
static void explain(const cli_args *a, const taut_open_options *o)
{
    char *json = NULL, want[96], got[96];
    int lines = 0;
    if (taut_checkpoint_json(&json, a->operand[0], o)) return;
    cJSON *all = cJSON_Parse(json);
    const cJSON *row, *wanted = cJSON_GetObjectItem(all, "wanted"), *unknown = cJSON_GetObjectItem(all, "unknown");
    cJSON_ArrayForEach(row, wanted) if (lines++ < SHOWN) fprintf(
        stderr, "  wanted %-28s as %-48s %-16s found %s\n", cli_word(row, "name"), cli_word(row, "from"),
        shape_text(want, cJSON_GetObjectItem(row, "shape")), shape_text(got, cJSON_GetObjectItem(row, "found")));
    if (lines > SHOWN) fprintf(stderr, "  and %d more wanted\n", lines - SHOWN);
    lines = 0;
    cJSON_ArrayForEach(row, unknown) if (lines++ < SHOWN)
        fprintf(stderr, "  found, and not known: %-48s %s\n", cli_word(row, "name"),
                shape_text(got, cJSON_GetObjectItem(row, "shape")));
    if (lines > SHOWN) fprintf(stderr, "  and %d more not known\n", lines - SHOWN);
    cJSON_Delete(all);
    taut_string_free(json);
}

/* The values of an option that may be given often. */
static int values(const char **list, const cli_args *a, const char *name)
{
    int count = 0;
    for (int i = 0; i < a->given; i++)
        if (strcmp(a->name[i], name) == 0) list[count++] = a->value[i];
    return count;
}

static int run(const cli_args *a)
{
    const char *from = a->operand[0], *out = cli_text(a, "--out", NULL), *map[64], *set[64];
    const taut_open_options o = { .size = sizeof o,
                                  .kernels = "cpu", /* floats, as the file has */
                                  .seed = cli_seed(a),
                                  .tokenizer = cli_text(a, "--tokenizer", NULL),
                                  .recipe = cli_text(a, "--recipe", NULL),
                                  .ignore_unknown = cli_flag(a, "--ignore-unknown"),
                                  .prefix = cli_text(a, "--prefix", NULL),
                                  .map = map,
                                  .set = set,
                                  .maps = values(map, a, "--map"),
                                  .sets = values(set, a, "--set") };
    cli_look(a);
    if (!out) return cli_refuse(a, "--out FILE is missing: where the model goes");
    if (cli_same_file(from, out)) return cli_refuse(a, "--out %s is the checkpoint itself", out);
    taut_net *net = NULL;
    char *json = NULL;
    taut_status s = taut_net_open(&net, from, &o);
    if (!s) s = taut_net_json(net, &json);
    cJSON *model = s ? NULL : cJSON_Parse(json);
    const char *note = cJSON_GetStringValue(cJSON_GetObjectItem(model, "note"));
    if (note) {
        const int refused = cli_refuse(a, "%s: %s (--tokenizer names its folder, or bytes)", from, note);
        cJSON_Delete(model);
        taut_string_free(json);
        taut_net_free(net);
        return refused;
    }
    const bool opened = !s;
    if (!s) s = taut_net_save(net, out);
    const int code = s ? cli_fail(a) : tell(a, model, out);
    if (!opened) explain(a, &o);
    cJSON_Delete(model);
    taut_string_free(json);
    taut_net_free(net);
    return code;
}

static const cli_option options[] = {
    { "--out", "FILE", "where the model goes, as model.safetensors" },
    { "--set", "K=V", "what no tensor tells, as --set model.heads=4 (often)" },
    { "--map", "A=B", "taut's tensor A is the checkpoint's B; # is the number of a block (often)" },
    { "--prefix", "P", "of the tensors' names, where several fit; what stands elsewhere is left out" },
    { "--recipe", "INI", "of a checkpoint without config.json: what its [model] is" },
    { "--tokenizer", "DIR",
      "the folder of its tokenizer (default: the checkpoint's), a text whose characters are the tokens, or bytes" },
    { "--ignore-unknown", NULL, "leave out tensors that no such model has, instead of refusing" },
    { NULL, NULL, NULL },
};

const cli_command cli_convert = {
    "convert",
    "CHECKPOINT",
    "makes a model of a checkpoint of another program, or of gpt2 or bert-base at random",
    "taut convert ~/models/gpt2 --out gpt2.safetensors",
    1,
    1,
    options,
    run,
};
