/* The model file: is it the one that the certificate names, which function does it say it is, where are its weights?
 *
 * The file is read once: the bytes that are hashed are the bytes that are used.  Every tensor must lie inside the file,
 * be F32 and have the shape that its rule asks for; together they fill it.  A tensor that nobody asks for, a constant that
 * is missing or unknown: refused, since the function might then be another one. */
#include <stdio.h>
#include <string.h>

#include "base/float32.h"
#include "base/sha256.h"
#include "check/ck.h"

bool ck_is(const ck_node *n, const char *rule) { return strcmp(n->rule->name, rule) == 0; }

double ck_constant(const ck_node *n, const char *key)
{
    for (int i = 0; i < CK_CONSTANTS && n->rule->constants[i]; i++)
        if (strcmp(n->rule->constants[i] + (strchr("#?~+", *n->rule->constants[i]) != NULL), key) == 0) return n->k[i];
    return 0;
}

static double item(const cJSON *list, int i) { return cJSON_GetNumberValue(cJSON_GetArrayItem(list, i)); }

/* The tensor of this name as doubles, with from `least` to `most` sizes; one size makes a row.  Not there: none. */
static ck_mat tensor(ck *c, const char *name, int least, int most)
{
    cJSON *t = cJSON_GetObjectItemCaseSensitive(c->header, name);
    const cJSON *shape = ck_get(t, "shape"), *at = ck_get(t, "data_offsets");
    const char *dtype = cJSON_GetStringValue(ck_get(t, "dtype"));
    const int rank = cJSON_GetArraySize(shape);
    const double rows = rank == 2 ? item(shape, 0) : 1, cols = item(shape, rank - 1), begin = item(at, 0);
    if (!t) return (ck_mat){ 0 };
    if (!dtype || strcmp(dtype, "F32") != 0 || cJSON_GetArraySize(t) != 3 || !cJSON_IsArray(shape) ||
        !cJSON_IsArray(at) || cJSON_GetArraySize(at) != 2 || rank < least || rank > most ||
        !(rows >= 1 && rows < 0x1p31) || !(cols >= 1 && cols < 0x1p31) || item(at, 1) - begin != 4 * rows * cols ||
        rows != floor(rows) || cols != floor(cols) ||
        !(begin >= 0 && fmod(begin, 4) == 0 && item(at, 1) <= (double)c->size))
        ck_fail(c, "model file: %s is not a %s of F32 numbers inside the file", name, most == 2 ? "matrix" : "vector");
    const float *from = (const float *)(const void *)(c->file + (size_t)begin);
    bool *filled = c->filled + (size_t)begin / 4;
    const ck_mat m = ck_new(c, (int64_t)rows, (int64_t)cols);
    for (int64_t i = 0; i < m.rows * m.cols; i++) {
        m.v[i / m.cols * m.ld + i % m.cols] = (double)from[i];
        if (!isfinite(from[i]) && !*c->bad) snprintf(c->bad, sizeof c->bad, "%.63s", name);
        if (filled[i] && t->valueint == 0) ck_fail(c, "model file: its tensors overlap, or leave bytes to nobody");
        filled[i] = true;
    }
    if (t->valueint == 0) c->used++, c->left -= 4 * (size_t)(m.rows * m.cols); /* once, however many nodes name it */
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
    const bool absent = *name == '?';
    name += absent;
    const bool tied = ck_is(n, "linear") && i == 0 && n->k[0] != 0;
    const char *star = strchr(name, '*');
    const int64_t at = star ? i - 4 : 0; /* behind the lists and what belongs to them all */
    if (star && at >= n->w[0].cols) return;
    if (star)
        snprintf(full, sizeof full, "%s.%.*s%.0f%s", n->path, (int)(star - name), name, n->w[0].v[at], star + 1);
    else
        snprintf(full, sizeof full, "%s.%s", n->path, name + (*name == '='));
    if (star) size['S' - '0'] = 0; /* each has a size of its own */
    if (absent && *name == '=' && !ck_get(f->json, name + 1)) return;
    n->w[i] = tied ? c->embed : *name == '=' ? listed(f, name + 1) : tensor(c, full, 1, shape[1] ? 2 : 1);
    if (!n->w[i].v && absent) return;
    const int64_t sides[] = { n->w[i].rows, n->w[i].cols };
    for (int s = 0; s < 2; s++) {
        int64_t *want = size + (shape[1] ? shape[s] : s ? shape[0] : '1') - '0';
        if (*want == 0) *want = sides[s];
        if (!n->w[i].v || *want != sides[s]) ck_fail(c, "model file: %s is missing or of another shape", full);
    }
}

