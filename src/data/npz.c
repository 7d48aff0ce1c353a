/* Members of a zip file, stored or deflated, by its directory at the end; or files of a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/npy.h"

static const size_t LARGEST = (size_t)1 << 34;

typedef struct {
    const uint8_t *bytes;
    size_t len;
    const char *path;
} zip;
typedef struct {
    uint32_t method, crc;
    uint64_t packed, size, local;
} member;

static taut_status bad(const zip *z, const char *why) { return taut_fail(TAUT_BAD_DATA, "%s: %s", z->path, why); }
static uint64_t little(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* What does not fit into 32 bits is in an extra field of kind 1, in this order. */
static void widen(member *m, const uint8_t *extra, size_t len)
{
    while (len >= 4) {
        const uint64_t kind = little(extra, 2), size = little(extra + 2, 2);
        const uint8_t *p = extra + 4;
        if (size > len - 4) return;
        uint64_t *const wide[] = { &m->size, &m->packed, &m->local };
        for (int i = 0; kind == 1 && i < 3; i++)
            if (*wide[i] == 0xffffffff && (size_t)(p - extra) + 8 <= 4 + size) {
                *wide[i] = little(p, 8);
                p += 8;
            }
        extra += 4 + size;
        len -= 4 + size;
    }
}

/* The directory is found by its end record, which a comment of up to 65535 bytes may follow. */
static const uint8_t *directory(const zip *z, uint64_t *entries)
{
    for (size_t back = 22; back <= z->len && back < 22 + 65536; back++) {
        const uint8_t *p = z->bytes + z->len - back;
        if (little(p, 4) != 0x06054b50) continue;
        *entries = little(p + 10, 2);
        const uint64_t at = little(p + 16, 4);
        return at < z->len ? z->bytes + at : NULL;
    }
    return NULL;
}

static taut_status find(member *m, bool *found, const zip *z, const char *name)
{
    uint64_t entries = 0;
    const uint8_t *p = directory(z, &entries), *end = z->bytes + z->len;
    const size_t wanted = strlen(name);
    *found = false;
    if (!p) return bad(z, "no zip file with a directory");
    for (uint64_t i = 0; i < entries; i++) {
        if (end - p < 46 || little(p, 4) != 0x02014b50) return bad(z, "a damaged directory");
        const size_t name_len = little(p + 28, 2), extra = little(p + 30, 2), comment = little(p + 32, 2);
        if ((size_t)(end - p) - 46 < name_len + extra + comment) return bad(z, "a damaged directory");
        if (name_len == wanted && memcmp(p + 46, name, wanted) == 0) {
            *m = (member){ (uint32_t)little(p + 10, 2), (uint32_t)little(p + 16, 4), little(p + 20, 4),
                           little(p + 24, 4), little(p + 42, 4) };
            widen(m, p + 46 + name_len, extra);
            *found = true;
            return TAUT_OK;
        }
        p += 46 + name_len + extra + comment;
    }
    return TAUT_OK;
}

static bool inflated(uint8_t *to, size_t size, const uint8_t *from, size_t packed)
{
    z_stream s = { 0 };
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK) return false;
    int code = Z_OK;
    s.next_in = (uint8_t *)(uintptr_t)from; /* zlib's type; it does not write there */
    s.next_out = to;
    while (code == Z_OK) {
        const size_t in = (size_t)(from + packed - s.next_in), out = (size_t)(to + size - s.next_out);
        s.avail_in = (unsigned)(in < 1 << 30 ? in : 1 << 30);
        s.avail_out = (unsigned)(out < 1 << 30 ? out : 1 << 30);
        code = inflate(&s, Z_NO_FLUSH);
    }
    const bool whole = code == Z_STREAM_END && s.next_out == to + size;
    inflateEnd(&s);
    return whole;
}

static uint32_t checksum(const uint8_t *p, size_t len) { return (uint32_t)crc32_z(0, p, len); }

static taut_status unpack(uint8_t **bytes, size_t *len, const zip *z, const member *m)
{
    if (m->local > z->len || z->len - m->local < 30 || little(z->bytes + m->local, 4) != 0x04034b50)
        return bad(z, "a damaged member");
    const uint8_t *local = z->bytes + m->local;
    const uint64_t head = 30 + little(local + 26, 2) + little(local + 28, 2);
    if (head > z->len - m->local || m->packed > z->len - m->local - head) return bad(z, "a member that is cut short");
    if (m->method != 0 && m->method != 8) return bad(z, "a member that is neither stored nor deflated");
    if (m->size > LARGEST || m->size > 1100 * m->packed + 64) return bad(z, "a member that claims to be too large");
    *bytes = taut_malloc(m->size + 1);
    if (!*bytes) return taut_no_memory(z->path);
    *len = m->size;
    bool good = m->method == 8 || m->packed == m->size;
    if (good && m->method == 0) memcpy(*bytes, local + head, m->size);
    if (m->method == 8) good = inflated(*bytes, m->size, local + head, m->packed);
    if (good && checksum(*bytes, m->size) == m->crc) return TAUT_OK;
    free(*bytes);
    *bytes = NULL;
    return bad(z, "a damaged member");
}

static taut_status in_folder(uint8_t **bytes, size_t *len, const char *folder, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return taut_file_exists(path) ? taut_file_read((char **)bytes, len, path) : TAUT_OK;
}

static taut_status find_member(uint8_t **bytes, size_t *len, const char *path, const char *name)
{
    char file[64];
    struct stat kind;
    *bytes = NULL;
    snprintf(file, sizeof file, "%s.npy", name);
    if (stat(path, &kind) == 0 && S_ISDIR(kind.st_mode)) return in_folder(bytes, len, path, file);
    zip z = { .path = path };
    char *whole;
    taut_status s = taut_file_read(&whole, &z.len, path);
    if (s) return s;
    z.bytes = (const uint8_t *)whole;
    member m;
    bool found;
    s = find(&m, &found, &z, file);
    if (!s && found) s = unpack(bytes, len, &z, &m);
    free(whole);
    return s;
}

taut_status taut_npz_array(uint8_t **bytes, taut_npy *out, const char *path, const char *name)
{
    size_t len;
    taut_status s = find_member(bytes, &len, path, name); /* its lines name the file already */
    if (s || !*bytes) return s;
    s = taut_npy_read(out, *bytes, len, name);
    return s ? taut_fail(s, "%s: %s", path, taut_last_error()) : TAUT_OK;
}
