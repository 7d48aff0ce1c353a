/* Charts as data: what to draw, as an SVG that fits any width and as the table of numbers behind it.
 *
 * Colours are classes (s0 .. s5, ink, grid, paper) that page.c's style sheet defines for light, dark and paper.  Every
 * mark carries a <title>: the tooltip, and what a screen reader says.  Numbers that an axis cannot show are left out of
 * the picture and stay in the table. */
#ifndef TAUT_REPORT_CHART_H
#define TAUT_REPORT_CHART_H
#include "report/markup.h"

enum { TAUT_SERIES = 12, TAUT_COLOURS = 6 };
typedef enum { TAUT_DRAW_LINE, TAUT_DRAW_DASHED, TAUT_DRAW_POINTS } taut_draw;

typedef struct {
    const char *name;
    const double *x, *y;
    const char *const *label; /* of each point, for its tooltip; or NULL */
    int count;
    taut_draw draw;
} taut_series;

typedef struct { /* y against x */
    const char *x_name, *y_name;
    bool log_x, log_y;
    taut_series series[TAUT_SERIES];
    int count;
} taut_plot;
void taut_plot_svg(taut_markup *, const taut_plot *);
void taut_plot_table(taut_markup *, const taut_plot *);

typedef struct {             /* one bar a row, from the top down */
    const char *name, *unit; /* what a row and its number are */
    bool log;                /* bars start at 1, to the left below it */
    int count;
    const char *const *row;
    const double *value;
} taut_bars;
void taut_bars_svg(taut_markup *, const taut_bars *);
void taut_bars_table(taut_markup *, const taut_bars *);

typedef struct { /* a matrix of numbers as shades, on a log scale when they span more than a factor 100 */
    const char *row_name, *col_name, *unit;
    int rows, cols;
    const double *value; /* rows x cols */
} taut_heat;
void taut_heat_svg(taut_markup *, const taut_heat *);
void taut_heat_table(taut_markup *, const taut_heat *);
#endif
