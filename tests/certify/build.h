/* What the certify tests build their models with: a failed set-up ends the test, it is no finding. */
#ifndef CERTIFY_BUILD_H
#define CERTIFY_BUILD_H
#include "harness.h"
#include "model/model.h"
#include "must.h"

/* A model of this [model] section, every weight 0; its stored recipe has every key, as taut train writes it. */
static inline taut_model *blank_model_on(const char *text, int64_t classes, const char *kernels, bool grads)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_problem(cfg));
    char *full = taut_config_print(cfg);
    taut_config_free(cfg);
    must(taut_model_create(&m, &spec, classes, full, "bytes", taut_kernels_find(kernels)));
    must(taut_model_bind(m, grads));
    free(full);
    return m;
}

static inline taut_model *blank_model(const char *text, int64_t classes, bool grads)
{
    return blank_model_on(text, classes, "ref", grads);
}
#endif
