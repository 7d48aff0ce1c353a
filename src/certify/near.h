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

/* What a move of the example by up to r does to every token: docs/certificate.md.  A row for each. */
typedef struct {
    double r;
    int64_t rows, cols;
    double *n; /* whoever has it frees it */
} taut_near_shape;

double taut_near_number(const cJSON *, const char *key); /* "inf": +inf; absent: 0 */
/* The constant of softmax attention whose node has `o_norm`, where token t is within m_t of x; the shape goes along.  +inf: none
 * is known. */
taut_up up_near_attention(const taut_near_node *, const double *m, taut_near_shape *);
/* The same of keep x + mix f(x), f a perceptron that is not too large; each: of every token, where that is less. */
taut_up up_near_mlp(const taut_near_node *, double keep, double mix, const double *m, double *each);

/* near_shape.c.  false, NULL: no memory. */
bool taut_shape_begin(taut_near_shape *, int64_t tokens, bool flat, double r);
bool taut_shape_copy(taut_near_shape *to, const taut_near_shape *from);
bool taut_shape_fit(taut_near_shape *, int64_t rows); /* of another number of tokens nothing is known */
double taut_shape_row(const taut_near_shape *, int64_t t);
double *taut_shape_moved(const taut_near_shape *, double moved); /* m_t; of the whole: moved */
void taut_shape_scale(taut_near_shape *, const double *each);
void taut_shape_mix(taut_near_shape *, const taut_near_shape *in, double keep, double mix);
bool taut_shape_pass(taut_near_shape *, const cJSON *tree, const char *rule, double lip, bool first);
#endif
