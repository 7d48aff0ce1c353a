#include "model.h"

#include <stdlib.h>

#include "base/status.h"
#include "train/batch.h"

taut_status cli_model_open(cli_model *m, const char *operand, const taut_kernels *k)
{
    *m = (cli_model){ 0 };
    char *path = cli_model_path(operand);
    taut_status s = path ? taut_model_open(&m->model, path, k, false) : taut_no_memory("a path");
    if (!s && (s = taut_vocab_parse(&m->vocab, m->model->vocab))) s = taut_fail(s, "%s: %s", path, taut_last_error());
    if (!s) s = taut_config_parse(&m->cfg, m->model->recipe, path);
    if (!s) {
        taut_data_spec_read(&m->data, m->cfg);
        m->mask_rate = taut_config_real(m->cfg, "train.mask_rate", 0.15, 1e-6, 1);
    }
    if (!s) s = taut_config_problem(m->cfg);
    if (!s && m->model->embed.rows < taut_batch_tokens(&m->model->spec, m->vocab))
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
