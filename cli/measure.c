/* Measures a stored model, layer by layer: what the slope at an input is at least (found, with a witness), what it is
 * at most (proved), what papers print; or how it grows with the length of the input. */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli.h"
#include "data/text.h"

static int map_of(const cli_args *a)
{
    const char *name = cli_text(a, "--map", "bare");
    for (int i = 0; i < TAUT_MAPS; i++)
        if (strcmp(name, taut_map_names[i]) == 0) return i;
    return -1;
}

/* a:b:c or a:b */
static bool read_lengths(taut_scatter_options *o, const char *text)
{
    char part[3][24] = { "", "", "1" };
    int two = 0, three = 0;
    const int found = sscanf(text, "%23[0-9]:%23[0-9]%n:%23[0-9]%n", part[0], part[1], &two, part[2], &three);
    if (text[three ? three : two]) return false; /* something behind it */
    int64_t *const to[] = { &o->first, &o->last, &o->step };
    for (int i = 0; i < 3; i++)
        if (!taut_number_int(to[i], part[i])) return false;
    return found >= 2 && o->first >= 1 && o->step >= 1 && o->first <= o->last;
}

static taut_slope_options slope_options(const cli_args *a)
{
    const char *method = cli_text(a, "--method", "lanczos");
    const bool power = strcmp(method, "power") == 0;
    if (!power && strcmp(method, "lanczos") != 0) exit(cli_refuse(a, "--method is lanczos or power, not %s", method));
    return (taut_slope_options){ power ? TAUT_SLOPE_POWER : TAUT_SLOPE_LANCZOS,
                                 (int)cli_int(a, "--steps", power ? 500 : 40, 1, power ? 100000 : 128),
                                 cli_real(a, "--tolerance", 1e-4, 0, 1),
                                 (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX) };
}

static taut_status open_text(taut_text **text, const cli_args *a, const taut_net *m)
{
    const taut_data_spec *d = &m->data;
    const char *source = cli_text(a, "--text", cli_text(a, "--data", d->source));
    return taut_text_open(text, source, d->tokens, 0, m->vocab, d->length, d->seed);
}

/* The activations that some tokens of the text leave. */
static taut_status read_text(taut_capture **c, const cli_args *a, taut_net *m, const taut_text *text,
                             const measure_about *about)
{
    const int64_t tokens = cli_int(a, "--tokens", m->model->spec.context < 32 ? m->model->spec.context : 32, 1,
                                   m->model->spec.context);
    const int64_t from = cli_int(a, "--from", 0, 0, text->len - 1);
    if (text->len - from < tokens)
        return taut_fail(TAUT_BAD_DATA, "%s has %lld tokens from there on, fewer than %lld", about->source,
                         (long long)(text->len - from), (long long)tokens);
    const taut_status s = taut_capture_create(c, m->model, 1, tokens);
    if (!s) taut_capture_run(*c, text->ids + from, 1, tokens);
    return s;
}

/* Those of one image of the validation split. */
static taut_status read_image(taut_capture **c, const cli_args *a, taut_net *m)
{
    taut_source *images = NULL;
    double *reals = taut_malloc((size_t)taut_len(m->model->in) * sizeof *reals);
    int32_t target;
    taut_status s = reals ? taut_net_source(&images, m, cli_text(a, "--data", NULL)) : taut_no_memory("an image");
    if (!s && taut_source_count(images, TAUT_VALID) == 0) s = taut_fail(TAUT_BAD_DATA, "no images to measure at");
    if (!s) s = taut_capture_create(c, m->model, 1, m->model->in.t);
    if (!s) {
        const int64_t from = cli_int(a, "--from", 0, 0, taut_source_count(images, TAUT_VALID) - 1);
        images->ops->get(images, (taut_slot){ .reals = reals, .target = &target }, TAUT_VALID, from);
        taut_capture_run_real(*c, reals, 1);
    }
    taut_source_free(images);
    free(reals);
    return s;
}

