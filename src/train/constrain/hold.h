/* One weight matrix in the hands of a constraint, and every constraint there is.
 *
 * Norms are RMS->RMS:  ||W||_rms = ||W||_2 sqrt(cols/rows), so that one cap means the same for every shape; a "singular
 * value" below is one of W / sqrt(rows/cols).  Everything goes through the kernel table, costs no memory beyond `work`,
 * and gives the same bits for any thread count.  Nothing here is a certificate: the top singular value comes from power
 * iteration, which looks from below.  What is proved is proved in rescale.c and enforce.c. */
#ifndef TAUT_TRAIN_CONSTRAIN_HOLD_H
#define TAUT_TRAIN_CONSTRAIN_HOLD_H
#include <math.h>

#include "model/model.h"

typedef struct {
    const taut_kernels *k;
    taut_real *w; /* (rows, cols), changed in place */
    int64_t rows, cols;
    double cap;             /* of the RMS->RMS norm */
    taut_span work;         /* taut_hold_work elements */
    const taut_real *start; /* cols numbers that power iteration starts from */
    int iterations;
} taut_hold;

int64_t taut_hold_work(int64_t rows, int64_t cols);

/* power.c: the top singular values of `count` matrices of one shape that lie one behind the other (not RMS) and their unit
 * vectors u (rows), v (cols); v holds the starts, work has est_top_pairs_work elements.  Estimates from below: 0 (and u = 0)
 * for a zero matrix, NaN for one that is not finite, whatever the others are.  A finite matrix that is not zero may also get
 * 0 or NaN: where the fourth powers of its numbers overflow or vanish, or where the start is orthogonal to the top vector.
 * The two below wait for the device, as they hand one number to the host. */
void est_top_pairs(const taut_kernels *, taut_sum *top, taut_real *u, taut_real *v, const taut_real *w, int64_t count,
                   int64_t rows, int64_t cols, int iterations, taut_span work);
int64_t est_top_pairs_work(int64_t rows, int64_t cols, int64_t count);
double est_hold_norm(taut_hold);                                /* RMS->RMS */
double est_hold_top(taut_hold *, taut_real **u, taut_real **v); /* the same; its vectors lie in work */

/* cap_strength.c: the least alpha >= 0 for which p(s) = p2(p1(s)), p1 = s - alpha s^3, p2 = s + alpha s^3, sends [0, k]
 * into [-cap, cap].  False: there is none, which is so exactly for k > 81/31 cap. */
bool taut_cap_strength(double *alpha, double cap, double k);

/* What each does to the singular values s, of which s1 is the largest:
 *     spectral_decay   s1 -> (1 - lambda) s1, the others stay                     decay.c
 *     normalise        s -> s min(1, cap/s1)                                      normalise.c
 *     stiefel          s -> about 0.9955 to 0.9994 cap, all of them               stiefel.c
 *     hammer           s1 -> cap, also from below; the others stay                hammer.c
 *     softcap          s -> p(s), where all s <= k                                softcap.c
 *     hardcap          s -> min(s, cap)                                           hardcap.c
 *     hardcap_table    s -> about min(s, cap), peak 1.0109 cap                    hardcap_table.c
 *     clip             s -> min(max(s, lo), cap)                                  clip.c
 *     clipped_decay    s -> min(s, (1 - lambda) s + lambda cap)                   clip.c
 * A zero matrix stays zero under all of them.  How far each may miss is said in its file. */
void taut_spectral_decay(taut_hold, double lambda);
void taut_normalise(taut_hold);
void taut_stiefel(taut_hold);
void taut_hammer(taut_hold);
void taut_hardcap(taut_hold);
void taut_hardcap_table(taut_hold);
void taut_clip(taut_hold, double lo);
void taut_clipped_decay(taut_hold, double lambda);

/* softcap.c, which is for `count` matrices of one shape, at most TAUT_SIDE_BY_SIDE, each with its own k (0: not known): they
 * share the work of the first, taut_softcap_work elements.  look: a norm above k is looked for. */
void taut_softcap(const taut_hold *, const double *k, int count, bool look);
int64_t taut_softcap_work(int64_t rows, int64_t cols, int64_t count);

/* tame.c: `count` matrices of len numbers, one behind the other, whose Frobenius norm is above their reach are scaled down to it;
 * room: 2 count sums. */
double taut_reach(const taut_hold *);
void taut_tame(const taut_kernels *, taut_real *w, int64_t count, int64_t len, const double *reach, taut_sum *room);

/* polar.c: every matrix of a model goes `times` steps, or 2 times where it is not square, towards the nearest one with
 * orthonormal rows or columns; work has taut_polar_work elements. */
void taut_polar(const taut_model *, int times, taut_real *work);
int64_t taut_polar_work(const taut_model *);

/* embed.c: every row of a table gets an RMS of at most cap. */
void taut_cap_rows(const taut_kernels *, taut_real *table, int64_t rows, int64_t cols, double cap);
#endif
