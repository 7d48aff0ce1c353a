/* What the files of the attlip module share. */
#ifndef TAUT_MODULE_ATTLIP_H
#define TAUT_MODULE_ATTLIP_H
#include "module/leaf.h"
#include "module/prox.h"

enum { ATTLIP_PRODUCTS = 500 }; /* most products of one linear system */

typedef struct {
    taut_module base;
    taut_attlip_spec spec;
    taut_param weight, root;
} attlip;

typedef struct {
    taut_real *p;            /* prox(x) */
    taut_real *path, *rates; /* unrolled: the points before each step, the steps' lengths; else NULL */
    int steps;
} attlip_kept;

/* gW += by (G^T u + h^T y), where G is that of y and h = H_V[u W^T] */
void attlip_weight_grad(const attlip *, const prox *, const taut_real *u, const taut_real *y, const taut_real *h,
                        double by);
void attlip_eta_grad(const attlip *, const taut_kernels *, double slope); /* adds what a slope in eta is in root */

/* attlip_respond.c: u = (I + eta H)^-1 g and h = H_V[u W^T], which has room for v */
int64_t attlip_respond_used(const prox *);
void attlip_respond(const attlip *, prox *, taut_real *u, const taut_real *g, taut_real *h, taut_span scratch);

/* attlip_steps.c: K steps and their own derivatives; both ways take attlip_steps_host doubles on the host */
int64_t attlip_steps_host(int steps, int64_t n);
void attlip_descend(prox *, attlip_kept *, prox_lane_end *end, int most, taut_span scratch);
void attlip_unrolled_jvp(prox *, const attlip_kept *, taut_real *ty, const taut_real *tx, taut_span scratch);
void attlip_unrolled_vjp(const attlip *, taut_run *, prox *, const attlip_kept *, taut_real *gx, const taut_real *gy,
                         double by);
#endif
