/* Two threads with a model each, training and certifying at the same time, get the bits that each gets alone. */
#include <pthread.h>

#include "runs.h"

typedef struct {
    char run[1100], cert[1200], model[1200];
    bool images;
} job;

static void *work(void *arg)
{
    const job *j = arg;
    taut_cert *c = NULL;
    taut_threads_set(2);
    if (j->images)
        train_images(j->run);
    else
        train_text(j->run);
    must(taut_certify_file(&c, j->run, OPTIONS(taut_certify_options, .room = 0.5, .examples = 3)), "certify");
    must(taut_cert_save(c, j->cert), "save");
    taut_cert_free(c);
    return NULL;
}

static job job_of(const char *name, bool images)
{
    job j = { .images = images };
    snprintf(j.run, sizeof j.run, "%s", temp_path(name));
    snprintf(j.cert, sizeof j.cert, "%s/c.json", j.run);
    snprintf(j.model, sizeof j.model, "%s/model.safetensors", j.run);
    return j;
}

static bool same(const char *a, const char *b)
{
    size_t na = 0, nb = 0;
    char *x = temp_get(a, &na), *y = temp_get(b, &nb);
    const bool equal = x && y && na == nb && memcmp(x, y, na) == 0;
    free(x), free(y);
    return equal;
}

int main(void)
{
    test_begin();
    temp_begin();
    job alone[2] = { job_of("text", false), job_of("img", true) };
    job both[2] = { job_of("text2", false), job_of("img2", true) };
    for (int i = 0; i < 2; i++) work(&alone[i]);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, work, &both[i]) == 0, "a thread");
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(same(alone[i].model, both[i].model), "the same model");
        CHECK(same(alone[i].cert, both[i].cert), "the same certificate");
    }
    return test_end("threads", "two at a time as each alone");
}
