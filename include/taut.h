/* taut: train, measure and certify Lipschitz-bounded transformers.
 *
 * The whole public interface; examples/first.c uses all of it in thirty lines.
 *
 *     cc program.c $(pkg-config --cflags --libs taut)
 *
 * Handles are opaque and belong to whoever opened them.  Every call that can fail because the world failed returns a
 * taut_status and leaves one line in taut_last_error(); what it was to fill is then not to be used.  Strings and arrays that are
 * passed in are read during the call and not kept.  Different handles may be used by different threads at the same time, one
 * handle by one thread at a time.  The library never prints and never exits, unless it finds a bug in itself. */
#ifndef TAUT_H
#define TAUT_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TAUT_VERSION  "0.1.0"
#define TAUT_API      __attribute__((visibility("default")))
#define TAUT_MUST_USE __attribute__((warn_unused_result))

typedef enum {
    TAUT_OK,
    TAUT_NO_MEMORY,
    TAUT_BAD_FILE,   /* missing, unreadable, damaged, or not what it should be */
    TAUT_BAD_CONFIG, /* a recipe, an override or an argument that makes no sense */
    TAUT_BAD_DATA,   /* data that are not found or do not fit the model */
    TAUT_NOT_FINITE, /* training met a NaN or an infinity */
    TAUT_DEVICE
} taut_status;

TAUT_API const char *taut_version(void); /* of the library that runs; TAUT_VERSION is the header's */

/* What went wrong last in this thread: one line, no newline, never NULL. */
TAUT_API const char *taut_last_error(void);

/* Threads for everything below; 0 asks for one a processor.  Results do not depend on it. */
TAUT_API void taut_threads_set(int threads);

/* Trains a recipe (.ini) into the folder `run`: recipe.ini, log.jsonl, model.safetensors, state.safetensors, summary.json.
 * overrides are `count` times "section.key=value".  resume, if not 0, goes on from the folder's last checkpoint, bit for bit;
 * without it a finished run that is in the folder is overwritten. */
typedef struct {
    int64_t steps, tokens, weights; /* done; seen; of the model */
    double train_loss;              /* mean of the last 32 steps */
    double val_loss, val_acc;       /* on the whole validation split; val_acc is NaN for a forecaster */
    double tokens_per_s, seconds;
} taut_result;
TAUT_API TAUT_MUST_USE taut_status taut_train_recipe(taut_result *out, const char *recipe, const char *run,
                                                     const char *const *overrides, int count, int resume);

/* A trained model of texts, from its model.safetensors.  kernels: "cpu" (float, fast), "ref" (double, the definition),
 * or "cuda" and "cuda64", the same on a GPU, where libtaut_cuda.so and a device are there.  Its
 * weights stay in memory until it is freed. */
typedef struct taut_net taut_net;
TAUT_API TAUT_MUST_USE taut_status taut_net_open(taut_net **out, const char *path, const char *kernels);
TAUT_API void taut_net_free(taut_net *); /* NULL is fine */

TAUT_API int64_t taut_net_tokens(const taut_net *);  /* ids are 0 .. tokens-1; that many logits a token */
TAUT_API int64_t taut_net_context(const taut_net *); /* the longest sequence */

/* logits (n, t, tokens) of the token ids (n, t), row by row; t is at most the context.  TAUT_BAD_DATA: an id outside
 * the vocabulary, or a sequence too long. */
TAUT_API TAUT_MUST_USE taut_status taut_net_logits(taut_net *, double *logits, const int32_t *ids, int64_t n,
                                                   int64_t t);

/* A proved Lipschitz constant from token embeddings (or pixels in [0, 1]) that are not moved to logits, for sequences of the
 * longest length, from the stored weights; +inf when none is known.  A change is measured by its largest token, or by the
 * l2 norm over everything.  Opens the file again in double: a bound is about the bytes on disk. */
typedef enum { TAUT_TOKENS, TAUT_FLAT } taut_metric;
TAUT_API TAUT_MUST_USE taut_status taut_file_bound(double *bound, const char *path, taut_metric metric);

#ifdef __cplusplus
}
#endif
#endif
