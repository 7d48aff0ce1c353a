#include "plot_forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/page.h"

enum { COLUMNS = 4 };

/* One column: the encoder's rows, then what was wanted and what was said. */
static void column(taut_page *page, int64_t c, const taut_model_spec *m, const double *reals, const double *wanted,
                   const double *said, double *room)
{
    const int64_t d = m->columns + m->marks, seq = m->seq, ahead = m->ahead;
    double *x = room, *past = x + seq + ahead, *came = past + seq, *told = came + ahead;
    char name[32], title[64];
    for (int64_t i = 0; i < seq + ahead; i++) x[i] = (double)(i - seq);
    for (int64_t i = 0; i < seq; i++) past[i] = reals[(m->label + ahead + i) * d + c];
    for (int64_t i = 0; i < ahead; i++) came[i] = wanted[i * m->columns + c], told[i] = said[i * m->columns + c];
    snprintf(name, sizeof name, "column-%d", (int)c);
    snprintf(title, sizeof title, "Column %d", (int)c);
    taut_page_plot(page, name, title, "What was read, what came, and the forecast; standardised.",
                   &(taut_plot){ .x_name = "rows from now",
                                 .y_name = "value",
                                 .series = { { "read", x, past, NULL, (int)seq, TAUT_DRAW_LINE },
                                             { "came", x + seq, came, NULL, (int)ahead, TAUT_DRAW_LINE },
                                             { "forecast", x + seq, told, NULL, (int)ahead, TAUT_DRAW_DASHED } },
                                 .count = 3 });
}

taut_status plot_forecast(const char *path, taut_pass *p, taut_batch *b, taut_split split)
{
    const taut_model_spec *m = &p->m->spec;
    const int64_t index = taut_source_count(b->source, split) / 2, len = m->ahead * m->columns;
    double *said = taut_malloc((size_t)(len + 2 * (m->seq + m->ahead) + m->ahead) * sizeof *said);
    char *folder = taut_strdup(path);
    taut_status s = said && folder ? TAUT_OK : taut_no_memory("a plot");
    if (!s) {
        char *slash = strrchr(folder, '/');
        if (slash) *slash = 0;
        taut_batch_windows(b, split, &index, 1);
        taut_batch_forward(b, p);
        p->m->k->get(said, p->logits.data, len);
        taut_page page;
        taut_page_begin(&page, "Forecasts", slash ? folder : ".");
        for (int64_t c = 0; c < m->columns && c < COLUMNS; c++)
            column(&page, c, m, b->reals, b->wanted, said, said + len);
        s = taut_page_end(&page, path);
    }
    free(said);
    free(folder);
    return s;
}
