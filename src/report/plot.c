/* y against x: lines and points. */
#include <math.h>
#include <string.h>

#include "report/axis.h"
#include "report/chart.h"

enum { WIDTH = 400, HEIGHT = 270, LEFT = 62, RIGHT = 16, TOP = 12, BOTTOM = 46, KEY = 20, NAMED = 12, LETTERS = 22 };

static void axes(taut_axis *x, taut_axis *y, const taut_plot *p)
{
    *x = taut_axis_start(p->log_x);
    *y = taut_axis_start(p->log_y);
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            const double px = p->series[s].x[i], py = p->series[s].y[i];
            if (!taut_axis_shows(x, px) || !taut_axis_shows(y, py)) continue;
            taut_axis_see(x, px);
            taut_axis_see(y, py);
        }
    if (strchr(p->y_name, '%')) taut_axis_see(y, 0), taut_axis_see(y, 100); /* a share is seen whole */
    const taut_axis seen = *x;
    taut_axis_finish(x, LEFT, WIDTH - RIGHT);
    if (!x->log && seen.lo < seen.hi) { /* across, no room is given away for round ends */
        x->lo = fmax(x->lo, seen.lo - 0.02 * (seen.hi - seen.lo));
        x->hi = fmin(x->hi, seen.hi + 0.02 * (seen.hi - seen.lo));
    }
    taut_axis_finish(y, HEIGHT - BOTTOM, TOP);
}

