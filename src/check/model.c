/* The model file: is it the one that the certificate names, which function does it say it is, where are its weights?
 *
 * The file is read once: the bytes that are hashed are the bytes that are used.  Every tensor must lie inside the file,
 * be F32 and have the shape that its rule asks for; together they fill it.  A tensor that nobody asks for, a constant that
 * is missing or unknown: refused, since the function might then be another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float32.h"
#include "base/sha256.h"
#include "check/ck.h"

static double item(const cJSON *list, int i) { return cJSON_GetNumberValue(cJSON_GetArrayItem(list, i)); }

/* The tensor of this name as doubles; one of rank 1 is a row.  Not there: none. */
static ck_mat tensor(ck *c, const char *name)
{
    cJSON *t = cJSON_GetObjectItemCaseSensitive(c->header, name);
    const cJSON *shape = ck_get(t, "shape"), *at = ck_get(t, "data_offsets");
    const char *dtype = cJSON_GetStringValue(ck_get(t, "dtype"));
    const int rank = cJSON_GetArraySize(shape);
    const double rows = rank == 2 ? item(shape, 0) : 1, cols = item(shape, rank - 1), begin = item(at, 0);
    if (!t) return (ck_mat){ 0 };
    if (!dtype || strcmp(dtype, "F32") != 0 || cJSON_GetArraySize(t) != 3 || !cJSON_IsArray(shape) ||
        !cJSON_IsArray(at) || cJSON_GetArraySize(at) != 2 || rank < 1 || rank > 2 || !(rows >= 1 && rows < 0x1p31) ||
        !(cols >= 1 && cols < 0x1p31) || item(at, 1) - begin != 4 * rows * cols || rows != floor(rows) ||
        cols != floor(cols) || !(begin >= 0 && fmod(begin, 4) == 0 && item(at, 1) <= (double)c->size))
        ck_fail(c, "model file: %s is not a matrix of F32 numbers inside the file", name);
    const float *from = (const float *)(const void *)(c->file + (size_t)begin);
    const ck_mat m = ck_new(c, (int64_t)rows, (int64_t)cols);
    for (int64_t i = 0; i < m.rows * m.cols; i++) {
        m.v[i / m.cols * m.ld + i % m.cols] = (double)from[i];
        if (!isfinite(from[i]) && !*c->bad) snprintf(c->bad, sizeof c->bad, "%.63s", name);
    }
    c->used += t->valueint == 0; /* once, however many nodes name it */
    t->valueint = 1;
    return m;
}

/* A constant of the kind that its name begins with (ck.h); a curve is its place in this list. */
static double constant(ck_fields *f, const char *name)
{
    static const char *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh", "elu", "abs" };
    const char *key = name + (*name == '#' || *name == '?' || *name == '~' || *name == '+');
    const cJSON *found = ck_take(f, key);
    if (*name == '+' && !found) return 0;
    const double v = cJSON_GetNumberValue(found);
    for (int i = 0; i < 7 && strcmp(key, "curve") == 0 && cJSON_IsString(found); i++)
        if (strcmp(found->valuestring, curves[i]) == 0) return i;
    if (!(fabs(v) < 0x1p100) || strcmp(key, "curve") == 0 || (*name == '?' && v != 0 && v != 1) ||
        ((*name == '#' || *name == '+') && !(v >= 1 && v < 0x1p31 && v == floor(v))) ||
        (name == key && v != taut_float32(v)))
        ck_fail(f->c, "%s (%s): %s is missing or not known", f->path, f->part, key);
    return v;
}

/* A list of constants as a row. */
static ck_mat listed(ck_fields *f, const char *key)
{
    int64_t count;
    const cJSON *j = ck_list(f, key, &count);
    const ck_mat m = ck_new(f->c, 1, count);
    bool sound = count > 0;
    for (int64_t i = 0; j; i++, j = j->next) {
        m.v[i] = cJSON_GetNumberValue(j);
        sound = sound && isfinite(m.v[i]) && m.v[i] == taut_float32(m.v[i]);
    }
    if (!sound) ck_fail(f->c, "%s (%s): %s is no list of numbers", f->path, f->part, key);
    return m;
}

/* Tensor or list i of a node; size has the widths of the letters so far, 0 if not known yet. */
static void load(ck_fields *f, ck_node *n, int i, int64_t *size)
{
    char full[96];
    ck *c = f->c;
    const char *name = n->rule->tensors[i].name, *shape = n->rule->tensors[i].shape;
    const bool tied = ck_is(n, "linear") && i == 0 && n->k[0] != 0;
    const char *star = strchr(name, '*');
    const int64_t at = star ? i - 4 : 0; /* behind the lists and what belongs to them all */
    if (star && at >= n->w[0].cols) return;
    if (star)
        snprintf(full, sizeof full, "%s.%.*s%.0f%s", n->path, (int)(star - name), name, n->w[0].v[at], star + 1);
    else
        snprintf(full, sizeof full, "%s.%s", n->path, name + (*name == '?'));
    if (star) size['S' - '0'] = 0; /* each has a size of its own */
    n->w[i] = tied ? c->embed : *name == '=' ? listed(f, name + 1) : tensor(c, full);
    if (!n->w[i].v && *name == '?') return;
    const int64_t sides[] = { n->w[i].rows, n->w[i].cols };
    for (int s = 0; s < 2; s++) {
        int64_t *want = size + (shape[1] ? shape[s] : s ? shape[0] : '1') - '0';
        if (*want == 0) *want = sides[s];
        if (!n->w[i].v || *want != sides[s]) ck_fail(c, "model file: %s is missing or of another shape", full);
    }
}

