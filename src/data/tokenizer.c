/* The files of a pretrained tokenizer, turned into the text that a vocabulary prints, which then checks it. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/find.h"
#include "data/vocab.h"

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = taut_malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* The first of two names that is there; *path NULL: neither. */
static taut_status find(char **path, const char *folder, const char *name, const char *older)
{
    const char *const names[] = { name, older };
    *path = NULL;
    for (int i = 0; i < 2 && names[i]; i++) {
        char *candidate = join(folder, names[i]);
        if (!candidate) return taut_no_memory(folder);
        if (taut_file_exists(candidate)) {
            *path = candidate;
            return TAUT_OK;
        }
        free(candidate);
    }
    return TAUT_OK;
}

/* Tokens of { "token": id } in the order of their ids, which are 0 .. count-1. */
static taut_status order(const char **token, const cJSON *map, int count, const char *path)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, map)
    {
        const double id = cJSON_IsNumber(entry) ? entry->valuedouble : -1;
        if (!(id >= 0 && id < count && id == (double)(int)id))
            return taut_fail(TAUT_BAD_DATA, "%s: token %.40s has no id from 0 to %d", path, entry->string, count - 1);
        if (token[(int)id]) return taut_fail(TAUT_BAD_DATA, "%s: two tokens have the id %d", path, (int)id);
        if (strchr(entry->string, '\n'))
            return taut_fail(TAUT_BAD_DATA, "%s: token %d has a line break in it", path, (int)id);
        token[(int)id] = entry->string;
    }
    return TAUT_OK;
}

/* "bpe:", how many, the tokens, the merges. */
static taut_status print_bpe(char **out, const cJSON *map, const char *merges, const char *path)
{
    const int count = cJSON_GetArraySize(map);
    size_t room = 64 + strlen(merges);
    const char **token = taut_calloc((size_t)count + 1, sizeof *token);
    *out = NULL;
    if (!token) return taut_no_memory(path);
    taut_status s = count > 0 ? order(token, map, count, path) : taut_fail(TAUT_BAD_DATA, "%s: no tokens", path);
    for (int i = 0; !s && i < count; i++) room += strlen(token[i]) + 1;
    char *p = *out = s ? NULL : taut_malloc(room);
    if (!s && !p) s = taut_no_memory(path);
    if (!s) p += sprintf(p, "bpe:\n%d\n", count);
    for (int i = 0; !s && i < count; i++) p += sprintf(p, "%s\n", token[i]);
    if (!s) strcpy(p, merges);
    free(token);
    return s;
}

/* Without its first line "#version: ...", and with plain line ends. */
static void tidy_merges(char *text)
{
    char *from = text, *to = text;
    if (strncmp(text, "#version", 8) == 0) from += strcspn(text, "\n");
    while (*from == '\n' || *from == '\r') from++;
    for (; *from; from++)
        if (*from != '\r' && !(*from == '\n' && (to == text || to[-1] == '\n'))) *to++ = *from;
    *to = 0;
}

static taut_status open_bpe(char **printed, const char *vocab, const char *merges)
{
    char *json = NULL, *text = NULL;
    size_t len = 0, text_len = 0;
    taut_status s = taut_file_read(&json, &len, vocab);
    if (!s) s = taut_file_read(&text, &text_len, merges);
    if (!s && strlen(text) != text_len) s = taut_fail(TAUT_BAD_DATA, "%s: NUL in a text of merges", merges);
    cJSON *map = s ? NULL : cJSON_ParseWithLength(json, len);
    if (!s && !cJSON_IsObject(map)) s = taut_fail(TAUT_BAD_DATA, "%s: no JSON object of tokens and ids", vocab);
    if (!s) {
        tidy_merges(text);
        s = print_bpe(printed, map, text, vocab);
    }
    cJSON_Delete(map);
    free(json);
    free(text);
    return s;
}

/* do_lower_case of tokenizer_config.json; true where nothing is said, as in BERT's own. */
static taut_status ask_lower(bool *lower, const char *folder)
{
    char *path = NULL, *text = NULL;
    size_t len = 0;
    *lower = true;
    taut_status s = find(&path, folder, "tokenizer_config.json", NULL);
    if (!s && path) s = taut_file_read(&text, &len, path);
    if (!s && path) {
        cJSON *json = cJSON_ParseWithLength(text, len);
        if (!json) s = taut_fail(TAUT_BAD_DATA, "%s: no JSON", path);
        *lower = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "do_lower_case"));
        cJSON_Delete(json);
    }
    free(text);
    free(path);
    return s;
}

static taut_status open_wordpiece(char **printed, const char *folder, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    bool lower;
    taut_status s = ask_lower(&lower, folder);
    if (!s) s = taut_file_read(&text, &len, path);
    if (!s && strlen(text) != len) s = taut_fail(TAUT_BAD_DATA, "%s: NUL in a list of tokens", path);
    *printed = s ? NULL : taut_malloc(len + 32);
    if (!s && !*printed) s = taut_no_memory(path);
    if (!s) {
        char *p = *printed + sprintf(*printed, lower ? "wordpiece:\n" : "wordpiece-cased:\n");
        for (const char *from = text; *from; from++)
            if (*from != '\r') *p++ = *from;
        *p = 0;
    }
    free(text);
    return s;
}

taut_status taut_vocab_open(taut_vocab **out, const char *folder)
{
    char *json = NULL, *merges = NULL, *words = NULL, *printed = NULL;
    *out = NULL;
    taut_status s = find(&json, folder, "vocab.json", "encoder.json");
    if (!s) s = find(&merges, folder, "merges.txt", "vocab.bpe");
    if (!s) s = find(&words, folder, "vocab.txt", NULL);
    if (!s && json && merges)
        s = open_bpe(&printed, json, merges);
    else if (!s && words)
        s = open_wordpiece(&printed, folder, words);
    else if (!s)
        s = taut_fail(TAUT_BAD_DATA, "%s: neither vocab.json with merges.txt nor vocab.txt: no tokenizer", folder);
    if (!s && (s = taut_vocab_parse(out, printed)) == TAUT_BAD_DATA)
        s = taut_fail(s, "%s: %s", json && merges ? json : words, taut_last_error());
    free(json);
    free(merges);
    free(words);
    free(printed);
    return s;
}

taut_status taut_vocab_find(taut_vocab **out, const char *name)
{
    char *folder;
    *out = NULL;
    taut_status s = taut_data_find(&folder, name);
    if (!s) s = taut_vocab_open(out, folder);
    free(folder);
    return s;
}
