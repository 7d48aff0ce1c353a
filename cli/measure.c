/* Measures a stored model, layer by layer: what the slope at an input is at least (found, with a witness), what it is
 * at most (proved), what papers print; or how it grows with the length of the input. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a:b:c or a:b */
static bool read_lengths(int64_t to[3], const char *text)
{
    char part[3][24] = { "", "", "1" };
    int two = 0, three = 0;
    const int found = sscanf(text, "%23[0-9]:%23[0-9]%n:%23[0-9]%n", part[0], part[1], &two, part[2], &three);
    if (text[three ? three : two]) return false; /* something behind it */
    for (int i = 0; i < 3; i++)
        if (!taut_number_int(&to[i], part[i])) return false;
    return found >= 2 && to[0] >= 1 && to[2] >= 1 && to[0] <= to[1];
}

/* Which options each way of measuring reads; the others would be ignored. */
enum { LAYERS = 1, LENGTHS = 2, ADVERSARIAL = 4, NETWORK = 8, MAPS = 16, DEVIATION = 32 };
static const struct {
    const char *name;
    int ways;
} reads[] = {
    { "--text", LAYERS | LENGTHS },
    { "--data", LAYERS | LENGTHS | NETWORK | MAPS | DEVIATION },
    { "--tokens", LAYERS | MAPS },
    { "--from", LAYERS | MAPS },
    { "--layer", LAYERS | LENGTHS | ADVERSARIAL },
    { "--map", LAYERS | LENGTHS | ADVERSARIAL },
    { "--ball", LAYERS },
    { "--exact", LAYERS },
    { "--lengths", LENGTHS | ADVERSARIAL },
    { "--samples", LENGTHS | DEVIATION },
    { "--adversarial", ADVERSARIAL },
    { "--head", ADVERSARIAL },
    { "--radius", ADVERSARIAL },
    { "--castin", ADVERSARIAL },
};

static int way_of(const cli_args *a)
{
    return cli_flag(a, "--deviation")     ? DEVIATION
           : cli_flag(a, "--maps")        ? MAPS
           : cli_flag(a, "--network")     ? NETWORK
           : cli_flag(a, "--adversarial") ? ADVERSARIAL
           : cli_flag(a, "--lengths")     ? LENGTHS
                                          : LAYERS;
}

/* EXIT_DONE, or what the refusal answers. */
static int check_options(const cli_args *a)
{
    const int way = way_of(a);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        if ((reads[i].ways & way) || !cli_flag(a, reads[i].name)) continue;
        if (reads[i].ways == ADVERSARIAL && way < NETWORK)
            return cli_refuse(a, "%s is for --adversarial", reads[i].name);
        if (way == LAYERS) return cli_refuse(a, "%s is for --lengths", reads[i].name);
        return cli_refuse(a, "%s has no meaning with %s", reads[i].name,
                          way == DEVIATION     ? "--deviation"
                          : way == MAPS        ? "--maps"
                          : way == NETWORK     ? "--network"
                          : way == ADVERSARIAL ? "--adversarial"
                                               : "--lengths");
    }
    return EXIT_DONE;
}

/* How many examples or sequences: of --network N, of the others --samples N. */
static int64_t samples_of(const cli_args *a, int way)
{
    if (way == NETWORK) return cli_int(a, "--network", 100, 1, 1000000);
    return cli_int(a, "--samples", 0, 1, way == DEVIATION ? 1000000 : 4096);
}

static taut_measure_options ask(const cli_args *a, int way)
{
    const double tolerance = cli_real(a, "--tolerance", 1e-4, 0, 1);
    return (taut_measure_options){
        .size = sizeof(taut_measure_options),
        .what = way == DEVIATION ? TAUT_MEASURE_DEVIATION
                : way == MAPS    ? TAUT_MEASURE_MAPS
                : way == NETWORK ? TAUT_MEASURE_NETWORK
                : way == LAYERS  ? TAUT_MEASURE_LAYERS
                                 : TAUT_MEASURE_LENGTHS,
        .kernels = cli_table(a),
        .seed = cli_seed(a),
        .data = cli_text(a, "--text", cli_text(a, "--data", NULL)),
        .tokens = cli_int(a, "--tokens", 0, 1, INT64_MAX),
        .from = cli_int(a, "--from", 0, 0, INT64_MAX),
        .one_layer = cli_flag(a, "--layer"),
        .layer = cli_int(a, "--layer", 0, 0, INT64_MAX),
        .map = cli_text(a, "--map", NULL),
        .ball = cli_real(a, "--ball", 0, 0, 1e30),
        .exact = cli_flag(a, "--exact"),
        .samples = samples_of(a, way),
        .adversarial = cli_flag(a, "--adversarial"),
        .head = cli_int(a, "--head", 0, 0, INT64_MAX),
        .radius = cli_real(a, "--radius", 0, 0, 1e30),
        .castin = cli_flag(a, "--castin"),
        .method = cli_text(a, "--method", NULL),
        .steps = cli_int(a, "--steps", 0, 1, strcmp(cli_text(a, "--method", ""), "power") == 0 ? 100000 : 128),
        .tolerance = tolerance > 0 ? tolerance : -1,
        .csv = cli_text(a, "--csv", NULL),
        .progress = cli_show,
        .arg = way == DEVIATION ? "comparing with softmax" : "measuring",
    };
}

