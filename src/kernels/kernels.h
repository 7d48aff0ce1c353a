/* THE TABLE every backend fills.  Modules touch numbers through it and through nothing else.  Its slots are
 * listed in slots.def, with their formulas and the rules that hold for all of them; here are the structs they take.
 * kernels/ref/<file>.c is the definition of a slot, in double and plain loops; the file of the same
 * name in kernels/cpu/ states the error it promises against that definition. */
#ifndef TAUT_KERNELS_H
#define TAUT_KERNELS_H
#include <math.h>

#include "base/status.h"
#include "tensor/tensor.h"

/* Products of floats: in float; of factors rounded to tf32 (11 bits) or to bf16 (8 bits), with sums in float. */
typedef enum { TAUT_PRODUCTS_FP32, TAUT_PRODUCTS_TF32, TAUT_PRODUCTS_BF16 } taut_products;

typedef enum { TAUT_GELU, TAUT_GELU_TANH, TAUT_RELU, TAUT_SILU, TAUT_TANH, TAUT_ABS, TAUT_ELU } taut_curve;

/* Softmax attention of n examples with `heads` heads of width dh.  q and o are (n, tq, heads*dh),
 * k and v are (n, tk, heads*dh), lse is (n, heads, tq).  With S = scale * q.k + alibi:
 *     o_i = sum_j P_ij v_j,  P = row softmax of S,  lse_i = ln sum_j exp S_ij.
 * A key that is masked has P = 0; a query that sees no key has o = 0, lse = -inf and derivative 0. */
typedef struct {
    int64_t n, heads, tq, tk, dh;
    double scale;
    bool causal; /* query i sees key j only if j <= i + tk - tq */
    bool alibi;  /* S_ij -= 2^(-8(h+1)/heads) * |i + tk - tq - j| */
    double near; /* of attlip: S_ij -= near 2^(-h/2) |i - j| */
} taut_attn;

/* TensorSketch of `rows` vectors of d entries: hash is (degree, d), and entry i of factor t goes into bucket b
 * where hash[t][i] = b >= 0, with the sign - where it is ~b:
 *     c_t[b] = sum of +-x_i over the i in bucket b,   z = c_1 * ... * c_degree, circular convolution of `size`. */
typedef struct {
    int64_t rows, d, size; /* size: even */
    int degree;
    const taut_index *hash;
} taut_sketch_shape;

/* Keys and values of n examples brought together in m groups a head: k and v are (n, t, heads*dh), what is
 * made of the groups is (n, m, heads*dh), queries are (n, tq, heads*dh). */
typedef struct {
    int64_t n, heads, tq, t, m, dh;
    double scale; /* route: 1/temperature; clustered: times the logits */
} taut_group;
/* Attention by position alone: query i looks at key j with a weight that only i and j decide,
 *     p^h_ij = gain_h exp(w[h][c]) / sum over the keys of i of exp(w[h][c']),  c = i - j, or i - j + span/2 where keys
 * may also come after their query.  On a torus, tokens row by row, c is the shift from j to i: (rows down) row + columns to
 * the right, both counted round.  One p serves every example. */
typedef struct {
    int64_t n, heads, t, dh;
    int64_t span;          /* columns of w; at least t, and where not causal odd and at least 2t - 1; on a torus t */
    bool causal;           /* p_ij = 0 for j > i */
    int64_t row;           /* tokens in a row of the torus, a divisor of t; 0: no torus */
    const taut_real *gain; /* one a head, above 0 */
} taut_distance;
/* The column of w where query i meets key j. */
static inline int64_t taut_distance_column(const taut_distance *a, int64_t i, int64_t j)
{
    if (a->row == 0) return i - j + (a->causal ? 0 : a->span / 2);
    const int64_t rows = a->t / a->row, down = i / a->row - j / a->row, right = i % a->row - j % a->row;
    return (down < 0 ? down + rows : down) * a->row + (right < 0 ? right + a->row : right);
}

/* ProbSparse attention (Informer): only `top` queries of a head look, all others take what every key gives alike.
 * Arrays as in taut_attn.  Which keys a query is judged by is a function of (key, query, draw) alone. */
typedef struct {
    int64_t n, heads, tq, tk, dh;
    int64_t samples, top; /* keys drawn for every query; queries that look, at most tq */
    double scale;
    bool causal;  /* query i sees key j only if j <= i; tq = tk */
    uint64_t key; /* names the draws */
} taut_sparse;

