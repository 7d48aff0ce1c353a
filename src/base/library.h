/* Libraries that the program opens only when it needs them: they lie beside it, or where the loader looks. */
#ifndef TAUT_BASE_LIBRARY_H
#define TAUT_BASE_LIBRARY_H
#include <stdbool.h>

/* Fills *function, a pointer to a function, with `symbol` of `library`, which then stays open until the end.  False leaves the
 * loader's reason in *why.  `shared`: other libraries see its symbols too. */
bool taut_library_function(void *function, const char *library, const char *symbol, bool shared, const char **why);
#endif
