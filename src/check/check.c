/* The whole check: files, the certificate's own fields, the proof tree, the examples; and memory that ends with it. */
#include "check/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "check/ck.h"

struct ck_block {
    struct ck_block *before;
    max_align_t data[];
};

void ck_fail(ck *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->out->why, sizeof c->out->why, format, args);
    va_end(args);
    longjmp(c->end, 1);
}

void *ck_room(ck *c, int64_t count, size_t size)
{
    struct ck_block *b = taut_calloc(1, sizeof *b + (size_t)count * size);
    if (!b) c->status = taut_no_memory("the check");
    if (!b) longjmp(c->end, 1);
    b->before = c->blocks;
    c->blocks = b;
    return b->data;
}

void ck_give_back(ck *c, const struct ck_block *to)
{
    for (struct ck_block *b = c->blocks, *before; b != to; b = before) {
        before = b->before;
        free(b);
        c->blocks = before;
    }
}

const cJSON *ck_get(const cJSON *json, const char *key) { return cJSON_GetObjectItemCaseSensitive(json, key); }

/* The fields around the proof; the region, the proof and its lip; the examples. */
static void confirm(ck *c)
{
    taut_checked *out = c->out;
    ck_fields f = { c, "the certificate", "version 1", c->cert, 0 };
    const char *norm = ck_word(&f, "norm");
    const cJSON *proof = ck_take(&f, "proof"), *examples = ck_take(&f, "examples");
    const double tokens = ck_stated(&f, "tokens");
    ck_word(&f, "format"), ck_word(&f, "tool"), ck_take(&f, "model");
    out->room = ck_stated(&f, "room");
    out->flat = strcmp(norm, "flat") == 0;
    if (ck_stated(&f, "version") != 1) ck_fail(c, "the certificate's version is not 1");
    if (!out->flat && strcmp(norm, "tokens") != 0) ck_fail(c, "the certificate's norm is neither tokens nor flat");
    if (!(tokens >= 1 && tokens <= c->r.context) || tokens != floor(tokens))
        ck_fail(c, "the certificate's tokens must be a whole number from 1 to the context, %.0f", c->r.context);
    out->tokens = (int64_t)tokens;
    out->reach = ck_claim(&f, "reach", ck_add(out->room, ck_longest(c->embed)));
    ck_confirm(c, c->root, proof, out->reach);
    out->lip = ck_claim(&f, "lip", c->root->lip);
    if (*c->bad && isfinite(out->lip)) ck_fail(c, "%s is not finite: no finite lip is true", c->bad);
    ck_close(&f);
    for (const cJSON *e = examples ? examples->child : NULL; e; e = e->next) ck_example(c, e);
    out->holds = true;
}

taut_status taut_check_files(taut_checked *out, const char *cert, const char *model)
{
    size_t len;
    char *text = NULL;
    ck *c = taut_calloc(1, sizeof *c);
    *out = (taut_checked){ 0 };
    if (!c) return taut_no_memory("the check");
    c->out = out;
    c->status = taut_file_read(&text, &len, cert);
    if (!c->status && strlen(text) == len) c->cert = cJSON_ParseWithOpts(text, NULL, 1);
    const char *format = cJSON_GetStringValue(ck_get(c->cert, "format"));
    if (!c->status && (!format || strcmp(format, "taut-certificate") != 0))
        c->status = taut_fail(TAUT_BAD_FILE, "%s: not a certificate", cert);
    if (!c->status) c->status = taut_file_read(&c->file, &c->size, model);
    if (!c->status && setjmp(c->end) == 0) {
        ck_model_read(c);
        confirm(c);
    }
    const taut_status status = c->status;
    ck_give_back(c, NULL);
    cJSON_Delete(c->cert);
    cJSON_Delete(c->header);
    free(c->file);
    free(c);
    free(text);
    return status;
}