static void frame(taut_markup *t, const taut_plot *p, const taut_axis *x, const taut_axis *y)
{
    double tick[TAUT_TICKS], taken = -INFINITY;
    char word[24];
    for (int i = 0, n = taut_axis_ticks(x, tick); i < n; i++) {
        const double at = taut_axis_pixel(x, tick[i]);
        taut_axis_word(word, tick[i]);
        taut_markup_add(t, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", at, at, TOP,
                        HEIGHT - BOTTOM);
        const double middle = fmin(at, WIDTH - 4.2 * (double)strlen(word)); /* the last one stays in the picture */
        if (taut_axis_room(&taken, middle, word))
            taut_markup_add(t, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", middle,
                            HEIGHT - BOTTOM + 18, word);
    }
    for (int i = 0, n = taut_axis_ticks(y, tick); i < n; i++) {
        const double at = taut_axis_pixel(y, tick[i]);
        taut_axis_word(word, tick[i]);
        taut_markup_add(t, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT,
                        at, at);
        taut_markup_add(t, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 6, at + 4,
                        word);
    }
    taut_markup_add(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    taut_markup_escape(t, p->x_name);
    taut_markup_add(t, "</text><text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">",
                    (TOP + HEIGHT - BOTTOM) / 2);
    taut_markup_escape(t, p->y_name);
    taut_markup_add(t, "</text>\n");
}

/* A band belongs to the series before it. */
static int colour_of(const taut_plot *p, int s)
{
    const bool band = p->series[s].draw == TAUT_DRAW_BAND;
    return (band && s > 0 ? s - 1 : s) % TAUT_COLOURS;
}

static void line(taut_markup *t, const taut_series *s, int colour, const taut_axis *x, const taut_axis *y)
{
    bool open = false; /* a number that cannot be shown breaks the line */
    const char *const kind[] = { "line", "line dashed", "", "band" };
    taut_markup_add(t, "<path class=\"%s s%d\" d=\"", kind[s->draw], colour);
    for (int i = 0; i < s->count; i++) {
        const bool shown = taut_axis_shows(x, s->x[i]) && taut_axis_shows(y, s->y[i]);
        if (shown)
            taut_markup_add(t, "%c%.1f %.1f", open ? 'L' : 'M', taut_axis_pixel(x, s->x[i]),
                            taut_axis_pixel(y, s->y[i]));
        open = shown;
    }
    taut_markup_add(t, "\"/>");
}

static void marks(taut_markup *t, const taut_series *s, int colour, const taut_axis *x, const taut_axis *y)
{
    const double radius = s->draw == TAUT_DRAW_POINTS ? 3.5 : s->count <= 60 ? 2.2 : 1.2;
    if (s->draw == TAUT_DRAW_BAND) return;
    for (int i = 0; i < s->count; i++) {
        if (!taut_axis_shows(x, s->x[i]) || !taut_axis_shows(y, s->y[i])) continue;
        taut_markup_add(t, "<circle class=\"mark s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", colour,
                        taut_axis_pixel(x, s->x[i]), taut_axis_pixel(y, s->y[i]), radius);
        taut_markup_escape(t, s->label ? s->label[i] : s->name);
        taut_markup_add(t, ": %.6g, %.6g</title></circle>", s->x[i], s->y[i]);
    }
    taut_markup_add(t, "\n");
}

/* A few points that have names show them, on the side where there is more room; points on top of each other only the first. */
static void names(taut_markup *t, const taut_series *s, const taut_axis *x, const taut_axis *y)
{
    if (s->draw != TAUT_DRAW_POINTS || !s->label || s->count > NAMED) return;
    for (int i = 0; i < s->count; i++) {
        const double px = taut_axis_pixel(x, s->x[i]), py = taut_axis_pixel(y, s->y[i]);
        const bool left = px > (LEFT + WIDTH - RIGHT) / 2.0;
        bool shown = taut_axis_shows(x, s->x[i]) && taut_axis_shows(y, s->y[i]) && strlen(s->label[i]) <= LETTERS;
        for (int j = 0; j < i && shown; j++) shown = !(fabs(py - taut_axis_pixel(y, s->y[j])) < 16);
        if (!shown) continue;
        taut_markup_add(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", px + (left ? -8 : 8),
                        fmin(fmax(py + 4, TOP + 10), HEIGHT - BOTTOM - 2), left ? "end" : "start");
        taut_markup_escape(t, s->label[i]);
        taut_markup_add(t, "</text>\n");
    }
}

/* The names of the series in rows below the picture, each with its colour. */
static int key(taut_markup *t, const taut_plot *p)
{
    double at = LEFT;
    int row = 0;
    for (int s = 0; s < p->count; s++) {
        const double width = 30 + 7.0 * (double)strlen(p->series[s].name);
        const bool band = p->series[s].draw == TAUT_DRAW_BAND;
        if (at > LEFT && at + width > WIDTH - RIGHT) {
            at = LEFT;
            row++;
        }
        const double y = HEIGHT + 6 + KEY * row;
        taut_markup_add(t,
                        "<rect class=\"%s s%d\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"%d\"/><text x=\"%.1f\" "
                        "y=\"%.1f\">",
                        band ? "band" : "fill", colour_of(p, s), at, y - (band ? 4 : 0), band ? 12 : 4, at + 17, y + 6);
        taut_markup_escape(t, p->series[s].name);
        taut_markup_add(t, "</text>");
        at += width;
    }
    return HEIGHT + KEY * (row + 1);
}

void taut_plot_svg(taut_markup *t, const taut_plot *p)
{
    taut_axis x, y;
    taut_markup body = { 0 };
    axes(&x, &y, p);
    frame(&body, p, &x, &y);
    for (int s = 0; s < p->count; s++) {
        if (p->series[s].draw != TAUT_DRAW_POINTS) line(&body, &p->series[s], colour_of(p, s), &x, &y);
        marks(&body, &p->series[s], colour_of(p, s), &x, &y);
        names(&body, &p->series[s], &x, &y);
    }
    const int height = p->count > 1 ? key(&body, p) : HEIGHT;
    taut_markup_add(t,
                    "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                    WIDTH, height);
    taut_markup_put(t, body.data ? body.data : "", body.len);
    taut_markup_add(t, "</svg>\n");
    t->failed |= body.failed;
    taut_markup_free(&body);
}

void taut_plot_table(taut_markup *t, const taut_plot *p)
{
    taut_markup_add(t, "<table><thead><tr><th>series</th><th>");
    taut_markup_escape(t, p->x_name);
    taut_markup_add(t, "</th><th>");
    taut_markup_escape(t, p->y_name);
    taut_markup_add(t, "</th></tr></thead><tbody>\n");
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            taut_markup_add(t, "<tr><td>");
            taut_markup_escape(t, p->series[s].label ? p->series[s].label[i] : p->series[s].name);
            taut_markup_add(t, "</td><td>%.6g</td><td>%.6g</td></tr>\n", p->series[s].x[i], p->series[s].y[i]);
        }
    taut_markup_add(t, "</tbody></table>\n");
}
