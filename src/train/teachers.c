#include "train/teachers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"

/* A list's runs, one after the other, as paths of models.  A problem is told with the key. */
static taut_status each(const char *list, taut_status (*take)(void *arg, const char *path), void *arg)
{
    static const char blank[] = " \t";
    char *names = taut_strdup(list), *end;
    taut_status s = names ? TAUT_OK : taut_no_memory("teachers");
    for (char *name = names; !s && name; name = end ? end + 1 : NULL) {
        if ((end = strchr(name, ','))) *end = 0;
        name += strspn(name, blank);
        for (size_t len = strlen(name); len > 0 && strchr(blank, name[len - 1]);) name[--len] = 0;
        char *path = *name ? taut_model_path(name) : NULL;
        s = path    ? take(arg, path)
            : *name ? taut_no_memory("teachers")
                    : taut_fail(TAUT_BAD_CONFIG, "\"%s\": want runs, with commas between them", list);
        free(path);
        if (s && s != TAUT_NO_MEMORY) s = taut_fail(s, "train.teachers: %s", taut_last_error());
    }
    free(names);
    return s;
}

/* ---- which files ---- */

static taut_status add_file(void *hash, const char *path)
{
    char hex[65];
    uint64_t bytes;
    const taut_status s = taut_sha256_file(hex, &bytes, path);
    if (!s) taut_sha256_add(hash, hex, sizeof hex);
    return s;
}

taut_status taut_teachers_name(taut_config *cfg)
{
    static const char key[] = "train.teachers_sha256";
    const char *list = taut_config_said(cfg, "train.teachers"), *said = taut_config_said(cfg, key);
    char hex[65];
    taut_sha256 hash;
    if (!list) return TAUT_OK;
    taut_sha256_begin(&hash);
    const taut_status s = each(list, add_file, &hash);
    if (s) return s;
    taut_sha256_end(&hash, hex);
    if (said && strcmp(said, hex) != 0)
        return taut_fail(TAUT_BAD_CONFIG, "train.teachers are other models than %s says: it is %s", key, hex);
    return taut_recipe_give(cfg, key, hex);
}

/* ---- who may teach ---- */

/* Of one example: what stands in the logits. */
static taut_shape answers(const taut_model *m) { return taut_plan_of(m->root, m->in).out; }

static bool same(taut_shape a, taut_shape b) { return a.n == b.n && a.t == b.t && a.d == b.d; }

static bool same_task(const taut_model *a, const taut_model *b)
{
    return a->spec.arch == b->spec.arch ||
           (taut_arch_reads_images(a->spec.arch) && taut_arch_reads_images(b->spec.arch));
}

static bool all_finite(const taut_model *m)
{
    enum { PIECE = 4096 };
    double number[PIECE];
    bool ok = true;
    for (int64_t i = 0; i < m->slab; i += PIECE) {
        const int64_t count = m->slab - i < PIECE ? m->slab - i : PIECE;
        m->k->get(number, taut_at(m->k, m->values, i), count);
        for (int64_t j = 0; j < count; j++) ok &= isfinite(number[j]);
    }
    return ok;
}

/* What numbers in and numbers out mean, where shapes do not say it; a key that one of the two does not have says nothing. */
static taut_status check_meaning(const taut_model *m, const char *path, const taut_model *student)
{
    static const char *const keys[] = { "data.class_names", "data.columns", "data.means", "data.deviations",
                                        "data.step",        "model.seq",    "model.label" };
    taut_config *theirs = NULL, *ours = NULL;
    taut_status s = taut_config_parse(&theirs, m->recipe, path);
    if (!s) s = taut_config_parse(&ours, student->recipe, "recipe");
    for (size_t i = 0; !s && i < sizeof keys / sizeof *keys; i++) {
        const char *a = taut_config_said(theirs, keys[i]), *b = taut_config_said(ours, keys[i]);
        if (a && b && strcmp(a, b) != 0)
            s = taut_fail(TAUT_BAD_CONFIG, "%s cannot teach this model: its %s is %s, not %s", path, keys[i], a, b);
    }
    taut_config_free(theirs);
    taut_config_free(ours);
    return s;
}

static taut_status check(const taut_model *m, const char *path, const taut_model *student)
{
    const char *why = !same_task(m, student)                                    ? "is of another task (model.arch)"
                      : strcmp(m->vocab, student->vocab) != 0                   ? "has another vocabulary"
                      : m->in.t != student->in.t                                ? "reads other lengths"
                      : m->embed.rows == 0 && !same(m->in, student->in)         ? "reads other shapes"
                      : m->spec.headless || !same(answers(m), answers(student)) ? "is asked something else"
                      : !all_finite(m) ? "has a weight that is not a finite number"
                                       : NULL;
    return why ? taut_fail(TAUT_BAD_CONFIG, "%s cannot teach this model: it %s", path, why)
               : check_meaning(m, path, student);
}

typedef struct {
    taut_teachers *all;
    const taut_model *student;
} opening;

static taut_status open_one(void *arg, const char *path)
{
    const opening *o = arg;
    taut_teacher *t = &o->all->teacher[o->all->count++];
    const taut_status s = taut_model_open(&t->model, path, o->student->k, false);
    return s ? s : check(t->model, path, o->student);
}

taut_status taut_teachers_open(taut_teachers **out, const taut_train_spec *spec, const taut_model *student)
{
    size_t most = 1;
    for (const char *p = spec->teachers; *p; p++) most += *p == ',';
    taut_teachers *all = *out = taut_calloc(1, sizeof *all + most * sizeof *all->teacher);
    if (!all) return taut_no_memory("teachers");
    all->spec = spec;
    return each(spec->teachers, open_one, &(opening){ all, student });
}

/* ---- teaching ---- */

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
    const double part = all->spec->teacher_share / all->count;
    for (int i = 0; i < all->count; i++) {
        taut_pass *t = all->teacher[i].pass;
        taut_batch_forward(b, t);
        taut_batch_loss(b, t, weight, true);
        p->m->k->axpby(p->logits.data, -part, t->logits.data, 1, taut_len(p->logits.shape));
    }
}