/* The width that leaves a node; c->tokens becomes how many tokens do. */
static int64_t leave(ck *c, const ck_node *n, int64_t d)
{
    if (n->rule->fits && !n->rule->fits(n))
        ck_fail(c, "%s: its constants or weights do not fit the rule %s", n->path, n->rule->name);
    if (ck_is(n, "prefix")) c->tokens++;
    if (ck_is(n, "concat")) d *= c->tokens;
    if (ck_is(n, "pool") || ck_is(n, "l2pool") || ck_is(n, "concat")) c->tokens = 1;
    if (ck_is(n, "halve")) c->tokens = (c->tokens + 1) / 2;
    if (ck_is(n, "tokens")) c->tokens = (int64_t)n->k[1];
    if (ck_is(n, "neighbours")) d += 2 * (int64_t)n->k[0];
    if (ck_queries(n)) c->tokens = ck_queries(n);
    if (!ck_is(n, "pixels")) return d;
    c->tokens = (int64_t)(n->k[0] / n->k[2] * (n->k[1] / n->k[3]));
    return d / c->tokens;
}

/* The parts of a node; those of parts get the tokens before and from k[0] on, that of plash as many as there are prototypes. */
static int64_t build(ck *c, const cJSON *json, ck_node *up, int64_t d);
static int64_t build_parts(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    const bool apart = ck_is(n, "parts"), asks = ck_is(n, "ask"), gathers = ck_is(n, "plash");
    const int64_t after = c->tokens, groups = gathers ? n->w[8].rows : 0;
    const int64_t first = apart || asks ? (int64_t)n->k[0] : 0;
    int64_t count = 0, all = 0, wide = d;
    bool fits = first <= n->tokens;
    if (gathers) c->tokens = groups, d *= 2;
    for (const cJSON *k = part; k && fits; k = k->next, count++) {
        if (apart) c->tokens = count ? n->tokens - first : first;
        d = build(c, k, n, apart ? n->width : d);
        fits = !apart || count == 0 || d == wide;
        wide = d, all += c->tokens;
    }
    if (apart) c->tokens = all;
    if (gathers) fits = count == 1 && c->tokens == groups && d == n->width;
    if (gathers) c->tokens = after;
    if (asks) fits = fits && c->tokens == first && d == n->width;
    if (asks) c->tokens = n->tokens;
    if (ck_is(n, "mix")) fits = d == n->width && c->tokens == n->tokens;
    if (!fits || (apart && count != 2) || (asks && count != 1))
        ck_fail(c, "%s: its parts do not fit the rule %s", n->path, n->rule->name);
    return d;
}

/* The node that the model's tree has here, with its parts; d is the width that comes in, the answer what goes out. */
static int64_t build(ck *c, const cJSON *json, ck_node *up, int64_t d)
{
    ck_node *n = c->nodes + c->count++;
    ck_fields f = { c, "the model's tree", "taut.tree", json, 0 };
    const char *rule = ck_word(&f, "rule"), *name = ck_word(&f, "name");
    *n = (ck_node){ .rule = ck_rules, .name = name, .up = up };
    while (n->rule->name && strcmp(n->rule->name, rule) != 0) n->rule++;
    const char *before = up ? up->path : "", *dot = *before && *name ? "." : "";
    if (snprintf(n->path, sizeof n->path, "%s%s%s", before, dot, name) >= (int)sizeof n->path)
        ck_fail(c, "%s: a path of more than %zu letters", n->path, sizeof n->path - 1);
    if (!*rule || strcmp(rule, "?") == 0) ck_fail(c, "%s: a module of the tree has no rule", n->path);
    c->out->foreign = c->old || !n->rule->name;
    if (!n->rule->name) ck_fail(c, "%s: the checker does not know the rule %.30s", n->path, rule);
    int64_t size['z'] = { ['1' - '0'] = 1, ['d' - '0'] = d, ['t' - '0'] = c->tokens };
    n->tokens = c->tokens, n->width = d;
    for (int i = 0; i < CK_CONSTANTS && n->rule->constants[i]; i++) n->k[i] = constant(&f, n->rule->constants[i]);
    for (int i = 0; i < CK_TENSORS && n->rule->tensors[i].name; i++) load(&f, n, i, size);
    d = leave(c, n, size['o' - '0'] ? size['o' - '0'] : d);
    int64_t parts;
    if (ck_has_parts(n)) d = build_parts(c, ck_list(&f, "of", &parts), n, d);
    ck_close(&f);
    n->end = c->nodes + c->count;
    return d;
}

