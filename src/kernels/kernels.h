/* THE TABLE every backend fills.  Modules touch numbers through it and through nothing else.
 *
 * Rules that hold for every slot unless its line says otherwise:
 *   - outputs come first and are overwritten; "+=" in a formula means it adds;
 *   - matrices are row-major and contiguous; sizes may be 0, pointers may then be anything;
 *   - an output may be an input (same address) only where the line says so;
 *   - NaN and infinity propagate; nothing is hidden;
 *   - the same bits come out for any thread count: no float atomics, fixed order of sums;
 *   - no slot keeps state, none is NULL, and only alloc and sync can fail.
 * kernels/ref/<file>.c is the definition of a slot, in double and plain loops; the file of the same
 * name in kernels/cpu/ states the error it promises against that definition. */
#ifndef TAUT_KERNELS_H
#define TAUT_KERNELS_H
#include "base/status.h"
#include "tensor/tensor.h"

typedef enum { TAUT_GELU, TAUT_GELU_TANH, TAUT_RELU, TAUT_SILU, TAUT_TANH, TAUT_ABS, TAUT_ELU } taut_curve;

/* Softmax attention of n examples with `heads` heads of width dh.  q and o are (n, tq, heads*dh),
 * k and v are (n, tk, heads*dh), lse is (n, heads, tq).  With S = scale * q.k + alibi:
 *     o_i = sum_j P_ij v_j,  P = row softmax of S,  lse_i = ln sum_j exp S_ij.
 * A key that is masked has P = 0; a query that sees no key has o = 0, lse = -inf and derivative 0. */
typedef struct {
    int64_t n, heads, tq, tk, dh;
    double scale;
    bool causal;            /* query i sees key j only if j <= i + tk - tq */
    bool alibi;             /* S_ij -= 2^(-8(h+1)/heads) * |i + tk - tq - j| */
    double near;            /* of attlip: S_ij -= near 2^(-h/2) |i - j| */
    const int32_t *lengths; /* n entries: example e sees keys j < lengths[e]; NULL: all of them */
} taut_attn;

/* TensorSketch of `rows` vectors of d entries: hash is (degree, d), and entry i of factor t goes into bucket b
 * where hash[t][i] = b >= 0, with the sign - where it is ~b:
 *     c_t[b] = sum of +-x_i over the i in bucket b,   z = c_1 * ... * c_degree, circular convolution of `size`. */
typedef struct {
    int64_t rows, d, size; /* size: even */
    int degree;
    const int32_t *hash;
} taut_sketch_shape;

/* Keys and values of n examples brought together in m groups a head: k and v are (n, t, heads*dh), what is
 * made of the groups is (n, m, heads*dh), queries are (n, tq, heads*dh). */
typedef struct {
    int64_t n, heads, tq, t, m, dh;
    double scale;           /* route: 1/temperature; clustered: times the logits */
    const int32_t *lengths; /* n entries: keys i >= lengths[e] are not there; NULL: all are */
} taut_group;
/* Attention by position alone: query i looks at key j with a weight that only i and j decide,
 *     p^h_ij = gain_h exp(w[h][c]) / sum over the keys of i of exp(w[h][c']),  c = i - j, or i - j + span/2 where keys
 * may also come after their query.  On a torus, tokens row by row, c is the shift from j to i: (rows down) row + columns to
 * the right, both counted round.  One p serves every example. */
