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
    if (!b) {
        c->status = taut_no_memory("the check");
        longjmp(c->end, 1);
    }
    b->before = c->blocks;
    c->blocks = b;
    return b->data;
}

void ck_give_back(ck *c, const struct ck_block *to)
{
    while (c->blocks != to) {
        struct ck_block *b = c->blocks;
        c->blocks = b->before;
        free(b);
    }
}

void ck_distinct(ck *c, const cJSON *json)
{
    for (const cJSON *a = json ? json->child : NULL; a; a = a->next) {
        for (const cJSON *b = a->next; b && a->string; b = b->next)
            if (strcmp(a->string, b->string) == 0) ck_fail(c, "%s is there twice in one object", a->string);
        ck_distinct(c, a);
    }
}

static void read_certificate(ck *c, const char *path, const char *text, size_t len)
{
    const char *end = NULL;
    if (strlen(text) == len) c->cert = cJSON_ParseWithOpts(text, &end, 1);
    const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->cert, "format"));
    if (format && strcmp(format, "taut-certificate") == 0) return;
    c->status = taut_fail(TAUT_BAD_FILE, "%s: not a certificate", path);
    longjmp(c->end, 1);
}

/* The fields around the proof; the region, the proof and its lip; the examples. */
static void confirm(ck *c)
{
    const ck_node outside = { .path = "the certificate" };
    ck_fields f = { c, &outside, c->cert, "version 1", 1 }; /* format was looked at */
    const char *norm = cJSON_GetStringValue(ck_take(&f, "norm"));
    const cJSON *proof = ck_take(&f, "proof"), *examples = ck_take(&f, "examples");
    ck_take(&f, "tool");
    ck_take(&f, "model");
    const double tokens = ck_stated(&f, "tokens");
    c->out->room = ck_stated(&f, "room");
    c->out->flat = norm && strcmp(norm, "flat") == 0;
    if (ck_stated(&f, "version") != 1) ck_fail(c, "the certificate's version is not 1");
    if (!norm || (!c->out->flat && strcmp(norm, "tokens") != 0)) ck_fail(c, "its norm is neither tokens nor flat");
    if (!(tokens >= 1 && tokens <= c->r.context) || tokens != floor(tokens))
        ck_fail(c, "its tokens must be a whole number from 1 to the model's context, %.0f", c->r.context);
    c->out->tokens = (int64_t)tokens;
    c->out->reach = ck_claim(&f, "reach", ck_add(c->out->room, ck_longest(c->embed)));
    if (!cJSON_IsObject(proof)) ck_fail(c, "it has no proof");
    ck_confirm(c, c->root, proof, c->out->reach);
    c->out->lip = ck_claim(&f, "lip", *c->bad ? INFINITY : c->root->lip);
    ck_close(&f);
    for (const cJSON *e = examples ? examples->child : NULL; e; e = e->next) ck_example(c, e);
    c->out->holds = true;
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
    if (!c->status) c->status = taut_file_read(&c->file, &c->size, model);
    if (!c->status && setjmp(c->end) == 0) {
        read_certificate(c, cert, text, len);
        ck_distinct(c, c->cert);
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
