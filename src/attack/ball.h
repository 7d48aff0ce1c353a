/* The three balls of attacks, Linf, L2 and L1, cut with the box [lo, hi] of the inputs: norms, projections, random starts,
 * steps, and the shortest way to a hyperplane.  Vectors of n doubles; the centre x lies in the box.
 *
 * A projected point is in the box exactly and in the ball up to the rounding of a sum: a few 2^-52 times n^(1/2). */
#ifndef TAUT_ATTACK_BALL_H
#define TAUT_ATTACK_BALL_H
#include <stdbool.h>
#include <stdint.h>

typedef enum { TAUT_BALL_LINF, TAUT_BALL_L2, TAUT_BALL_L1 } taut_ball_kind;
typedef struct {
    taut_ball_kind kind;
    double eps, lo, hi;
} taut_ball;

bool taut_ball_parse(taut_ball_kind *, const char *name); /* Linf, L2, L1 */
const char *taut_ball_name(taut_ball_kind);

double taut_ball_distance(taut_ball_kind, const double *x, const double *y, int64_t n); /* |x - y|; NaN stays */
double (*taut_ball_dual(taut_ball_kind))(const double *, int64_t);                      /* the dual norm */

/* y = a point of the ball and the box: Linf and L1 the nearest in l2, L2 the nearest of the ball, then cut to the box. */
void taut_ball_project(taut_ball, double *y, const double *x, int64_t n);
/* y = x plus eps times a random direction (uniform over signs and sizes for Linf, Gaussian for L2 and L1; L1 is then
 * projected), cut to the box.  A function of key. */
void taut_ball_start(taut_ball, double *y, const double *x, uint64_t key, int64_t n);
/* y += size times the steepest unit ascent along g: signs (Linf), g / |g| (L2).  0 and NaN in g move nothing;
 * nor does, in L2, a g that is not finite. */
void taut_ball_step(taut_ball, double *y, const double *g, double size, int64_t n);
/* L1: y += size times signs of the largest entries of |g|, a `share` of all, divided by their number.  work holds n. */
void taut_ball_sparse_step(double *y, const double *g, double size, double share, double *work, int64_t n);

/* d = the shortest (in the ball's norm) with w.d = c and x + d in the box; where no such d exists, the one that comes
 * nearest to c.  work holds 3 n. */
void taut_plane_move(taut_ball, double *d, const double *x, const double *w, double c, double *work, int64_t n);
/* L1: d = the move of length at most eps, no entry above `most`, with x + d in the box, that has the largest w.d.  work
 * holds 3 n. */
void taut_plane_far(taut_ball, double *d, const double *x, const double *w, double most, double *work, int64_t n);
#endif
