/* What taut measure found, for people. */
#ifndef TAUT_CLI_MEASURE_H
#define TAUT_CLI_MEASURE_H
#include "cli.h"

/* measure_layers.c: tolerance is that of the search */
void measure_print_layers(const cJSON *, double tolerance);
/* measure_print.c */
void measure_print_about(const cJSON *);
void measure_print_lengths(const cJSON *);
void measure_print_network(const cJSON *);
void measure_print_maps(const cJSON *);
void measure_print_deviation(const cJSON *);
#endif
