/* What lies near a recipe or a model, though not here. */
#ifndef TAUT_API_LOOKUP_H
#define TAUT_API_LOOKUP_H
#include "base/config.h"

/* The recipe of that name, here or installed, with `count` overrides; its data, if they lie near it and not here, are named by
 * where they are.  *out may be there even if it fails: the caller frees. */
taut_status taut_recipe_open(taut_config **out, const char *name, const char *const *overrides,
                             int count) TAUT_MUST_USE;
/* Where a relative source lies that is not found from here: in the folder of `file`, or above.  NULL: nowhere there, or it is
 * found.  The caller frees. */
taut_status taut_data_near(char **path, const char *source, const char *file) TAUT_MUST_USE;
#endif
