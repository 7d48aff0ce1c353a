/* A run that goes on is the run that was begun: what was overridden then holds still, and what is said now may differ in a few
 * keys only. */
#include "train/resume.h"

#include <stdlib.h>

#include "base/file.h"

/* How long, and when it is looked at: a run may change its mind about these. */
static const char *const may[] = { "train.steps",     "train.eval_every",       "train.eval_batches",
                                   "train.log_every", "train.checkpoint_every", NULL };

taut_status taut_resume_sets(taut_config *cfg, const char *recipe)
{
    char *text = NULL;
    size_t len;
    taut_status s = taut_file_read(&text, &len, recipe);
    if (!s) s = taut_config_take_sets(cfg, text);
    free(text);
    return s;
}

taut_status taut_resume_check(const taut_config *cfg, const char *recipe)
{
    taut_config *record = NULL;
    const char *value[2];
    taut_status s = taut_config_open(&record, recipe);
    if (s) return s;
    s = taut_config_problem(record);
    const char *key = s ? NULL : taut_config_differs(cfg, record, may, value);
    if (key)
        s = taut_fail(
            TAUT_BAD_CONFIG,
            "%s: the run was begun with %s = %s, now it %s%s: only %s, eval_every, eval_batches, log_every and "
            "checkpoint_every may change",
            recipe, key, value[1], value[0] ? "is " : "is not there", value[0] ? value[0] : "", may[0]);
    taut_config_free(record);
    return s;
}
