/* What plash_head.c makes and plash.c judges: a PLASH on the ref kernels with its deterministic twin. */
#ifndef TAUT_CERTIFY_PLASH_HEAD_H
#define TAUT_CERTIFY_PLASH_HEAD_H
#include "certify/mixer.h"
#include "certify/plash.h"

enum { TAUT_PLASH_LAYERS = 8 };
struct taut_named; /* a weight of m and its path */
struct taut_plash_head {
    taut_plash_spec spec;
    int64_t nq, nk;
    double eta;
    const taut_kernels *k;
    taut_module *m, *fixed, *front, *front_fixed; /* front: what the mixer reads */
    double *weights;
    struct taut_named *named;
    int names;
    taut_mixer_layer layer[TAUT_PLASH_LAYERS];
    const double *prototypes, *beta, *wk, *wv;
    double norm_out, *norm_k, *norm_v; /* of W_out, and of each head's part of W_Kg and W_Vg */
};
#endif
