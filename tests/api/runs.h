/* Small runs for the tests of the public header: a text model and an image model, trained for a few steps. */
#ifndef RUNS_H
#define RUNS_H
#include <taut.h>

#include "harness.h"
#include "temp.h"

#define OPTIONS(type, ...) (&(type){ .size = sizeof(type), __VA_ARGS__ })

static const char *const text_set[] = { "model.width=16",  "model.depth=1", "model.heads=2", "model.context=16",
                                        "model.norm=none", "train.steps=6", "train.batch=2" };
static const char *const image_set[] = { "train.steps=20", "train.eval_every=20", "train.checkpoint_every=20" };

static inline void must(taut_status s, const char *what)
{
    CHECK(s == TAUT_OK, what);
    if (s) fprintf(stderr, "%s: %s\n", what, taut_last_error());
    if (s) exit(1);
}

static inline taut_result train_text(const char *run)
{
    taut_result r;
    must(taut_train_recipe(&r, "recipes/tiny-free.ini", run,
                           OPTIONS(taut_train_options, .overrides = text_set, .count = 7, .overwrite = 1)),
         "train a text model");
    return r;
}
static inline taut_result train_images(const char *run)
{
    taut_result r;
    must(taut_train_recipe(&r, "recipes/mlp-shapes-small.ini", run,
                           OPTIONS(taut_train_options, .overrides = image_set, .count = 3, .overwrite = 1)),
         "train an image model");
    return r;
}
#endif
