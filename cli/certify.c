/* Proves a Lipschitz constant of a stored model, shows which layer spends it, certifies predictions, writes the proof. */
#include "certify/certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "bound/print.h"
#include "certify/example.h"
#include "certify/local.h"
#include "certify/units.h"
#include "cli.h"
#include "model.h"
#include "report/waterfall.h"

typedef struct {
    taut_example *example;
    taut_local *local; /* with --local */
    int64_t count;
    double pair;    /* the largest ratio seen over pairs of inputs */
    int64_t silent; /* how many have no answer, and why the first has none */
    const char *why;
} sample;

enum { FALLS = 1024 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double margin_of(const sample *s, int64_t i)
{
    return s->example[i].predicted >= 0 ? s->example[i].margin : 0; /* no answer is ahead of none */
}
static double radius_of(const sample *s, int64_t i) { return s->example[i].radius.v; }
static double local_lip(const sample *s, int64_t i) { return s->local[i].lip.v; }
static double local_radius(const sample *s, int64_t i) { return s->local[i].radius.v; }

static double median_of(const sample *s, double (*number)(const sample *, int64_t))
{
    double *m = malloc((size_t)(s->count + 1) * sizeof *m);
    if (!m || s->count == 0) {
        free(m);
        return NAN;
    }
    for (int64_t i = 0; i < s->count; i++) m[i] = number(s, i);
    qsort(m, (size_t)s->count, sizeof *m, by_size);
    const double middle = m[s->count / 2];
    free(m);
    return middle;
}

static double median_margin(const sample *s) { return median_of(s, margin_of); }
static double median_radius(const sample *s) { return median_of(s, radius_of); }

/* How many predictions are right and stand against every change smaller than r. */
static double certified_accuracy(const sample *s, double r)
{
    int64_t good = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const taut_example *e = &s->example[i];
        good += e->predicted == e->target && (r == 0 || e->radius.v >= r);
    }
    return (double)good / (double)s->count;
}

/* Two inputs in turn, so that the one before is still there to make a pair. */
typedef struct {
    taut_slot slot[2];
    double *logits;
} inputs;

static taut_status take_inputs(inputs *in, const taut_task *k, int64_t classes)
{
    *in = (inputs){ .logits = taut_malloc((size_t)classes * sizeof *in->logits) };
    bool done = in->logits != NULL;
    for (int i = 0; i < 2; i++) {
        taut_slot *s = &in->slot[i];
        if (k->tokens) s->ids = taut_malloc((size_t)k->t * sizeof *s->ids);
        if (!k->tokens) s->reals = taut_malloc((size_t)(k->t * k->d) * sizeof *s->reals);
        s->target = taut_malloc((size_t)k->asked * sizeof *s->target);
        done = done && (s->ids || s->reals) && s->target;
    }
    return done ? TAUT_OK : taut_no_memory("examples");
}

static void drop_inputs(inputs *in)
{
    for (int i = 0; i < 2; i++) {
        free(in->slot[i].ids);
        free(in->slot[i].reals);
        free(in->slot[i].target);
    }
    free(in->logits);
}

