/* A model file around any tree, and a certificate that claims nothing but infinities: whether it holds is a question of the
 * tree alone, and examples run the tree forward. */
#ifndef TREE_H
#define TREE_H
#include <cjson/cJSON.h>

#include "base/sha256.h"
#include "check/check.h"
#include "harness.h"
#include "temp.h"

typedef struct {
    const char *name;
    int rows, cols; /* rows = 0: a list */
} tree_tensor;

/* The file's bytes: this tree, these tensors with small random weights.  The caller frees. */
static inline char *tree_file(const char *tree, const tree_tensor *t, int count, size_t *len)
{
    cJSON *h = cJSON_CreateObject();
    int at = 0;
    cJSON_AddStringToObject(cJSON_AddObjectToObject(h, "__metadata__"), "taut.tree", tree);
    for (int i = 0; i < count; i++) {
        const int numbers = (t[i].rows ? t[i].rows : 1) * t[i].cols, ends[] = { at, at + 4 * numbers };
        cJSON *o = cJSON_AddObjectToObject(h, t[i].name);
        cJSON_AddStringToObject(o, "dtype", "F32");
        cJSON_AddItemToObject(o, "shape", cJSON_CreateIntArray(&t[i].rows + !t[i].rows, t[i].rows ? 2 : 1));
        cJSON_AddItemToObject(o, "data_offsets", cJSON_CreateIntArray(ends, 2));
        at = ends[1];
    }
    char *text = cJSON_PrintUnformatted(h);
    const uint64_t size = strlen(text);
    char *file = malloc(8 + size + (size_t)at);
    memcpy(file, &size, 8); /* little-endian, as all our machines */
    memcpy(file + 8, text, size);
    for (int i = 0; i < at / 4; i++) {
        const float w = (float)(0.3 * rng_pm());
        memcpy(file + 8 + size + 4 * i, &w, 4);
    }
    *len = 8 + size + (size_t)at;
    free(text);
    cJSON_Delete(h);
    return file;
}

/* The proof that claims nothing, for a module of the tree. */
static inline cJSON *tree_proof(const cJSON *module)
{
    const cJSON *of = cJSON_GetObjectItem(module, "of");
    cJSON *o = cJSON_CreateObject();
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "rule" : "name", *word = cJSON_GetStringValue(cJSON_GetObjectItem(module, key));
        if (word) cJSON_AddStringToObject(o, key, word);
    }
    cJSON *parts = of ? cJSON_AddArrayToObject(o, "of") : NULL;
    for (const cJSON *k = of ? of->child : NULL; k; k = k->next) cJSON_AddItemToArray(parts, tree_proof(k));
    cJSON_AddStringToObject(o, "lip", "inf");
    cJSON_AddStringToObject(o, "out", "inf");
    return o;
}

/* Its certificate, with an example that says token 0 is ahead by nothing much. */
static inline cJSON *tree_certificate(const cJSON *tree, const char *file, size_t len, bool example)
{
    char hex[65];
    taut_sha256 sha;
    taut_sha256_begin(&sha);
    taut_sha256_add(&sha, file, len);
    taut_sha256_end(&sha, hex);
    cJSON *cert = cJSON_CreateObject(), *m = cJSON_AddObjectToObject(cert, "model");
    const double tokens = cJSON_GetNumberValue(cJSON_GetObjectItem(tree, "tokens"));
    cJSON_AddStringToObject(cert, "format", "taut-certificate");
    cJSON_AddStringToObject(cert, "norm", "flat");
    cJSON_AddNumberToObject(cert, "version", 3);
    cJSON_AddNumberToObject(m, "bytes", (double)len);
    cJSON_AddStringToObject(m, "sha256", hex);
    cJSON_AddNumberToObject(cert, "tokens", tokens);
    cJSON *region = cJSON_AddObjectToObject(cert, "region");
    cJSON_AddNumberToObject(region, "room", 1);
    cJSON_AddNumberToObject(region, "reach", 1000);
    cJSON_AddStringToObject(cert, "lip", "inf");
    cJSON_AddItemToObject(cert, "proof", tree_proof(cJSON_GetObjectItem(tree, "root")));
    if (!example) return cert;
    cJSON *e = cJSON_CreateObject(), *ids = cJSON_AddArrayToObject(e, "ids");
    for (int i = 0; i < tokens && i < 100; i++) cJSON_AddItemToArray(ids, cJSON_CreateNumber(i % 2));
    cJSON_AddStringToObject(e, "verdict", "unknown");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(cert, "examples"), e);
    return cert;
}
#endif
