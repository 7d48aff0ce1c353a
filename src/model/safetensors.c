/* Opening a safetensors file, its rules between tensors, and reading numbers from it.
 * The file is read with pread, not mapped: a file that shrinks under us is then an error, not a signal. */
#include "model/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "model/safetensors_impl.h"

struct taut_safetensors {
    char *path;
    int fd;
    uint64_t buffer; /* where it starts in the file */
    taut_st_header header;
    const taut_st_tensor **by_name;
};

const char *taut_st_show(char dst[80], const char *name)
{
    size_t n = 0;
    for (; n < 72 && name[n]; n++) dst[n] = (unsigned char)name[n] < ' ' ? '?' : name[n];
    while (name[n] && n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80) n--; /* not inside a character */
    strcpy(dst + n, name[n] ? "..." : "");
    return dst;
}

/* Reads exactly len bytes or says why not. */
static taut_status read_at(const taut_safetensors *st, void *dst, size_t len, uint64_t offset)
{
    for (size_t done = 0; done < len;) {
        const ssize_t got = pread(st->fd, (char *)dst + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return taut_fail(TAUT_BAD_FILE, "%s: %s", st->path, strerror(errno));
        if (got == 0) return taut_fail(TAUT_BAD_FILE, "%s: the file was cut while it was read", st->path);
        done += (size_t)got;
    }
    return TAUT_OK;
}

static int by_begin(const void *a, const void *b)
{
    const taut_st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* the empty ones first, where they touch nothing */
    return strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const taut_st_meta *)a)->key, ((const taut_st_meta *)b)->key);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const taut_st_tensor *const *)a)->name, (*(const taut_st_tensor *const *)b)->name);
}

/* The rules between tensors: names differ, and the buffer has no overlap, hole or rest.  Sorts. */
static taut_status header_check(taut_safetensors *st, uint64_t buffer_len)
{
    taut_st_header *h = &st->header;
    char show[80];
    if (h->count > 0) qsort(h->tensors, (size_t)h->count, sizeof *h->tensors, by_begin);
    if (h->meta_count > 0) qsort(h->metas, (size_t)h->meta_count, sizeof *h->metas, by_key);
    for (int i = 0; i < h->count; i++) st->by_name[i] = &h->tensors[i];
    qsort(st->by_name, (size_t)h->count, sizeof *st->by_name, by_name);
    for (int i = 1; i < h->count; i++)
        if (strcmp(st->by_name[i - 1]->name, st->by_name[i]->name) == 0)
            return taut_fail(TAUT_BAD_FILE, "%s: two tensors are named \"%s\"", st->path,
                             taut_st_show(show, st->by_name[i]->name));
    for (int i = 1; i < h->meta_count; i++)
        if (strcmp(h->metas[i - 1].key, h->metas[i].key) == 0)
            return taut_fail(TAUT_BAD_FILE, "%s: __metadata__ has \"%s\" twice", st->path,
                             taut_st_show(show, h->metas[i].key));
    uint64_t end = 0;
    for (int i = 0; i < h->count; i++) {
        const taut_st_tensor *t = &h->tensors[i];
        if (t->begin != end)
            return taut_fail(TAUT_BAD_FILE, "%s: tensor \"%s\" %s the one before it", st->path,
                             taut_st_show(show, t->name), t->begin < end ? "overlaps" : "leaves a hole after");
        end = t->end;
    }
    if (end != buffer_len)
        return taut_fail(TAUT_BAD_FILE, "%s: the tensors take %llu bytes but the file has %llu for them", st->path,
                         (unsigned long long)end, (unsigned long long)buffer_len);
    return TAUT_OK;
}

