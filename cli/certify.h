/* What taut certify found, for people and as JSON (certify_print.c). */
#ifndef TAUT_CLI_CERTIFY_H
#define TAUT_CLI_CERTIFY_H
#include "certify/certify.h"
#include "certify/example.h"
#include "certify/local.h"

typedef struct {
    taut_example *example;
    taut_local *local; /* with --local */
    int64_t count;
    double pair;    /* the largest ratio seen over pairs of inputs */
    int64_t silent; /* how many have no answer, and why the first has none */
    const char *why;
} certify_sample;

/* radii: at which accuracy is told */
void certify_print(const taut_certificate *, const certify_sample *, const double *radii, int count, bool units);
int certify_print_json(const taut_certificate *, const certify_sample *, const double *radii, int count);
#endif
