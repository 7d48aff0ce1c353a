/* A proof told in lines: which layer spends the budget. */
#ifndef TAUT_REPORT_WATERFALL_H
#define TAUT_REPORT_WATERFALL_H
#include <cjson/cJSON.h>

/* One line of the waterfall: what a part of the network multiplies the constant by, and how large tokens are
 * behind it. */
typedef struct {
    char path[96], rule[24];
    double lip, out;
} taut_fall;

/* Fills at most `room` rows, in the order of the network; returns how many there are. */
int taut_waterfall(taut_fall *rows, int room, const cJSON *proof);
#endif
