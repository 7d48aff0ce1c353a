/* Certifying a GPT-2-small-shaped model (124M random weights) and checking the certificate: seconds and peak memory of the
 * two commands, run as a user would run them; and a single norm beside LAPACK's, norm.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "bench/bench.h"
#include "model/model.h"

static const char recipe[] = "[model]\narch = gpt\nwidth = 768\ndepth = 12\nheads = 12\ncontext = 1024\n";

static taut_status make_model(const char *path)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    char *printed = NULL;
    taut_status s = taut_config_parse(&cfg, recipe, "bench");
    if (!s) s = taut_model_spec_read(&spec, cfg);
    if (!s && !(printed = taut_config_print(cfg))) s = taut_no_memory("the recipe");
    if (!s) s = taut_model_create(&m, &spec, 50257, printed, "bytes", taut_kernels_find("cpu"));
    if (!s) s = taut_model_bind(m, false);
    if (!s) s = taut_model_init(m, 1);
    if (!s) s = taut_model_save(m, path);
    taut_model_free(m);
    free(printed);
    taut_config_free(cfg);
    return s;
}

cJSON *bench_certify(void)
{
    char folder[] = "/tmp/taut_bench_XXXXXX", model[64], cert[64];
    if (!mkdtemp(folder)) {
        taut_fail(TAUT_BAD_FILE, "no temporary folder could be made");
        return NULL;
    }
    snprintf(model, sizeof model, "%s/model.safetensors", folder);
    snprintf(cert, sizeof cert, "%s/cert.json", folder);
    const taut_status s = make_model(model);
    cJSON *o = s ? NULL : cJSON_CreateObject();
    if (o) {
        const bench_cost made = bench_self((const char *const[]){ "taut", "certify", model, "--out", cert, NULL });
        const bench_cost checked = bench_self((const char *const[]){ "taut", "check", cert, model, NULL });
        cJSON_AddNumberToObject(o, "threads", taut_threads());
        cJSON_AddNumberToObject(o, "seconds", made.seconds);
        cJSON_AddNumberToObject(o, "peak_gb", 1e-9 * made.bytes);
        cJSON_AddNumberToObject(o, "certify_exit", made.code);
        cJSON_AddNumberToObject(o, "check_seconds", checked.seconds);
        cJSON_AddNumberToObject(o, "check_peak_gb", 1e-9 * checked.bytes);
        cJSON_AddNumberToObject(o, "check_exit", checked.code);
    }
    if (o && bench_norm(o)) {
        cJSON_Delete(o);
        o = NULL;
    }
    remove(model), remove(cert), remove(folder);
    return o;
}
