/* Shapes and views.  Tensors are always contiguous and own nothing; a span is memory being carved. */
#ifndef TAUT_TENSOR_H
#define TAUT_TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

typedef struct taut_real taut_real; /* never completed: only kernels know what it is */
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

static inline taut_span taut_take_span(taut_span *s, int64_t len)
{
    return (taut_span){ taut_take(s, len), len, s->elem };
}
#endif
