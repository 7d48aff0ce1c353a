/* From what a tensor is for to the tensor: the caller's maps first, then the patterns of the scheme (hf_names.c); and which
 * scheme and prefix a checkpoint has, by the names of its tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/hf_impl.h"

static const char *const places[HF_ROLES] = {
    [HF_EMBED] = "embed",
    [HF_POS] = "pos",
    [HF_TYPES] = "types",
    [HF_EMBED_NORM] = "embed_norm",
    [HF_PATCH] = "patch",
    [HF_CLASS] = "cls",
    [HF_DISTIL] = "dist",
    [HF_NORM1] = "block.#.norm1",
    [HF_QKV] = "block.#.attn.qkv",
    [HF_Q] = "block.#.attn.q",
    [HF_K] = "block.#.attn.k",
    [HF_V] = "block.#.attn.v",
    [HF_O] = "block.#.attn.o",
    [HF_SCALE1] = "block.#.scale1",
    [HF_NORM2] = "block.#.norm2",
    [HF_IN] = "block.#.mlp.in",
    [HF_OUT] = "block.#.mlp.out",
    [HF_SCALE2] = "block.#.scale2",
    [HF_NORM] = "norm",
    [HF_TRANSFORM] = "transform",
    [HF_TRANSFORM_NORM] = "transform_norm",
    [HF_HEAD] = "head",
};

/* Is `path` this place and then .weight or .bias?  Then *number is its block. */
static bool stands(const char *place, const char *path, bool *bias, int *number)
{
    for (*number = 0; *place && *path; place++) {
        char *end = NULL;
        if (*place != '#' && *place != *path++) return false;
        if (*place != '#') continue;
        *number = (int)strtol(path, &end, 10);
        if (*path == '#') end = (char *)path + 1; /* of every block, as a map says it */
        if (end == path) return false;
        path = end;
    }
    *bias = strcmp(path, ".bias") == 0;
    return !*place && (*bias || strcmp(path, ".weight") == 0);
}

int taut_hf_role_of(const char *path, bool *bias, int *number)
{
    for (int r = 0; r < HF_ROLES; r++)
        if (stands(places[r], path, bias, number)) return r;
    return -1;
}

/* One name of a pattern, from `from` to a bar or the end: # and * are replaced.  Of two names with a space between them the
 * weight's is the first. */
static void spell(char dst[HF_NAME], const char *from, bool bias, int number)
{
    size_t used = 0;
    const size_t len = strcspn(from, "|");
    const char *end = from + len, *space = memchr(from, ' ', len);
    if (space && bias) from = space + 1;
    if (space && !bias) end = space;
    for (; from < end && used < HF_NAME / 2; from++) {
        if (*from == '#')
            used += (size_t)snprintf(dst + used, HF_NAME - used, "%d", number);
        else if (*from == '*')
            used += (size_t)snprintf(dst + used, HF_NAME - used, "%s", bias ? "bias" : "weight");
        else
            dst[used++] = *from;
    }
    dst[used] = 0;
}

/* Older programs have other words in the names of norms. */
static const taut_shard_tensor *look(const taut_hf *hf, const char *prefix, int len, const char *name)
{
    static const char *const older[][2] = { { "LayerNorm.weight", "LayerNorm.gamma" },
                                            { "LayerNorm.bias", "LayerNorm.beta" } };
    char full[HF_NAME];
    snprintf(full, sizeof full, "%.*s%s", len, prefix, name);
    const taut_shard_tensor *t = taut_shards_find(hf->shards, full);
    for (int i = 0; !t && i < 2; i++) {
        char *end = strstr(full, older[i][0]);
        if (!end) continue;
        strcpy(end, older[i][1]);
        t = taut_shards_find(hf->shards, full);
    }
    return t;
}

const taut_shard_tensor *taut_hf_named(const taut_hf *hf, const char *name)
{
    int len = (int)strlen(hf->prefix);
    if (*name == '~') return look(hf, hf->prefix, len, name + 1);
    const taut_shard_tensor *t = look(hf, hf->prefix, len, name);
    while (!t && len > 0) { /* one level further out: behind the dot before the last */
        do len--;
        while (len > 0 && hf->prefix[len - 1] != '.');
        t = look(hf, hf->prefix, len, name);
    }
    return t;
}

/* What the caller's maps say of a role, as a pattern; NULL: nothing. */
static const char *mapped(const taut_hf *hf, taut_hf_role role, bool bias, int number)
{
    for (int i = hf->maps - 1; i >= 0; i--) { /* the last one counts */
        const char *equal = strchr(hf->map[i], '=');
        char mine[HF_NAME];
        bool of_bias;
        int block;
        snprintf(mine, sizeof mine, "%.*s", (int)(equal - hf->map[i]), hf->map[i]);
        if (!stands(places[role], mine, &of_bias, &block) || of_bias != bias) continue;
        if (strchr(mine, '#') || !strchr(places[role], '#') || block == number) return equal + 1;
    }
    return NULL;
}

const taut_shard_tensor *taut_hf_at(const taut_hf *hf, taut_hf_role role, bool bias, int number)
{
    char name[HF_NAME];
    const char *own = mapped(hf, role, bias, number), *pattern = own ? own : hf->scheme->at[role];
    const taut_shard_tensor *t = NULL;
    while (pattern && !t) {
        spell(name, pattern, bias, number);
        t = taut_hf_named(hf, name);
        pattern = strchr(pattern, '|') ? strchr(pattern, '|') + 1 : NULL;
    }
    /* a pattern without a place for the word names the weight */
    return t && bias && !own && !strpbrk(hf->scheme->at[role], "* ") ? NULL : t;
}

