/* Charts as data: what to draw, as an SVG that fits any width and as the table of numbers behind it.
 *
 * Colours are classes (s0 .. s5, ink, grid, paper) that page.c's style sheet defines for light, dark and paper.  Every
 * mark carries a <title>: the tooltip, and what a screen reader says.  Numbers that an axis cannot show are left out of
 * the picture and stay in the table. */
#ifndef TAUT_REPORT_CHART_H
#define TAUT_REPORT_CHART_H
#include "report/markup.h"

enum { TAUT_SERIES = 12, TAUT_COLOURS = 6 };
typedef enum {
    TAUT_DRAW_LINE,
    TAUT_DRAW_DASHED,
    TAUT_DRAW_POINTS,
    TAUT_DRAW_BAND /* the points go around an area: along one border and back along the other */
} taut_draw;

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

typedef struct {
    const char *title;   /* its tooltip */
    const char *under;   /* a few words below it; or NULL */
    int rows, cols;      /* of a matrix */
    const double *shade; /* from 0, nothing, to 1; or NULL, and */
    const char *picture; /* the address of an image (png.h); or NULL: an empty place */
} taut_tile;
typedef struct { /* small pictures in a grid */
    int rows, cols;
    const char *const *row_name, *const *col_name; /* col_name may be NULL */
    const taut_tile *tile;                         /* rows x cols */
} taut_tiles;
void taut_tiles_svg(taut_markup *, const taut_tiles *);

typedef struct { /* words in rows and columns: the numbers behind a chart, or a table of its own */
    int rows, cols;
    const char *const *head; /* cols */
    const char *const *cell; /* rows x cols */
} taut_table;
void taut_table_html(taut_markup *, const taut_table *);
#endif
