/* How far a table of floats strays from a module: what its slots promise (kernels/promise.h), put together.  Lengths
 * and errors are in the norm of the question: of the longest token, or of all tokens together.
 *
 * A promise is entry by entry, c (|W| |x|)_i of an affine map, say; as vectors | |W| |x| | <= ||W||_F |x|.  Where the
 * largest number that could be met is far from the largest float nothing overflows; what underflows is at most
 * PROMISE_LEAST an operation. */
#ifndef TAUT_MODULE_STRAYS_H
#define TAUT_MODULE_STRAYS_H
#include "bound/norm.h"
#include "module/module.h"

/* What an error of 1 in every token amounts to. */
static inline taut_up strays_root(taut_ask in)
{
    return in.norm == TAUT_NORM_FLAT ? up_sqrt(up_int(in.tokens)) : (taut_up){ 1 };
}

/* |x| of the question, and |f(x)| of the answer. */
static inline taut_up strays_in(taut_ask in) { return in.norm == TAUT_NORM_FLAT ? taut_whole(in) : taut_longest(in); }
static inline taut_up strays_out(taut_ask in, const taut_answer *b)
{
    in.tokens = b->tokens, in.size = b->size, in.whole = b->whole;
    return strays_in(in);
}

/* An error, unless what it is of may overflow; `steps` numbers are added up in each of `entries` entries of a token. */
static inline taut_up strays_sum(taut_ask in, taut_up error, taut_up mass, int64_t steps, double entries)
{
    const taut_up each = up_mul(up_int(2 * steps + 8), (taut_up){ PROMISE_LEAST });
    const taut_up least = up_mul(strays_root(in), up_mul(up_sqrt(up_exact(entries)), each));
    return mass.v < 0x1p100 ? up_add(error, least) : UP_NONE;
}

enum { STRAYS_WIDEST = 1 << 30 }; /* of a token, where a module does not know: it is for what underflows only */

/* A relative error of something no longer than `size`. */
static inline taut_up strays_of(taut_ask in, double relative, taut_up size)
{
    return strays_sum(in, up_mul((taut_up){ relative }, size), size, 1, STRAYS_WIDEST);
}

/* alpha W x + b for |x| <= x, W (rows, cols); b may be NULL; y: |alpha W x + b|, or more */
static inline taut_up strays_affine(taut_ask in, const double *w, const double *b, int64_t rows, int64_t cols,
                                    double alpha, taut_up x, taut_up y)
{
    const taut_up linear = up_mul(up_mul(up_exact(alpha), up_norm_frobenius(w, rows * cols)), x);
    const taut_up bias = b ? up_mul(strays_root(in), up_norm_frobenius(b, rows)) : UP_ZERO;
    const taut_up mass = up_add(linear, bias), sum = up_mul((taut_up){ promise_product(in.table, cols) }, mass);
    const taut_up result = up_mul((taut_up){ promise_product_result(in.table) }, y);
    return strays_sum(in, up_add(sum, result), mass, cols, (double)rows * fmax(1, alpha * alpha));
}

/* f(x) for |x| <= x, entry by entry, |f(x)| <= |x|, no entry above `most`; then times factor */
static inline taut_up strays_curve(taut_ask in, taut_curve f, double factor, taut_up x, taut_up most)
{
    const taut_up curve = up_mul((taut_up){ promise_curve(in.table, f, most.v) }, x);
    const taut_up value = f == TAUT_RELU || f == TAUT_ABS ? UP_ZERO : strays_sum(in, curve, x, 64, STRAYS_WIDEST);
    if (factor == 1) return value;
    const taut_up scale = up_exact(factor);
    return up_add(up_mul(scale, value), strays_of(in, promise_axpby(in.table), up_mul(scale, up_add(x, value))));
}

/* keep x + mix y, where y is f(x): what adding does, not what was wrong with y; f alone is left as it is (mix.c) */
static inline taut_up strays_mix(taut_ask in, taut_answer f, double keep, double mix)
{
    if (keep == 0 && mix == 1) return UP_ZERO;
    const taut_up both = up_add(up_mul(up_exact(keep), strays_in(in)), up_mul(up_exact(mix), strays_out(in, &f)));
    return strays_of(in, promise_axpby(in.table), both);
}
#endif
