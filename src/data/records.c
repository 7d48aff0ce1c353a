#include "data/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "data/lexer.h"

static void skip_empty_lines(taut_lexer *c)
{
    for (size_t end; end = *c->at == '\r', c->at[end] == '\n'; c->at += end + 1) c->line++;
}

/* Why a separator does not cut the text into rows of the same length. */
typedef struct {
    int64_t rows, cells; /* of the first row */
    int64_t line, has;   /* of the first row that differs; 0 and 0: none; has = 0: its quotes are wrong */
} shape;

static shape shape_of(char *text, char separator)
{
    taut_lexer c = { text, 1, separator, false };
    shape s = { 0 };
    for (skip_empty_lines(&c); *c.at; skip_empty_lines(&c), s.rows++) {
        taut_cell cell = { 0 };
        const int64_t line = c.line;
        int64_t cells = 0;
        while (!cell.ends) {
            if (!taut_lexer_next(&c, &cell)) return (shape){ s.rows, s.cells, line, 0 };
            cells++;
        }
        if (s.rows == 0) s.cells = cells;
        if (cells != s.cells) return (shape){ s.rows, s.cells, line, cells };
    }
    return s;
}

/* The first separator that fits; else one line on what is wrong by the first that cuts the first row. */
static taut_status choose(char *separator, shape *out, char *text, int least, const char *path)
{
    static const char separators[] = { '\t', ',', ';' };
    shape wrong = { 0 }, single = { 0 };
    for (int i = 0; i < 3; i++) {
        const shape s = shape_of(text, separators[i]);
        *separator = separators[i];
        *out = s;
        if (s.cells > 1 && s.line == 0) return TAUT_OK;
        if (s.line && (s.cells > 1 || s.rows == 0) && !wrong.line) wrong = s;
        if (separators[i] == ',') single = s;
    }
    *separator = ',';
    *out = single;
    if (least < 2 && single.cells == 1 && single.line == 0) return TAUT_OK;
    if (wrong.line && wrong.has)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld has %lld cells, where the first row has %lld", path,
                         (long long)wrong.line, (long long)wrong.has, (long long)wrong.cells);
    if (wrong.line)
        return taut_fail(TAUT_BAD_DATA, "%s: line %lld: the quotes of a cell are not closed before its separator", path,
                         (long long)wrong.line);
    return taut_fail(TAUT_BAD_DATA, "%s: no columns: commas, semicolons or tabs must cut every row into as many cells",
                     path);
}

taut_status taut_records_read(taut_records *r, char *text, size_t len, int least, const char *path)
{
    shape s;
    taut_lexer c = { .at = text, .line = 1 };
    *r = (taut_records){ 0 };
    const size_t good = taut_utf8_check(text, len);
    if (good < len) return taut_fail(TAUT_BAD_DATA, "%s: byte %zu is not UTF-8 text", path, good);
    if (strlen(text) < len) return taut_fail(TAUT_BAD_DATA, "%s: byte %zu is NUL", path, strlen(text));
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) c.at += 3;
    const taut_status status = choose(&c.separator, &s, c.at, least, path);
    if (status) return status;
    r->cell = taut_malloc((size_t)(s.rows * s.cells + 1) * sizeof *r->cell);
    r->line = taut_malloc((size_t)(s.rows + 1) * sizeof *r->line);
    if (!r->cell || !r->line) {
        taut_records_free(r);
        return taut_no_memory(path);
    }
    r->rows = s.rows;
    r->cells = s.cells;
    for (int64_t i = 0; i < s.rows; i++) {
        skip_empty_lines(&c);
        r->line[i] = c.line;
        for (int64_t k = 0; k < s.cells; k++) {
            taut_cell cell;
            if (taut_lexer_next(&c, &cell)) r->cell[i * s.cells + k] = taut_cell_text(cell);
        }
    }
    return TAUT_OK;
}

void taut_records_free(taut_records *r)
{
    free(r->cell);
    free(r->line);
    *r = (taut_records){ 0 };
}
