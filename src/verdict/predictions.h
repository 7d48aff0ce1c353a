/* Predictions held against a certificate: how far each input may move before its answer can change. */
#ifndef TAUT_VERDICT_PREDICTIONS_H
#define TAUT_VERDICT_PREDICTIONS_H
#include "certify/example.h"
#include "certify/local.h"
#include "verdict/ahead.h"
#include "verdict/crew.h"

typedef struct {
    taut_example *example;
    taut_local *local; /* NULL: not asked for */
    int64_t count;
    double pair;    /* the largest ratio seen over pairs of inputs: a scale to hold the constant against */
    int64_t silent; /* examples without an answer */
    char why[160];  /* the reason of the first of them */
} taut_predictions;

/* Certifies the examples, on all threads, and adds them to the certificate's JSON. */
typedef struct {
    bool local;       /* also what holds around each */
    const char *join; /* a folder through which other processes that certify the same share them; NULL: none do */
    const taut_ahead *ahead; /* their logits; NULL, or none in it: by ref, here.  Not with `local` or `join` */
} taut_predictions_way;
taut_status taut_predictions_make(taut_predictions *, taut_certificate *, const taut_examples *,
                                  const taut_predictions_way *, taut_told, void *arg) TAUT_MUST_USE;
void taut_predictions_free(taut_predictions *);

/* The share of all examples, silent ones included, that are right and stand against every change smaller than r. */
double taut_predictions_accuracy(const taut_predictions *, double r);
double taut_predictions_exact(const taut_predictions *,
                              double r); /* the same in real arithmetic, without a tolerance */
#endif
