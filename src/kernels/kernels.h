/* THE TABLE that every backend fills.  Modules touch numbers through it and through nothing else.  slots.def lists
 * its slots, with their formulas and the rules that hold for all of them; here are the structs that slots take.
 * kernels/ref/<file>.c defines a slot, in double and plain loops; the file of the same name in kernels/cpu/ says
 * how far its results may be from that definition. */
#ifndef TAUT_KERNELS_H
#define TAUT_KERNELS_H
#include <math.h>

#include "base/status.h"
#include "tensor/tensor.h"

/* How matrices of floats are multiplied: FP32 as they are; TF32, BF16 with factors rounded to 11 or 8 bits.  Sums
 * are float. */
typedef enum { TAUT_PRODUCTS_FP32, TAUT_PRODUCTS_TF32, TAUT_PRODUCTS_BF16 } taut_products;

typedef enum { TAUT_GELU, TAUT_GELU_TANH, TAUT_RELU, TAUT_SILU, TAUT_TANH, TAUT_ABS, TAUT_ELU } taut_curve;

/* Softmax attention of n examples with `heads` heads of width dh: tq queries look at tk keys.  q and o are
 * (n, tq, heads*dh), k and v are (n, tk, heads*dh), lse is (n, heads, tq).  With S_ij = scale q_i.k_j, less what
 * `alibi` says:
 *     o_i = sum_j P_ij v_j,  P = row softmax of S,  lse_i = ln sum_j exp S_ij.
 * A key that is masked has P = 0; a query that sees no key has o = 0, lse = -inf and derivative 0. */
typedef struct {
    int64_t n, heads, tq, tk, dh;
    double scale;
    bool causal; /* query i sees key j only if j <= i + tk - tq */
    bool alibi;  /* in head h, from 0: S_ij -= 2^(-8(h+1)/heads) |i + tk - tq - j| */
    double near; /* for the slots attlip*, which alone read it: S_ij -= near 2^(-h/2) |i - j| */
} taut_attn;

/* TensorSketch of `rows` vectors x of d entries.  hash (degree, d) sends entry i of factor t into a bucket b < size:
 * hash[t][i] = b adds x_i to it, hash[t][i] = ~b (below 0) subtracts x_i:
 *     c_t[b] = sum of +-x_i over the i in bucket b,   z = c_1 * ... * c_degree, circular convolutions. */
typedef struct {
    int64_t rows, d, size; /* size: even */
    int degree;
    const taut_index *hash;
} taut_sketch_shape;

/* Keys and values of n examples, brought together in m groups per head: k and v are (n, t, heads*dh), what is made
 * of the groups is (n, m, heads*dh), queries are (n, tq, heads*dh). */
typedef struct {
    int64_t n, heads, tq, t, m, dh;
    double scale; /* logits are scale times inner products; for route it is 1/temperature */
} taut_group;
/* Attention by position alone: the weight with which query i looks at key j depends on their offset and on the head h,
 *     p^h_ij = gain_h exp(w[h][c(i, j)]) / sum over the keys j' that i sees of exp(w[h][c(i, j')]).
 *     c(i, j) = i - j             causal
 *             = i - j + span/2    where keys may also come after their query
 *             = down row + right  on a torus, whose tokens stand row by row: the way from j to i is `down` rows and
 *                                 `right` columns, both counted round, so that neither is below 0
 * One p serves every example. */
typedef struct {
    int64_t n, heads, t, dh;
    int64_t span;          /* columns of w: causal, at least t; not causal, odd and at least 2t - 1; on a torus, t */
    bool causal;           /* p_ij = 0 for j > i */
    int64_t row;           /* tokens in a row of the torus, a divisor of t; 0: no torus */
    const taut_real *gain; /* one per head, above 0 */
} taut_distance;
/* The column of w where query i meets key j. */
static inline int64_t taut_distance_column(const taut_distance *a, int64_t i, int64_t j)
{
    if (a->row == 0) return i - j + (a->causal ? 0 : a->span / 2);
    const int64_t rows = a->t / a->row, down = i / a->row - j / a->row, right = i % a->row - j % a->row;
    return (down < 0 ? down + rows : down) * a->row + (right < 0 ? right + a->row : right);
}

/* ProbSparse attention (Informer): only the `top` best queries of a head look at keys; all others take the mean of the
 * values (causal: the sum of the values up to their own).  Arrays as in taut_attn.  A query is judged by `samples` keys
 * that are drawn at random: draw r of query i depends on (key, i, r) alone. */
typedef struct {
    int64_t n, heads, tq, tk, dh;
    int64_t samples, top; /* keys drawn per query; queries per head that look, at most tq */
    double scale;
    bool causal;  /* query i sees key j only if j <= i; tq = tk */
    uint64_t key; /* of the random numbers: names the draws */
} taut_sparse;

/* The factor of vector e is value * by[e], where `by` lies in the table's memory and the host need not have read it; by
 * NULL: it is value, for every e. */
typedef struct {
    double value;
    const taut_sum *by;
} taut_factor;

/* by x, one of at most TAUT_TERMS that are added up; where several vectors are made, x of vector e begins e stride further on. */
typedef struct {
    taut_factor by;
    const taut_real *x;
    int64_t stride;
} taut_term;
enum { TAUT_TERMS = 16, TAUT_MANY = 64 };

