/* Protocol buffers, as far as an ONNX file needs them: a message is fields, each a number, a type and a value.
 *     model   7 graph          graph   1 node, 5 initializer
 *     node    1 input, 2 output, 4 kind
 *     tensor  1 dimension, 2 type, 8 name, 9 raw bytes, little-endian */
#include "model/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/file.h"
#include "model/safetensors_impl.h"

typedef struct {
    const unsigned char *at, *end;
} bytes;

typedef struct {
    uint64_t number, value; /* value: of a varint */
    bytes in;               /* of a string or a message */
    bool message;
} field;

struct taut_onnx {
    char *file;
    taut_st_tensor *list;
    int count, room;
    char **kind; /* of every node */
    int kinds, kind_room;
};

static bool varint(bytes *b, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        const unsigned char c = *b->at++;
        *value |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) return true;
    }
    return false;
}

/* The next field; false: the bytes are none. */
static bool next(bytes *b, field *f)
{
    uint64_t key, len;
    *f = (field){ 0 };
    if (!varint(b, &key)) return false;
    f->number = key >> 3;
    switch (key & 7) {
    case 0:
        return varint(b, &f->value);
    case 1:
    case 5:
        len = (key & 7) == 1 ? 8 : 4;
        break;
    case 2:
        if (!varint(b, &len)) return false;
        f->message = true;
        break;
    default:
        return false;
    }
    if (len > (uint64_t)(b->end - b->at)) return false;
    f->in = (bytes){ b->at, b->at + len };
    b->at += len;
    return true;
}

static char *text_of(bytes b)
{
    const size_t len = (size_t)(b.end - b.at);
    char *s = taut_malloc(len + 1);
    if (!s) return NULL;
    memcpy(s, b.at, len);
    s[len] = 0;
    return s;
}

/* The list with room for one more; NULL: no memory, and the list is as it was. */
static void *grow(void *list, int count, int *room, size_t size)
{
    if (count < *room) return list;
    void *more = taut_realloc(list, (size_t)(2 * *room + 16) * size);
    if (more) *room = 2 * *room + 16;
    return more;
}

static bool equal(bytes b, const char *s)
{
    return (size_t)(b.end - b.at) == strlen(s) && memcmp(b.at, s, strlen(s)) == 0;
}

static bool dimensions(taut_st_tensor *t, field f)
{
    uint64_t size = f.value;
    do {
        if (f.message && !varint(&f.in, &size)) return false; /* packed */
        if (t->rank == TAUT_ST_RANK || size > INT32_MAX || __builtin_mul_overflow(t->count, (int64_t)size, &t->count))
            return false;
        t->shape[t->rank++] = (int64_t)size;
    } while (f.message && f.in.at < f.in.end);
    return true;
}

static const char *type_name(uint64_t type)
{
    static const struct {
        uint64_t type;
        const char *name;
    } known[] = { { 1, "F32" }, { 11, "F64" }, { 10, "F16" }, { 16, "BF16" }, { 7, "I64" }, { 6, "I32" } };
    for (int i = 0; i < 6; i++)
        if (known[i].type == type) return known[i].name;
    return NULL;
}

static taut_status read_tensor(taut_onnx *o, bytes b, const char *path)
{
    taut_st_tensor t = { .count = 1 };
    bytes raw = { NULL, NULL }, label = { NULL, NULL };
    int64_t size;
    bool good = true;
    for (field f; good && b.at < b.end;) {
        good = next(&b, &f);
        if (good && f.number == 1) good = dimensions(&t, f);
        if (good && f.number == 2) t.dtype = type_name(f.value);
        if (good && f.number == 8 && f.message) label = f.in;
        if (good && f.number == 9 && f.message) raw = f.in;
    }
    const taut_st_dtype *dtype = good && t.dtype ? taut_st_dtype_find(t.dtype) : NULL;
    if (!dtype || !label.at || !raw.at || __builtin_mul_overflow(t.count, dtype->bits / 8, &size) ||
        raw.end - raw.at != size)
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %d is damaged, or of a type that taut does not read", path,
                         o->count);
    taut_st_tensor *list = grow(o->list, o->count, &o->room, sizeof *list);
    if (list) o->list = list;
    char *name = list ? text_of(label) : NULL;
    if (name) {
        t.name = name;
        t.begin = (uint64_t)(raw.at - (const unsigned char *)o->file);
        t.end = t.begin + (uint64_t)(raw.end - raw.at);
        o->list[o->count++] = t;
        return TAUT_OK;
    }
    return taut_no_memory(path);
}

