/* Shapes and views.  Tensors are always contiguous and own nothing; a span is memory being carved. */
#ifndef TAUT_TENSOR_H
#define TAUT_TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"

/* Numbers that live where a table of kernels lives.  Never completed: only kernels know what they are. */
typedef struct taut_real taut_real;   /* of the table's own kind */
typedef struct taut_sum taut_sum;     /* a double */
typedef struct taut_index taut_index; /* an int32: a token, a target, a bucket */
typedef struct {
    int64_t n, t, d;
} taut_shape; /* examples, tokens, features */
typedef struct {
    taut_real *data;
    taut_shape shape;
} taut_tensor;
typedef struct {
    taut_real *data;
    int64_t len;
    size_t elem;
} taut_span;

static inline int64_t taut_len(taut_shape s) { return s.n * s.t * s.d; }

static inline int64_t taut_rows(taut_shape s) { return s.n * s.t; }

static inline bool taut_same_shape(taut_shape a, taut_shape b) { return a.n == b.n && a.t == b.t && a.d == b.d; }

/* Cut the first `len` elements off the front of a span. */
static inline taut_real *taut_take(taut_span *s, int64_t len)
{
    TAUT_CHECK(0 <= len && len <= s->len, "span: plan() promised less than was used");
    taut_real *front = s->data;
    s->data = (taut_real *)((char *)front + (size_t)len * s->elem);
    s->len -= len;
    return front;
}

static inline taut_tensor taut_take_tensor(taut_span *s, taut_shape shape)
{
    return (taut_tensor){ taut_take(s, taut_len(shape)), shape };
}

/* Elements that n sums or n indices take: an element has 4 bytes or more, and one more makes up for alignment.  Sums are
 * rounded to 16 elements, so that what follows them is as well aligned as the span. */
static inline int64_t taut_sums_len(int64_t n) { return (2 * n + 1 + 15) / 16 * 16; }
static inline int64_t taut_indices_len(int64_t n) { return n; }

static inline taut_sum *taut_take_sums(taut_span *s, int64_t n)
{
    const uintptr_t front = (uintptr_t)taut_take(s, taut_sums_len(n));
    return (taut_sum *)((front + 7) & ~(uintptr_t)7);
}

static inline taut_index *taut_take_indices(taut_span *s, int64_t n)
{
    return (taut_index *)taut_take(s, taut_indices_len(n));
}

/* A span of doubles on the host, for numbers that are read there: how many doubles `count` things of `size` bytes take, and
 * those, zeroed. */
static inline int64_t taut_host_len(int64_t count, size_t size) { return count * (int64_t)((size + 7) / 8); }
static inline void *taut_take_host(taut_span *s, int64_t count, size_t size)
{
    const int64_t len = taut_host_len(count, size);
    void *front = taut_take(s, len);
    return len > 0 ? memset(front, 0, (size_t)len * sizeof(double)) : front;
}

static inline taut_span taut_take_span(taut_span *s, int64_t len)
{
    return (taut_span){ taut_take(s, len), len, s->elem };
}
#endif
