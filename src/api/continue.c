/* Goes on with a text: one token after the other, drawn from what the model says of the next. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "model/pass.h"

typedef struct {
    double temperature;
    int64_t top_k;
    uint64_t key;
} choice;

static int by_falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The logit of rank k, so that exactly the larger ones and itself stay. */
static double threshold(const double *logits, double *sorted, int64_t classes, int64_t k)
{
    if (k <= 0 || k >= classes) return -INFINITY;
    memcpy(sorted, logits, (size_t)classes * sizeof *sorted);
    qsort(sorted, (size_t)classes, sizeof *sorted, by_falling);
    return sorted[k - 1];
}

static int32_t draw(const choice *c, double *logits, double *work, int64_t classes, int64_t position)
{
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 1; i < classes; i++)
        if (logits[i] > logits[best]) best = i;
    if (c->temperature == 0) return (int32_t)best;
    const double least = threshold(logits, work, classes, c->top_k), most = logits[best];
    for (int64_t i = 0; i < classes; i++)
        sum += work[i] = logits[i] >= least ? exp((logits[i] - most) / c->temperature) : 0;
    double left = taut_rng_unit(c->key, (uint64_t)position) * sum;
    for (int64_t i = 0; i < classes; i++)
        if ((left -= work[i]) < 0) return (int32_t)i;
    return (int32_t)best;
}

/* What a device that failed has written is not finite either: it is asked first. */
static taut_status check_logits(const taut_kernels *k, const double *logits, int64_t classes, int64_t position)
{
    int64_t good = 0;
    while (good < classes && isfinite(logits[good])) good++;
    const taut_status s = good < classes ? k->read(NULL, NULL, 0) : TAUT_OK;
    if (s || good == classes) return s;
    return taut_fail(TAUT_NOT_FINITE, "token %lld: a logit is not finite", (long long)position + 1);
}

/* Appends `length` tokens to ids[0..count), reading at most the last `context` of them each time. */
static taut_status generate(const taut_net *m, int32_t *ids, int64_t count, int64_t length, const choice *c)
{
    const int64_t context = m->model->spec.context, vocab = taut_vocab_size(m->vocab);
    const taut_kernels *k = m->model->k;
    taut_pass *pass = NULL;
    double *logits = taut_malloc((size_t)vocab * 2 * sizeof *logits);
    taut_status s = logits ? taut_pass_create(&pass, m->model, 1, context, false) : taut_no_memory("sampling");
    for (int64_t i = 0; !s && i < length; i++, count++) {
        const int64_t t = count < context ? count : context;
        taut_pass_forward(pass, ids + count - t, 1, t);
        k->get(logits, taut_at(k, pass->logits.data, (t - 1) * pass->logits.shape.d), vocab);
        s = check_logits(k, logits, vocab, count);
        if (!s) ids[count] = draw(c, logits, logits + vocab, vocab, count);
    }
    taut_pass_free(pass);
    free(logits);
    return s ? s : k->read(NULL, NULL, 0); /* what failed on the way has written nothing */
}

/* JSON is UTF-8, and cJSON ends a string at NUL: a byte that is no part of a character becomes U+FFFD. */
static char *as_utf8(const char *text, size_t len)
{
    char *out = taut_malloc(3 * len + 1), *p = out;
    uint32_t code;
    for (size_t i = 0; out && i < len;) {
        const int size = text[i] ? taut_utf8_get(&code, text + i, len - i) : 0;
        memcpy(p, size ? text + i : "\xEF\xBF\xBD", size ? (size_t)size : 3);
        p += size ? size : 3;
        i += size ? (size_t)size : 1;
    }
    if (out) *p = 0;
    return out;
}

/* The prompt, or a new line; a text without new lines starts with a space, or with the first token there is. */
static taut_status start(int32_t **ids, int64_t *count, const taut_vocab *vocab, const char *prompt)
{
    static const char *const ways[] = { "\n", " " };
    if (prompt) return taut_vocab_encode(ids, count, vocab, prompt, strlen(prompt));
    for (int i = 0; i < 2; i++) {
        if (!taut_vocab_encode(ids, count, vocab, ways[i], 1) && *count > 0) return TAUT_OK;
        free(*ids);
        *ids = NULL;
    }
    *ids = taut_calloc(1, sizeof **ids);
    *count = 1;
    return *ids ? TAUT_OK : taut_no_memory("a prompt");
}

static taut_status check_options(choice *c, const taut_net *net, const taut_continue_options *o)
{
    const int64_t length = o->length;
    if (net->model->spec.arch != TAUT_ARCH_GPT)
        return taut_fail(TAUT_BAD_CONFIG, "a model of model.arch = %s: only a gpt writes text",
                         taut_arch_name(net->model->spec.arch));
    if (length < 0 || length > 10000000 || o->top_k < 0)
        return taut_fail(TAUT_BAD_CALL, "length %lld, top_k %lld", (long long)length, (long long)o->top_k);
    if (!(o->temperature >= 0 && o->temperature <= 100))
        return taut_fail(TAUT_BAD_CALL, "temperature %g is not from 0 to 100", o->temperature);
    *c = (choice){ o->likeliest         ? 0
                   : o->temperature > 0 ? o->temperature
                                        : 0.8,
                   o->top_k, taut_rng_key(o->seed ? o->seed : 1, TAUT_RNG_SAMPLE, 0) };
    return TAUT_OK;
}

/* Prompt and continuation as ids, the caller's. */
static taut_status write_ids(int32_t **ids, int64_t *count, const taut_net *net, const choice *c,
                             const taut_continue_options *o)
{
    const int64_t length = o->length ? o->length : 200;
    taut_status s = start(ids, count, net->vocab, o->prompt);
    if (!s && *count == 0) s = taut_fail(TAUT_BAD_DATA, "an empty prompt gives the model nothing to start from");
    if (s) return s;
    int32_t *grown = taut_realloc(*ids, (size_t)(*count + length) * sizeof **ids);
    if (!grown) return taut_no_memory("a text");
    *ids = grown;
    s = generate(net, *ids, *count, length, c);
    *count += length;
    return s;
}

static taut_status tell(char **json, const char *text, size_t len, int64_t tokens)
{
    cJSON *o = cJSON_CreateObject();
    char *plain = as_utf8(text, len);
    const bool whole = plain && cJSON_AddStringToObject(o, "text", plain) &&
                       cJSON_AddNumberToObject(o, "tokens", (double)tokens);
    free(plain);
    return taut_json_out(json, o, whole ? TAUT_OK : taut_no_memory("a text"));
}

taut_status taut_net_continue(taut_net *net, char **bytes, size_t *len, char **json,
                              const taut_continue_options *options)
{
    taut_continue_options o;
    choice c = { 0 };
    int32_t *ids = NULL;
    int64_t count = 0;
    char *text = NULL;
    size_t size = 0;
    if (bytes) *bytes = NULL;
    if (json) *json = NULL;
    NEED(net);
    if (bytes) NEED(len);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&c, net, &o);
    if (!s) s = write_ids(&ids, &count, net, &c, &o);
    if (!s) s = taut_vocab_decode(&text, &size, net->vocab, ids, count);
    if (!s && json) s = tell(json, text, size, count);
    free(ids);
    if (s || !bytes) {
        free(text);
        return s;
    }
    *bytes = text;
    *len = size;
    return TAUT_OK;
}
