/* Recipes: the text, every key, and the text printed again. */
#include "fuzz.h"

#include <glob.h>

#include "train/recipe.h"

static void fuzz_begin(void)
{
    glob_t ours;
    if (glob("recipes/*.ini", 0, NULL, &ours)) abort();
    for (size_t i = 0; i < ours.gl_pathc; i++) fuzz_seed_file(ours.gl_pathv[i]);
    globfree(&ours);
    fuzz_seed_text("[train]\nsteps = 1e999\nlr = 1/0\n; x\n[model]\nwidth=0x10\n");
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);
    memcpy(text, data, len);
    text[len] = '\0';
    taut_config *cfg = NULL;
    taut_recipe recipe;
    if (taut_config_parse(&cfg, text, "fuzz")) abort();
    if (!taut_recipe_read(&recipe,
                          cfg)) { /* what is accepted prints as something that is accepted, and the same again */
        char *once = taut_config_print(cfg), *twice = NULL;
        taut_config *again = NULL;
        taut_recipe same;
        CHECK(!taut_config_parse(&again, once, "again") && !taut_recipe_read(&same, again), "reads back");
        twice = taut_config_print(again);
        CHECK(strcmp(once, twice) == 0, "prints the same");
        taut_config_free(again);
        free(once);
        free(twice);
    }
    taut_config_free(cfg);
    free(text);
}
