/* One bar a row, from the top down. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/axis.h"
#include "report/chart.h"

enum { WIDTH = 400, ROW = 22, TOP = 8, BOTTOM = 26, NAMES = 142, NUMBERS = 70, LETTERS = 20 };

static taut_axis across(const taut_bars *b)
{
    taut_axis x = taut_axis_start(b->log);
    taut_axis_see(&x, b->log ? 1 : 0);
    for (int i = 0; i < b->count; i++) taut_axis_see(&x, b->value[i]);
    taut_axis_finish(&x, NAMES, WIDTH - NUMBERS);
    return x;
}

/* As much of a name as there is room for; the tooltip has all of it. */
static void put_name(taut_markup *t, const char *name)
{
    char part[LETTERS + 1];
    snprintf(part, sizeof part, "%s", name);
    while (*part && (part[strlen(part) - 1] & 0x80) && strlen(name) > LETTERS) part[strlen(part) - 1] = '\0';
    taut_markup_escape(t, part);
    if (strlen(name) > LETTERS) taut_markup_add(t, "\u2026");
}

static void bar(taut_markup *t, const taut_bars *b, const taut_axis *x, int i)
{
    const double v = b->value[i], zero = taut_axis_pixel(x, b->log ? 1 : 0), y = TOP + ROW * i;
    const bool shown = taut_axis_shows(x, v);
    const double end = shown ? taut_axis_pixel(x, v) : v > 0 ? x->to : zero; /* infinity fills the row */
    char word[24];
    snprintf(word, sizeof word, "%.6g", v); /* as in the table: a bound that was rounded up stays one */
    taut_markup_add(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", NAMES - 6, y + 14);
    put_name(t, b->row[i]);
    taut_markup_add(t, "</text><rect class=\"fill %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>",
                    shown ? (end < zero ? "s1" : "s0") : "s3", fmin(zero, end), y + 3, fmax(fabs(end - zero), 0.5),
                    ROW - 6);
    taut_markup_escape(t, b->row[i]);
    taut_markup_add(t, ": %.6g</title></rect><text x=\"%.1f\" y=\"%.1f\">%s</text>\n", v, fmax(zero, end) + 5, y + 14,
                    word);
}

void taut_bars_svg(taut_markup *t, const taut_bars *b)
{
    const taut_axis x = across(b);
    const int height = TOP + ROW * b->count + BOTTOM;
    double tick[TAUT_TICKS], taken = -INFINITY;
    char word[24];
    taut_markup_add(t,
                    "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                    WIDTH, height);
    for (int i = 0, n = taut_axis_ticks(&x, tick); i < n; i++) {
        const double at = taut_axis_pixel(&x, tick[i]);
        taut_axis_word(word, tick[i]);
        taut_markup_add(t, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", at, at, TOP,
                        height - BOTTOM);
        if (taut_axis_room(&taken, at, word))
            taut_markup_add(t, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", at,
                            height - 9, word);
    }
    for (int i = 0; i < b->count; i++) bar(t, b, &x, i);
    taut_markup_add(t, "</svg>\n");
}

void taut_bars_table(taut_markup *t, const taut_bars *b)
{
    taut_markup_add(t, "<table><thead><tr><th>");
    taut_markup_escape(t, b->name);
    taut_markup_add(t, "</th><th>");
    taut_markup_escape(t, b->unit);
    taut_markup_add(t, "</th></tr></thead><tbody>\n");
    for (int i = 0; i < b->count; i++) {
        taut_markup_add(t, "<tr><td>");
        taut_markup_escape(t, b->row[i]);
        taut_markup_add(t, "</td><td>%.6g</td></tr>\n", b->value[i]);
    }
    taut_markup_add(t, "</tbody></table>\n");
}
