/* A table of text (CSV): its header and then a row at a time, as cells without their quotes.
 *
 * Commas, semicolons or tabs are between the cells, whichever cut the header and the first row into the same number of them.
 * Cells are the lexer's, without blanks around them; but a line's end is the row's, also inside quotes, and is refused there.  A
 * byte order mark in front and empty lines at the end are left out. */
#ifndef TAUT_DATA_TABLE_H
#define TAUT_DATA_TABLE_H
#include <stdbool.h>

#include "base/status.h"

typedef struct {
    const char *path;
    char separator;
    int64_t line;  /* of what was read last, from 1 on */
    int64_t cells; /* of each row */
    int64_t rows;  /* that are still to be read */
    char **name;   /* (cells) of the header */
    char **cell;   /* (cells) of the row that was read last; both point into the text */
    char *rest;
} taut_table;

/* The text is changed and must live as long as the table.  A status names the line. */
taut_status taut_table_open(taut_table *, char *text, const char *path) TAUT_MUST_USE;
taut_status taut_table_next(taut_table *) TAUT_MUST_USE; /* while rows > 0 */
void taut_table_skip(taut_table *, int64_t rows);        /* leaves so many unread */
void taut_table_free(taut_table *);

/* The cell at *rest, cut off in place, unquoted and without blanks around it; *rest: behind its separator, or NULL at the line's
 * end.  NULL: the quotes are wrong. */
char *taut_cell_cut(char **rest, char separator);
/* The text as a cell between commas, in quotes where it has to be: at most twice as long and two more.  Returns its end, where
 * nothing is written. */
char *taut_cell_put(char *to, const char *text);
#endif