typedef struct {
    int64_t n, heads, t, dh;
    int64_t span;       /* columns of w; at least t, and where not causal odd and at least 2t - 1; on a torus t */
    bool causal;        /* p_ij = 0 for j > i */
    int64_t row;        /* tokens in a row of the torus, a divisor of t; 0: no torus */
    const double *gain; /* one a head, above 0 */
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
    const char *name; /* "ref", "cpu", "cuda" */
    size_t elem;      /* bytes per element: 8, 4, 4 */

    /* memory.c */
    taut_real *(*alloc)(int64_t len); /* zeroed, 64-byte aligned; NULL when memory is out */
    void (*release)(taut_real *);
    void (*put)(taut_real *y, const double *x, int64_t len);
    void (*get)(double *y, const taut_real *x, int64_t len);
    taut_status (*sync)(void);

    /* vector.c: y = a x + b y (y may be x; a = 0: x is not read, b = 0: y is not read); sum x_i y_i in double
     */
    void (*axpby)(taut_real *y, double a, const taut_real *x, double b, int64_t len);
    double (*dot)(const taut_real *x, const taut_real *y, int64_t len);

    /* gemm.c: C (m,n) = alpha op(A) op(B) + beta C; op transposes when ta / tb; alpha 0: A and B not read, beta 0: C
     * not read */
    void (*gemm)(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                 bool tb, double alpha, double beta);

    /* cholesky.c: r (n,n) = L^-1, lower triangular, where L L^T = a + shift I and a is symmetric (its lower half is
     * read); all of r is NaN when that is not positive definite.  Costs n^2 doubles while it runs. */
    void (*cholesky_inverse)(taut_real *r, const taut_real *a, double shift, int64_t n);

    /* rows.c: x and y are (rows, cols); p is (period, cols) and repeats: row r meets p[r % period]
     *     add_rows       y[r][c] = x[r][c] + p[r % period][c]     (y may be x)
     *     sum_rows       p[r % period][c] += y[r][c], its adjoint
     *     mul_rows       y[r][c] = x[r][c] g[c]                   (y may be x)
     *     dot_rows       g[c] += sum_r x[r][c] y[r][c]
     *     copy_rows      y[r y_stride + c] = x[r x_stride + c]
     *     mean_tokens    y (n, d) = mean over t of x (n, t, d)
     *     spread_tokens  x (n, t, d) = y (n, d) / t, its adjoint */
    void (*add_rows)(taut_real *y, const taut_real *x, const taut_real *p, int64_t rows, int64_t cols, int64_t period);
    void (*sum_rows)(taut_real *p, const taut_real *y, int64_t rows, int64_t cols, int64_t period);
    void (*mul_rows)(taut_real *y, const taut_real *x, const taut_real *g, int64_t rows, int64_t cols);
    void (*dot_rows)(taut_real *g, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols);
    void (*copy_rows)(taut_real *y, int64_t y_stride, const taut_real *x, int64_t x_stride, int64_t rows, int64_t cols);
    void (*mean_tokens)(taut_real *y, const taut_real *x, int64_t n, int64_t t, int64_t d);
    void (*spread_tokens)(taut_real *x, const taut_real *y, int64_t n, int64_t t, int64_t d);

    /* pixels.c: as above, with or without the shift; and gx = scale gy, the pixels back in their places, its adjoint */
    void (*pixels)(taut_real *y, const taut_real *x, const taut_pixels *, bool shifted);
    void (*pixels_vjp)(taut_real *gx, const taut_real *gy, const taut_pixels *);

    /* pointwise.c: y = f(x); and y = f'(x) t, which is both jvp and vjp (y may be t) */
    void (*pointwise)(taut_real *y, const taut_real *x, taut_curve f, int64_t len);
    void (*pointwise_slope)(taut_real *y, const taut_real *t, const taut_real *x, taut_curve f, int64_t len);

    /* normalise.c: z = (x - mean) * rstd, rstd = 1/sqrt(var + eps) one a row (z may be x); without `centre`, mean is
     * taken as 0 and var as the mean square.  Its derivative (Cen - z z^T/d) rstd is symmetric: the
     * slope slot is both jvp and vjp (y may be t).  centre_rows: y = x - mean (y may be x). */
    void (*normalise)(taut_real *z, taut_real *rstd, const taut_real *x, int64_t rows, int64_t d, bool centre,
                      double eps);
    void (*normalise_slope)(taut_real *y, const taut_real *t, const taut_real *z, const taut_real *rstd, int64_t rows,
                            int64_t d, bool centre);
    void (*centre_rows)(taut_real *y, const taut_real *x, int64_t rows, int64_t d);

    /* unit.c: y = factor x / max(|x|, floor) row by row; its derivative is symmetric, so the slope slot is both
     * jvp and vjp: y = factor (t - u (u.t)) / |x|, u = x / |x|, where |x| > floor, else factor t / floor */
    void (*unit_rows)(taut_real *y, const taut_real *x, int64_t rows, int64_t d, double floor, double factor);
    void (*unit_rows_slope)(taut_real *y, const taut_real *t, const taut_real *x, int64_t rows, int64_t d, double floor,
                            double factor);

    /* sketch.c: z (rows, size) from x (rows, d), as above; jvp: the sum over t of the convolution with c_t made
     * of tx; vjp: gx += its adjoint */
    void (*sketch)(taut_real *z, const taut_real *x, const taut_sketch_shape *s);
    void (*sketch_jvp)(taut_real *tz, const taut_real *tx, const taut_real *x, const taut_sketch_shape *s);
    void (*sketch_vjp)(taut_real *gx, const taut_real *gz, const taut_real *x, const taut_sketch_shape *s);

    /* attention.c: tiled, online softmax, O(tq + tk) memory a head */
    void (*attention)(taut_real *o, taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                      const taut_attn *a);
    void (*attention_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                          const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a);
    void (*attention_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *o,
                          const taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                          const taut_attn *a);

    /* sparse.c: c (n, heads, top) names the queries that look, in rising order, whole numbers kept as reals
     *     sparse_pick  those with the largest max_r s_r - (sum_r s_r)/tk, s_r = q.k of the drawn keys; the first of equals
     *     sparse       o_i = softmax over the keys it sees of scale q_i.k, of v, where i looks; else the mean of all v, or
     *                  the sum of v_0 .. v_i where causal;  jvp and vjp for a fixed c */
    void (*sparse_pick)(taut_real *c, const taut_real *q, const taut_real *k, const taut_sparse *s);
    void (*sparse)(taut_real *o, const taut_real *c, const taut_real *q, const taut_real *k, const taut_real *v,
                   const taut_sparse *s);
    void (*sparse_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv, const taut_real *c,
                       const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s);
    void (*sparse_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *c,
                       const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s);

    /* halve.c: x (n, t, d), t >= 1, to y (n, (t+1)/2, d): the largest of tokens 2j-1, 2j and 2j+1 that are there, feature
     * by feature; `from` names the token it was, a whole number kept as a real; NaN counts as largest, the first of equals.
     * halve_slope: y_j = t_from, its derivative; back: y (n, t, d) = its transpose */
    void (*halve)(taut_real *y, taut_real *from, const taut_real *x, int64_t n, int64_t t, int64_t d);
    void (*halve_slope)(taut_real *y, const taut_real *t_, const taut_real *from, int64_t n, int64_t t, int64_t d,
                        bool back);

    /* lift.c: softmax over distances as softmax over products: left = [q, 1], right = [q, -|q|^2/2], rows one longer than
     * q's; their derivatives, and g = the adjoint */
    void (*lift)(taut_real *left, taut_real *right, const taut_real *q, int64_t rows, int64_t d);
    void (*lift_jvp)(taut_real *left, taut_real *right, const taut_real *t, const taut_real *q, int64_t rows,
                     int64_t d);
    void (*lift_vjp)(taut_real *g, const taut_real *left, const taut_real *right, const taut_real *q, int64_t rows,
                     int64_t d);

    /* attlip.c: the convex potential of AttLip attention, S_ij = scale |v_i + v_j|^2 - near 2^(-h/2) |i - j| over the
     * tokens of head h, alpha its row softmax.  v, g, e, h are (n, t, heads*dh) with t = a->tq = a->tk; max, sum, col, mean
     * are (n, heads, t); of a only n, heads, tq, dh, scale, near and lengths count, and a token past its example's length
     * has no part in anything.
     *     attlip       f[example] = 1/2 sum over heads and rows of ln sum_j exp S_ij; max and sum of the rows:
     *                  ln sum_j exp(S_ij - scale |v_i|^2) = max_i + ln sum_i, max_i at or above them up to rounding
     *     attlip_grad  g = df/dv from v, max, sum;  col_k = sum_i alpha_ik
     *     attlip_hvp   h = (d2f/dv2) e from v, max, sum, col;  mean becomes each row's mean of dS */
    void (*attlip)(double *f, taut_real *max, taut_real *sum, const taut_real *v, const taut_attn *a);
    void (*attlip_grad)(taut_real *g, taut_real *col, const taut_real *v, const taut_real *max, const taut_real *sum,
                        const taut_attn *a);
    void (*attlip_hvp)(taut_real *h, taut_real *mean, const taut_real *e, const taut_real *v, const taut_real *max,
                       const taut_real *sum, const taut_real *col, const taut_attn *a);

    /* route.c: with A_ij = softmax over j of scale k_i.p_j, p (m, heads*dh):
     *     kt_j = sum_i A_ij k_i,  vt_j = sum_i A_ij v_i;  jvp in k and v
     *     vjp overwrites gk and gv (0 for keys that are not there); gp += (gp may be NULL: not wanted) */
    void (*route)(taut_real *kt, taut_real *vt, const taut_real *k, const taut_real *v, const taut_real *p,
                  const taut_group *g);
    void (*route_jvp)(taut_real *tkt, taut_real *tvt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                      const taut_real *v, const taut_real *p, const taut_group *g);
    void (*route_vjp)(taut_real *gk, taut_real *gv, taut_real *gp, const taut_real *gkt, const taut_real *gvt,
                      const taut_real *k, const taut_real *v, const taut_real *p, const taut_group *g);

    /* cluster.c: c (n, heads, t) names each key's group, a whole number kept as a real; -1: the key is not there
     *     nearest        c_i = the j whose centre_j (n, m, heads*dh) is nearest to k_i; the first of equals
     *     cluster_means  kbar_j, vbar_j = means over the group, 0 for an empty one; logn (n, heads, m) = ln of its
     *                    count, -inf for an empty one; if all are empty, group 0 is taken to hold one zero;
     *                    cross (n, heads, m, dh, dh; may be NULL) = mean of (k - kbar)(v - vbar)^T
     *     _jvp, _vjp     for a fixed c; vjp overwrites gk and gv; cross and its slopes are all NULL or none is */
    void (*nearest)(taut_real *c, const taut_real *k, const taut_real *centre, const taut_group *g);
    void (*cluster_means)(taut_real *kbar, taut_real *vbar, taut_real *logn, taut_real *cross, const taut_real *c,
                          const taut_real *k, const taut_real *v, const taut_group *g);
    void (*cluster_means_jvp)(taut_real *tkbar, taut_real *tvbar, taut_real *tcross, const taut_real *tk,
                              const taut_real *tv, const taut_real *c, const taut_real *k, const taut_real *v,
                              const taut_group *g);
    void (*cluster_means_vjp)(taut_real *gk, taut_real *gv, const taut_real *gkbar, const taut_real *gvbar,
                              const taut_real *gcross, const taut_real *c, const taut_real *k, const taut_real *v,
                              const taut_group *g);

    /* clustered.c: with w_j = softmax over j of scale q.kbar_j + logn_j and y_j = vbar_j + scale cross_j^T q:
     *     o = sum_j w_j y_j;  jvp in q, kbar, vbar, cross;  vjp overwrites all its outputs */
    void (*clustered)(taut_real *o, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                      const taut_real *logn, const taut_real *cross, const taut_group *g);
    void (*clustered_jvp)(taut_real *to, const taut_real *tq, const taut_real *tkbar, const taut_real *tvbar,
                          const taut_real *tcross, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                          const taut_real *logn, const taut_real *cross, const taut_group *g);
    void (*clustered_vjp)(taut_real *gq, taut_real *gkbar, taut_real *gvbar, taut_real *gcross, const taut_real *go,
                          const taut_real *q, const taut_real *kbar, const taut_real *vbar, const taut_real *logn,
                          const taut_real *cross, const taut_group *g);
    /* distance.c, all with p (heads, t, t) of the formula above and v, o (n, t, heads*dh)
     *     distance_softmax      p from w (heads, span)
     *     distance_softmax_vjp  gw += its adjoint applied to gp
     *     distance_mix          o_i = sum_j p^h_ij v_j in the columns of head h;  back: o_j = sum_i p^h_ij v_i
     *     distance_mix_vjp      gp^h_ij = sum over examples of go_i . v_j in those columns, 0 where masked */
    void (*distance_softmax)(taut_real *p, const taut_real *w, const taut_distance *a);
    void (*distance_softmax_vjp)(taut_real *gw, const taut_real *gp, const taut_real *p, const taut_distance *a);
    void (*distance_mix)(taut_real *o, const taut_real *p, const taut_real *v, const taut_distance *a, bool back);
    void (*distance_mix_vjp)(taut_real *gp, const taut_real *go, const taut_real *v, const taut_distance *a);

    /* jasmin.c: returns the sum of the penalties over examples and heads; adds weight times its gradient to gq and gk.  One
     * row of scores at a time, never all of them. */
    double (*attention_jasmin)(taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k, const taut_attn *a,
                               const taut_jasmin *);

    /* rope.c: turn the pairs (i, i + dh/2) of every head by sign * position * base^(-2i/dh), position =
     * row % t; sign -1 is the inverse, hence the adjoint of sign +1 (y may be x) */
    void (*rope)(taut_real *y, const taut_real *x, int64_t rows, int64_t t, int64_t heads, int64_t dh, double base,
                 double sign);

    /* sort.c: groups of g entries sorted, the largest first: y[k] = x[order[k]], order in 0 .. g-1 kept as
     * numbers (g < 2^24); NaN comes first, equal entries keep their order.  permute_groups: y[k] =
     * t[order[k]], the derivative; back: y[order[k]] = t[k], its transpose */
    void (*sort_groups)(taut_real *y, taut_real *order, const taut_real *x, int64_t groups, int64_t g);
    void (*permute_groups)(taut_real *y, const taut_real *t, const taut_real *order, int64_t groups, int64_t g,
                           bool back);

    /* dominance.c: r_i = 1/(eps + sum_j |G_ij| exp(l_j - l_i)) for a symmetric G (n, n), so that G <=
     * diag(1/r); vjp: gG_ij = -gr_i r_i^2 sign(G_ij) exp(l_j - l_i), gl_k += sum_i gG_ik G_ik - gG_ki G_ki */
    void (*dominance)(taut_real *r, const taut_real *g, const taut_real *l, int64_t n, double eps);
    void (*dominance_vjp)(taut_real *gg, taut_real *gl, const taut_real *gr, const taut_real *r, const taut_real *g,
                          const taut_real *l, int64_t n);

    /* dropout.c: y = x * keep / (1-p), keep_i a coin keyed by (key, i): forward, jvp and vjp alike
     * (y may be x) */
    void (*dropout)(taut_real *y, const taut_real *x, uint64_t key, double p, int64_t len);

    /* embed.c: y[r] = table[ids[r]]; table[ids[r]] += y[r] in row order.  Every id is in range. */
    void (*gather)(taut_real *y, const taut_real *table, const int32_t *ids, int64_t rows, int64_t d);
    void (*scatter)(taut_real *table, const taut_real *y, const int32_t *ids, int64_t rows, int64_t d);

    /* cross_entropy.c: returns sum over rows with target >= 0 of -ln softmax(x)[target], adds to *correct
     * the rows whose first largest entry is the target; g (may be NULL, may be x) becomes weight *
     * (softmax(x) - onehot), and 0 on rows with target < 0. */
    double (*cross_entropy)(taut_real *g, int64_t *correct, const taut_real *x, const int32_t *target, int64_t rows,
                            int64_t classes, double weight);
    /* the same when every row has shares q of all classes: -sum_c q_c ln softmax(x)_c, and weight * (sum(q) softmax(x) -
     * q); correct where the first largest entry of x is that of q */
    double (*shared_cross_entropy)(taut_real *g, int64_t *correct, const taut_real *x, const taut_real *q, int64_t rows,
                                   int64_t classes, double weight);

    /* squared_error.c: returns sum (x_i - y_i)^2 and adds sum |x_i - y_i| to *absolute; g (may be NULL, may be x) becomes 2
     * weight (x - y). */
    double (*squared_error)(taut_real *g, double *absolute, const taut_real *x, const taut_real *y, int64_t len,
                            double weight);

    /* optimise.c: m = momentum m + g, w = w (1 - decay) - lr m;  AdamW as above */
    void (*sgd)(taut_real *w, taut_real *m, const taut_real *g, int64_t len, double lr, double momentum, double decay);
    void (*adamw)(taut_real *w, taut_real *m, taut_real *v, const taut_real *g, int64_t len, const taut_adam *);
} taut_kernels;

/* "ref", "cpu" (the best build for this processor); NULL for a name nobody has. */
const taut_kernels *taut_kernels_find(const char *name);

int taut_threads(void); /* how many the kernels use; taut_threads_set is in taut.h */

/* For reports: OpenBLAS with its version and processor, and the compiler that built us. */
const char *taut_blas_version(void);
const char *taut_compiler_version(void);

/* The address of element i: pointer arithmetic for a type nobody can look into. */
static inline taut_real *taut_at(const taut_kernels *k, const taut_real *x, int64_t i)
{
    return (taut_real *)((char *)x + i * (int64_t)k->elem);
}
#endif
