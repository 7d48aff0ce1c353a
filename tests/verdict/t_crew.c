/* Examples shared out over threads: predictions and the certificate's text are the same bytes for any number of them, around
 * examples too; the caller alone is told, and may stop; the earliest failure is the answer; no memory for what a thread
 * holds is a status. */
#include <omp.h>
#include <pthread.h>

#include "base/alloc.h"
#include "certify/build.h"
#include "temp.h"
#include "verdict/predictions.h"

enum { N = 13, T = 4, TOKENS = 30 };

static int32_t ids[N * T], labels[N];
static taut_certificate cert;
static pthread_t caller;
static int calls, foreign;
static double last;

static int count_calls(double done, void *stop_at)
{
    calls++;
    foreign += !pthread_equal(pthread_self(), caller);
    CHECK_LE(last, done, "progress goes forwards");
    last = done;
    return calls == *(int *)stop_at;
}

/* The text of the certificate with its examples; NULL when stopped or out of memory. */
static char *made(bool local, int stop_at, taut_status *status)
{
    const taut_examples from = { .ids = ids, .labels = labels, .n = N, .t = T, .d = cert.model->in.d };
    taut_predictions p;
    calls = 0, last = 0;
    *status = taut_predictions_make(&p, &cert, &from, &(taut_predictions_way){ .local = local }, count_calls, &stop_at);
    char *text = *status ? NULL : cJSON_PrintUnformatted(cert.json);
    if (!*status && local)
        for (int i = 0; i < N; i++) CHECK(p.local[i].lip.v <= cert.lip.v, "a constant around each");
    if (!*status) taut_predictions_free(&p);
    cJSON_DeleteItemFromObject(cert.json, "examples");
    return text;
}

static void same_bytes(void)
{
    taut_status s;
    for (int local = 0; local < 2; local++) {
        char *one = NULL;
        for (int threads = 1; threads <= 5; threads++, case_no++) {
            taut_threads_set(threads);
            char *text = made(local, -1, &s);
            CHECK(!s && text, taut_last_error());
            CHECK(last == 1 && calls <= N, "told at the end, and no more often than there are examples");
            if (one) CHECK(strcmp(one, text) == 0, "the same bytes on any number of threads");
            free(one);
            one = text;
        }
        free(one);
    }
    CHECK(foreign == 0, "the caller's thread is told, and no other");
}

static void stopped(void)
{
    taut_status s;
    for (int threads = 1; threads <= 3; threads++, case_no++) {
        taut_threads_set(threads);
        CHECK(made(false, 1, &s) == NULL && s == TAUT_BAD_CALL, "who is told may stop");
        CHECK(strcmp(taut_last_error(), "stopped") == 0, taut_last_error());
    }
}

static taut_status odd_ones_fail(taut_hand *h, int64_t i, void *arg)
{
    (void)h, (void)arg;
    return i % 2 ? taut_fail(TAUT_BAD_DATA, "number %lld", (long long)i) : TAUT_OK;
}

static void failures(void)
{
    const taut_crew crew = { &cert, NULL, N, odd_ones_fail, NULL, NULL, NULL, NULL };
    for (int threads = 1; threads <= 3; threads++, case_no++) {
        taut_threads_set(threads);
        CHECK(taut_crew_work(&crew) == TAUT_BAD_DATA, "a failure is the answer");
        CHECK(strcmp(taut_last_error(), "number 1") == 0, "that of the earliest, in the caller's thread");
    }
}

static taut_status idle(taut_hand *h, int64_t i, void *arg)
{
    (void)i, (void)arg;
    return h->pass && h->logits && h->reader ? TAUT_OK : taut_fail(TAUT_BAD_CALL, "an empty hand");
}

static void no_memory(void)
{
    const taut_examples from = { .ids = ids, .labels = labels, .n = N, .t = T, .d = cert.model->in.d };
    const taut_crew crew = { &cert, &from, N, idle, NULL, NULL, NULL, NULL };
    taut_status s = TAUT_NO_MEMORY;
    int n = 0;
    taut_threads_set(3);
    for (; s == TAUT_NO_MEMORY && n < 1000; case_no++) {
        taut_alloc_fail_at(++n);
        s = taut_crew_work(&crew);
    }
    taut_alloc_fail_at(0);
    CHECK(!s, taut_last_error());
    CHECK_LE(3 * 4, n, "what each hand holds, every part of which may be missing");
}

int main(void)
{
    test_begin();
    temp_begin();
    caller = pthread_self();
    taut_model *m = blank_model("[model]\narch = gpt\nwidth = 24\ndepth = 2\nheads = 2\ncontext = 4\nnorm = none\n",
                                TOKENS, false);
    must(taut_model_init(m, 3));
    must(taut_model_save(m, temp_path("m.safetensors")));
    taut_model_free(m);
    must(taut_certify(&cert, temp_path("m.safetensors"), TAUT_NORM_FLAT, 0.1));
    for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
    for (int i = 0; i < N; i++) labels[i] = (int32_t)rng_int(0, TOKENS - 1);
    same_bytes();
    stopped();
    failures();
    no_memory();
    taut_certificate_free(&cert);
    return test_end("crew", "one to five threads: the same bytes; stopped, failed and out of memory in good order");
}