static taut_status header_read(taut_safetensors *st, uint64_t file_len)
{
    unsigned char prefix[8];
    if (file_len < 8) return taut_fail(TAUT_BAD_FILE, "%s: no safetensors file: under 8 bytes", st->path);
    taut_status status = read_at(st, prefix, 8, 0);
    if (status) return status;
    const uint64_t len = taut_st_load(prefix, 8);
    if (len > TAUT_ST_HEADER_MAX)
        return taut_fail(TAUT_BAD_FILE, "%s: no safetensors file: a header of %llu bytes is over the limit of %d",
                         st->path, (unsigned long long)len, TAUT_ST_HEADER_MAX);
    if (len > file_len - 8)
        return taut_fail(TAUT_BAD_FILE, "%s: cut or no safetensors file: a header of %llu bytes in a file of %llu",
                         st->path, (unsigned long long)len, (unsigned long long)file_len);
    st->header.text = taut_malloc((size_t)len + 1);
    if (!st->header.text) return taut_no_memory(st->path);
    st->header.text[len] = 0;
    status = read_at(st, st->header.text, (size_t)len, 8);
    if (status) return status;
    status = taut_st_header_parse(&st->header, (size_t)len);
    if (status == TAUT_NO_MEMORY) return taut_no_memory(st->path);
    if (status) return taut_fail(status, "%s: bad safetensors file: %s", st->path, st->header.why);
    st->buffer = 8 + len;
    st->by_name = taut_malloc((size_t)st->header.count * sizeof *st->by_name);
    return st->by_name ? header_check(st, file_len - st->buffer) : taut_no_memory(st->path);
}

taut_status taut_safetensors_open(taut_safetensors **out, const char *path)
{
    *out = NULL;
    taut_safetensors *st = taut_calloc(1, sizeof *st);
    if (st) st->fd = -1;
    if (!st || !(st->path = taut_strdup(path))) {
        taut_safetensors_close(st);
        return taut_no_memory(path);
    }
    struct stat info;
    taut_status status;
    st->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hang us */
    if (st->fd < 0 || fstat(st->fd, &info) != 0)
        status = taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = taut_fail(TAUT_BAD_FILE, "%s: is %s", path,
                           S_ISDIR(info.st_mode) ? "a folder, not a file" : "no regular file");
    else
        status = header_read(st, (uint64_t)info.st_size);
    if (status)
        taut_safetensors_close(st);
    else
        *out = st;
    return status;
}

void taut_safetensors_close(taut_safetensors *st)
{
    if (!st) return;
    if (st->fd >= 0) close(st->fd);
    free(st->path);
    free(st->header.text);
    free(st->header.tensors);
    free(st->header.metas);
    free(st->by_name);
    free(st);
}

int taut_safetensors_count(const taut_safetensors *st) { return st->header.count; }

const taut_st_tensor *taut_safetensors_at(const taut_safetensors *st, int index)
{
    TAUT_CHECK(index >= 0 && index < st->header.count, "no tensor of that index");
    return &st->header.tensors[index];
}

const taut_st_tensor *taut_safetensors_find(const taut_safetensors *st, const char *name)
{
    const taut_st_tensor wanted = { .name = name }, *key = &wanted;
    const taut_st_tensor **found = bsearch(&key, st->by_name, (size_t)st->header.count, sizeof *st->by_name, by_name);
    return found ? *found : NULL;
}

const char *taut_safetensors_meta(const taut_safetensors *st, const char *key)
{
    const taut_st_meta wanted = { .key = key }, *list = st->header.metas;
    const taut_st_meta *found = list ? bsearch(&wanted, list, (size_t)st->header.meta_count, sizeof *list, by_key)
                                     : NULL;
    return found ? found->value : NULL;
}

taut_status taut_safetensors_read(const taut_safetensors *st, const taut_st_tensor *tensor, double *dst, int64_t first,
                                  int64_t count)
{
    TAUT_CHECK(first >= 0 && count >= 0 && count <= tensor->count && first <= tensor->count - count,
               "elements outside the tensor");
    const taut_st_dtype *dtype = taut_st_dtype_find(tensor->dtype);
    char show[80];
    if (dtype->kind == TAUT_ST_OTHER)
        return taut_fail(TAUT_BAD_FILE, "%s: tensor \"%s\" is %s, which taut does not read", st->path,
                         taut_st_show(show, tensor->name), tensor->dtype);
    unsigned char bytes[16384];
    const int64_t size = dtype->bits / 8, most = (int64_t)sizeof bytes / size;
    while (count > 0) {
        const int64_t part = count < most ? count : most;
        const taut_status status = read_at(st, bytes, (size_t)(part * size),
                                           st->buffer + tensor->begin + (uint64_t)(first * size));
        if (status) return status;
        const int64_t done = taut_st_unpack(dst, bytes, part, dtype);
        if (done < part)
            return taut_fail(TAUT_BAD_FILE, "%s: element %lld of tensor \"%s\" is no %s that a double can hold",
                             st->path, (long long)(first + done), taut_st_show(show, tensor->name), dtype->name);
        dst += part;
        first += part;
        count -= part;
    }
    return TAUT_OK;
}