/* Gives a nameless matrix the name of the node's output. */
static taut_status rename_input(taut_onnx *o, bytes input, bytes output, const char *path)
{
    static const char nameless[] = "onnx::", end[] = "_output_0";
    if ((size_t)(input.end - input.at) < sizeof nameless || memcmp(input.at, nameless, sizeof nameless - 1) != 0)
        return TAUT_OK;
    for (int i = 0; i < o->count; i++) {
        if (!equal(input, o->list[i].name)) continue;
        char *name = text_of(output);
        if (!name) return taut_no_memory(path);
        char *cut = strstr(name, end);
        if (cut) *cut = 0;
        free((char *)o->list[i].name);
        o->list[i].name = name;
    }
    return TAUT_OK;
}

static taut_status read_node(taut_onnx *o, bytes b, const char *path)
{
    bytes input[8] = { { NULL, NULL } }, output = { NULL, NULL };
    int inputs = 0;
    bytes kind = { NULL, NULL };
    for (field f; b.at < b.end;) {
        if (!next(&b, &f)) return taut_fail(TAUT_BAD_FILE, "%s: a damaged node", path);
        if (!f.message) continue;
        if (f.number == 1 && inputs < 8) input[inputs++] = f.in;
        if (f.number == 2 && !output.at) output = f.in;
        if (f.number == 4) kind = f.in;
    }
    char **kinds = grow(o->kind, o->kinds, &o->kind_room, sizeof *kinds);
    if (kinds) o->kind = kinds;
    if (!kinds || !(o->kind[o->kinds] = kind.at ? text_of(kind) : taut_strdup(""))) return taut_no_memory(path);
    o->kinds++;
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < inputs && output.at; i++) s = rename_input(o, input[i], output, path);
    return s;
}

/* All fields of one number in a message, in order. */
static taut_status each(taut_onnx *o, bytes b, uint64_t number, taut_status (*read)(taut_onnx *, bytes, const char *),
                        const char *path)
{
    taut_status s = TAUT_OK;
    for (field f; !s && b.at < b.end;) {
        if (!next(&b, &f)) return taut_fail(TAUT_BAD_FILE, "%s: no ONNX file, or a damaged one", path);
        if (f.number == number && f.message) s = read(o, f.in, path);
    }
    return s;
}

/* Weights first, which nodes then name. */
static taut_status read_graph(taut_onnx *o, bytes graph, const char *path)
{
    const taut_status s = each(o, graph, 5, read_tensor, path);
    return s ? s : each(o, graph, 1, read_node, path);
}

taut_status taut_onnx_open(taut_onnx **out, const char *path)
{
    size_t len = 0;
    *out = NULL;
    taut_onnx *o = taut_calloc(1, sizeof *o);
    if (!o) return taut_no_memory(path);
    taut_status s = taut_file_read(&o->file, &len, path);
    const unsigned char *start = (const unsigned char *)o->file;
    if (!s) s = each(o, (bytes){ start, start + len }, 7, read_graph, path);
    if (!s && o->count == 0) s = taut_fail(TAUT_BAD_FILE, "%s: an ONNX file without weights", path);
    if (s)
        taut_onnx_close(o);
    else
        *out = o;
    return s;
}

void taut_onnx_close(taut_onnx *o)
{
    if (!o) return;
    for (int i = 0; i < o->count; i++) free((char *)o->list[i].name);
    for (int i = 0; i < o->kinds; i++) free(o->kind[i]);
    free(o->list);
    free(o->kind);
    free(o->file);
    free(o);
}

int taut_onnx_count(const taut_onnx *o) { return o->count; }

const taut_st_tensor *taut_onnx_at(const taut_onnx *o, int index)
{
    TAUT_CHECK(index >= 0 && index < o->count, "no tensor of that index");
    return &o->list[index];
}

void taut_onnx_read(const taut_onnx *o, const taut_st_tensor *t, double *dst, int64_t first, int64_t count)
{
    const taut_st_dtype *dtype = taut_st_dtype_find(t->dtype);
    TAUT_CHECK(first >= 0 && count >= 0 && first + count <= t->count, "elements outside the tensor");
    (void)taut_st_unpack(dst, (const unsigned char *)o->file + t->begin + first * (dtype->bits / 8), count, dtype);
}

const char *taut_onnx_other_node(const taut_onnx *o, const char *kinds)
{
    for (int i = 0; i < o->kinds; i++) {
        char word[64] = "|";
        strncat(word, o->kind[i], 60);
        strcat(word, "|");
        if (!strstr(kinds, word)) return o->kind[i];
    }
    return NULL;
}
