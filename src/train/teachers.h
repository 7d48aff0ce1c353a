/* Distillation.  With train.teachers the right answer y keeps the share 1 - s of an example, s = train.teacher_share, and the
 * rest goes to what trained models, the teachers, answer there:
 *     q = (1 - s) onehot(y) + s (the mean over teachers of softmax(z)),       loss = sum_c q_c (-ln softmax(f)_c).
 * Its slope is (softmax(f) - onehot(y)) less s times the mean of (softmax(z) - onehot(y)): that of the usual loss, less that of
 * each teacher's.  So it is made, and a forecast, whose loss has the slope f - y, is taught (1 - s) y + s z likewise.  Where
 * nothing is asked all are 0.  What is logged is the usual loss.
 *
 * A teacher has the model's task, vocabulary and shapes, and classes, columns and scales as far as recipes name them; it may be
 * of any size and kind of attention, and an MLP may teach a ViT.  It sees each example as the model does, changed at random or
 * not, and drops nothing out. */
#ifndef TAUT_TRAIN_TEACHERS_H
#define TAUT_TRAIN_TEACHERS_H
#include "train/batch.h"
#include "train/recipe.h"

typedef struct {
    taut_model *model;
    taut_pass *pass;
} taut_teacher;

typedef struct {
    const taut_train_spec *spec;
    int count;
    taut_teacher teacher[];
} taut_teachers;

/* Which files they are becomes train.teachers_sha256 of the recipe, so that a run goes on, and ranks train together, with the
 * same ones only; where the recipe says it already, others are refused. */
taut_status taut_teachers_name(taut_config *cfg) TAUT_MUST_USE;

/* Reads the models that the recipe names, and refuses those that cannot teach this one; ready then makes their passes. */
taut_status taut_teachers_open(taut_teachers **out, const taut_train_spec *, const taut_model *student) TAUT_MUST_USE;
taut_status taut_teachers_ready(taut_teachers *) TAUT_MUST_USE;
double taut_teachers_len(const taut_teachers *); /* elements that ready will own; of NULL none */
void taut_teachers_free(taut_teachers *);

/* After a loss with backward: takes each teacher's slope on the same examples off the one in the pass's logits. */
void taut_teachers_pull(const taut_teachers *, taut_pass *, const taut_batch *, double weight);
#endif
