#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/status.h"
#include "data/find.h"
#include "model/builtin.h"

char *cli_builtin_vocab(const char *name)
{
    char *folder = NULL, *printed = NULL;
    taut_vocab *v = NULL;
    if (!taut_data_find(&folder, taut_builtin_tokenizer(name)) && !taut_vocab_open(&v, folder))
        printed = taut_vocab_print(v);
    taut_vocab_free(v);
    free(folder);
    return printed;
}

static taut_status open_builtin(taut_model **out, const char *name, const taut_kernels *k, uint64_t seed)
{
    char *vocab = cli_builtin_vocab(name);
    if (!vocab)
        fprintf(stderr, "note: %s is not among the data; text is read as bytes\n", taut_builtin_tokenizer(name));
    const taut_status s = taut_builtin_create(out, name, vocab ? vocab : "bytes", k, seed);
    free(vocab);
    return s;
}

taut_status cli_model_open(cli_model *m, const char *operand, const taut_kernels *k, uint64_t seed)
{
    *m = (cli_model){ 0 };
    char *path = cli_model_path(operand);
    taut_status s = path ? TAUT_OK : taut_no_memory("a path");
    if (!s && taut_builtin_is(operand) && !taut_file_exists(path))
        s = open_builtin(&m->model, operand, k, seed);
    else if (!s)
        s = taut_model_open(&m->model, path, k, false);
    const bool text = !s && m->model->embed.rows > 0;
    if (text && (s = taut_vocab_parse(&m->vocab, m->model->vocab))) s = taut_fail(s, "%s: %s", path, taut_last_error());
    if (!s) s = taut_config_parse(&m->cfg, m->model->recipe, path);
    if (!s) {
        taut_data_spec_read(&m->data, m->cfg);
        m->data.mask_rate = taut_config_real(m->cfg, "train.mask_rate", 0.15, 1e-6, 1);
    }
    if (!s) s = taut_config_problem(m->cfg);
    const bool mask = text && m->vocab && m->model->spec.arch == TAUT_ARCH_ENCODER && taut_vocab_mask(m->vocab) < 0;
    if (!s && text && m->model->embed.rows < taut_vocab_size(m->vocab) + mask)
        s = taut_fail(TAUT_BAD_FILE, "%s: %lld embeddings for a vocabulary of %d", path,
                      (long long)m->model->embed.rows, (int)taut_vocab_size(m->vocab));
    if (s) cli_model_close(m);
    free(path);
    return s;
}

void cli_model_close(cli_model *m)
{
    taut_model_free(m->model);
    taut_vocab_free(m->vocab);
    taut_config_free(m->cfg);
    *m = (cli_model){ 0 };
}

taut_status cli_model_source(taut_source **out, const cli_model *m, const char *other)
{
    taut_data_spec d = m->data;
    if (other) d.source = other;
    return taut_recipe_source(out, &d, &m->model->spec, m->vocab);
}
