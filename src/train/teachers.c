#include "train/teachers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Of one example: what stands in the logits. */
static taut_shape answers(const taut_model *m) { return taut_plan_of(m->root, m->in).out; }

static bool same(taut_shape a, taut_shape b) { return a.n == b.n && a.t == b.t && a.d == b.d; }

static taut_status check(const taut_model *m, const char *path, const taut_model *student)
{
    const bool tokens = m->embed.rows > 0, asked = student->embed.rows > 0;
    const char *why = tokens != asked                                           ? "reads another kind of input"
                      : strcmp(m->vocab, student->vocab) != 0                   ? "has another vocabulary"
                      : m->in.t != student->in.t                                ? "reads other lengths"
                      : !tokens && !same(m->in, student->in)                    ? "reads other shapes"
                      : m->spec.headless || !same(answers(m), answers(student)) ? "is asked something else"
                                                                                : NULL;
    return why ? taut_fail(TAUT_BAD_CONFIG, "%s cannot teach this model: it %s", path, why) : TAUT_OK;
}

static taut_status open_one(taut_teacher *t, const char *name, const taut_model *student)
{
    char *path = taut_model_path(name);
    taut_status s = path ? taut_model_open(&t->model, path, student->k, false) : taut_no_memory("a teacher");
    if (!s) s = check(t->model, path, student);
    free(path);
    return s;
}

taut_status taut_teachers_open(taut_teachers **out, const taut_train_spec *spec, const taut_model *student)
{
    int most = 1;
    for (const char *p = spec->teachers; *p; p++) most += *p == ',';
    char *names = taut_strdup(spec->teachers);
    taut_teachers *all = names ? taut_calloc(1, sizeof *all + (size_t)most * sizeof *all->teacher) : NULL;
    taut_status s = all ? TAUT_OK : taut_no_memory("teachers");
    if (all) all->spec = spec;
    for (char *name = names, *end; !s && name; name = end ? end + 1 : NULL) {
        if ((end = strchr(name, ','))) *end = 0;
        name += strspn(name, " ");
        s = *name ? open_one(&all->teacher[all->count++], name, student)
                  : taut_fail(TAUT_BAD_CONFIG, "train.teachers = %s: want runs, with commas between them",
                              spec->teachers);
    }
    free(names);
    *out = all;
    return s;
}

/* In double, as in train/trainer.c: a batch that does not fit may not fit into an int64_t either. */
double taut_teachers_len(const taut_teachers *all)
{
    double len = 0;
    for (int i = 0; all && i < all->count; i++) {
        const taut_model *m = all->teacher[i].model;
        const double one = (double)taut_pass_len(m, 1, m->in.t, false);
        len += one + (double)(all->spec->batch - 1) * ((double)taut_pass_len(m, 2, m->in.t, false) - one);
    }
    return len;
}

taut_status taut_teachers_ready(taut_teachers *all)
{
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < all->count; i++) {
        taut_teacher *t = &all->teacher[i];
        s = taut_pass_create(&t->pass, t->model, all->spec->batch, t->model->in.t, false);
        if (!s) t->pass->run.products = all->spec->matmul;
    }
    return s;
}

void taut_teachers_free(taut_teachers *all)
{
    for (int i = 0; all && i < all->count; i++) {
        taut_pass_free(all->teacher[i].pass);
        taut_model_free(all->teacher[i].model);
    }
    free(all);
}

void taut_teachers_pull(const taut_teachers *all, taut_pass *p, const taut_batch *b, double weight)
{
    const double each = all->spec->teacher_share / all->count;
    for (int i = 0; i < all->count; i++) {
        taut_pass *t = all->teacher[i].pass;
        taut_batch_forward(b, t);
        taut_batch_loss(b, t, weight, true);
        p->m->k->axpby(p->logits.data, -each, t->logits.data, 1, taut_len(p->logits.shape));
    }
}
