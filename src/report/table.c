/* Words in rows and columns. */
#include "report/chart.h"

static void row(taut_markup *t, const char *tag, const char *const *cell, int cols)
{
    taut_markup_add(t, "<tr>");
    for (int c = 0; c < cols; c++) {
        taut_markup_add(t, "<%s>", tag);
        taut_markup_escape(t, cell[c]);
        taut_markup_add(t, "</%s>", tag);
    }
    taut_markup_add(t, "</tr>\n");
}

void taut_table_html(taut_markup *t, const taut_table *c)
{
    taut_markup_add(t, "<table><thead>");
    row(t, "th", c->head, c->cols);
    taut_markup_add(t, "</thead><tbody>\n");
    for (int r = 0; r < c->rows; r++) row(t, "td", c->cell + r * c->cols, c->cols);
    taut_markup_add(t, "</tbody></table>\n");
}
