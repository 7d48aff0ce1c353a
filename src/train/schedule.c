/* With p = (step - warmup) / (steps - warmup) in [0, 1) after the warm-up:
 *     constant 1      linear 1 - p (1 - f)      cosine f + (1 - f) (1 + cos(pi p)) / 2      f = lr_final
 * and during the warm-up (step + 1) / warmup.  type1, as Informer has it: 1 for two epochs, then half of it for each one more. */
#include "train/schedule.h"

#include <math.h>

double taut_schedule(const taut_train_spec *t, int64_t step)
{
    if (step < t->warmup) return (double)(step + 1) / (double)t->warmup;
    if (t->schedule == TAUT_CONSTANT) return 1;
    if (t->schedule == TAUT_TYPE1) return pow(0.5, fmax(0, (double)(step / t->epoch) - 1));
    const double p = (double)(step - t->warmup) / (double)(t->steps - t->warmup), f = t->lr_final;
    if (t->schedule == TAUT_LINEAR) return 1 - p * (1 - f);
    return f + (1 - f) * (1 + cos(3.141592653589793 * p)) / 2;
}
