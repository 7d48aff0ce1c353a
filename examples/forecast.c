/* Forecasts, and a proof of how far noise can move one.  Usage: forecast RECIPE FOLDER
 *     cc forecast.c -o forecast $(pkg-config --cflags --libs taut) && ./forecast recipes/forecast-waves.ini runs/forecast */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taut.h>

static void must(taut_status s)
{
    if (s == TAUT_OK) return;
    fprintf(stderr, "%s\n", taut_last_error());
    exit(1);
}

/* Stops after ten seconds; the run goes on from there with `resume`. */
static int show(const taut_step_facts *now, void *arg)
{
    (void)arg;
    if (now->step % 20 == 0)
        fprintf(stderr, "step %lld of %lld, loss %.4f\n", (long long)now->step, (long long)now->steps, now->loss);
    return now->seconds > 10;
}

/* The number behind a key: a program with a JSON library at hand would use that. */
static double number(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    return at ? strtod(at + strlen(key) + strspn(at + strlen(key), "\": \t"), NULL) : 0;
}

int main(int argc, char **argv)
{
    /* Without norm layers, and with matrices that are held small, attention has a constant. */
    const char *const ours[] = { "train.steps=60",    "model.width=16",   "model.mlp=32",
                                 "model.depth=1",     "model.norm=none",  "constrain.method=normalise",
                                 "constrain.cap=0.5", "data.length=1500", "train.eval_every=0" };
    taut_result r;
    char *json, up[32];
    if (argc != 3) return fprintf(stderr, "usage: %s RECIPE FOLDER\n", argv[0]), 1;
    must(taut_train_recipe(
        &r, argv[1], argv[2],
        &(taut_train_options){
            .size = sizeof(taut_train_options), .overrides = ours, .count = 9, .overwrite = 1, .progress = show }));
    must(
        taut_evaluate_file(&json, argv[2],
                           &(taut_evaluate_options){
                               .size = sizeof(taut_evaluate_options), .split = "test", .examples = 8, .noise = 0.01 }));
    printf(
        "mean squared error %.4f; if no row moves by more than 0.01, no forecast moves by more than %s (found: %.6g)\n",
        number(json, "\"mse\""), taut_number_up(up, number(json, "\"moves\"")), number(json, "\"found\""));
    const int beaten = strstr(json, "\"contradiction\":\ttrue") != NULL;
    taut_string_free(json);
    return beaten ? 2 : 0;
}
