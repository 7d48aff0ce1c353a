/* .npy: "\x93NUMPY", version, the length of the header, the header (a Python dictionary, in the form that NumPy writes), data. */
#include "data/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static taut_status bad(const char *name, const char *why)
{
    return taut_fail(TAUT_BAD_DATA, "%s: no array that can be read: %s", name, why);
}

/* Behind "'key':" and spaces, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static bool read_type(taut_npy *a, const char *text)
{
    if (!text || *text++ != '\'') return false;
    const char order = *text++;
    if (!order || !strchr("<>|=", order)) return false;
    a->swapped = order == '>';
    a->kind = *text++;
    a->bytes = *text ? *text++ - '0' : 0;
    if (*text != '\'') return false;
    switch (a->kind) {
    case 'u':
    case 'i':
        return a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8;
    case 'f':
        return a->bytes == 4 || a->bytes == 8;
    default:
        return a->kind == 'b' && a->bytes == 1;
    }
}

static bool read_shape(taut_npy *a, const char *text)
{
    a->count = 1;
    if (!text || *text++ != '(') return false;
    while (*text && *text != ')') {
        char *end;
        if (*text < '0' || *text > '9' || a->dims == TAUT_NPY_SIZES) return false;
        const long long size = strtoll(text, &end, 10);
        if (size < 1 || size > ((int64_t)1 << 34) / a->count) return false;
        a->size[a->dims++] = size;
        a->count *= size;
        text = end + strspn(end, ", ");
    }
    return *text == ')';
}

taut_status taut_npy_read(taut_npy *out, const uint8_t *bytes, size_t len, const char *name)
{
    char header[1024];
    *out = (taut_npy){ 0 };
    if (len < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0) return bad(name, "not a .npy file");
    const bool old = bytes[6] == 1;
    const size_t start = old ? 10 : 12;
    const size_t size = old ? (size_t)bytes[8] | (size_t)bytes[9] << 8
                            : (size_t)bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 |
                                  (size_t)bytes[11] << 24;
    if (bytes[6] < 1 || bytes[6] > 3 || size >= sizeof header || size > len - start) return bad(name, "its header");
    memcpy(header, bytes + start, size);
    header[size] = 0;
    if (!read_type(out, value_of(header, "descr")))
        return bad(name, "elements are not whole numbers, float32 or float64");
    if (!read_shape(out, value_of(header, "shape"))) return bad(name, "its sizes (1 to 4 of them, none 0)");
    const char *order = value_of(header, "fortran_order");
    if (!order || (strncmp(order, "False", 5) != 0 && out->dims > 1)) return bad(name, "it is stored column by column");
    if ((size_t)(out->count * out->bytes) != len - start - size)
        return bad(name, "its length is not that of its sizes");
    out->data = bytes + start + size;
    return TAUT_OK;
}

double taut_npy_at(const taut_npy *a, int64_t index)
{
    uint64_t bits = 0;
    for (int i = 0; i < a->bytes; i++)
        bits |= (uint64_t)a->data[index * a->bytes + i] << 8 * (a->swapped ? a->bytes - 1 - i : i);
    if (a->kind == 'f' && a->bytes == 8) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (a->kind == 'f') {
        const uint32_t half = (uint32_t)bits;
        float f;
        memcpy(&f, &half, sizeof f);
        return f;
    }
    const int spare = 64 - 8 * a->bytes;
    return a->kind == 'i' ? (double)((int64_t)(bits << spare) >> spare) : (double)bits;
}
