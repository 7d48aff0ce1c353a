/* The whole check: files, the certificate's own fields, the proof tree, the examples; and memory that ends with the check. */
#include "check/check.h"

#include <fenv.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "check/ck.h"
#include "check/examples/examples.h"
#include "check/machine/arithmetic.h"

struct ck_block {
    struct ck_block *before;
    max_align_t data[];
};

/* A line begins with the path of a part; that of the whole network is empty. */
void ck_fail(ck *c, const char *format, ...)
{
    static const char root[] = "the network";
    char *why = c->out->why;
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(why, sizeof c->out->why, format, args);
    va_end(args);
    if ((why[0] == ' ' || why[0] == ':') && len + sizeof root <= sizeof c->out->why) {
        memmove(why + sizeof root - 1, why, (size_t)len + 1);
        memcpy(why, root, sizeof root - 1);
    }
    longjmp(c->end, 1);
}

void ck_give_up(ck *c, const ck_node *n, const char *why)
{
    c->out->foreign = true;
    ck_fail(c, "%s (%s): %s", n->path, n->rule->name, why);
}

void *ck_room(ck *c, int64_t count, size_t size)
{
    struct ck_block *b = taut_calloc(1, sizeof *b + (size_t)count * size);
    if (!b) c->status = taut_no_memory("the check");
    if (!b) longjmp(c->end, 1);
    b->before = c->blocks;
    c->blocks = b;
    c->taken += (double)count * (double)size;
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

/* Weights with NaN or infinity bound nothing, also where they drop out of the rule. */
static bool all_finite(const ck_node *n)
{
    for (int k = 0; k < CK_TENSORS; k++)
        for (int64_t i = 0; i < n->w[k].rows * n->w[k].ld; i++)
            if (!isfinite(n->w[k].v[i])) return false;
    return true;
}

void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x)
{
    const struct ck_block *mark = c->blocks;
    const char *rule = n->rule->name;
    ck_fields f = ck_open(c, n->path, json, rule, rule);
    ck_bound b = { INFINITY, INFINITY };
    if (strcmp(ck_word(&f, "name"), n->name) != 0)
        ck_fail(c, "%s (%s): it must be called '%s'", n->path, rule, n->name);
    n->in = x, n->norm = INFINITY, n->json = json;
    /* an mlp that is the only part of a mix may answer for the mix */
    const bool may = ck_is(n, "mlp") && n->up == n - 1 && n->end == n->up->end && ck_is(n->up, "mix");
    const char *scope = may ? ck_word(&f, "scope") : "";
    n->mixed = *scope != 0;
    if (n->mixed && strcmp(scope, "mix") != 0) ck_fail(c, "%s (mlp): its scope can be mix only", n->path);
    /* without numbers, and with lip and out infinite, a leaf claims nothing */
    const bool silent = cJSON_GetArraySize(json) == f.taken + 2 && cJSON_IsString(ck_get(json, "lip")) &&
                        !n->rule->join;
    if (!silent) b = n->rule->prove(&f, n, x);
    if (!all_finite(n)) b = (ck_bound){ INFINITY, INFINITY }, n->norm = INFINITY;
    n->lip = ck_claim(&f, "lip", b.lip);
    n->out = ck_claim(&f, "out", b.out);
    ck_close(&f);
    ck_give_back(c, mark);
}

/* The inputs that the certificate is about, in the size that enters the root.  Images are p + e, p in the box [0, 1]^d and
 * |e|_2 <= room, no matter how long: nothing else is proved of them.  Before version 3 the fields stood around the proof. */
static double region(ck *c, ck_fields *f)
{
    taut_checked *out = c->out;
    const bool old = c->version == 2;
    ck_fields r = { c, "the certificate", "region", old ? c->cert : ck_take(f, "region"), 0 };
    if (!cJSON_IsObject(r.json)) ck_fail(c, "the certificate states no region");
    out->room = ck_stated(&r, "room");
    if (out->series) out->rows = ck_stated(&r, "rows"); /* any choice: the claim is about such rows */
    double reach = sqrt((double)c->width) + out->room;
    if (c->unit && old)
        ck_fail(c, "in version 2 an image's certificate claims a ball of inputs that is not proved: certify it again");
    if (c->unit) {
        int64_t ends;
        const cJSON *box = ck_list(&r, "box", &ends);
        if (ends != 2 || cJSON_GetNumberValue(box) != 0 || cJSON_GetNumberValue(box->next) != 1)
            ck_fail(c, "the certificate's region: the box of an image must be [0, 1]");
    } else
        out->reach = reach = ck_claim(&r, "reach", out->room + (out->series ? out->rows : ck_longest(c->embed)));
    if (old) f->taken += r.taken;
    if (!old) ck_close(&r);
    return reach;
}

