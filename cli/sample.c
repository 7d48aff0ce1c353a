/* Draws text from a GPT: temperature 0 takes the likeliest token, --top-k keeps the k likeliest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "cli.h"
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
        ids[count] = draw(c, logits, logits + vocab, vocab, count);
    }
    taut_pass_free(pass);
    free(logits);
    return s;
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

static int print(const cli_args *a, const taut_net *m, const int32_t *ids, int64_t count)
{
    char *text = NULL;
    size_t len = 0;
    if (taut_vocab_decode(&text, &len, m->vocab, ids, count)) return cli_fail(a);
    int code = EXIT_DONE;
    if (cli_flag(a, "--json")) {
        cJSON *o = cJSON_CreateObject();
        char *plain = as_utf8(text, len);
        cJSON_AddStringToObject(o, "text", plain ? plain : "");
        free(plain);
        cJSON_AddNumberToObject(o, "tokens", (double)count);
        code = cli_json(o);
    } else {
        fwrite(text, 1, len, stdout);
        putchar('\n');
    }
    free(text);
    return code;
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

static int run(const cli_args *a)
{
    const int64_t length = cli_int(a, "--length", 200, 1, 10000000);
    const choice c = { cli_real(a, "--temperature", 0.8, 0, 100), cli_int(a, "--top-k", 0, 0, 1 << 30),
                       taut_rng_key((uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX), TAUT_RNG_SAMPLE, 0) };
    const taut_kernels *k = cli_kernels(a);
    taut_net *m = NULL;
    int32_t *ids = NULL, *grown;
    int64_t count = 0;
    taut_status s = taut_net_open_on(&m, a->operand[0], k, (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX));
    if (s) return cli_fail(a);
    if (m->model->spec.arch != TAUT_ARCH_GPT)
        s = taut_fail(TAUT_BAD_CONFIG, "%s is of model.arch = %s: only a gpt writes text", a->operand[0],
                      taut_arch_name(m->model->spec.arch));
    if (!s) s = start(&ids, &count, m->vocab, cli_text(a, "--prompt", NULL));
    if (!s && count == 0) s = taut_fail(TAUT_BAD_DATA, "an empty --prompt gives the model nothing to start from");
    if (!s) {
        grown = taut_realloc(ids, (size_t)(count + length) * sizeof *ids);
        if (grown) ids = grown;
        s = grown ? generate(m, ids, count, length, &c) : taut_no_memory("sampling");
    }
    const int code = s ? cli_fail(a) : print(a, m, ids, count + length);
    free(ids);
    taut_net_free(m);
    return code;
}

static const cli_option options[] = {
    { "--prompt", "TEXT", "what it goes on from (default: a new line, or what the text has instead)" },
    { "--length", "N", "tokens to write" },
    { "--temperature", "T", "0: always the likeliest token (default 0.8)" },
    { "--top-k", "K", "choose among the K likeliest tokens only" },
    { NULL, NULL, NULL },
};

const cli_command cli_sample = {
    "sample", "MODEL", "writes text with a GPT", "taut sample runs/tiny --length 300 --temperature 0.7", 1, 1,
    options,  run,
};
