/* The model file: is it the one that the certificate names, where are its weights, and which tree is it?
 *
 * The file is read once: the bytes that are hashed are the bytes that are used.  Every tensor must lie inside the file,
 * be F32 and have the shape that the recipe asks for.  A tensor that nobody asks for, a key that is missing, unknown or
 * there twice, a second [model] section: refused, since the function might then be another one. */
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "check/ck.h"

enum { KEYS = sizeof(ck_recipe) / sizeof(double) };
/* Keys and their words; # is a number >= 0, + a whole number >= 1. */
static const char keys[] =
    " arch=gpt|encoder width=+ depth=+ heads=+ context=+ mlp=+ norm=layernorm|rmsnorm|centernorm|none"
    " norm_place=pre|post norm_eps=# embed_norm=false|true positions=learned|rope|alibi|none rope_base=# "
    "bias=false|true"
    " tied=false|true head_bias=false|true activation=gelu|gelu_tanh|relu|silu|tanh activation_factor=#"
    " residual=plain|convex residual_alpha=# dropout=# attention_factor=# attention_out=#"
    " attention_scale=inv_sqrt_head|inv_head|inv_width logit_scale=# init=normal|orthogonal|spectral init_std=#"
    " zero_out=false|true ";

/* The place of a word in "a|b|c ", or a number as JSON writes it; NaN: neither. */
static double value_of(const char *text, const char *words)
{
    for (double place = 0; *words != '#' && *words != '+'; place++) {
        const size_t size = strcspn(words, "| ");
        if (size == strlen(text) && strncmp(words, text, size) == 0) return place;
        if (words[size] == ' ') return NAN;
        words += size + 1;
    }
    cJSON *number = cJSON_ParseWithOpts(text, NULL, 1);
    const double v = cJSON_GetNumberValue(number);
    cJSON_Delete(number);
    return v >= 0 && v < 0x1p100 && (*words == '#' || (v >= 1 && v <= 0x1p24 && v == floor(v))) ? v : NAN;
}

static void read_line(ck *c, char *line)
{
    char *equals = strstr(line, " = "), name[40];
    if (equals) *equals = 0;
    snprintf(name, sizeof name, " %s=", line);
    const char *known = strstr(keys, name);
    int k = 0;
    for (const char *s = keys; known && s < known; s++) k += *s == ' ';
    if (!equals || !known || strpbrk(line, " =") || !isnan(c->r.all[k]))
        ck_fail(c, "recipe: model.%.40s is not known to the checker, or there twice", line);
    c->r.all[k] = value_of(equals + 3, known + strlen(name));
    if (isnan(c->r.all[k])) ck_fail(c, "recipe: model.%s = %.40s is not known to the checker", line, equals + 3);
}

static void read_recipe(ck *c, char *text)
{
    int sections = 0;
    bool inside = false;
    for (int k = 0; k < KEYS; k++) c->r.all[k] = NAN;
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        if (inside && *line && !strchr(line, '[')) read_line(c, line);
        if (!strchr(line, '[')) continue;
        sections += strstr(line, "model") != NULL;
        inside = strcmp(line, "[model]") == 0;
    }
    for (int k = 0; k < KEYS; k++)
        if (isnan(c->r.all[k])) ck_fail(c, "recipe: key number %d of its section [model] is missing", k);
    const double head = c->r.width / c->r.heads, a = c->r.residual_alpha > 0 ? c->r.residual_alpha : 0.5 / c->r.depth;
    const double scales[] = { 1 / sqrt(head), 1 / head, 1 / c->r.width };
    c->keep = c->r.residual ? (float)(1 - a) : 1;
    c->mix = c->r.residual ? (float)a : 1;
    c->scale = (float)(c->r.attention_factor * scales[(int)c->r.attention_scale]);
    c->factor = (float)c->r.activation_factor;
    c->r.norm_eps = (float)c->r.norm_eps, c->r.attention_out = (float)c->r.attention_out;
    if (sections != 1 || !(a <= 1) || head != floor(head) || (c->r.positions == ROPE && fmod(head, 2) != 0) ||
        (c->r.norm == CENTERNORM && c->r.width < 2) || !((float)c->r.logit_scale > 0) || !(c->r.rope_base >= 1) ||
        c->r.depth > 1000)
        ck_fail(c, "recipe: its numbers do not fit each other");
}

static double item(const cJSON *list, int i) { return cJSON_GetNumberValue(cJSON_GetArrayItem(list, i)); }

/* The tensor called path.sub+name, rows by cols, or a vector of that many; rows -1: as many as there are. */
static ck_view tensor(ck *c, const char *path, const char *sub, const char *name, int64_t rows, int64_t cols)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s%s", path, sub, name);
    const cJSON *t = ck_get(c->header, full), *shape = ck_get(t, "shape"), *at = ck_get(t, "data_offsets");
    const char *dtype = cJSON_GetStringValue(ck_get(t, "dtype"));
    const int rank = cJSON_GetArraySize(shape);
    const double lead = item(shape, 0), begin = item(at, 0), end = item(at, 1);
    if (rows < 0) rows = lead >= 1 && lead <= 0x1p31 ? (int64_t)lead : 0;
    const double count = (double)rows * (double)cols;
    const bool vector = rank == 1 && lead == count && (rows == 1 || cols == 1);
    const bool matrix = rank == 2 && lead == (double)rows && item(shape, 1) == (double)cols;
    if (!dtype || strcmp(dtype, "F32") != 0 || !(vector || matrix) || end - begin != 4 * count ||
        !(begin >= 0 && fmod(begin, 4) == 0 && end <= (double)c->size))
        ck_fail(c, "model file: %s is not there as F32 numbers, %lld by %lld", full, (long long)rows, (long long)cols);
    const ck_view v = { (const float *)(const void *)(c->file + (size_t)begin), NULL, rows, cols, cols, 1 };
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
    *(parent->last ? &parent->last->next : &parent->first) = n;
    return parent->last = n;
}

