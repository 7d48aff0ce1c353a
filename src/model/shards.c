#include "model/shards.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/file.h"
#include "model/safetensors_impl.h"

struct taut_shards {
    char **name; /* of the files */
    taut_safetensors **file;
    int files;
    taut_onnx *onnx;         /* instead of files; or NULL */
    taut_shard_tensor *list; /* by name */
    int count;
};

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = taut_malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static taut_status add_file(taut_shards *s, const char *folder, const char *name)
{
    for (int i = 0; i < s->files; i++)
        if (strcmp(s->name[i], name) == 0) return TAUT_OK;
    char *path = folder ? join(folder, name) : taut_strdup(name),
         **names = taut_realloc(s->name, (size_t)(s->files + 1) * sizeof *names);
    if (names) s->name = names;
    taut_safetensors **files = taut_realloc(s->file, (size_t)(s->files + 1) * sizeof *files);
    if (files) s->file = files;
    taut_status status = path && names && files ? TAUT_OK : taut_no_memory(folder);
    if (!status && !(names[s->files] = taut_strdup(name))) status = taut_no_memory(folder);
    if (!status && (status = taut_safetensors_open(&files[s->files], path))) free(names[s->files]);
    if (!status) s->files++;
    free(path);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const taut_shard_tensor *)a)->tensor->name, ((const taut_shard_tensor *)b)->tensor->name);
}

static taut_status list_tensors(taut_shards *s, const char *folder)
{
    int all = 0;
    char show[80];
    for (int f = 0; f < s->files; f++) all += taut_safetensors_count(s->file[f]);
    if (s->onnx) all = taut_onnx_count(s->onnx);
    s->list = taut_calloc((size_t)all + 1, sizeof *s->list);
    if (!s->list) return taut_no_memory(folder);
    for (int f = 0; f < s->files; f++)
        for (int i = 0; i < taut_safetensors_count(s->file[f]); i++)
            s->list[s->count++] = (taut_shard_tensor){ taut_safetensors_at(s->file[f], i), s->file[f], NULL,
                                                       s->name[f] };
    for (int i = 0; s->onnx && i < all; i++)
        s->list[s->count++] = (taut_shard_tensor){ taut_onnx_at(s->onnx, i), NULL, s->onnx, "the file" };
    qsort(s->list, (size_t)s->count, sizeof *s->list, by_name);
    for (int i = 1; i < s->count; i++)
        if (by_name(&s->list[i - 1], &s->list[i]) == 0)
            return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is both in %s and in %s", folder,
                             taut_st_show(show, s->list[i].tensor->name), s->list[i - 1].file_name,
                             s->list[i].file_name);
    return TAUT_OK;
}

static bool plain_name(const char *name) { return *name && *name != '.' && !strchr(name, '/') && !strchr(name, '\\'); }

static taut_status open_named(taut_shards *s, const char *folder, const cJSON *map)
{
    const cJSON *entry;
    char show[80];
    taut_status status = TAUT_OK;
    cJSON_ArrayForEach(entry, map)
    {
        const char *file = cJSON_GetStringValue(entry);
        if (!file || !plain_name(file))
            return taut_fail(TAUT_BAD_FILE, "%s: the index has no plain file name for tensor %s", folder,
                             taut_st_show(show, entry->string));
        if ((status = add_file(s, folder, file))) return status;
    }
    return status;
}

/* The index against the files: each names what the other holds, once. */
static taut_status compare(const taut_shards *s, const char *folder, const cJSON *map)
{
    const cJSON *entry;
    char show[80];
    int named = 0;
    cJSON_ArrayForEach(entry, map)
    {
        const taut_shard_tensor *t = taut_shards_find(s, entry->string);
        if (!t || strcmp(t->file_name, entry->valuestring) != 0)
            return taut_fail(TAUT_BAD_FILE, "%s: the index says tensor %s is in %s, where it is not", folder,
                             taut_st_show(show, entry->string), entry->valuestring);
        named++;
    }
    if (named == s->count) return TAUT_OK;
    for (int i = 0; i < s->count; i++)
        if (!cJSON_GetObjectItemCaseSensitive(map, s->list[i].tensor->name))
            return taut_fail(TAUT_BAD_FILE, "%s: the index does not name tensor %s of %s", folder,
                             taut_st_show(show, s->list[i].tensor->name), s->list[i].file_name);
    return taut_fail(TAUT_BAD_FILE, "%s: the index names a tensor twice", folder);
}

