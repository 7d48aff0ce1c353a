/* The model file: is it the one that the certificate names, where are its weights, and which tree is it?
 *
 * The file is read once; the bytes that are hashed are the bytes that are used.  Every tensor must lie inside the
 * file, be F32 and have the shape that the recipe asks for; a tensor that nobody asks for, a key that is missing,
 * unknown or there twice, a second [model] section: refused, since the function might then be another one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "check/ck.h"

static const struct {
    const char *key, *words; /* words, or a number in [lo, hi] */
    double lo, hi;
    bool whole;
} keys[KEYS] = {
    [ARCH] = { "arch", "gpt|encoder", 0, 0, 0 },
    [WIDTH] = { "width", 0, 1, 0x1p24, 1 },
    [DEPTH] = { "depth", 0, 1, 128, 1 },
    [HEADS] = { "heads", 0, 1, 4096, 1 },
    [CONTEXT] = { "context", 0, 1, 0x1p24, 1 },
    [MLP] = { "mlp", 0, 1, 0x1p24, 1 },
    [NORM] = { "norm", "layernorm|rmsnorm|centernorm|none", 0, 0, 0 },
    [PLACE] = { "norm_place", "pre|post", 0, 0, 0 },
    [EPS] = { "norm_eps", 0, 0, 1, 0 },
    [EMBED_NORM] = { "embed_norm", "false|true", 0, 0, 0 },
    [POSITIONS] = { "positions", "learned|rope|alibi|none", 0, 0, 0 },
    [ROPE_BASE] = { "rope_base", 0, 1, 1e12, 0 },
    [BIAS] = { "bias", "false|true", 0, 0, 0 },
    [TIED] = { "tied", "false|true", 0, 0, 0 },
    [ACTIVATION] = { "activation", "gelu|gelu_tanh|relu|silu|tanh", 0, 0, 0 },
    [FACTOR] = { "activation_factor", 0, 1e-6, 1e6, 0 },
    [RESIDUAL] = { "residual", "plain|convex", 0, 0, 0 },
    [ALPHA] = { "residual_alpha", 0, 0, 1, 0 },
    [DROPOUT] = { "dropout", 0, 0, 0.95, 0 },
    [ATT_FACTOR] = { "attention_factor", 0, 0, 1e6, 0 },
    [ATT_SCALE] = { "attention_scale", "inv_sqrt_head|inv_head|inv_width", 0, 0, 0 },
    [ATT_OUT] = { "attention_out", 0, 0, 1e6, 0 },
    [LOGIT_SCALE] = { "logit_scale", 0, 1e-6, 1e6, 0 },
    [INIT] = { "init", "normal|orthogonal", 0, 0, 0 },
    [INIT_STD] = { "init_std", 0, 0, 1e3, 0 },
    [ZERO_OUT] = { "zero_out", "false|true", 0, 0, 0 },
};

double ck_float(double x) { return (double)(float)x; }

/* The place of a word in "a|b|c", or a number as JSON writes it; NaN: neither. */
static double value_of(const char *text, int key)
{
    const char *words = keys[key].words;
    const size_t len = strlen(text);
    for (double place = 0; words; place++) {
        const size_t size = strcspn(words, "|");
        if (size == len && strncmp(words, text, size) == 0) return place;
        if (!words[size]) return NAN;
        words += size + 1;
    }
    const char *end = text;
    cJSON *number = cJSON_ParseWithOpts(text, &end, 1);
    double v = cJSON_IsNumber(number) ? number->valuedouble : NAN;
    cJSON_Delete(number);
    if (!(v >= keys[key].lo && v <= keys[key].hi) || (keys[key].whole && v != floor(v))) v = NAN;
    return v;
}

static void read_line(ck *c, char *line)
{
    char *equals = strstr(line, " = ");
    int k = 0;
    if (!*line || ck_over(c)) return;
    if (equals) *equals = 0;
    while (k < KEYS && strcmp(keys[k].key, line) != 0) k++;
    if (!equals || k == KEYS || !isnan(c->v[k])) {
        ck_fail(c, "recipe: [model] has a line that is not known or there twice: %.40s", line);
        return;
    }
    c->v[k] = value_of(equals + 3, k);
    if (isnan(c->v[k])) ck_fail(c, "recipe: model.%s = %.40s cannot be", line, equals + 3);
}

