#include "data/lexer.h"

#include <string.h>

/* Behind a cell stands its separator, a line end or the end of the text. */
static bool behind(taut_lexer *x, char *end, taut_cell *cell)
{
    cell->ends = *end != x->separator;
    if (*end == '\r' && (end[1] == '\n' || end[1] == 0)) end++;
    if (cell->ends && *end && *end != '\n') return false;
    x->line += *end == '\n';
    x->at = end + (*end != 0);
    return true;
}

static char *skip_blanks(const taut_lexer *x, char *p) { return p + (x->trims ? strspn(p, " ") : 0); }

bool taut_lexer_next(taut_lexer *x, taut_cell *cell)
{
    char *p = skip_blanks(x, x->at);
    if (*p == '"' && x->separator != '\t') {
        *cell = (taut_cell){ .from = ++p, .quoted = true };
        for (; *p && (*p != '"' || p[1] == '"'); p += 1 + (*p == '"')) x->line += *p == '\n';
        cell->to = p;
        return *p && behind(x, skip_blanks(x, p + 1), cell);
    }
    const char stops[] = { x->separator, '\n', 0 };
    *cell = (taut_cell){ .from = p, .to = p + strcspn(p, stops) };
    char *end = cell->to;
    if (*end != x->separator && end > p && end[-1] == '\r') end = --cell->to;
    while (x->trims && cell->to > p && cell->to[-1] == ' ') cell->to--;
    cell->quoted = x->separator == '\t' && cell->to - p > 1 && *p == '"' && cell->to[-1] == '"';
    if (cell->quoted) cell->from++, cell->to--;
    return behind(x, end, cell);
}

char *taut_cell_text(taut_cell cell)
{
    char *to = cell.from;
    for (const char *p = cell.from; p < cell.to; p++) {
        *to++ = *p;
        if (cell.quoted && *p == '"' && p + 1 < cell.to && p[1] == '"') p++;
    }
    *to = 0;
    return cell.from;
}

int64_t taut_lexer_count(taut_lexer x)
{
    int64_t cells = 0;
    for (taut_cell cell = { 0 }; !cell.ends; cells++)
        if (!taut_lexer_next(&x, &cell)) return -cells - 1;
    return cells;
}
