/* Writing safetensors: entries sorted like the reference writer (wide dtypes first, then by name), header
 * padded to 8 bytes, numbers streamed in chunks, one rename at the end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/file.h"
#include "base/utf8.h"
#include "model/safetensors_impl.h"

enum { CHUNK = 1 << 16 }; /* numbers that are fetched at once: a device is waited for each time */

typedef struct {
    char *text;
    size_t used, room;
    bool failed; /* no memory: asked once, at the end */
} builder;

static void add(builder *b, const char *text, size_t len)
{
    if (b->failed) return;
    if (b->used + len > b->room) {
        const size_t room = 2 * (b->used + len) + 256;
        char *more = taut_realloc(b->text, room);
        b->failed = !more;
        if (!more) return;
        b->text = more;
        b->room = room;
    }
    memcpy(b->text + b->used, text, len);
    b->used += len;
}

__attribute__((format(printf, 2, 3))) static void add_format(builder *b, const char *format, ...)
{
    char line[64];
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    TAUT_CHECK(len >= 0 && (size_t)len < sizeof line, "only short pieces are formatted");
    add(b, line, (size_t)len);
}

static void add_string(builder *b, const char *s)
{
    static const char from[] = "\"\\\b\f\n\r\t", into[] = "\"\\bfnrt";
    add(b, "\"", 1);
    for (; *s; s++) {
        const char *special = strchr(from, *s);
        if (special)
            add(b, (const char[]){ '\\', into[special - from] }, 2);
        else if ((unsigned char)*s < ' ')
            add_format(b, "\\u%04x", (unsigned)*s);
        else
            add(b, s, 1);
    }
    add(b, "\"", 1);
}

static int64_t entry_count(const taut_st_entry *e)
{
    int64_t count = 1;
    TAUT_CHECK(e->rank >= 0 && e->rank <= TAUT_ST_RANK, "a tensor has at most 8 dimensions");
    for (int i = 0; i < e->rank; i++)
        TAUT_CHECK(e->shape[i] >= 0 && !__builtin_mul_overflow(count, e->shape[i], &count), "a tensor's size");
    return count;
}

static uint64_t entry_bytes(const taut_st_entry *e)
{
    uint64_t bytes;
    TAUT_CHECK(!__builtin_mul_overflow((uint64_t)entry_count(e), strcmp(e->dtype, "F64") ? 4u : 8u, &bytes),
               "a tensor's size");
    return bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const taut_st_entry *const *)a)->name, (*(const taut_st_entry *const *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const taut_st_entry *x = *(const taut_st_entry *const *)a, *y = *(const taut_st_entry *const *)b;
    const int dtype = strcmp(y->dtype, x->dtype); /* "F64" before "F32" */
    return dtype ? dtype : strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const taut_st_meta *const *)a)->key, (*(const taut_st_meta *const *)b)->key);
}

static void add_entry(builder *b, const taut_st_entry *e, uint64_t *offset)
{
    add_string(b, e->name);
    add_format(b, ":{\"dtype\":\"%s\",\"shape\":[", e->dtype);
    for (int i = 0; i < e->rank; i++) add_format(b, "%s%" PRId64, i ? "," : "", e->shape[i]);
    add_format(b, "],\"data_offsets\":[%" PRIu64, *offset);
    TAUT_CHECK(!__builtin_add_overflow(*offset, entry_bytes(e), offset), "the file's size");
    add_format(b, ",%" PRIu64 "]}", *offset);
}

/* The length of the header and the header, ready for the file. */
static void build(builder *b, const taut_st_entry **entries, int count, const taut_st_meta **metas, int meta_count)
{
    uint64_t offset = 0;
    add(b, "\0\0\0\0\0\0\0\0{", 9);
    if (meta_count > 0) add_format(b, "\"__metadata__\":{");
    for (int i = 0; i < meta_count; i++) {
        if (i) add(b, ",", 1);
        add_string(b, metas[i]->key);
        add(b, ":", 1);
        add_string(b, metas[i]->value);
    }
    if (meta_count > 0) add(b, "}", 1);
    for (int i = 0; i < count; i++) {
        if (i || meta_count) add(b, ",", 1);
        add_entry(b, entries[i], &offset);
    }
    add(b, "}", 1);
    while (b->used % 8 != 0 && !b->failed) add(b, " ", 1);
    if (!b->failed) taut_st_store((unsigned char *)b->text, b->used - 8, 8);
}

static bool is_utf8(const char *s) { return taut_utf8_check(s, strlen(s)) == strlen(s); }