/* Every layer, or the one that is asked for, at the first tokens of the text or at an image. */
static taut_status measure_layers(const cli_args *a, taut_net *m, const taut_text *text, const measure_about *about,
                                  taut_layer_measure *out, int *count)
{
    const int64_t layer = cli_int(a, "--layer", -1, 0, m->model->spec.depth - 1);
    const taut_layer_options o = { .slope = slope_options(a),
                                   .heads = true,
                                   .published = true,
                                   .exact = cli_flag(a, "--exact"),
                                   .ball = about->ball };
    taut_capture *c = NULL;
    taut_status s = text ? read_text(&c, a, m, text, about) : read_image(&c, a, m);
    for (int l = layer < 0 ? 0 : (int)layer; !s && l < c->layers && (layer < 0 || l == layer); l++) {
        cli_bar((double)l / c->layers, "measuring");
        s = taut_layer_measure_at(&out[*count], c, l, about->map, &o);
        if (!s) (*count)++;
    }
    cli_bar_end();
    taut_capture_free(c);
    if (!s && *count == 0)
        s = taut_fail(TAUT_BAD_CONFIG,
                      "%s has no softmax or cosine attention to measure there; --network N measures all of it",
                      a->operand[0]);
    return s;
}

static int tell_layers(const cli_args *a, taut_net *m, const taut_text *text, const measure_about *about)
{
    int count = 0, code = EXIT_BAD;
    taut_layer_measure *found = taut_calloc((size_t)m->model->spec.depth, sizeof *found);
    taut_status s = found ? measure_layers(a, m, text, about, found, &count) : taut_no_memory("layers");
    const char *csv = cli_text(a, "--csv", NULL);
    if (!s && csv) s = measure_layers_csv(csv, about, found, count);
    if (s)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = cli_json(measure_layers_json(about, found, count));
    else
        measure_print_layers(about, found, count), code = EXIT_DONE;
    for (int i = 0; i < count; i++) taut_layer_measure_free(&found[i]);
    free(found);
    return code;
}

static void tell(double done) { cli_bar(done, "measuring"); }

static taut_status scatter(const cli_args *a, taut_net *m, const taut_text *text, taut_scatter_options *o,
                           measure_scatter *r, taut_scatter_point *points)
{
    const taut_scatter_attack attack = { r->head, cli_real(a, "--radius", 0, 0, 1e30), cli_flag(a, "--castin"),
                                         o->slope.seed };
    if (r->adversarial && o->map > TAUT_MAP_ATTENTION)
        return taut_fail(TAUT_BAD_CONFIG, "adversarial tokens are inputs of attention: --map bare or attention");
    return r->adversarial ? taut_scatter_adversarial(points, &r->gap, m->model, &attack, o)
                          : taut_scatter_text(points, m->model, text->ids, text->len, o);
}

