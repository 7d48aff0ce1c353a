/* Examples are checked on all threads: the same verdict and counts for any number of them, the earliest example that is false is
 * the one that is named, memory that is out is a status, and every thread rounds to nearest again afterwards. */
#include <fenv.h>

#include "base/alloc.h"
#include "base/json.h"
#include "certify/build.h"
#include "check/check.h"
#include "temp.h"
#include "verdict/predictions.h"

enum { N = 24, T = 4, TOKENS = 30 };

static char *model_path, *cert_path;

static taut_checked checked(const cJSON *cert, int threads)
{
    taut_checked r;
    int odd = 0;
    char *text = taut_json_text(cert, false);
    temp_put("cert.json", text, strlen(text));
    free(text);
    taut_threads_set(threads);
    must(taut_check_files(&r, cert_path, model_path));
#pragma omp parallel reduction(+ : odd)
    odd += fegetround() != FE_TONEAREST;
    CHECK(odd == 0, "every thread rounds to nearest again");
    case_no++;
    return r;
}

static cJSON *radius_of(const cJSON *cert, int i)
{
    return cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(cert, "examples"), i), "radius");
}

/* A certificate with N examples, all with a radius. */
static cJSON *certify(void)
{
    int32_t ids[N * T], labels[N] = { 0 };
    taut_certificate c;
    taut_predictions p;
    must(taut_certify(&c, model_path, TAUT_NORM_FLAT, 100));
    for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
    const taut_examples from = { .ids = ids, .labels = labels, .n = N, .t = T, .d = c.model->in.d };
    must(taut_predictions_make(&p, &c, &from, &(taut_predictions_way){ 0 }, NULL, NULL));
    for (int i = 0; i < N; i++) CHECK(p.example[i].radius.v > 0, "a radius to check");
    cJSON *cert = cJSON_Duplicate(c.json, true);
    taut_predictions_free(&p);
    taut_certificate_free(&c);
    return cert;
}

static void no_memory(void)
{
    taut_status s = TAUT_NO_MEMORY;
    taut_checked r;
    int n = 0;
    taut_threads_set(3);
    while (s == TAUT_NO_MEMORY && n < 100000) {
        taut_alloc_fail_at(n += 1 + n / 16);
        s = taut_check_files(&r, cert_path, model_path);
    }
    taut_alloc_fail_at(0);
    CHECK(!s, taut_last_error());
    CHECK_LE(50, n, "many allocations, some of which failed");
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("m.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    taut_model *m = blank_model("[model]\narch = gpt\nwidth = 24\ndepth = 2\nheads = 2\ncontext = 4\nnorm = none\n"
                                "attention = position\nactivation = relu\n",
                                TOKENS, false);
    must(taut_model_init(m, 3));
    must(taut_model_save(m, model_path));
    taut_model_free(m);
    cJSON *cert = certify();
    for (int threads = 1; threads <= 4; threads++) {
        const taut_checked r = checked(cert, threads);
        CHECK(r.holds && r.examples == N && r.certified == N && r.unknown == 0, r.why);
    }
    no_memory();
    static const int wrong[][2] = { { 7, 9 }, { 23, 8 }, { 0, 1 }, { 22, 23 } };
    for (int i = 0; i < 4; i++) {
        cJSON *bent = cJSON_Duplicate(cert, true);
        for (int k = 0; k < 2; k++) cJSON_SetNumberValue(radius_of(bent, wrong[i][k]), 99);
        char name[32];
        snprintf(name, sizeof name, "example %d:", wrong[i][0] < wrong[i][1] ? wrong[i][0] : wrong[i][1]);
        for (int threads = 1; threads <= 4; threads++) {
            const taut_checked r = checked(bent, threads);
            CHECK(!r.holds && strncmp(r.why, name, strlen(name)) == 0, r.why);
        }
        cJSON_Delete(bent);
    }
    cJSON_Delete(cert);
    free(model_path), free(cert_path);
    return test_end("examples", "%d checks of %d examples on one to four threads", case_no, N);
}