/* A factor, or n of them, that may come from numbers which the host has not seen: value by[e]; by NULL: value. */
typedef struct {
    double value;
    const taut_sum *by;
} taut_factor;
typedef enum {                /* where a or b is NULL it counts as 1 */
               TAUT_SUM_ADD,  /* a + c b */
               TAUT_SUM_MUL,  /* c a b */
               TAUT_SUM_DIV,  /* c a / b */
               TAUT_SUM_ROOT, /* c sqrt(a) */
               TAUT_SUM_MIN,  /* min(c, a); c where a is NaN */
               TAUT_SUM_UNIT, /* c / sqrt(a), what makes a vector c long whose squares add up to a; 1 where a is not above 0 */
} taut_sum_op;

/* One step of AdamW: m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
 * w = w (1 - decay) - lr * (m/c1) / (sqrt(v/c2) + eps).   decay already holds the learning rate. */
typedef struct {
    double lr, b1, b2, eps, decay, c1, c2;
} taut_adam;

/* The JaSMin penalty of an attention (jasmin.h): of every head of every example, the largest row's or the mean over its
 * rows; rows that see too few keys (k, or 1) do not count. */
enum { TAUT_JASMIN_LARGEST = 64 };
typedef struct {
    int64_t k;  /* 0, or from 2 to TAUT_JASMIN_LARGEST: divided by g_k */
    bool exact; /* the singular value itself in the place of g_1 */
    bool mean;
    double eps, weight;
} taut_jasmin;

/* From pixels to patches.  x is (n, height, width, channels); y is (n, patches, ph * pw * channels), the patches by rows,
 * inside one the pixels by rows; y = scale[channel] x + shift[channel]. */
typedef struct {
    int64_t n, height, width, channels, ph, pw;
    double scale[4], shift[4];
} taut_pixels;

typedef struct taut_kernels {
    const char *name;  /* "ref", "cpu" */
    const char *dtype; /* what a safetensors file calls an element: "F64", "F32" */
    size_t elem;       /* bytes per element */
    double unit;       /* roundoff of an element, relative */
    bool host;         /* the host can read its memory */
    bool rigorous;     /* elements are doubles and every operation is the one that proofs assume */
#define SLOT(result, name, arguments) result(*name) arguments;
#include "kernels/slots.def"
} taut_kernels;

/* "ref", "cpu" (the best build for this processor), one build of it ("cpu-base", on x86-64 "cpu-v3" and "cpu-v4"), "cuda" and
 * "cuda64" (float and double on a device); NULL, and a line in taut_last_error, for a name nobody has, for a build that this
 * processor cannot run and for a device that cannot be used. */
const taut_kernels *taut_kernels_find(const char *name);

int taut_threads(void); /* how many the kernels use; taut_threads_set is in taut.h */

/* For reports: OpenBLAS with its version and processor, and the compiler that built us. */
const char *taut_blas_version(void);
const char *taut_compiler_version(void);

/* Memory for `len` elements, zeroed; NULL when there is none. */
static inline taut_real *taut_reals(const taut_kernels *k, int64_t len)
{
    const bool fits = len >= 0 && (uint64_t)len <= SIZE_MAX / 2 / k->elem;
    return fits ? (taut_real *)k->alloc((size_t)len * k->elem) : NULL;
}

/* The address of a sum, or of element i: pointer arithmetic for types nobody can look into. */
static inline taut_sum *taut_sum_at(const taut_sum *s, int64_t i) { return (taut_sum *)((char *)s + 8 * i); }

static inline taut_real *taut_at(const taut_kernels *k, const taut_real *x, int64_t i)
{
    return (taut_real *)((char *)x + i * (int64_t)k->elem);
}

/* x.y for a host that decides by it: waits.  NaN when the table failed.  `room` holds the sum meanwhile. */
static inline double taut_dot(const taut_kernels *k, taut_sum *room, const taut_real *x, const taut_real *y,
                              int64_t len)
{
    double sum;
    k->dot(room, x, y, 1, len, len);
    return k->read(&sum, room, 1) ? (double)NAN : sum;
}

/* x divided by its length, where that is above 0.  room holds two sums: the first becomes the length's square. */
static inline void taut_make_unit(const taut_kernels *k, taut_sum *room, taut_real *x, int64_t len)
{
    taut_sum *factor = taut_sum_at(room, 1);
    k->dot(room, x, x, 1, len, len);
    k->sum_op(factor, TAUT_SUM_UNIT, 1, room, NULL, 1);
    k->axpby_by(x, 0, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, factor }, 1, len);
}
#endif