/* The root: a sequence of body, head and perhaps a scale > 0; or of a body alone, whose features come out. */
static bool root_fits(const ck_node *root)
{
    const ck_node *end = root->end, *head = root + 1 < end ? root[1].end : end, *last = head < end ? head->end : end;
    if (!ck_is(root, "sequence") || root + 1 >= end) return false;
    return head == end ||
           (ck_is(head, "linear") && (last == end || (ck_is(last, "scale") && last->k[0] > 0 && last->end == end)));
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Do the tensors, which were all read, fill the file and share no byte?  Where each begins, another has ended. */
static bool side_by_side(ck *c)
{
    const int count = cJSON_GetArraySize(c->header) - 1;
    double *begin = ck_room(c, count, sizeof *begin), *end = ck_room(c, count + 1, sizeof *end);
    int i = 0;
    for (const cJSON *t = c->header->child; t; t = t->next) {
        const cJSON *at = ck_get(t, "data_offsets");
        if (strcmp(t->string, "__metadata__") == 0) continue;
        begin[i] = item(at, 0), end[++i] = item(at, 1);
    }
    qsort(begin, (size_t)count, sizeof *begin, rising);
    qsort(end, (size_t)count + 1, sizeof *end, rising);
    bool fits = end[count] == (double)c->size;
    for (i = 0; i < count; i++) fits = fits && begin[i] == end[i];
    return fits;
}

void ck_model_read(ck *c)
{
    char hex[65];
    taut_sha256 sha;
    ck_fields named = { c, "the certificate", "model", ck_get(c->cert, "model"), 0 };
    const char *sha256 = ck_word(&named, "sha256");
    const double bytes = ck_stated(&named, "bytes");
    ck_close(&named);
    taut_sha256_begin(&sha);
    taut_sha256_add(&sha, c->file, c->size);
    taut_sha256_end(&sha, hex);
    if (bytes != (double)c->size || strcmp(hex, sha256) != 0)
        ck_fail(c, "the certificate is about another file: %.0f bytes, sha256 %.16s..., not %zu, %.16s...", bytes,
                sha256, c->size, hex);
    uint64_t len = 0;
    for (int i = 7; i >= 0 && c->size >= 8; i--) len = len << 8 | (unsigned char)c->file[i];
    size_t flaw;
    if (c->size >= 8 && len <= c->size - 8) c->header = ck_json(&flaw, c->file + 8, (size_t)len);
    const cJSON *words = ck_get(c->header, "__metadata__");
    const char *tree = cJSON_GetStringValue(ck_get(words, "taut.tree"));
    if (tree) c->tree = ck_json(&flaw, tree, strlen(tree));
    if (!c->tree) ck_fail(c, "model file: not in the safetensors format, or without taut.tree in its metadata");
    ck_once(c, c->header, "model file");
    for (const cJSON *word = words->child; word; word = word->next)
        if (!cJSON_IsString(word)) ck_fail(c, "model file: its metadata are not words");
    ck_once(c, c->tree, "the model's tree");
    c->size -= 8 + (size_t)len;
    memmove(c->file, c->file + 8 + len, c->size); /* the weights, now aligned */
    ck_fields f = { c, "the model's tree", "taut.tree", c->tree, 0 };
    const double version = constant(&f, "#version");
    c->old = version == 2 || version == 3;     /* knew less: what does not fit may be another function, but is no lie */
    c->out->foreign = !c->old && version != 4; /* another version may say the same by other words */
    if (c->out->foreign)
        ck_fail(c, "model file: the checker reads version 4 of taut.tree, not %.0f; save the model again", version);
    c->out->tokens = c->tokens = (int64_t)constant(&f, "#tokens");
    c->width = (int64_t)constant(&f, "#width");
    c->unit = constant(&f, "?unit") != 0;
    c->embed = tensor(c, "embed.weight");
    int objects = 0; /* no fewer than nodes, and one more */
    for (const char *p = tree; *p; p++) objects += *p == '{';
    c->nodes = ck_room(c, objects, sizeof *c->nodes);
    c->out->series = !c->unit && !c->embed.v;
    c->out->pixels = c->unit ? c->tokens * c->width : 0;
    if (c->unit ? c->embed.v != NULL || c->tokens != 1 : c->embed.v && c->embed.cols != c->width)
        ck_fail(c, "model file: its inputs do not fit its embedding");
    build(c, ck_take(&f, "root"), NULL, c->width);
    ck_close(&f);
    if (!root_fits(c->nodes)) ck_fail(c, "the model's tree is not one of a body, perhaps a head and a scale");
    if (c->used + 1 != cJSON_GetArraySize(c->header))
        ck_fail(c, "model file: it has tensors that its tree does not name");
    if (!side_by_side(c)) ck_fail(c, "model file: its tensors overlap, or leave bytes to nobody");
    c->out->foreign = false;
}
