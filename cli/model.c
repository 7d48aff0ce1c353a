#include "model.h"

#include <stdlib.h>

#include "base/status.h"

taut_status cli_model_open(cli_model *m, const char *operand, const taut_kernels *k)
{
    *m = (cli_model){ 0 };
    char *path = cli_model_path(operand);
    taut_status s = path ? taut_model_open(&m->model, path, k, false) : taut_no_memory("a path");
    const bool text = !s && m->model->embed.rows > 0;
    if (text && (s = taut_vocab_parse(&m->vocab, m->model->vocab))) s = taut_fail(s, "%s: %s", path, taut_last_error());
    if (!s) s = taut_config_parse(&m->cfg, m->model->recipe, path);
    if (!s) {
        taut_data_spec_read(&m->data, m->cfg);
        m->data.mask_rate = taut_config_real(m->cfg, "train.mask_rate", 0.15, 1e-6, 1);
    }
    if (!s) s = taut_config_problem(m->cfg);
    if (!s && text && m->model->embed.rows < taut_vocab_size(m->vocab) + (m->model->spec.arch == TAUT_ARCH_ENCODER))
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