/* A name of kernels, which people will read. */
static bool is_word(const cJSON *json)
{
    const char *word = cJSON_GetStringValue(json);
    size_t len = 0;
    while (word && word[len] > ' ' && word[len] <= '~') len++;
    return word && !word[len] && len > 0 && len < 16;
}

/* The fields around the proof; the region, the proof and its lip; the examples. */
static void confirm(ck *c)
{
    taut_checked *out = c->out;
    ck_fields f = { c, "the certificate", "version 3", c->cert, 0 };
    const char *norm = ck_word(&f, "norm");
    int64_t count;
    const cJSON *proof = ck_take(&f, "proof"), *example = ck_list(&f, "examples", &count);
    const double tokens = ck_stated(&f, "tokens");
    const cJSON *tool = ck_take(&f, "tool"), *table = ck_take(&f, "for"); /* what tolerance was made for; a remark */
    ck_word(&f, "format"), ck_take(&f, "model");
    if (tool && !cJSON_IsString(tool)) ck_fail(c, "the certificate's tool is no word");
    if (table && !is_word(table)) ck_fail(c, "the certificate's for is no word");
    if (table && !ck_get(c->cert, "tolerance"))
        ck_fail(c, "the certificate is for kernels, and states no tolerance of theirs");
    out->flat = strcmp(norm, "flat") == 0;
    c->version = ck_stated(&f, "version");
    /* a later one may say what is not known here */
    out->foreign = c->version > 3 && c->version < 0x1p53 && c->version == floor(c->version);
    if (ck_get(c->cert, "about"))
        ck_fail(c, "this is what taut certify --json says; the certificate is what taut certify --out FILE writes");
    if (c->version != 2 && c->version != 3) ck_fail(c, "the certificate's version is neither 3 nor 2");
    if (!out->flat && strcmp(norm, "tokens") != 0) ck_fail(c, "the certificate's norm is neither tokens nor flat");
    if (tokens != (double)out->tokens) ck_fail(c, "the certificate must be for %lld tokens", (long long)out->tokens);
    ck_confirm(c, c->nodes, proof, region(c, &f));
    out->lip = ck_claim(&f, "lip", c->nodes->lip);
    out->tolerance = c->tolerance = ck_stated(&f, "tolerance"); /* any choice: radii are about such a runtime */
    if (table) snprintf(out->table, sizeof out->table, "%s", table->valuestring);
    out->defect = ck_claim(&f, "defect", isfinite(out->lip) ? c->nodes->defect : 0);
    if (*c->bad && isfinite(out->lip)) ck_fail(c, "%s is not finite: no finite lip is true", c->bad);
    ck_close(&f);
    ck_examples(c, example, count);
    out->holds = true;
}

taut_status taut_check_files(taut_checked *out, const char *cert, const char *model)
{
    size_t len, flaw;
    char *text = NULL;
    ck *c = taut_calloc(1, sizeof *c);
    *out = (taut_checked){ 0 };
    if (!c) return taut_no_memory("the check");
    c->out = out;
    c->status = ck_arithmetic();
    if (!c->status) c->status = taut_file_read(&text, &len, cert);
    if (!c->status && !(c->cert = ck_json(&flaw, text, len)))
        c->status = taut_fail(TAUT_BAD_FILE, "%s: not a certificate: no JSON at byte %zu", cert, flaw);
    const char *format = cJSON_GetStringValue(ck_get(c->cert, "format"));
    if (!c->status && (!format || strcmp(format, "taut-certificate") != 0))
        c->status = taut_fail(TAUT_BAD_FILE, "%s: not a certificate", cert);
    if (!c->status) c->status = taut_file_read(&c->file, &c->size, model);
    if (!c->status && setjmp(c->end) == 0) {
        ck_once(c, c->cert, "the certificate");
        ck_model_read(c);
        fesetround(FE_UPWARD); /* arithmetic.c saw that this works */
        confirm(c);
    }
    fesetround(FE_TONEAREST);
    const taut_status status = c->status;
    ck_give_back(c, NULL);
    cJSON_Delete(c->cert);
    cJSON_Delete(c->header);
    cJSON_Delete(c->tree);
    free(c->file);
    free(c);
    free(text);
    return status;
}
