/* What is this model, or what is this taut?  With --bound also its proved Lipschitz constant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bound/print.h"
#include "cli.h"
#include "data/vocab.h"
#include "model/builtin.h"
#include "model/hf.h"
#include "taut.h"

static void add_bound(cJSON *o, const char *name, taut_up b)
{
    if (isfinite(b.v))
        cJSON_AddNumberToObject(o, name, b.v); /* cJSON prints every digit it needs */
    else
        cJSON_AddStringToObject(o, name, "inf"); /* JSON has no infinity */
}

/* Both constants, and what they are about: inputs as they are. */
typedef struct {
    taut_up tokens, flat;
    taut_about about;
} constants;

static taut_status prove(constants *c, const taut_model *m)
{
    taut_bound tokens, flat;
    taut_status s = taut_model_bound(&tokens, m, TAUT_NORM_TOKENS);
    if (!s) s = taut_model_bound(&flat, m, TAUT_NORM_FLAT);
    if (s) return s;
    const taut_up reach = taut_model_region(m, TAUT_NORM_TOKENS, UP_ZERO).size,
                  defect = isfinite(up_min(tokens.lip, flat.lip).v) ? up_max(tokens.out.defect, flat.out.defect)
                                                                    : UP_ZERO;
    *c = (constants){ tokens.lip, flat.lip, taut_model_about(m, UP_ZERO, reach, UP_NONE, defect) };
    return TAUT_OK;
}

/* How a text becomes ids: "bytes", "bpe", ...; NULL: it reads no text, or is built in and comes without. */
static const char *tokenizer_of(const taut_model *m, const cli_args *a)
{
    taut_vocab *v = NULL;
    if (m->embed.rows == 0 || taut_builtin_is(a->operand[0]) || taut_vocab_parse(&v, m->vocab)) return NULL;
    const char *kind = taut_vocab_kind(v);
    taut_vocab_free(v);
    return kind;
}

/* With constants, or NULL. */
static cJSON *describe(const taut_model *m, const char *tokenizer, const constants *c)
{
    cJSON *o = cJSON_CreateObject(), *list = cJSON_CreateArray();
    cJSON_AddStringToObject(o, "arch", taut_arch_name(m->spec.arch));
    cJSON_AddNumberToObject(o, "width", (double)m->spec.width);
    cJSON_AddNumberToObject(o, "depth", (double)m->spec.depth);
    cJSON_AddNumberToObject(o, "heads", (double)m->spec.heads);
    cJSON_AddNumberToObject(o, "context", (double)m->spec.context);
    cJSON_AddNumberToObject(o, "tokens", (double)m->embed.rows);
    if (tokenizer) cJSON_AddStringToObject(o, "tokenizer", tokenizer);
    cJSON_AddNumberToObject(o, "weights", (double)taut_model_size(m));
    for (int i = 0; i < m->weights; i++) {
        cJSON *w = cJSON_CreateObject();
        cJSON_AddStringToObject(w, "name", m->weight[i].path);
        cJSON_AddNumberToObject(w, "rows", (double)m->weight[i].param->rows);
        cJSON_AddNumberToObject(w, "cols", (double)m->weight[i].param->cols);
        cJSON_AddItemToArray(list, w);
    }
    cJSON_AddItemToObject(o, "tensors", list);
    if (c) {
        if (c->about.reads == TAUT_ABOUT_TOKENS) add_bound(o, "reach", (taut_up){ c->about.reach });
        add_bound(o, "room", (taut_up){ c->about.room });
        add_bound(o, "bound_tokens", c->tokens);
        add_bound(o, "bound_flat", c->flat);
        if (c->about.defect > 0) add_bound(o, "defect", (taut_up){ c->about.defect });
    }
    return o;
}

static void print_model(const taut_model *m, const char *path, const char *tokenizer, const constants *c)
{
    printf("%s: %s, width %lld, depth %lld, heads %lld, context %lld, %lld tokens%s%s%s, %lld weights\n", path,
           taut_arch_name(m->spec.arch), (long long)m->spec.width, (long long)m->spec.depth, (long long)m->spec.heads,
           (long long)m->spec.context, (long long)m->embed.rows, tokenizer ? " (" : "", tokenizer ? tokenizer : "",
           tokenizer ? ")" : "", (long long)taut_model_size(m));
    for (int i = 0; i < m->weights; i++)
        printf("  %-28s %7lld x %lld\n", m->weight[i].path, (long long)m->weight[i].param->rows,
               (long long)m->weight[i].param->cols);
    if (!c) return;
    char tokens[32], flat[32], text[TAUT_ABOUT_ROOM];
    printf("proved Lipschitz constant, %s,\n  %s\n", m->spec.ahead ? "rows to forecasts" : "inputs to logits",
           taut_about_text(text, &c->about));
    printf("  largest token (l2):  %s\n  flat (l2):           %s\n", up_text(tokens, c->tokens),
           up_text(flat, c->flat));
    if (m->spec.ahead) printf("  taut certify knows how long the rows of its data are, and may prove less of those\n");
}

static int about_taut(const cli_args *a)
{
    const taut_kernels *k = cli_kernels(a);
    if (cli_flag(a, "--json")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "version", TAUT_VERSION);
        cJSON_AddStringToObject(o, "kernels", k->name);
        cJSON_AddNumberToObject(o, "threads", taut_threads());
        cJSON_AddStringToObject(o, "blas", taut_blas_version());
        cJSON_AddStringToObject(o, "compiler", taut_compiler_version());
        return cli_json(o);
    }
    printf("taut %s, kernels %s, %d threads\n%s\n%s\n", TAUT_VERSION, k->name, taut_threads(), taut_blas_version(),
           taut_compiler_version());
    return EXIT_DONE;
}

/* What would become of every tensor of a Hugging Face checkpoint. */
static int about_checkpoint(const cli_args *a)
{
    taut_hf *hf = NULL;
    if (cli_flag(a, "--bound"))
        return cli_refuse(a, "bounds are about stored models: first taut convert %s", a->operand[0]);
    if (taut_hf_open(&hf, a->operand[0], cli_text(a, "--recipe", NULL))) return cli_fail(a);
    cJSON *report = taut_hf_report(hf);
    taut_hf_close(hf);
    if (cli_flag(a, "--json")) return cli_json(report);
    cli_print_load(report);
    cJSON_Delete(report);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    if (a->operands == 0) return about_taut(a);
    (void)cli_kernels(a);
    if (taut_hf_is(a->operand[0]) || cli_text(a, "--recipe", NULL)) return about_checkpoint(a);
    taut_model *m = NULL;
    constants proved = { 0 }, *bound = cli_flag(a, "--bound") ? &proved : NULL;
    char *path = cli_path(a->operand[0], "model.safetensors");
    if (!path) return cli_refuse(a, "out of memory");
    int code = EXIT_DONE;
    const taut_kernels *k = taut_kernels_find("ref"); /* bounds are about the stored bytes, read as doubles */
    const uint64_t seed = (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX);
    const bool builtin = taut_builtin_is(a->operand[0]) && !taut_file_exists(path);
    taut_status s = builtin ? taut_builtin_create(&m, a->operand[0], "bytes", k, seed)
                            : taut_model_open(&m, path, k, false);
    if (!s && bound) s = prove(bound, m);
    if (s)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = cli_json(describe(m, tokenizer_of(m, a), bound));
    else
        print_model(m, path, tokenizer_of(m, a), bound);
    taut_model_free(m);
    free(path);
    return code;
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
