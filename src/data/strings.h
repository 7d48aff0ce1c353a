/* Strings numbered from 0, found both ways: the tokens of a vocabulary. */
#ifndef TAUT_DATA_STRINGS_H
#define TAUT_DATA_STRINGS_H
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct taut_strings taut_strings;

/* The first `count` lines of text (all of them: -1); each must be there, once, and not empty.  *rest, if wanted, is what
 * follows them. */
taut_status taut_strings_create(taut_strings **out, const char *text, int32_t count, const char **rest) TAUT_MUST_USE;
void taut_strings_free(taut_strings *);
int32_t taut_strings_count(const taut_strings *);
int32_t taut_strings_find(const taut_strings *, const char *s, size_t len); /* -1: not there */
const char *taut_strings_get(const taut_strings *, int32_t id, size_t *len);
#endif
