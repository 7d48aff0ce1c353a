/* The rows of a text in columns: CSV, with commas or semicolons between the cells, or TSV, with tabs.
 *
 * The separator is the first of tab, comma and semicolon that gives every row the same number of cells, two or more; where one
 * is enough, a text that no comma cuts is a column by itself.  Cells are the lexer's; empty lines and a byte order mark in
 * front are left out. */
#ifndef TAUT_DATA_RECORDS_H
#define TAUT_DATA_RECORDS_H
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    int64_t rows, cells; /* cells per row */
    char **cell;         /* (rows, cells), each ended by NUL, in the text that was read */
    int64_t *line;       /* (rows) where each begins, from 1 on */
} taut_records;

/* The text is changed and must live as long as the records.  Refused, by line: quotes that are not closed, rows of different
 * lengths; and a text of fewer columns than `least` (1 or 2), one that is no UTF-8, one with NUL. */
taut_status taut_records_read(taut_records *, char *text, size_t len, int least, const char *path) TAUT_MUST_USE;
void taut_records_free(taut_records *);
#endif
