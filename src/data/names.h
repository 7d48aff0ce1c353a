/* Names of columns, UTF-8: as a recipe lists them, with commas between them and quotes around one that has a comma. */
#ifndef TAUT_DATA_NAMES_H
#define TAUT_DATA_NAMES_H
#include <stdbool.h>

#include "base/status.h"

typedef struct {
    char **name;
    int64_t count;
} taut_names;

/* key: who asked, for the error.  No name is empty, and none is there twice. */
taut_status taut_names_read(taut_names *, const char *list, const char *key) TAUT_MUST_USE;
int64_t taut_names_find(const taut_names *, const char *name); /* -1: it is not there */
void taut_names_free(taut_names *);

/* The list of them; refused where a name could not stand in a recipe.  The caller frees. */
taut_status taut_names_print(char **list, char *const *name, int64_t count) TAUT_MUST_USE;
/* A copy; what is no UTF-8 is taken for Latin-1.  NULL: no memory. */
char *taut_name_copy(const char *name);
#endif
