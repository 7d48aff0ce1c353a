/* HTML or SVG that grows.  An allocation that failed is remembered and everything after it does nothing: check `failed` once, at
 * the end. */
#ifndef TAUT_REPORT_MARKUP_H
#define TAUT_REPORT_MARKUP_H
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *data; /* closed by a NUL; NULL while empty */
    size_t len, room;
    bool failed;
} taut_markup;

void taut_markup_add(taut_markup *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void taut_markup_put(taut_markup *, const char *data, size_t len);
void taut_markup_escape(taut_markup *, const char *raw); /* for HTML and SVG, between tags or in quotes */
void taut_markup_free(taut_markup *);
#endif