static void print(const cJSON *o, int way, double tolerance)
{
    if (way == LAYERS)
        measure_print_layers(o, tolerance);
    else if (way == NETWORK)
        measure_print_network(o);
    else if (way == MAPS)
        measure_print_maps(o);
    else if (way == DEVIATION)
        measure_print_deviation(o);
    else
        measure_print_lengths(o);
}

static int run(const cli_args *a)
{
    const int way = way_of(a);
    taut_measure_options o = ask(a, way);
    char *json = NULL;
    if (check_options(a)) return EXIT_BAD;
    if (cli_flag(a, "--lengths") && !read_lengths(o.lengths, cli_text(a, "--lengths", "")))
        return cli_refuse(a, "--lengths is first:last:step, such as 2:100:2");
    const taut_status s = taut_measure_file(&json, a->operand[0], &o);
    cli_bar_end();
    if (s) return cli_fail(a);
    cJSON *found = cli_answer(a, json);
    const bool beaten = cJSON_IsTrue(cJSON_GetObjectItem(found, "contradiction"));
    if (!cli_flag(a, "--json")) print(found, way, o.tolerance > 0 ? o.tolerance : 0);
    if (beaten)
        fprintf(stderr, "CONTRADICTION: a %s\n",
                way == NETWORK ? "slope above the proved constant" : "deviation above its proved bound");
    cJSON_Delete(found);
    return beaten ? EXIT_CONTRADICTION : EXIT_DONE;
}

static const cli_option options[] = {
    { "--text", "FILE", "the text it reads (default: what it was trained on)" },
    { "--data", "NAME", "the same, by the name of a data set; or a set of images" },
    { "--tokens", "N", "how many of them (default 32)" },
    { "--from", "N", "the first token; of images and of texts with classes: which one of the validation split" },
    { "--network", "N", "the whole network at N validation examples instead: its slopes there, and its constant" },
    { "--maps", NULL, "whom each token listens to instead: the weights of every head" },
    { "--deviation", NULL,
      "how far plash or clustered attention is from softmax instead: the truth, and what is proved of it" },
    { "--layer", "L", "one layer instead of all; with --lengths the one that is measured" },
    { "--map", "M", "bare (heads alone, the default), attention (with W_O), branch (and norm), residual, block" },
    { "--ball", "R", "both sides also for inputs whose tokens move by up to R" },
    { "--exact", NULL, "also prove each head's norm from its Jacobian, where that is small enough to be written out" },
    { "--lengths", "A:B:C", "slopes against the length, from A to B in steps of C, and the exponent of their growth" },
    { "--samples", "N", "sequences of each length (default 10); examples of --deviation (default 4)" },
    { "--adversarial", NULL, "inputs made to be steep instead of text" },
    { "--head", "H", "the head they are made for" },
    { "--radius", "R", "how long their tokens may be (default: the steepest for each length)" },
    { "--castin", NULL, "the published construction, by an eigenvector" },
    { "--method", "NAME", "lanczos (default) or power" },
    { "--steps", "N", "its steps at most (lanczos: 40, up to 128; power: 500)" },
    { "--tolerance", "T", "the relative residual at which it stops (default 1e-4)" },
    { "--csv", "FILE", "the numbers as a table" },
    { NULL, NULL, NULL },
};

const cli_command cli_measure = {
    "measure",
    "MODEL",
    "finds and proves slopes of attention at an input, and how they grow",
    "taut measure gpt2 --text alice/carroll-alice.txt --layer 6 --lengths 2:100:2",
    1,
    1,
    options,
    run,
};
