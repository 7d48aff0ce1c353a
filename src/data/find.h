/* Where data lives: a path as given, else a name under $TAUT_DATA, ./data, /usr/share/datasets. */
#ifndef TAUT_DATA_FIND_H
#define TAUT_DATA_FIND_H
#include "base/status.h"

/* The first that exists, a file or a folder; the caller frees.  The error lists where it looked. */
taut_status taut_data_find(char **path, const char *name) TAUT_MUST_USE;
#endif