static void read_recipe(ck *c)
{
    int sections = 0;
    bool inside = false;
    for (int k = 0; k < KEYS; k++) c->v[k] = NAN;
    for (char *line = c->recipe, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        if (strchr(line, '[')) {
            sections += strstr(line, "model") != NULL;
            inside = strcmp(line, "[model]") == 0;
        } else if (inside) {
            read_line(c, line);
        }
    }
    if (sections != 1) ck_fail(c, "recipe: there are %d sections [model]", sections);
    for (int k = 0; k < KEYS && !ck_over(c); k++)
        if (isnan(c->v[k])) ck_fail(c, "recipe: model.%s is missing", keys[k].key);
    if (ck_over(c)) return;
    const double head = c->v[WIDTH] / c->v[HEADS], a = c->v[ALPHA] > 0 ? c->v[ALPHA] : 1 / (2 * c->v[DEPTH]);
    const double scales[] = { 1 / sqrt(head), 1 / head, 1 / c->v[WIDTH] };
    c->keep = c->v[RESIDUAL] ? ck_float(1 - a) : 1;
    c->mix = c->v[RESIDUAL] ? ck_float(a) : 1;
    c->scale = ck_float(c->v[ATT_FACTOR] * scales[(int)c->v[ATT_SCALE]]);
    if (head != floor(head) || (c->v[POSITIONS] == ROPE && fmod(head, 2) != 0) ||
        (c->v[NORM] == CENTERNORM && c->v[WIDTH] < 2))
        ck_fail(c, "recipe: width, heads, norm and positions do not fit each other");
}

/* The tensor called path.name, rows by cols (a vector is one row); rows -1: as many as there are. */
static ck_view tensor(ck *c, const char *path, const char *name, int64_t rows, int64_t cols)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s%s", path, *path ? "." : "", name);
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(c->header, full);
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(t, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(t, "shape"), *last = cJSON_GetArrayItem(shape, 1);
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(t, "data_offsets");
    const cJSON *begin = cJSON_GetArrayItem(at, 0), *end = cJSON_GetArrayItem(at, 1);
    ck_view none = { NULL, NULL, 0, cols, cols, 1 };
    if (ck_over(c)) return none;
    const int rank = cJSON_GetArraySize(shape);
    const double lead = rank > 0 ? cJSON_GetNumberValue(cJSON_GetArrayItem(shape, 0)) : NAN;
    if (rows < 0 && lead >= 1 && lead <= 0x1p31) rows = (int64_t)lead;
    const bool fits = rank == 1 ? rows == 1 && lead == (double)cols
                                : rank == 2 && lead == (double)rows && cJSON_GetNumberValue(last) == (double)cols;
    const double b = cJSON_GetNumberValue(begin), e = cJSON_GetNumberValue(end);
    if (!cJSON_IsString(dtype) || strcmp(dtype->valuestring, "F32") != 0 || !fits || !(b >= 0) || fmod(b, 4) != 0 ||
        !(e <= (double)c->size) || e - b != 4 * (double)rows * (double)cols)
        return ck_fail(c, "model file: %s is not there as F32 numbers, %lld by %lld", full, (long long)rows,
                       (long long)cols),
               none;
    const ck_view v = { (const float *)(const void *)(c->file + (size_t)b), NULL, rows, cols, cols, 1 };
    for (int64_t i = 0; i < rows * cols && !*c->bad; i++)
        if (!isfinite(v.f[i])) snprintf(c->bad, sizeof c->bad, "%.63s", full);
    c->used++;
    return v;
}

static ck_node *add(ck *c, ck_node *parent, ck_kind kind, const char *name)
{
    ck_node *n = c->nodes + c->count++;
    *n = (ck_node){ .kind = kind, .parent = parent };
    snprintf(n->name, sizeof n->name, "%s", name);
    snprintf(n->path, sizeof n->path, "%.31s%s%.31s", parent ? parent->path : "",
             parent && *parent->path && *name ? "." : "", name);
    if (!parent) return n;
    if (parent->last)
        parent->last->next = n;
    else
        parent->first = n;
    return parent->last = n;
}

static void add_linear(ck *c, ck_node *n, int i, const char *weight, int64_t out, int64_t in, bool bias)
{
    char name[32];
    snprintf(name, sizeof name, "%s%sweight", weight, *weight ? "." : "");
    n->w[i] = tensor(c, n->path, name, out, in);
    snprintf(name, sizeof name, "%s%sbias", weight, *weight ? "." : "");
    n->b[i] = (ck_view){ NULL, NULL, 0, out, out, 1 };
    if (bias) n->b[i] = tensor(c, n->path, name, 1, out);
}

static void add_norm(ck *c, ck_node *parent, const char *name)
{
    ck_node *n = add(c, parent, c->v[NORM] == CENTERNORM ? IS_CENTERNORM : IS_LAYERNORM, name);
    const int64_t d = (int64_t)c->v[WIDTH];
    n->w[0] = tensor(c, n->path, "weight", 1, d);
    if (c->v[NORM] != RMSNORM) n->b[0] = tensor(c, n->path, "bias", 1, d);
}

