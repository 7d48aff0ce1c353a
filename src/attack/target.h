/* What an attack sees of a network: logits of a batch of inputs, and J^T w at the batch that went through last.  Everything
 * else here (losses, attacks, profiles) is written against this and knows nothing of models.
 *
 * Inputs and logits are rows of doubles.  An attack keeps its arrays whole and names the rows it still works on in `live`;
 * the calls below pack those rows into batches and put the answers back, so that examples that are done cost nothing.
 * Batches are shared out among the lanes, a thread each: a small network has too little in it to be cut any finer. */
#ifndef TAUT_ATTACK_TARGET_H
#define TAUT_ATTACK_TARGET_H
#include <stdint.h>

#include "attack/loss.h"
#include "base/status.h"

typedef struct taut_target {
    int64_t dim, classes, batch;     /* entries of an input; logits; examples one call may bring */
    int64_t lanes;                   /* calls with different lanes may run at the same time; 0 is 1 */
    int64_t channels, height, width; /* what Square cuts its windows from: entry (y * width + x) * channels + channel */
    double lo, hi;                   /* every entry stays in [lo, hi]; infinite: no box */
    void *arg;
    /* z (n, classes) = logits of x (n, dim), n <= batch.  key: one an example, names the random numbers of a network that
     * draws some; others ignore it. */
    void (*forward)(void *arg, int64_t lane, double *z, const double *x, const uint64_t *key, int64_t n);
    /* g (n, dim) = J^T w at the lane's last forward */
    void (*backward)(void *arg, int64_t lane, double *g, const double *w, int64_t n);
    /* Whether all of that was done: a device may have failed meanwhile.  NULL: nothing can fail. */
    taut_status (*status)(void *arg);
    int64_t forwards, backwards; /* examples that went through so far */
    double *memory;              /* taut_target_ready's: the packed batch of each lane */
} taut_target;

/* Checks the sizes and allocates the packed batches; done releases it, not arg. */
taut_status taut_target_ready(taut_target *) TAUT_MUST_USE;
void taut_target_done(taut_target *);
taut_status taut_target_status(const taut_target *) TAUT_MUST_USE; /* of the network, so far */

/* z[e] = logits of x[e] for the n rows e in live, which ascend, each once; NULL: rows 0 .. n-1. */
void taut_target_logits(taut_target *, double *z, const double *x, const uint64_t *key, const int64_t *live, int64_t n);
/* And loss[e], with g[e] its gradient in x[e].  kind as in loss.h; wrong is the class a targeted loss pulls to. */
void taut_target_slope(taut_target *, double *z, double *loss, double *g, const double *x, const uint64_t *key,
                       const int64_t *live, int64_t n, taut_loss kind, const int32_t *label, const int32_t *wrong);
/* For each live row, with y its label: the class c among those allowed whose linearised boundary z_c = z_y is nearest in the
 * dual norm, f[e] = z_c - z_y and g[e] its gradient.  wrong NULL: all classes but y; else only wrong[e].  scale(g) is the
 * dual norm. */
void taut_target_boundary(taut_target *, double *f, double *g, const double *x, const uint64_t *key,
                          const int64_t *live, int64_t n, const int32_t *label, const int32_t *wrong,
                          double (*scale)(const double *, int64_t));

/* The first largest entry; -1 when one is a NaN, so that a broken output is never read as right. */
int32_t taut_argmax(const double *z, int64_t classes);
#endif
