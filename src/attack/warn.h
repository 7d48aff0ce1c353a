/* What makes an attacked accuracy worth less than it looks: the flags AutoAttack raises, as sentences. */
#ifndef TAUT_ATTACK_WARN_H
#define TAUT_ATTACK_WARN_H
#include "attack/profile.h"

enum { TAUT_WARNINGS = 8 };
typedef struct {
    char line[TAUT_WARNINGS][200];
    int count, serious; /* serious: what makes the result doubtful, not only different */
} taut_warnings;

/* Before an attack, on a few clean inputs x (n, dim): outputs that vary over five passes (relative l2 above 1e-4), logits
 * that look like probabilities (1e-5), gradients of the cross-entropy that are 0 everywhere, more targets than classes. */
taut_status taut_warn_before(taut_warnings *, taut_target *, const taut_profile *, const double *x,
                             const int32_t *label, int64_t n, uint64_t seed) TAUT_MUST_USE;
/* After it: broken[i] of `total` by attack i of the profile; a random search that found what gradients did not. */
void taut_warn_after(taut_warnings *, const taut_profile *, const int64_t *broken, int64_t total);
#endif
