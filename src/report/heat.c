/* A matrix of numbers as shades of one colour: the larger, the stronger. */
#include <math.h>

#include "report/axis.h"
#include "report/chart.h"

enum { WIDTH = 400, LEFT = 62, RIGHT = 16, TOP = 8, BOTTOM = 46, TALLEST = 36 };

static taut_axis shade(const taut_heat *h)
{
    taut_axis a = taut_axis_start(true);
    for (int i = 0; i < h->rows * h->cols; i++) taut_axis_see(&a, h->value[i]);
    if (!(a.hi > 100 * a.lo)) {
        a = taut_axis_start(false);
        for (int i = 0; i < h->rows * h->cols; i++) taut_axis_see(&a, h->value[i]);
    }
    taut_axis_finish(&a, 0.06, 1);
    return a;
}

static int every(int count, int most) { return (count + most - 1) / most; }

static void names(taut_markup *t, const taut_heat *h, double w, double tall)
{
    const double bottom = TOP + tall * h->rows;
    for (int c = 0; c < h->cols; c += every(h->cols, 16))
        taut_markup_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>", LEFT + w * (c + 0.5),
                        bottom + 15, c);
    for (int r = 0; r < h->rows; r += every(h->rows, 24))
        taut_markup_add(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>", LEFT - 6,
                        TOP + tall * (r + 0.5) + 4, r);
    taut_markup_add(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, bottom + 36);
    taut_markup_escape(t, h->col_name);
    taut_markup_add(t, "</text><text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
                    (TOP + bottom) / 2);
    taut_markup_escape(t, h->row_name);
    taut_markup_add(t, "</text>\n");
}

void taut_heat_svg(taut_markup *t, const taut_heat *h)
{
    const taut_axis a = shade(h);
    const double w = (double)(WIDTH - LEFT - RIGHT) / h->cols, tall = fmin(w, fmin(TALLEST, fmax(360.0 / h->rows, 3)));
    taut_markup_add(t,
                    "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                    WIDTH, TOP + tall * h->rows + BOTTOM);
    for (int r = 0; r < h->rows; r++)
        for (int c = 0; c < h->cols; c++) {
            const double v = h->value[r * h->cols + c];
            const double strength = taut_axis_shows(&a, v) ? taut_axis_pixel(&a, v) : v > 0 ? 1 : 0;
            taut_markup_add(
                t,
                "<rect class=\"fill %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.3f\">"
                "<title>%s %d, %s %d: %.6g</title></rect>\n",
                isfinite(v) ? "s0" : "s3", LEFT + w * c, TOP + tall * r, w, tall, strength, h->row_name, r, h->col_name,
                c, v);
        }
    names(t, h, w, tall);
    taut_markup_add(t, "</svg>\n");
}

void taut_heat_table(taut_markup *t, const taut_heat *h)
{
    taut_markup_add(t, "<table><thead><tr><th>");
    taut_markup_escape(t, h->unit);
    taut_markup_add(t, "</th>");
    for (int c = 0; c < h->cols; c++) taut_markup_add(t, "<th>%d</th>", c);
    taut_markup_add(t, "</tr></thead><tbody>\n");
    for (int r = 0; r < h->rows; r++) {
        taut_markup_add(t, "<tr><td>%d</td>", r);
        for (int c = 0; c < h->cols; c++) taut_markup_add(t, "<td>%.6g</td>", h->value[r * h->cols + c]);
        taut_markup_add(t, "</tr>\n");
    }
    taut_markup_add(t, "</tbody></table>\n");
}
