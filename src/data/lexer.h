/* Cells of CSV and TSV, one after the other; who puts them together is table.h (rows of numbers) and records.h (rows of text).
 *
 * Between commas or semicolons, a cell in quotes may hold separators, line ends and two quotes for one.  Between tabs a row is a
 * line, and quotes count only where a cell begins and ends with one.  A quote elsewhere is a letter.  Lines end with LF or
 * CRLF. */
#ifndef TAUT_DATA_LEXER_H
#define TAUT_DATA_LEXER_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char *at; /* what is not read yet; at a NUL: all is */
    int64_t line;
    char separator;
    bool trims; /* blanks around a cell, outside its quotes, are no part of it */
} taut_lexer;

typedef struct {
    char *from, *to;   /* without its quotes */
    bool quoted, ends; /* it was in quotes; it is the last of its row */
} taut_cell;

bool taut_lexer_next(taut_lexer *, taut_cell *); /* false: the quotes of the cell are wrong */
/* Its text, in place: two quotes become one, and NUL ends it.  The lexer is behind it already. */
char *taut_cell_text(taut_cell);
/* The cells of the row at the lexer, of which nothing is taken; -k: the quotes of cell k, from 1 on, are wrong. */
int64_t taut_lexer_count(taut_lexer);
#endif