/* Weight and bias number i of a node. */
static void load(ck *c, ck_node *n, int i, const char *sub, double out, double in, bool bias)
{
    n->w[i] = tensor(c, n->path, sub, "weight", (int64_t)out, (int64_t)in);
    if (bias) n->b[i] = tensor(c, n->path, sub, "bias", 1, (int64_t)out);
}

static void add_norm(ck *c, ck_node *parent, const char *name, bool wanted)
{
    if (wanted && c->r.norm != NO_NORM)
        load(c, add(c, parent, c->r.norm == CENTERNORM ? CENTER : NORM, name), 0, "", c->r.width, 1,
             c->r.norm != RMSNORM);
}

/* keep x + mix f(x), f = [ norm?, attention or mlp, dropout? ], and a norm behind it? */
static void add_branch(ck *c, ck_node *block, ck_kind kind, const char *norm)
{
    static const char *const sub[] = { "q.", "k.", "v.", "o." };
    const double d = c->r.width;
    ck_node *inner = add(c, add(c, block, MIX, ""), SEQUENCE, "");
    add_norm(c, inner, norm, c->r.norm_place == 0);
    ck_node *n = add(c, inner, kind, kind == MLP ? "mlp" : "attn");
    for (int i = 0; i < 4 && kind == ATTENTION; i++) load(c, n, i, sub[i], d, d, c->r.bias);
    if (kind == MLP) load(c, n, 0, "in.", c->r.mlp, d, c->r.bias), load(c, n, 1, "out.", d, c->r.mlp, c->r.bias);
    if (c->r.dropout > 0) add(c, inner, DROP, "drop");
    add_norm(c, block, norm, c->r.norm_place != 0);
}

static void build(ck *c)
{
    const double d = c->r.width;
    c->nodes = ck_room(c, 16 * (int64_t)c->r.depth + 16, sizeof *c->nodes);
    c->embed = tensor(c, "embed", "", "weight", -1, (int64_t)d);
    if (!c->r.tied) c->bad[0] = 0; /* the embedding is then no part of f; reach answers for it */
    c->root = add(c, NULL, SEQUENCE, "");
    ck_node *body = c->body = add(c, c->root, SEQUENCE, "");
    if (c->r.positions == LEARNED) load(c, add(c, body, POSITION, "pos"), 0, "", c->r.context, d, false);
    add_norm(c, body, "embed_norm", c->r.embed_norm);
    if (c->r.dropout > 0) add(c, body, DROP, "drop");
    ck_node *blocks = add(c, body, SEQUENCE, "block");
    for (int i = 0; i < (int)c->r.depth; i++) {
        char number[12];
        snprintf(number, sizeof number, "%d", i);
        ck_node *block = add(c, blocks, SEQUENCE, number);
        add_branch(c, block, ATTENTION, "norm1");
        add_branch(c, block, MLP, "norm2");
    }
    add_norm(c, body, "norm", c->r.norm_place == 0);
    if (c->r.arch) load(c, add(c, body, LINEAR, "transform"), 0, "", d, d, c->r.bias);
    if (c->r.arch) add(c, body, POINTWISE, "transform_act");
    add_norm(c, body, "transform_norm", c->r.arch);
    c->head = add(c, c->root, LINEAR, "head");
    c->head->w[0] = c->r.tied ? c->embed : tensor(c, "head", "", "weight", c->embed.rows, (int64_t)d);
    if (c->r.head_bias) c->head->b[0] = tensor(c, "head", "", "bias", 1, c->embed.rows);
    if (c->r.logit_scale != 1) add(c, c->root, SCALE, "logits");
    if (c->used + 1 != cJSON_GetArraySize(c->header))
        ck_fail(c, "model file: it has tensors that the recipe does not name");
}

void ck_model_read(ck *c)
{
    char hex[65];
    taut_sha256 sha;
    const cJSON *named = ck_get(c->cert, "model");
    const char *sha256 = cJSON_GetStringValue(ck_get(named, "sha256"));
    const double bytes = cJSON_GetNumberValue(ck_get(named, "bytes"));
    taut_sha256_begin(&sha);
    taut_sha256_add(&sha, c->file, c->size);
    taut_sha256_end(&sha, hex);
    if (!sha256 || bytes != (double)c->size || strcmp(hex, sha256) != 0)
        ck_fail(c, "the certificate is about another file: %.0f bytes, sha256 %.16s..., not %zu, %.16s...", bytes,
                sha256 ? sha256 : "?", c->size, hex);
    uint64_t len = 0;
    for (int i = 7; i >= 0 && c->size >= 8; i--) len = len << 8 | (unsigned char)c->file[i];
    if (c->size >= 8 && len <= c->size - 8) c->header = cJSON_ParseWithLength(c->file + 8, (size_t)len);
    const char *recipe = cJSON_GetStringValue(ck_get(ck_get(c->header, "__metadata__"), "taut.recipe"));
    if (!recipe) ck_fail(c, "model file: not in the safetensors format, or without taut.recipe in its metadata");
    c->size -= 8 + (size_t)len;
    memmove(c->file, c->file + 8 + len, c->size); /* the weights, now aligned */
    read_recipe(c, strcpy(ck_room(c, (int64_t)strlen(recipe) + 1, 1), recipe));
    build(c);
}
