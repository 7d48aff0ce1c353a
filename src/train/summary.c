#include "train/summary.h"

#include <math.h>

#include "base/json.h"
#include "kernels/kernels.h"

cJSON *taut_summary_json(const taut_train_summary *s)
{
    static const char *const products[] = { "fp32", "tf32", "bf16" };
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "taut", TAUT_VERSION);
    cJSON_AddStringToObject(o, "model", s->sha256);
    cJSON_AddNumberToObject(o, "steps", (double)s->steps);
    cJSON_AddNumberToObject(o, "tokens", (double)s->tokens);
    cJSON_AddStringToObject(o, "counted", s->counted);
    cJSON_AddNumberToObject(o, "weights", (double)s->weights);
    cJSON_AddNumberToObject(o, "train_loss", s->train_loss);
    if (!s->stopped) cJSON_AddNumberToObject(o, "val_loss", s->val_loss);
    if (!isnan(s->val_mae)) {
        cJSON_AddNumberToObject(o, "val_mae", s->val_mae);
        cJSON_AddNumberToObject(o, "test_mse", s->test_loss);
        cJSON_AddNumberToObject(o, "test_mae", s->test_mae);
    } else if (!s->stopped) {
        cJSON_AddNumberToObject(o, "val_acc", s->val_acc);
    }
    cJSON_AddNumberToObject(o, "tokens_per_s", s->tokens_per_s);
    cJSON_AddNumberToObject(o, "seconds", s->seconds);
    if (*s->data) cJSON_AddStringToObject(o, "data", s->data);
    if (s->best_step) cJSON_AddNumberToObject(o, "best_step", (double)s->best_step);
    if (s->target > 0) {
        cJSON_AddNumberToObject(o, "target", s->target);
        cJSON_AddItemToObject(o, "bound", up_json(s->bound));
        cJSON_AddStringToObject(o, "norm", s->flat ? "flat" : "tokens");
        cJSON_AddStringToObject(o, "units", s->l2 ? "l2" : "rms");
        cJSON_AddNumberToObject(o, "room", 0);
        cJSON_AddStringToObject(o, "about", s->about);
    }
    cJSON_AddBoolToObject(o, "stopped", s->stopped);
    cJSON_AddStringToObject(o, "kernels", s->kernels);
    cJSON_AddStringToObject(o, "matmul", products[s->matmul]);
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddStringToObject(o, "blas", taut_blas_version());
    cJSON_AddStringToObject(o, "compiler", taut_compiler_version());
    return o;
}
