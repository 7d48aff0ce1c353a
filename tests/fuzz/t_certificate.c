/* Certificates, as the checker reads them: damage must be refused or named, and never make a smaller claim pass. */
#include "fuzz.h"

#include "base/json.h"
#include "certify/certify.h"
#include "check/check.h"

static const char recipe[] =
    "[model]\narch = gpt\nwidth = 8\ndepth = 1\nheads = 2\ncontext = 4\nnorm = none\nresidual = convex\n";
static double proved;
static char model_path[2048];

static void fuzz_begin(void)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    taut_certificate cert;
    if (taut_config_parse(&cfg, recipe, "fuzz")) abort();
    if (taut_model_spec_read(&spec, cfg)) abort();
    if (taut_config_finish(cfg)) abort();
    char *resolved = taut_config_print(cfg);
    snprintf(model_path, sizeof model_path, "%s", temp_path("model.safetensors"));
    if (taut_model_create(&m, &spec, 3, resolved, "chars abc", taut_kernels_find("ref")) || taut_model_bind(m, false) ||
        taut_model_init(m, 1) || taut_model_save(m, model_path) || taut_certify(&cert, model_path, TAUT_NORM_TOKENS, 0))
        abort();
    char *text = taut_json_text(cert.json, false);
    fuzz_seed_text(text);
    proved = cert.lip.v;
    taut_checked out;
    CHECK(!taut_check_files(&out, fuzz_file((const uint8_t *)text, strlen(text)), model_path) && out.holds,
          "the seed holds");
    free(text);
    free(resolved);
    taut_certificate_free(&cert);
    taut_model_free(m);
    taut_config_free(cfg);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_checked out;
    if (taut_check_files(&out, fuzz_file(data, len), model_path)) return;
    if (out.holds && !out.flat) CHECK_LE(proved * (1 - 1e-6), out.lip, "a smaller constant was accepted");
}