typedef enum {                /* y from a, b and c; where a or b is NULL, it counts as 1 */
               TAUT_SUM_ADD,  /* a + c b */
               TAUT_SUM_MUL,  /* c a b */
               TAUT_SUM_DIV,  /* c a / b */
               TAUT_SUM_ROOT, /* c sqrt(a) */
               TAUT_SUM_MIN,  /* min(c, a); c where a is NaN */
               TAUT_SUM_UNIT, /* c / sqrt(a): scales a vector with |x|^2 = a to length c; 1 unless a > 0 */
} taut_sum_op;

/* One step of AdamW: m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
 * w = w (1 - decay) - lr * (m/c1) / (sqrt(v/c2) + eps).   decay already holds the learning rate. */
typedef struct {
    double lr, b1, b2, eps, decay, c1, c2;
} taut_adam;

/* The JaSMin penalty of an attention layer (jasmin.h).  Each head of each example is penalised by the largest, or
 * by the mean, of its rows' penalties.  A row counts only if it sees more than max(k, 1) keys. */
enum { TAUT_JASMIN_LARGEST = 64 };
typedef struct {
    int64_t k;  /* 0: ln(g_1 + eps); 2 .. TAUT_JASMIN_LARGEST: ln(g_1 + eps) - ln(g_k + eps) */
    bool exact; /* the largest singular value itself in the place of g_1 */
    bool mean;  /* over the rows; else the largest row */
    double eps, weight;
} taut_jasmin;

/* From pixels x (n, height, width, channels) to patches y (n, patches, ph * pw * channels) of ph x pw pixels each, the
 * patches row by row and the pixels of a patch row by row:  y = scale[channel] x + shift[channel]. */
typedef struct {
    int64_t n, height, width, channels, ph, pw;
    double scale[4], shift[4];
} taut_pixels;

/* What normalise gives besides z (rows, d): y = gain z + bias; gain (d), bias (d) or NULL for 0. */
typedef struct {
    taut_real *y;
    const taut_real *gain, *bias;
} taut_scaled;

typedef struct taut_kernels {
    const char *name;  /* "ref", "cpu", "wide", "cuda", "cuda64" */
    const char *dtype; /* what a safetensors file calls an element: "F64", "F32" */
    size_t elem;       /* bytes per element */
    double unit;       /* an element is rounded by at most this, relative to it */
    bool host;         /* the host can read its memory */
    bool rigorous;     /* elements are doubles and every operation is the one that proofs assume */
#define SLOT(result, name, arguments) result(*name) arguments;
#include "kernels/slots.def"
} taut_kernels;

/* The table of a name: "ref"; "cpu", the best build for this processor; one of its builds ("cpu-base", on x86-64
 * also "cpu-v3" and "cpu-v4"); "wide", cpu with products added up in double; "cuda" and "cuda64", float and double on a
 * device.  TAUT_BAD_CALL for another name, TAUT_DEVICE for a build that this processor cannot run and for a device that
 * cannot be used. */
taut_status taut_kernels_open(const taut_kernels **out, const char *name) TAUT_MUST_USE;
const char *taut_kernels_build(const taut_kernels *); /* this table's name; of "cpu" that of its build */
const taut_kernels *
taut_kernels_find(const char *name); /* of a name that is always there: "ref", "cpu", "wide"; else NULL */

int taut_threads(void); /* how many threads the kernels use; taut_threads_set is in taut.h */

/* For reports: OpenBLAS with its version and processor, and the compiler that built us. */
const char *taut_blas_version(void);
const char *taut_compiler_version(void);

/* Memory for `len` elements, zeroed; NULL when there is none. */
static inline taut_real *taut_reals(const taut_kernels *k, int64_t len)
{
    const bool fits = len >= 0 && (uint64_t)len <= SIZE_MAX / 2 / k->elem;
    return fits ? (taut_real *)k->alloc((size_t)len * k->elem) : NULL;
}

/* The addresses of sum i and of element i: their types are opaque, so C cannot add to their pointers. */
static inline taut_sum *taut_sum_at(const taut_sum *s, int64_t i) { return (taut_sum *)((char *)s + 8 * i); }

static inline taut_real *taut_at(const taut_kernels *k, const taut_real *x, int64_t i)
{
    return (taut_real *)((char *)x + i * (int64_t)k->elem);
}

/* x.y on the host, which waits for it.  NaN where the table has failed.  `room` is a sum of the caller's to work in. */
static inline double taut_dot(const taut_kernels *k, taut_sum *room, const taut_real *x, const taut_real *y,
                              int64_t len)
{
    double sum;
    k->dot(room, x, len, y, len, 1, len);
    return k->read(&sum, room, 1) ? (double)NAN : sum;
}

/* Each of `count` vectors, one behind the other, becomes x / |x|, where |x| > 0.  `room` is 2 count sums of the caller's
 * to work in: the first become |x|^2. */
static inline void taut_make_units(const taut_kernels *k, taut_sum *room, taut_real *x, int64_t count, int64_t len)
{
    taut_sum *factor = taut_sum_at(room, count);
    k->dot(room, x, len, x, len, count, len);
    k->sum_op(factor, TAUT_SUM_UNIT, 1, room, NULL, count);
    k->axpby_by(x, len, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, factor }, count, len);
}

static inline void taut_make_unit(const taut_kernels *k, taut_sum *room, taut_real *x, int64_t len)
{
    taut_make_units(k, room, x, 1, len);
}
#endif