const char *taut_hf_name(char dst[HF_NAME], const taut_hf *hf, taut_hf_role role, bool bias, int number)
{
    char name[HF_NAME];
    const char *own = mapped(hf, role, bias, number), *pattern = own ? own : hf->scheme->at[role];
    spell(name, pattern ? pattern : "", bias, number);
    snprintf(dst, HF_NAME, "%.255s%.255s", *name == '~' ? hf->prefix : "", name + (*name == '~'));
    return dst;
}

/* Does `name` end with `key`, behind a dot or from its start on?  *len is then what stands before it. */
static bool ends(const char *name, const char *key, size_t *len)
{
    const size_t all = strlen(name), tail = strlen(key);
    *len = all - tail;
    return all >= tail && strcmp(name + *len, key) == 0 && (*len == 0 || name[*len - 1] == '.') && *len < HF_NAME / 2;
}

/* How many names the key of a scheme has in the file; hf->prefix becomes the first one's prefix, `other` the second's. */
static int count_prefixes(taut_hf *hf, const taut_hf_scheme *scheme, char other[HF_NAME / 2])
{
    char name[HF_NAME];
    int found = 0;
    hf->scheme = scheme;
    *hf->prefix = 0;
    const char *pattern = mapped(hf, scheme->key, false, 0);
    if (pattern) return taut_hf_at(hf, scheme->key, false, 0) != NULL;
    for (pattern = scheme->at[scheme->key]; pattern && !found;
         pattern = strchr(pattern, '|') ? strchr(pattern, '|') + 1 : NULL) {
        spell(name, pattern, false, 0);
        for (int i = 0; i < taut_shards_count(hf->shards); i++) {
            size_t len;
            const char *tensor = taut_shards_at(hf->shards, i)->tensor->name;
            if (!ends(tensor, name + (*name == '~'), &len)) continue;
            if (hf->ask->prefix && (strlen(hf->ask->prefix) != len || strncmp(tensor, hf->ask->prefix, len) != 0))
                continue;
            snprintf(found ? other : hf->prefix, HF_NAME / 2, "%.*s", (int)len, tensor);
            found++;
        }
    }
    return found;
}

/* nanoGPT has GPT-2's names: which way its stacked matrix lies tells them apart. */
static bool lies_right(const taut_hf *hf)
{
    const taut_shard_tensor *t = taut_hf_at(hf, HF_QKV, false, 0);
    if (!t || t->tensor->rank != 2) return true;
    const int64_t *shape = t->tensor->shape;
    return hf->scheme->transposed ? shape[1] == 3 * shape[0] : shape[0] == 3 * shape[1];
}

/* How many of a scheme's names are there. */
static int count_names(const taut_hf *hf)
{
    int count = 0;
    for (int r = 0; r < 2 * HF_ROLES; r++) count += taut_hf_at(hf, (taut_hf_role)(r / 2), r % 2, 0) != NULL;
    return count;
}

static taut_status find_prefix(taut_hf *hf)
{
    char other[HF_NAME / 2] = "", key[HF_NAME];
    const int found = count_prefixes(hf, hf->scheme, other);
    if (found == 1) return TAUT_OK;
    spell(key, hf->scheme->at[hf->scheme->key], false, 0);
    if (found == 0)
        return taut_fail(TAUT_BAD_FILE, "%s: no %s in its tensors: not a %s checkpoint", hf->folder,
                         key + (*key == '~'), hf->type);
    return taut_fail(TAUT_BAD_FILE, "%s: %d tensors end with %s, under \"%s\" and under \"%s\": --prefix says which",
                     hf->folder, found, key + (*key == '~'), hf->prefix, other);
}

static bool is_of(const taut_hf_scheme *scheme, const char *type)
{
    char word[64];
    snprintf(word, sizeof word, "|%.60s|", type);
    return scheme->types && strstr(scheme->types, word);
}

/* Among those of the type that config.json has, or among all: the one that has most names in the file. */
taut_status taut_hf_find_scheme(taut_hf *hf)
{
    const taut_hf_scheme *best = NULL;
    char other[HF_NAME / 2], names[256] = "";
    const bool onnx = taut_shards_onnx(hf->shards) != NULL;
    int most = 0;
    for (int i = 0; i < HF_SCHEMES; i++) {
        const taut_hf_scheme *row = &taut_hf_schemes[i];
        if (hf->type ? !is_of(row, hf->type) : onnx != (row->nodes != NULL)) continue;
        if (hf->type && !best) best = row; /* config.json says so, whatever the names are */
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", row->name);
        if (count_prefixes(hf, row, other) == 0 || (!hf->type && !lies_right(hf)) || count_names(hf) <= most) continue;
        best = row;
        most = count_names(hf);
    }
    hf->scheme = best;
    if (!best)
        return taut_fail(TAUT_BAD_FILE,
                         "%s: its tensors are named as in none of %s: --map MINE=THEIRS says what is what", hf->folder,
                         names);
    if (!hf->type) hf->type = best->name;
    return find_prefix(hf);
}