/* Examples spread over the validation split, each judged by its last question; the first two dozen make the pairs. */
static taut_status try_examples(taut_certificate *c, const taut_source *data, int64_t wanted, bool local, sample *out)
{
    const taut_task *k = &data->task;
    const int64_t all = taut_source_count(data, TAUT_VALID) - (k->tokens > 0); /* the last window may be partial */
    inputs in;
    taut_pass *pass = NULL;
    if (all < 1)
        return taut_fail(TAUT_BAD_DATA, "the validation split has no sequence of %lld tokens", (long long)k->t);
    if (wanted > all) wanted = all;
    out->example = taut_calloc((size_t)wanted, sizeof *out->example);
    out->local = local ? taut_calloc((size_t)wanted, sizeof *out->local) : NULL;
    taut_status s = take_inputs(&in, k, c->model->classes);
    if (!s)
        s = out->example && (out->local || !local) ? taut_pass_create(&pass, c->model, 1, k->t, false)
                                                   : taut_no_memory("examples");
    cJSON *list = s ? NULL : cJSON_AddArrayToObject(c->json, "examples");
    for (int64_t i = 0; !s && i < wanted; i++) {
        const int64_t index = i * all / wanted;
        const taut_slot *now = &in.slot[i % 2], *before = &in.slot[(i + 1) % 2];
        const taut_input x = { now->ids, now->reals }, old = { before->ids, before->reals };
        taut_prox_log log = { 0 };
        data->ops->get(data, *now, TAUT_VALID, index);
        pass->run.prox = &log;
        out->example[out->count++] = taut_example_certify(c, pass, x, now->target[k->asked - 1], in.logits);
        pass->run.prox = NULL;
        if (out->example[i].predicted < 0 && out->silent++ == 0)
            out->why = log.why ? log.why : "a number that is not finite";
        if (local) out->local[i] = taut_local_certify(c, pass, &out->example[i], in.logits);
        if (isfinite(out->example[i].margin)) /* nobody can check what NaN or infinity predicts */
            cJSON_AddItemToArray(list, taut_example_json(&out->example[i], x, k->tokens ? k->t : k->t * k->d, index));
        if (i > 0 && i < 24) out->pair = fmax(out->pair, taut_pair_ratio(c, pass, old, x));
        cli_bar((double)(i + 1) / (double)wanted, "certifying examples");
    }
    cli_bar_end();
    taut_pass_free(pass);
    drop_inputs(&in);
    return s;
}

static void print_falls(const taut_certificate *c)
{
    static taut_fall rows[FALLS];
    const int all = taut_waterfall(rows, FALLS, cJSON_GetObjectItem(c->json, "proof")),
              count = all < FALLS ? all : FALLS;
    taut_up product = { 1 };
    char lip[32], so_far[32], out[32];
    printf("  %-26s %-10s %12s %12s %12s\n", "layer", "rule", "times", "so far", "tokens within");
    for (int i = 0; i < count; i++) {
        product = up_mul(product, (taut_up){ rows[i].lip });
        printf("  %-26s %-10s %12s %12s %12s\n", rows[i].path, rows[i].rule, up_text(lip, (taut_up){ rows[i].lip }),
               up_text(so_far, product), up_text(out, (taut_up){ rows[i].out }));
    }
}

static void print_vacuity(const taut_certificate *c, const sample *s)
{
    char lip[32];
    printf("how empty is it?  pairs of inputs move the logits by up to %.3g a unit, the bound allows %s", s->pair,
           up_text(lip, c->lip));
    if (s->pair > 0 && isfinite(c->lip.v)) printf(" (%.3g times as much)", c->lip.v / s->pair);
    printf(";\n  the median margin is %.3g, the median certified radius %.3g, the longest input %.3g\n",
           median_margin(s), median_radius(s), taut_model_reach(c->model).v);
}

static void print_why_not(const taut_certificate *c)
{
    const taut_model_spec *s = &c->model->spec;
    if (isfinite(c->lip.v)) return;
    if (!taut_model_finite(c->model))
        printf("  no finite constant: a weight is NaN or infinite\n");
    else if (s->norm_eps == 0 && (s->norm == TAUT_NORM_LAYER || s->norm == TAUT_NORM_RMS))
        printf("  no finite constant: model.norm_eps = 0, and such a norm layer is arbitrarily steep near a constant "
               "token\n");
    else
        printf("  no finite constant: the rows with inf above say where\n");
}

static void print_units(const taut_certificate *c)
{
    taut_unit unit[TAUT_UNITS];
    char lip[32], factor[32];
    taut_units(unit, c);
    printf("the same constant in other units (--norm proves its own, usually smaller):\n");
    for (int i = 0; i < TAUT_UNITS; i++)
        printf("  norm %-6s %-4s %12s  times %-10s %s\n", unit[i].norm == TAUT_NORM_FLAT ? "flat" : "tokens",
               unit[i].rms ? "RMS" : "l2", up_text(lip, unit[i].lip), up_text(factor, unit[i].factor), unit[i].reason);
}

