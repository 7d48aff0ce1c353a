#include "data/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/lexer.h"

/* Cuts the line off the front of *rest, without its end. */
static char *cut_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    const size_t len = strlen(line);
    if (len && line[len - 1] == '\r') line[len - 1] = 0;
    return line;
}

/* Takes the empty lines off the end. */
static void trim(char *text)
{
    size_t len = strlen(text);
    while (len && strchr("\r\n", text[len - 1])) len--;
    text[len] = 0;
}

/* Cells of a line, which ends at NUL or LF; -k: wrong quotes. */
static int64_t count_cells(char *line, char separator)
{
    return taut_lexer_count((taut_lexer){ .at = line, .separator = separator, .trims = true });
}

/* What cuts the header and the first row alike; else what cuts the header most. */
static char find_separator(char *head, char *row)
{
    static const char all[] = "\t;,";
    char best = ',';
    int64_t most = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t cells = count_cells(head, all[i]);
        if (cells > 1 && cells == count_cells(row, all[i])) return all[i];
        if (cells > most) most = cells, best = all[i];
    }
    return best;
}

char *taut_cell_cut(char **rest, char separator)
{
    taut_lexer x = { .at = *rest, .separator = separator, .trims = true };
    taut_cell cell;
    if (!taut_lexer_next(&x, &cell)) return NULL;
    *rest = cell.ends ? NULL : x.at;
    return taut_cell_text(cell);
}

char *taut_cell_put(char *to, const char *text)
{
    const size_t len = strlen(text);
    const bool plain = !strpbrk(text, ",\"") && (!len || (!strchr(";# ", *text) && text[len - 1] != ' '));
    if (!plain) *to++ = '"';
    for (; *text; text++) {
        if (*text == '"') *to++ = '"';
        *to++ = *text;
    }
    if (!plain) *to++ = '"';
    return to;
}

static taut_status cut_row(taut_table *t, char **cell, char *line)
{
    const int64_t cells = count_cells(line, t->separator);
    const long long at = (long long)t->line;
    if (!*line) return taut_fail(TAUT_BAD_DATA, "%s: line %lld is empty", t->path, at);
    if (cells < 0)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld: the quotes of cell %lld are wrong", t->path, at,
                         (long long)-cells);
    if (cells != t->cells)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld has %lld columns, the header %lld", t->path, at,
                         (long long)cells, (long long)t->cells);
    for (int64_t i = 0; i < cells; i++) cell[i] = taut_cell_cut(&line, t->separator);
    return TAUT_OK;
}

taut_status taut_table_open(taut_table *t, char *text, const char *path)
{
    *t = (taut_table){ .path = path, .line = 1 };
    trim(text);
    t->rest = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text;
    for (const char *p = t->rest; *p; p++) t->rows += *p == '\n';
    char *head = cut_line(&t->rest);
    t->separator = find_separator(head, t->rest);
    t->cells = count_cells(head, t->separator);
    if (t->cells < 0) return cut_row(t, NULL, head); /* which says why */
    t->name = taut_calloc((size_t)t->cells, sizeof *t->name);
    t->cell = taut_calloc((size_t)t->cells, sizeof *t->cell);
    const taut_status s = t->name && t->cell ? cut_row(t, t->name, head) : taut_no_memory(path);
    if (s) taut_table_free(t);
    return s;
}

taut_status taut_table_next(taut_table *t)
{
    t->line++;
    t->rows--;
    return cut_row(t, t->cell, cut_line(&t->rest));
}

void taut_table_skip(taut_table *t, int64_t rows)
{
    for (; rows > 0; rows--, t->line++, t->rows--) (void)cut_line(&t->rest);
}

void taut_table_free(taut_table *t)
{
    free(t->name);
    free(t->cell);
    t->name = t->cell = NULL;
}