/* d is the width that comes in; c->tokens becomes how many tokens go out. */
int64_t ck_build(ck *c, const cJSON *json, ck_node *up, int64_t d)
{
    ck_node *n = c->nodes + c->count++;
    ck_fields f = { c, "the model's tree", "taut.tree", json, 0 };
    const char *rule = ck_word(&f, "rule"), *name = ck_word(&f, "name");
    *n = (ck_node){ .rule = ck_rule_of(rule), .name = name, .up = up };
    const char *before = up ? up->path : "", *dot = *before && *name ? "." : "";
    if (snprintf(n->path, sizeof n->path, "%s%s%s", before, dot, name) >= (int)sizeof n->path)
        ck_fail(c, "%s: a path of more than %zu letters", n->path, sizeof n->path - 1);
    if (!*rule) ck_fail(c, "%s: a module of the tree has no rule", n->path);
    c->out->foreign = c->old || !n->rule;
    if (!n->rule) ck_fail(c, "%s: the checker does not know the rule %.30s", n->path, rule);
    int64_t size['z'] = { ['1' - '0'] = 1, ['d' - '0'] = d, ['t' - '0'] = c->tokens };
    n->tokens = c->tokens, n->width = d;
    for (int i = 0; i < CK_CONSTANTS && n->rule->constants[i]; i++) n->k[i] = constant(&f, n->rule->constants[i]);
    for (int i = 0; i < CK_TENSORS && n->rule->tensors[i].name; i++) load(&f, n, i, size);
    if (n->rule->fits && !n->rule->fits(n))
        ck_fail(c, "%s: its constants or weights do not fit the rule %s", n->path, rule);
    if (size['o' - '0']) d = size['o' - '0'];
    if (n->rule->shape) n->rule->shape(n, &c->tokens, &d);
    int64_t parts;
    if (n->rule->join) d = n->rule->join(c, ck_list(&f, "of", &parts), n, d);
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

/* Is this the file that the certificate names? */
static void same_file(ck *c)
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
}

void ck_model_read(ck *c)
{
    same_file(c);
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
    c->filled = ck_room(c, (int64_t)c->size / 4 + 1, sizeof *c->filled), c->left = c->size;
    ck_fields f = { c, "the model's tree", "taut.tree", c->tree, 0 };
    const double version = constant(&f, "#version");
    c->old = version == 2 || version == 3;     /* knew less: what does not fit may be another function, but is no lie */
    c->out->foreign = !c->old && version != 4; /* another version may say the same by other words */
    if (c->out->foreign)
        ck_fail(c, "model file: the checker reads version 4 of taut.tree, not %.0f; save the model again", version);
    c->out->tokens = c->tokens = (int64_t)constant(&f, "#tokens");
    c->width = (int64_t)constant(&f, "#width");
    c->unit = constant(&f, "?unit") != 0;
    c->embed = tensor(c, "embed.weight", 2, 2);
    int objects = 0; /* no fewer than nodes, and one more */
    for (const char *p = tree; *p; p++) objects += *p == '{';
    c->nodes = ck_room(c, objects, sizeof *c->nodes);
    c->out->series = !c->unit && !c->embed.v;
    c->out->pixels = c->unit ? c->tokens * c->width : 0;
    if (c->unit ? c->embed.v != NULL || c->tokens != 1 : c->embed.v && c->embed.cols != c->width)
        ck_fail(c, "model file: its inputs do not fit its embedding");
    ck_build(c, ck_take(&f, "root"), NULL, c->width);
    ck_close(&f);
    if (!root_fits(c->nodes)) ck_fail(c, "the model's tree is not one of a body, perhaps a head and a scale");
    if (c->used + 1 != cJSON_GetArraySize(c->header))
        ck_fail(c, "model file: it has tensors that its tree does not name");
    if (c->left) ck_fail(c, "model file: its tensors overlap, or leave bytes to nobody");
    c->out->foreign = false;
}
