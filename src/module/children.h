/* A combinator's children: owned from the call on, even if it fails; one NULL spoils all. */
#ifndef TAUT_MODULE_CHILDREN_H
#define TAUT_MODULE_CHILDREN_H
#include "module/module.h"

typedef struct {
    int count;
    taut_module **module;
    char **name; /* "" adds no level to the path */
} taut_children;

/* names may be NULL: then "0", "1", ...   On failure everything is freed, and count is -1. */
taut_children taut_children_adopt(int count, const char *const *names, taut_module *const *modules);
void taut_children_free(taut_children *);
void taut_children_params(taut_children *, taut_visitor *);
#endif