static int tell_scatter(const cli_args *a, taut_net *m, const taut_text *text, const measure_about *about)
{
    const taut_model_spec *spec = &m->model->spec;
    taut_scatter_options o = { .samples = cli_int(a, "--samples", 10, 1, 4096), .map = about->map, .tell = tell };
    if (!read_lengths(&o, cli_text(a, "--lengths", "2:32:2")))
        return cli_refuse(a, "--lengths is first:last:step, such as 2:100:2");
    o.layer = (int)cli_int(a, "--layer", spec->depth / 2, 0, spec->depth - 1);
    o.slope = slope_options(a);
    measure_scatter r = { .layer = o.layer,
                          .adversarial = cli_flag(a, "--adversarial"),
                          .head = cli_int(a, "--head", 0, 0, spec->heads - 1) };
    if (taut_scatter_check(m->model, &o, r.adversarial)) return cli_fail(a);
    r.count = taut_scatter_count(&o, r.adversarial);
    taut_scatter_point *points = taut_calloc((size_t)r.count + 1, sizeof *points);
    double *n = taut_calloc((size_t)(2 * r.count) + 1, sizeof *n), *y = n + r.count;
    r.point = points;
    int code = EXIT_BAD;
    taut_status s = points && n ? scatter(a, m, text, &o, &r, points) : taut_no_memory("points");
    cli_bar_end();
    for (int64_t i = 0; !s && i < r.count; i++) { /* one or two adversarial tokens are no clusters: not fitted */
        n[i] = r.adversarial && points[i].n < 3 ? 0 : (double)points[i].n;
        y[i] = points[i].value;
    }
    if (!s) r.growth = taut_growth_fit(n, y, r.count);
    if (!s && cli_text(a, "--csv", NULL)) s = measure_scatter_csv(cli_text(a, "--csv", NULL), about, &r);
    if (s)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = cli_json(measure_scatter_json(about, &r));
    else
        measure_print_scatter(about, &r), code = EXIT_DONE;
    free(points), free(n);
    return code;
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

/* EXIT_DONE, or what the refusal answers. */
static int check_options(const cli_args *a)
{
    const int way = cli_flag(a, "--deviation")     ? DEVIATION
                    : cli_flag(a, "--maps")        ? MAPS
                    : cli_flag(a, "--network")     ? NETWORK
                    : cli_flag(a, "--adversarial") ? ADVERSARIAL
                    : cli_flag(a, "--lengths")     ? LENGTHS
                                                   : LAYERS;
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

static int run(const cli_args *a)
{
    const taut_kernels *k = cli_kernels(a);
    const int map = map_of(a);
    taut_net *m = NULL;
    taut_text *text = NULL;
    if (map < 0) {
        const char *near = taut_nearest(cli_text(a, "--map", ""), taut_map_names, TAUT_MAPS);
        return cli_refuse(a, "no map is called %s (bare, attention, branch, residual, block)%s%s%s",
                          cli_text(a, "--map", ""), near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    if (check_options(a)) return EXIT_BAD;
    if (taut_net_open_on(&m, a->operand[0], k, (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX))) return cli_fail(a);
    const measure_about about = { a->operand[0],
                                  cli_flag(a, "--adversarial")
                                      ? "adversarial tokens"
                                      : cli_text(a, "--text", cli_text(a, "--data", m->data.source)),
                                  (taut_map)map, cli_real(a, "--ball", 0, 0, 1e30), slope_options(a).tolerance };
    const bool lengths = cli_flag(a, "--lengths") || cli_flag(a, "--adversarial");
    int code;
    if (cli_flag(a, "--deviation"))
        code = measure_deviation(a, m);
    else if (m->model->spec.arch == TAUT_ARCH_FORECASTER)
        code = cli_refuse(a, "%s is a forecaster: only --deviation measures such", a->operand[0]);
    else if (cli_flag(a, "--maps"))
        code = measure_maps(a, m);
    else if (cli_flag(a, "--network")) {
        const taut_slope_options o = slope_options(a);
        code = measure_network(a, m, &o);
    } else if (!m->vocab && (cli_flag(a, "--text") || cli_flag(a, "--tokens")))
        code = cli_refuse(a, "%s reads images: %s is for texts", a->operand[0],
                          cli_flag(a, "--text") ? "--text" : "--tokens");
    else if (lengths && !m->vocab)
        code = cli_refuse(a, "%s reads images, which have one length", a->operand[0]);
    else if (!cli_flag(a, "--adversarial") && m->vocab && open_text(&text, a, m))
        code = cli_fail(a);
    else
        code = lengths ? tell_scatter(a, m, text, &about) : tell_layers(a, m, text, &about);
    taut_text_free(text);
    taut_net_free(m);
    return code;
}

static const cli_option options[] = {
    { "--text", "FILE", "the text it reads (default: what it was trained on)" },
    { "--data", "NAME", "the same, by the name of a data set; or a set of images" },
    { "--tokens", "N", "how many of them (default 32)" },
    { "--from", "N", "the first token; of images: which one of the validation split" },
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
