/* Small pictures in a grid: matrices as shades of one colour, or images.  A matrix is drawn as one path for each of a few
 * shades, so that a page with hundreds of them stays light. */
#include <math.h>

#include "report/chart.h"

enum { WIDTH = 480, LEFT = 78, RIGHT = 8, TOP = 20, GAP = 6, UNDER = 17, LARGEST = 150, SHADES = 16 };

static void shades(taut_markup *t, const taut_tile *tile, double x, double y, double size)
{
    const double w = size / tile->cols, h = size / tile->rows;
    taut_markup_add(t, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x, y, size,
                    size);
    for (int shade = 1; shade <= SHADES; shade++) {
        bool open = false;
        for (int i = 0; i < tile->rows * tile->cols; i++) {
            const double v = tile->shade[i];
            if (!(v > 0) || (int)ceil(fmin(v, 1) * SHADES) != shade) continue;
            if (!open) taut_markup_add(t, "<path class=\"fill s0\" fill-opacity=\"%.2f\" d=\"", shade / (double)SHADES);
            open = true;
            taut_markup_add(t, "M%.1f %.1fh%.2fv%.2fh-%.2fz", x + w * (i % tile->cols), y + h * (i / tile->cols), w, h,
                            w);
        }
        if (open) taut_markup_add(t, "\"/>");
    }
}

static void one(taut_markup *t, const taut_tile *tile, double x, double y, double size)
{
    taut_markup_add(t, "<g><title>");
    taut_markup_escape(t, tile->title);
    taut_markup_add(t, "</title>");
    if (tile->shade)
        shades(t, tile, x, y, size);
    else if (tile->picture)
        taut_markup_add(t,
                        "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/><image x=\"%.1f\" "
                        "y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" style=\"image-rendering:pixelated\" href=\"%s\"/>",
                        x, y, size, size, x, y, size, size, tile->picture);
    if (tile->under) {
        taut_markup_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x + size / 2, y + size + 13);
        taut_markup_escape(t, tile->under);
        taut_markup_add(t, "</text>");
    }
    taut_markup_add(t, "</g>\n");
}

void taut_tiles_svg(taut_markup *t, const taut_tiles *c)
{
    bool under = false;
    for (int i = 0; i < c->rows * c->cols; i++) under |= c->tile[i].under != NULL;
    const double size = fmin(LARGEST, (double)(WIDTH - LEFT - RIGHT + GAP) / c->cols - GAP);
    const double tall = size + GAP + (under ? UNDER : 0);
    taut_markup_add(t,
                    "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                    WIDTH, TOP + tall * c->rows);
    for (int col = 0; col < c->cols && c->col_name; col++) {
        taut_markup_add(t, "<text x=\"%.1f\" y=\"14\" text-anchor=\"middle\">", LEFT + (size + GAP) * col + size / 2);
        taut_markup_escape(t, c->col_name[col]);
        taut_markup_add(t, "</text>");
    }
    for (int r = 0; r < c->rows; r++) {
        taut_markup_add(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, TOP + tall * r + size / 2 + 4);
        taut_markup_escape(t, c->row_name[r]);
        taut_markup_add(t, "</text>\n");
        for (int col = 0; col < c->cols; col++)
            one(t, &c->tile[r * c->cols + col], LEFT + (size + GAP) * col, TOP + tall * r, size);
    }
    taut_markup_add(t, "</svg>\n");
}