/* What holds near each example. */
static void print_local(const taut_certificate *c, const sample *s)
{
    char lip[32], all[32];
    printf("around each example, moved by up to %g: %s-Lipschitz in the median (everywhere: %s), median certified "
           "radius %.3g\n",
           c->room.v, up_text(lip, (taut_up){ median_of(s, local_lip) }), up_text(all, c->lip),
           median_of(s, local_radius));
}

static void print_human(const taut_certificate *c, const sample *s, const double *radii, int count, bool units)
{
    char lip[32], rms[32], reach[32], defect[32];
    const bool series = c->model->spec.arch == TAUT_ARCH_FORECASTER;
    print_falls(c);
    printf("proved: %s-Lipschitz from %s, norm %s, l2 (%s in RMS units)\n", up_text(lip, c->lip),
           c->model->embed.rows ? "embeddings to logits"
           : series             ? "rows to forecasts"
                                : "pixels to logits",
           c->norm == TAUT_NORM_FLAT ? "flat" : "tokens", up_text(rms, up_model_rms(c->model, c->lip)));
    printf("  for %lld tokens, each within %s of the origin", (long long)c->tokens, up_text(reach, c->reach));
    if (c->room.v > 0) printf(": inputs moved by up to %g (--radius 0: none is)", c->room.v);
    printf("\n");
    if (c->defect.v > 0 && isfinite(c->lip.v))
        printf("  of the exact network; one whose proximal steps reach their tolerance adds %s to a pair's distance\n",
               up_text(defect, c->defect));
    if (units) print_units(c);
    print_why_not(c);
    if (series) printf("  a row may be anything: taut eval --noise R proves it for the rows that there are\n");
    if (s->count == 0) return;
    if (s->silent < s->count) print_vacuity(c, s);
    if (s->silent)
        printf("no answer to %lld of %lld examples, which count as wrong: %s\n", (long long)s->silent,
               (long long)s->count, s->why);
    if (s->local) print_local(c, s);
    for (int i = 0; i < (c->room.v > 0 ? count : 1); i++)
        printf("%s %-10g %6.2f %%  of %lld examples\n",
               radii[i] == 0 ? "accuracy, nothing moved  " : "certified, moved less than", radii[i],
               100 * certified_accuracy(s, radii[i]), (long long)s->count);
}

static int print_json(const taut_certificate *c, const sample *s, const double *radii, int count)
{
    cJSON *o = cJSON_Duplicate(c->json, true);
    cJSON *list = cJSON_AddArrayToObject(o, "certified_accuracy");
    cJSON_AddItemToObject(o, "lip_rms", up_json(up_model_rms(c->model, c->lip)));
    for (int i = 0; s->count && i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "radius", radii[i]);
        cJSON_AddNumberToObject(row, "accuracy", certified_accuracy(s, radii[i]));
        cJSON_AddItemToArray(list, row);
    }
    taut_unit unit[TAUT_UNITS];
    cJSON *units = cJSON_AddArrayToObject(o, "units");
    taut_units(unit, c);
    for (int i = 0; i < TAUT_UNITS; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "norm", unit[i].norm == TAUT_NORM_FLAT ? "flat" : "tokens");
        cJSON_AddStringToObject(row, "unit", unit[i].rms ? "rms" : "l2");
        cJSON_AddItemToObject(row, "factor", up_json(unit[i].factor));
        cJSON_AddItemToObject(row, "lip", up_json(unit[i].lip));
        cJSON_AddItemToArray(units, row);
    }
    cJSON *near = s->local ? cJSON_AddArrayToObject(o, "local") : NULL;
    for (int64_t i = 0; near && i < s->count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToObject(row, "lip", up_json(s->local[i].lip));
        cJSON_AddNumberToObject(row, "radius", s->local[i].radius.v);
        cJSON_AddItemToArray(near, row);
    }
    if (s->silent) {
        cJSON_AddNumberToObject(o, "abstained", (double)s->silent);
        cJSON_AddStringToObject(o, "why", s->why);
    }
    if (s->count) {
        cJSON_AddNumberToObject(o, "pair_ratio", s->pair);
        cJSON_AddNumberToObject(o, "median_margin", median_margin(s));
    }
    return cli_json(o);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static taut_status save(const taut_certificate *c, const char *path)
{
    char *text = taut_json_text(c->json, true);
    const taut_status s = text ? taut_file_write(path, text, strlen(text)) : taut_no_memory("the certificate");
    free(text);
    return s;
}

