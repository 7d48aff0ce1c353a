#include "report/cells.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static bool make_room(taut_cells *c)
{
    if (c->count < c->room) return true;
    const int room = c->room ? 2 * c->room : 64;
    char **word = taut_realloc(c->word, (size_t)room * sizeof *word);
    if (!word) return false;
    c->word = word;
    c->room = room;
    return true;
}

void taut_cells_add(taut_cells *c, const char *format, ...)
{
    va_list args;
    char *word = NULL;
    if (c->failed) return;
    va_start(args, format);
    if (!make_room(c) || vasprintf(&word, format, args) < 0)
        c->failed = true;
    else
        c->word[c->count++] = word;
    va_end(args);
}

void taut_cells_number(taut_cells *c, const char *format, double v)
{
    char word[64];
    snprintf(word, sizeof word, format, v);
    taut_cells_add(c, "%s", isnan(v) ? "-" : word);
}

void taut_cells_free(taut_cells *c)
{
    for (int i = 0; i < c->count; i++) free(c->word[i]);
    free(c->word);
    *c = (taut_cells){ 0 };
}
