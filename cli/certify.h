/* What taut certify found, for people and as JSON (certify_print.c). */
#ifndef TAUT_CLI_CERTIFY_H
#define TAUT_CLI_CERTIFY_H
#include "verdict/predictions.h"

/* radii: at which accuracy is told */
void certify_print(const taut_certificate *, const taut_predictions *, const double *radii, int count, bool units);
int certify_print_json(const taut_certificate *, const taut_predictions *, const double *radii, int count);
#endif