static taut_status open_index(taut_shards *s, const char *folder, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    taut_status status = taut_file_read(&text, &len, path);
    if (status) return status;
    cJSON *json = cJSON_ParseWithLength(text, len);
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(json, "weight_map");
    if (!cJSON_IsObject(map))
        status = taut_fail(TAUT_BAD_FILE, "%s: no JSON object with a weight_map", path);
    else
        status = open_named(s, folder, map);
    if (!status) status = list_tensors(s, folder);
    if (!status) status = compare(s, folder, map);
    cJSON_Delete(json);
    free(text);
    return status;
}

static bool ends(const char *path, const char *with)
{
    const size_t len = strlen(path), tail = strlen(with);
    return len > tail && strcmp(path + len - tail, with) == 0;
}

/* PyTorch's pickles are programs, which nobody runs who only wants numbers. */
static taut_status refuse_pickle(const char *path)
{
    return taut_fail(TAUT_BAD_FILE,
                     "%s: a pickle of PyTorch's, which taut does not read: docs/howto/bring_my_model.md makes "
                     "safetensors of it",
                     path);
}

static taut_status open_file(taut_shards *s, const char *path)
{
    static const char *const pickles[] = { ".pt", ".pth", ".bin", ".ckpt", ".pkl" };
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
        if (ends(path, pickles[i])) return refuse_pickle(path);
    if (ends(path, ".index.json")) {
        char *folder = taut_strdup(strchr(path, '/') ? path : ".");
        if (!folder) return taut_no_memory(path);
        if (strrchr(folder, '/')) *strrchr(folder, '/') = 0;
        const taut_status status = open_index(s, *folder || *path != '/' ? folder : "/", path);
        free(folder);
        return status;
    }
    taut_status status = ends(path, ".onnx") ? taut_onnx_open(&s->onnx, path) : add_file(s, NULL, path);
    return status ? status : list_tensors(s, path);
}

static taut_status open_folder(taut_shards *s, const char *folder)
{
    char *single = join(folder, "model.safetensors"), *index = join(folder, "model.safetensors.index.json"),
         *pickle = join(folder, "pytorch_model.bin");
    taut_status status = single && index && pickle ? TAUT_OK : taut_no_memory(folder);
    const bool alone = !status && taut_file_exists(single);
    if (!status && !alone && taut_file_exists(index)) {
        status = open_index(s, folder, index);
    } else if (!status && !alone && taut_file_exists(pickle)) {
        status = refuse_pickle(pickle);
    } else if (!status && !alone) {
        status = taut_fail(TAUT_BAD_FILE, "%s: neither model.safetensors nor an index of shards is there", folder);
    } else if (!status) {
        status = add_file(s, folder, "model.safetensors");
        if (!status) status = list_tensors(s, folder);
    }
    free(single);
    free(index);
    free(pickle);
    return status;
}

taut_status taut_shards_open(taut_shards **out, const char *path)
{
    *out = NULL;
    taut_shards *s = taut_calloc(1, sizeof *s);
    struct stat info;
    if (!s) return taut_no_memory(path);
    const bool file = stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    const taut_status status = file ? open_file(s, path) : open_folder(s, path);
    if (status)
        taut_shards_close(s);
    else
        *out = s;
    return status;
}

void taut_shards_close(taut_shards *s)
{
    if (!s) return;
    for (int i = 0; i < s->files; i++) {
        taut_safetensors_close(s->file[i]);
        free(s->name[i]);
    }
    taut_onnx_close(s->onnx);
    free(s->file);
    free(s->name);
    free(s->list);
    free(s);
}

int taut_shards_count(const taut_shards *s) { return s->count; }

int taut_shards_files(const taut_shards *s) { return s->onnx ? 1 : s->files; }

const taut_onnx *taut_shards_onnx(const taut_shards *s) { return s->onnx; }

taut_status taut_shards_read(const taut_shard_tensor *t, double *dst, int64_t first, int64_t count)
{
    if (t->file) return taut_safetensors_read(t->file, t->tensor, dst, first, count);
    taut_onnx_read(t->onnx, t->tensor, dst, first, count);
    return TAUT_OK;
}

const taut_shard_tensor *taut_shards_at(const taut_shards *s, int index)
{
    TAUT_CHECK(index >= 0 && index < s->count, "no tensor of that index");
    return &s->list[index];
}

const taut_shard_tensor *taut_shards_find(const taut_shards *s, const char *name)
{
    const taut_st_tensor tensor = { .name = name };
    const taut_shard_tensor wanted = { .tensor = &tensor };
    return bsearch(&wanted, s->list, (size_t)s->count, sizeof *s->list, by_name);
}
