/* Proofs of a model as values: a test that meets a status other than TAUT_OK here has failed. */
#ifndef TAUT_TESTS_PROVED_H
#define TAUT_TESTS_PROVED_H
#include "harness.h"
#include "train/constrain/enforce.h"

static inline taut_answer proved_bound(const taut_model *m, taut_norm norm)
{
    taut_answer b = { .lip = UP_NONE };
    CHECK(taut_model_bound(&b, m, norm) == TAUT_OK, taut_last_error());
    return b;
}

static inline double proved_constant(const taut_model *m, const taut_constrain_spec *s)
{
    taut_up c = UP_NONE;
    CHECK(up_model_constant(&c, m, s) == TAUT_OK, taut_last_error());
    return c.v;
}
#endif
