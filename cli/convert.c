/* A Hugging Face checkpoint, or a built-in shape with random weights, stored as a model of taut's own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model.h"
#include "model/builtin.h"
#include "model/hf.h"

/* The checkpoint's vocabulary as a model's file holds it. */
static taut_status read_vocab(char **printed, int32_t *size, const char *folder)
{
    taut_vocab *v = NULL;
    taut_status s = strcmp(folder, "bytes") == 0 ? taut_vocab_bytes(&v) : taut_vocab_open(&v, folder);
    if (s) return taut_fail(s, "%s (--tokenizer names a folder that has one, or bytes)", taut_last_error());
    *size = taut_vocab_size(v);
    *printed = taut_vocab_print(v);
    taut_vocab_free(v);
    return *printed ? TAUT_OK : taut_no_memory(folder);
}

static taut_status convert(taut_model **out, cJSON **report, const cli_args *a, const taut_kernels *k)
{
    const char *folder = a->operand[0];
    taut_hf *hf = NULL;
    char *vocab = NULL;
    int32_t size = 0;
    taut_status s = taut_hf_open(&hf, folder, cli_text(a, "--recipe", NULL));
    const bool text = !s && taut_hf_tokens(hf) > 0;
    if (text) s = read_vocab(&vocab, &size, cli_text(a, "--tokenizer", folder));
    if (text && !s && size > taut_hf_tokens(hf))
        s = taut_fail(TAUT_BAD_DATA, "%s: a tokenizer of %d tokens for an embedding of %lld: not the checkpoint's own",
                      folder, (int)size, (long long)taut_hf_tokens(hf));
    if (!s) s = taut_hf_load(out, hf, text ? vocab : "", cli_flag(a, "--ignore-unknown"), k);
    if (!s && !(*report = taut_hf_report(hf))) s = taut_no_memory(folder);
    if (!s && text) cJSON_AddNumberToObject(*report, "vocabulary", size);
    free(vocab);
    taut_hf_close(hf);
    return s;
}

static taut_status build(taut_model **out, cJSON **report, const cli_args *a, const taut_kernels *k)
{
    const char *name = a->operand[0];
    char *vocab = NULL;
    int32_t size = 0;
    taut_status s = TAUT_OK;
    if (cli_text(a, "--tokenizer", NULL)) s = read_vocab(&vocab, &size, cli_text(a, "--tokenizer", NULL));
    if (!s && !vocab && !(vocab = cli_builtin_vocab(name)))
        s = taut_fail(TAUT_BAD_DATA, "%s is not among the data: --tokenizer names its folder, or bytes",
                      taut_builtin_tokenizer(name));
    if (!s) s = taut_builtin_create(out, name, vocab, k, (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX));
    if (!s) {
        *report = cJSON_CreateObject();
        cJSON_AddStringToObject(*report, "builtin", name);
        cJSON_AddNumberToObject(*report, "seed", (double)cli_int(a, "--seed", 1, 0, INT64_MAX));
    }
    free(vocab);
    return s;
}

/* Weights that are no numbers are kept as they are, and said. */
static taut_status report_numbers(cJSON *report, const taut_model *m)
{
    int64_t count = 0;
    const char *first = NULL;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t len = p->rows * p->cols;
        double *w = taut_malloc((size_t)(len + 1) * sizeof *w);
        if (!w) return taut_no_memory("weights");
        m->k->get(w, p->value, len);
        for (int64_t j = 0; j < len; j++) {
            if (isfinite(w[j])) continue;
            if (!count++) first = m->weight[i].path;
        }
        free(w);
    }
    cJSON_AddNumberToObject(report, "not_finite", (double)count);
    cJSON *notes = cJSON_GetObjectItem(report, "notes");
    char line[256];
    snprintf(line, sizeof line, "%lld weight%s NaN or infinite, the first in %s: nothing can be proved of it",
             (long long)count, count == 1 ? " is" : "s are", first ? first : "");
    if (count && notes) cJSON_AddItemToArray(notes, cJSON_CreateString(line));
    return TAUT_OK;
}

/* Would the model take the place of the checkpoint? */
static bool same_file(const char *checkpoint, const char *out)
{
    char *path = cli_model_path(checkpoint);
    struct stat x, y;
    const bool same = path && stat(path, &x) == 0 && stat(out, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    free(path);
    return same;
}

static int run(const cli_args *a)
{
    const char *from = a->operand[0], *out = cli_text(a, "--out", NULL);
    (void)cli_kernels(a);
    if (!out) return cli_refuse(a, "--out FILE is missing: where the model goes");
    if (same_file(from, out)) return cli_refuse(a, "--out %s is the checkpoint itself", out);
    taut_model *m = NULL;
    cJSON *report = NULL;
    const taut_kernels *k = taut_kernels_find("cpu"); /* floats, as the file has */
    const bool builtin = taut_builtin_is(from) && !taut_file_exists(from);
    taut_status s = (builtin ? build : convert)(&m, &report, a, k);
    if (!s) s = report_numbers(report, m);
    if (!s) s = taut_model_save(m, out);
    int code = EXIT_DONE;
    if (s) {
        code = cli_fail(a);
    } else if (cli_flag(a, "--json")) {
        cJSON_AddStringToObject(report, "out", out);
        cJSON_AddNumberToObject(report, "weights", (double)taut_model_size(m));
        code = cli_json(report);
        report = NULL;
    } else {
        if (!builtin) cli_print_load(report);
        printf("%s: %lld weights\n", out, (long long)taut_model_size(m));
    }
    cJSON_Delete(report);
    taut_model_free(m);
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
