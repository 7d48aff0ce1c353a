/* One HTML file with everything in it: no script, no network, readable on a phone, in the dark and on paper. */
#ifndef TAUT_REPORT_PAGE_H
#define TAUT_REPORT_PAGE_H
#include "base/status.h"
#include "report/chart.h"

typedef struct {
    taut_markup text;
    const char *folder; /* where each chart also goes as a file of its own; or NULL */
    taut_status status; /* the first thing that went wrong */
    int figures;
} taut_page;

void taut_page_begin(taut_page *, const char *title, const char *folder);
void taut_page_section(taut_page *, const char *title);
void taut_page_say(taut_page *, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* a paragraph, escaped */

void taut_page_lead(taut_page *, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* the same, in larger letters: what a section is there to say */

typedef struct {
    const char *value, *name;
} taut_card;
void taut_page_cards(taut_page *, int count, const taut_card *); /* the few numbers that matter */
void taut_page_facts(taut_page *, const char *title, int count,
                     const char *const (*pair)[2]); /* name and value, a table that is folded away */

/* Each figure: its name (a word: the anchor, and the .svg's name), a title, a sentence on how to read it, the picture, and
 * the numbers behind it, folded away. */
void taut_page_plot(taut_page *, const char *name, const char *title, const char *about, const taut_plot *);
void taut_page_bars(taut_page *, const char *name, const char *title, const char *about, const taut_bars *);
void taut_page_heat(taut_page *, const char *name, const char *title, const char *about, const taut_heat *);
void taut_page_tiles(taut_page *, const char *name, const char *title, const char *about, const taut_tiles *,
                     const taut_table *numbers);
void taut_page_table(taut_page *, const char *name, const char *title, const char *about, const taut_table *);

/* Writes the file in one step, or says what went wrong, now or before; frees the page in any case. */
taut_status taut_page_end(taut_page *, const char *path) TAUT_MUST_USE;
#endif
