/* What the files near*.c share: a node of the proof and the same node of the model's tree, and what it reads. */
#ifndef TAUT_CERTIFY_NEAR_H
#define TAUT_CERTIFY_NEAR_H
#include "base/json.h"
#include "certify/certify.h"

typedef struct {
    const taut_certificate *c;
    const cJSON *proof, *tree;
    const char *path; /* of names: where its weights are */
    taut_tensor x;    /* what it reads at the example */
} taut_near_node;

double taut_near_number(const cJSON *, const char *key); /* "inf": +inf; absent: 0 */
/* The constant of softmax attention whose node has `o_norm`, where every token is within `moved` of x.  +inf: none is known. */
taut_up up_near_attention(const taut_near_node *, taut_up moved);
/* The same of keep x + mix f(x), f a perceptron that is not too large. */
taut_up up_near_mlp(const taut_near_node *, double keep, double mix, taut_up moved);
#endif