/* The data named by --data, or what the model was trained on. */
static taut_status open_data(taut_source **data, const cli_args *a, const char *path)
{
    cli_model m;
    taut_status s = cli_model_open(&m, path, taut_kernels_find("ref"), 0);
    if (s) return s;
    if (m.model->spec.arch == TAUT_ARCH_FORECASTER)
        s = taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: certified are predictions of classes and next tokens",
                      path);
    if (!s) s = cli_model_source(data, &m, cli_text(a, "--data", NULL));
    cli_model_close(&m);
    return s;
}

static int run(const cli_args *a)
{
    const char *norm = cli_text(a, "--norm", "tokens"), *out = cli_text(a, "--out", NULL);
    const int64_t wanted = cli_int(a, "--n-ex", 0, 0, 1000000);
    const double room = cli_real(a, "--radius", wanted ? 1 : 0, 0, 1e300);
    const double radii[] = { 0, room / 64, room / 16, room / 4, room };
    (void)cli_kernels(a);
    if (strcmp(norm, "tokens") != 0 && strcmp(norm, "flat") != 0)
        return cli_refuse(a, "--norm is tokens or flat, not %s", norm);
    char *path = cli_model_path(a->operand[0]);
    if (!path) return cli_refuse(a, "out of memory");
    if (out && same_file(path, out)) {
        free(path);
        return cli_refuse(a, "--out %s is the model itself", out);
    }
    taut_certificate c;
    taut_source *data = NULL;
    sample s = { 0 };
    taut_status status = taut_certify(&c, path, strcmp(norm, "flat") == 0 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, room);
    if (!status && wanted && c.model->spec.arch == TAUT_ARCH_ENCODER)
        status = taut_fail(TAUT_BAD_CONFIG, "examples are next-token predictions; %s is an encoder", a->operand[0]);
    if (!status && wanted) status = open_data(&data, a, path);
    if (!status && wanted) status = try_examples(&c, data, wanted, cli_flag(a, "--local"), &s);
    if (!status && out) status = save(&c, out);
    int code = EXIT_DONE;
    if (status)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = print_json(&c, &s, radii, 5);
    else
        print_human(&c, &s, radii, 5, cli_flag(a, "--units"));
    taut_source_free(data);
    free(s.example);
    free(s.local);
    taut_certificate_free(&c);
    free(path);
    return code;
}

static const cli_option options[] = {
    { "--norm", "N", "tokens (largest token moves, the default) or flat (l2 over everything)" },
    { "--radius", "R", "prove it also for inputs moved by up to R (default 1 with examples, else 0)" },
    { "--data", "NAME", "another text, or other images, than it was trained on" },
    { "--n-ex", "N", "certify N predictions on the validation split" },
    { "--units", NULL, "the constant also in RMS units and in the other norm, with the factors between them" },
    { "--local", NULL,
      "also around each example: its constant on the ball of radius R, and a radius by such constants" },
    { "--out", "FILE", "write the certificate, for taut check" },
    { NULL, NULL, NULL },
};

const cli_command cli_certify = {
    "certify",
    "MODEL",
    "proves a Lipschitz constant, and predictions that cannot be moved",
    "taut certify runs/tiny --n-ex 100 --out cert.json",
    1,
    1,
    options,
    run,
};