/* keep x + mix f(x), f = [ norm?, attention or mlp, dropout? ] */
static void add_branch(ck *c, ck_node *block, ck_kind kind)
{
    const int64_t d = (int64_t)c->v[WIDTH], hidden = (int64_t)c->v[MLP];
    const bool mlp = kind == IS_MLP, bias = c->v[BIAS] != 0, post = c->v[PLACE] != 0;
    const char *norm = mlp ? "norm2" : "norm1";
    ck_node *inner = add(c, add(c, block, IS_MIX, ""), IS_SEQUENCE, "");
    if (c->v[NORM] != NO_NORM && !post) add_norm(c, inner, norm);
    ck_node *n = add(c, inner, kind, mlp ? "mlp" : "attn");
    for (int i = 0; i < (mlp ? 2 : 4); i++)
        add_linear(c, n, i, mlp ? (const char *[]){ "in", "out" }[i] : (const char *[]){ "q", "k", "v", "o" }[i],
                   mlp && i == 0 ? hidden : d, mlp && i == 1 ? hidden : d, bias);
    if (c->v[DROPOUT] > 0) add(c, inner, IS_DROPOUT, "drop");
    if (c->v[NORM] != NO_NORM && post) add_norm(c, block, norm);
}

static void build(ck *c)
{
    const int64_t d = (int64_t)c->v[WIDTH];
    const bool normed = c->v[NORM] != NO_NORM, encoder = c->v[ARCH] != 0;
    c->nodes = taut_calloc((size_t)(16 * c->v[DEPTH] + 16), sizeof *c->nodes);
    if (!c->nodes) c->status = taut_no_memory("the model's tree");
    c->embed = tensor(c, "embed", "weight", -1, d);
    if (c->v[TIED] == 0) c->bad[0] = 0; /* the embedding is then no part of f */
    if (ck_over(c)) return;
    c->root = add(c, NULL, IS_SEQUENCE, "");
    ck_node *body = c->body = add(c, c->root, IS_SEQUENCE, "");
    if (c->v[POSITIONS] == LEARNED)
        add(c, body, IS_POSITION, "pos")->w[0] = tensor(c, "pos", "weight", (int64_t)c->v[CONTEXT], d);
    if (c->v[EMBED_NORM]) add_norm(c, body, "embed_norm");
    if (c->v[DROPOUT] > 0) add(c, body, IS_DROPOUT, "drop");
    ck_node *blocks = add(c, body, IS_SEQUENCE, "block");
    for (int i = 0; i < (int)c->v[DEPTH] && !ck_over(c); i++) {
        char number[12];
        snprintf(number, sizeof number, "%d", i);
        ck_node *block = add(c, blocks, IS_SEQUENCE, number);
        add_branch(c, block, IS_ATTENTION);
        add_branch(c, block, IS_MLP);
    }
    if (normed && c->v[PLACE] == 0) add_norm(c, body, "norm");
    if (encoder) {
        add_linear(c, add(c, body, IS_LINEAR, "transform"), 0, "", d, d, c->v[BIAS] != 0);
        add(c, body, IS_POINTWISE, "transform_act");
        if (normed) add_norm(c, body, "transform_norm");
    }
    c->head = add(c, c->root, IS_LINEAR, "head");
    c->head->w[0] = c->v[TIED] ? c->embed : tensor(c, "head", "weight", c->embed.rows, d);
    if (encoder && c->v[BIAS]) c->head->b[0] = tensor(c, "head", "bias", 1, c->embed.rows);
    if (c->v[LOGIT_SCALE] != 1) add(c, c->root, IS_SCALE, "logits");
}

/* Splits the file into its header and, at the start of c->file, its weights. */
static void split(ck *c)
{
    const unsigned char *raw = (const unsigned char *)c->file;
    uint64_t len = 0;
    for (int i = 7; i >= 0 && c->size >= 8; i--) len = len << 8 | raw[i];
    if (c->size < 8 || len > c->size - 8 || memchr(raw + 8, 0, (size_t)len)) {
        ck_fail(c, "model file: not in the safetensors format");
        return;
    }
    c->header = cJSON_ParseWithLength(c->file + 8, (size_t)len);
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(c->header, "__metadata__");
    const cJSON *recipe = cJSON_GetObjectItemCaseSensitive(meta, "taut.recipe");
    if (!cJSON_IsString(recipe))
        ck_fail(c, "model file: its metadata has no taut.recipe");
    else if (!ck_distinct(c->header))
        ck_fail(c, "model file: its header has a name twice");
    else if (!(c->recipe = taut_strdup(recipe->valuestring)))
        c->status = taut_no_memory("the recipe");
    c->size -= 8 + (size_t)len;
    memmove(c->file, c->file + 8 + len, c->size);
}

void ck_model_read(ck *c, const char *sha256, double bytes)
{
    char hex[65];
    taut_sha256 sha;
    taut_sha256_begin(&sha);
    taut_sha256_add(&sha, c->file, c->size);
    taut_sha256_end(&sha, hex);
    if (bytes != (double)c->size || strcmp(hex, sha256) != 0) {
        ck_fail(c, "the certificate is about another file: %.0f bytes, sha256 %.16s..., not %zu, %.16s...", bytes,
                sha256, c->size, hex);
        return;
    }
    split(c);
    if (!ck_over(c)) read_recipe(c);
    if (!ck_over(c)) build(c);
    if (!ck_over(c) && c->used + 1 != cJSON_GetArraySize(c->header))
        ck_fail(c, "model file: it holds %d tensors, the recipe asks for %d", cJSON_GetArraySize(c->header) - 1,
                c->used);
}
