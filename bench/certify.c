/* Certifying a model of GPT-2's shape (124M random weights) and checking the certificate: seconds and peak memory of the
 * two commands, run as a user would run them; and a single norm beside LAPACK's, norm.c.  With a device (gpu-certify): that
 * model with --kernels cuda64 and on the host, and one of GPT-2-XL's shape (1.56G) on the device alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "bench/bench.h"
#include "model/model.h"

typedef struct {
    const char *name, *recipe;
} shape;

static const shape small = { "GPT-2", "[model]\narch = gpt\nwidth = 768\ndepth = 12\nheads = 12\ncontext = 1024\n" };
static const shape large = { "GPT-2-XL",
                             "[model]\narch = gpt\nwidth = 1600\ndepth = 48\nheads = 25\ncontext = 1024\n" };

typedef struct {
    char folder[32], model[64], cert[64];
} place;

static taut_status make_model(const char *path, const char *recipe)
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

/* A folder with a model of that shape; `leave` takes it away, also after a failure. */
static taut_status enter(place *p, const shape *of)
{
    *p = (place){ .folder = "/tmp/taut_bench_XXXXXX" };
    if (!mkdtemp(p->folder)) return taut_fail(TAUT_BAD_FILE, "no temporary folder could be made");
    snprintf(p->model, sizeof p->model, "%s/model.safetensors", p->folder);
    snprintf(p->cert, sizeof p->cert, "%s/cert.json", p->folder);
    return make_model(p->model, of->recipe);
}

static void leave(const place *p) { remove(p->model), remove(p->cert), remove(p->folder); }

static bench_cost certify(const place *p, const char *kernels)
{
    return bench_self(
        (const char *const[]){ "taut", "certify", p->model, "--kernels", kernels, "--out", p->cert, NULL });
}

cJSON *bench_certify(void)
{
    place p;
    const taut_status s = enter(&p, &small);
    cJSON *o = s ? NULL : cJSON_CreateObject();
    if (o) {
        const bench_cost made = certify(&p, "cpu");
        const bench_cost checked = bench_self((const char *const[]){ "taut", "check", p.cert, p.model, NULL });
        cJSON_AddNumberToObject(o, "threads", taut_threads());
        cJSON_AddNumberToObject(o, "seconds", made.seconds);
        cJSON_AddNumberToObject(o, "peak_gb", 1e-9 * made.bytes);
        cJSON_AddNumberToObject(o, "certify_exit", made.code);
        cJSON_AddNumberToObject(o, "check_seconds", checked.seconds);
        cJSON_AddNumberToObject(o, "check_peak_gb", 1e-9 * checked.bytes);
        cJSON_AddNumberToObject(o, "check_exit", checked.code);
    }
    leave(&p);
    if (o && bench_norm(o)) {
        cJSON_Delete(o);
        o = NULL;
    }
    return o;
}

static cJSON *on_device(const shape *of, bool host)
{
    place p;
    const taut_status s = enter(&p, of);
    cJSON *o = s ? NULL : cJSON_CreateObject();
    if (o) {
        const bench_cost there = certify(&p, "cuda64");
        cJSON_AddStringToObject(o, "shape", of->name);
        cJSON_AddNumberToObject(o, "seconds", there.seconds);
        cJSON_AddNumberToObject(o, "certify_exit", there.code);
    }
    if (o && host) {
        const bench_cost here = certify(&p, "cpu");
        cJSON_AddNumberToObject(o, "host_seconds", here.seconds);
        cJSON_AddNumberToObject(o, "host_exit", here.code);
    }
    leave(&p);
    return o;
}

cJSON *bench_gpu_certify(void)
{
    const taut_kernels *k;
    cJSON *o, *rows;
    if (taut_kernels_open(&k, "cuda64")) return NULL;
    o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    rows = cJSON_AddArrayToObject(o, "shapes");
    for (int i = 0; i < 2; i++) {
        cJSON *row = on_device(i ? &large : &small, i == 0);
        if (!row) {
            cJSON_Delete(o);
            return NULL;
        }
        cJSON_AddItemToArray(rows, row);
    }
    return o;
}
