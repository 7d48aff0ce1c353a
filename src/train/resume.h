/* Whether a recipe is that of a run which was begun before; `recipe` is the run's own record, RUN/recipe.ini. */
#ifndef TAUT_TRAIN_RESUME_H
#define TAUT_TRAIN_RESUME_H
#include "base/config.h"

/* What was overridden when the run was begun is overridden again, unless cfg has other overrides of the same keys.  Before the
 * first question to cfg. */
taut_status taut_resume_sets(taut_config *cfg, const char *recipe) TAUT_MUST_USE;
/* Refuses a recipe, read to its end, that differs from the record in more than how long it trains and when it is looked at. */
taut_status taut_resume_check(const taut_config *cfg, const char *recipe) TAUT_MUST_USE;
#endif
