/* Two threads that certify at the same time get the numbers, and the bytes of the proof, that each gets alone: nothing is shared
 * between them, not even a number of threads.  The matrices are large enough to be cut into pieces. */
#include <pthread.h>

#include "build.h"
#include "certify/certify.h"
#include "temp.h"

typedef struct {
    const char *path;
    char *json;
    double lip;
} job;

static void *certify(void *arg)
{
    job *j = arg;
    taut_certificate c;
    must(taut_certify(&c, j->path, TAUT_NORM_FLAT, 0.1));
    j->json = cJSON_PrintUnformatted(c.json);
    j->lip = c.lip.v;
    taut_certificate_free(&c);
    return NULL;
}

int main(void)
{
    static const char *const recipes[] = {
        "[model]\narch = gpt\nwidth = 320\ndepth = 1\nheads = 4\ncontext = 8\n",
        "[model]\narch = gpt\nwidth = 272\ndepth = 2\nheads = 2\ncontext = 4\nnorm = rmsnorm\n",
    };
    job alone[2], together[2];
    pthread_t id[2];
    test_begin();
    temp_begin();
    for (int i = 0; i < 2; i++) {
        const char *path = strdup(temp_path(i ? "b.safetensors" : "a.safetensors"));
        taut_model *m = blank_model(recipes[i], 50, false);
        must(taut_model_init(m, 7 + (uint64_t)i));
        must(taut_model_save(m, path));
        taut_model_free(m);
        alone[i].path = together[i].path = path;
        certify(&alone[i]);
        CHECK(isfinite(alone[i].lip), "a finite constant");
    }
    for (case_no = 0; case_no < 3; case_no++) {
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&id[i], NULL, certify, &together[i]) == 0, "a thread");
        for (int i = 0; i < 2; i++) {
            CHECK(pthread_join(id[i], NULL) == 0, "which ends");
            CHECK(alone[i].lip == together[i].lip, "the constant");
            CHECK(strcmp(alone[i].json, together[i].json) == 0, "the proof");
            free(together[i].json);
        }
    }
    for (int i = 0; i < 2; i++) free(alone[i].json), free((void *)alone[i].path);
    return test_end("threads", "two at a time, three times: the same bytes as alone");
}
