/* The words of a table, row by row, as many as come. */
#ifndef TAUT_REPORT_CELLS_H
#define TAUT_REPORT_CELLS_H
#include <stdbool.h>

typedef struct {
    char **word;
    int count, room;
    bool failed; /* an allocation failed: what came after it is not there */
} taut_cells;

void taut_cells_add(taut_cells *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void taut_cells_number(taut_cells *, const char *format, double); /* a dash for NaN */
void taut_cells_free(taut_cells *);
#endif