/* Content that a strict reader would refuse.  The lists are sorted by name and key. */
static taut_status check(const char *path, const taut_st_entry **entries, int count, const taut_st_meta **metas,
                         int meta_count)
{
    char show[80];
    for (int i = 0; i < count; i++) {
        const taut_st_entry *e = entries[i];
        TAUT_CHECK(strcmp(e->dtype, "F32") == 0 || strcmp(e->dtype, "F64") == 0, "only F32 and F64 are written");
        const bool twice = strcmp(e->name, "__metadata__") == 0 ||
                           (i > 0 && strcmp(e->name, entries[i - 1]->name) == 0);
        if (twice || !is_utf8(e->name))
            return taut_fail(TAUT_BAD_DATA, "%s: cannot write a tensor named \"%s\": %s", path,
                             taut_st_show(show, e->name), twice ? "the name is taken" : "not UTF-8");
    }
    for (int i = 0; i < meta_count; i++) {
        const bool twice = i > 0 && strcmp(metas[i]->key, metas[i - 1]->key) == 0;
        if (twice || !is_utf8(metas[i]->key) || !is_utf8(metas[i]->value))
            return taut_fail(TAUT_BAD_DATA, "%s: cannot write metadata \"%s\": %s", path,
                             taut_st_show(show, metas[i]->key), twice ? "the key is taken" : "not UTF-8");
    }
    return TAUT_OK;
}

/* room: 2 CHUNK numbers. */
static taut_status put_numbers(taut_writer *w, const char *path, const taut_st_entry *e, double *room)
{
    const taut_st_dtype *dtype = taut_st_dtype_find(e->dtype);
    const int64_t count = entry_count(e);
    double *numbers = room;
    unsigned char *bytes = (unsigned char *)(room + CHUNK);
    char show[80];
    for (int64_t first = 0, part; first < count; first += part) {
        part = count - first < CHUNK ? count - first : CHUNK;
        taut_status status = e->fetch(e->arg, numbers, first, part);
        if (status) return status;
        const int64_t done = taut_st_pack(bytes, numbers, part, dtype);
        if (done < part)
            return taut_fail(TAUT_BAD_DATA, "%s: element %" PRId64 " of tensor \"%s\" is %g, too large for F32", path,
                             first + done, taut_st_show(show, e->name), numbers[done]);
        status = taut_writer_put(w, bytes, (size_t)part * (size_t)dtype->bits / 8);
        if (status) return status;
    }
    return TAUT_OK;
}

static taut_status write_sorted(const char *path, const taut_st_entry **entries, int count, const taut_st_meta **metas,
                                int meta_count)
{
    builder header = { 0 };
    taut_writer w;
    taut_status status = TAUT_OK;
    double *room = taut_malloc(2 * CHUNK * sizeof *room);
    build(&header, entries, count, metas, meta_count);
    if (header.failed || !room)
        status = taut_no_memory(path);
    else if (header.used - 8 > TAUT_ST_HEADER_MAX)
        status = taut_fail(TAUT_BAD_DATA, "%s: a header of %zu bytes is over the format's limit of %d", path,
                           header.used - 8, TAUT_ST_HEADER_MAX);
    if (!status) status = taut_writer_begin(&w, path);
    const bool begun = !status;
    if (begun) status = taut_writer_put(&w, header.text, header.used);
    for (int i = 0; i < count && !status; i++) status = put_numbers(&w, path, entries[i], room);
    free(header.text), free(room);
    if (begun && !status) return taut_writer_commit(&w);
    if (begun) taut_writer_abort(&w);
    return status;
}

taut_status taut_safetensors_write(const char *path, const taut_st_entry *entries, int count, const taut_st_meta *metas,
                                   int meta_count)
{
    const taut_st_entry **e = taut_malloc((size_t)count * sizeof *e);
    const taut_st_meta **m = taut_malloc((size_t)meta_count * sizeof *m);
    taut_status status;
    if (!e || !m) {
        status = taut_no_memory(path);
    } else {
        for (int i = 0; i < count; i++) e[i] = &entries[i];
        for (int i = 0; i < meta_count; i++) m[i] = &metas[i];
        qsort(e, (size_t)count, sizeof *e, by_name);
        qsort(m, (size_t)meta_count, sizeof *m, by_key);
        status = check(path, e, count, m, meta_count);
        qsort(e, (size_t)count, sizeof *e, by_place);
        if (!status) status = write_sorted(path, e, count, m, meta_count);
    }
    free(e);
    free(m);
    return status;
}
