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
#include "cli.h"
#include "model.h"

typedef struct {
    taut_example *example;
    int64_t count;
    double pair; /* the largest ratio seen over pairs of sequences */
} sample;

enum { FALLS = 1024 };

/* RMS units: |y|_RMS = |y| / sqrt(d), so a constant from width to classes features gains sqrt(width / classes). */
static taut_up up_rms(const taut_certificate *c)
{
    const taut_param *w = taut_linear_weight(c->model->head);
    return up_mul(c->lip, up_sqrt(up_div(up_int(w->cols), lo_exact((double)w->rows))));
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double margin_of(const taut_example *e) { return e->margin; }
static double radius_of(const taut_example *e) { return e->radius.v; }

static double median_of(const sample *s, double (*number)(const taut_example *))
{
    double *m = malloc((size_t)(s->count + 1) * sizeof *m);
    if (!m || s->count == 0) {
        free(m);
        return NAN;
    }
    for (int64_t i = 0; i < s->count; i++) m[i] = number(&s->example[i]);
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

/* Sequences spread over the validation split, each predicted at its last token; consecutive ones make the pairs. */
static taut_status try_examples(taut_certificate *c, const taut_text *text, int64_t wanted, sample *out)
{
    const int64_t t = c->tokens, len = taut_text_split_len(text, TAUT_VALID), spare = len - t - 1;
    const int32_t *ids = text->ids + text->len - len, *before = NULL;
    taut_pass *pass = NULL;
    if (spare < 0)
        return taut_fail(TAUT_BAD_DATA, "the validation split has no sequence of %lld tokens", (long long)t + 1);
    if (wanted > spare + 1) wanted = spare + 1;
    double *logits = taut_malloc((size_t)c->model->embed.rows * sizeof *logits);
    out->example = taut_calloc((size_t)wanted, sizeof *out->example);
    taut_status s = logits && out->example ? taut_pass_create(&pass, c->model, 1, t, false)
                                           : taut_no_memory("examples");
    cJSON *list = s ? NULL : cJSON_AddArrayToObject(c->json, "examples");
    for (int64_t i = 0; !s && i < wanted; i++) {
        const int32_t *x = ids + (wanted > 1 ? i * spare / (wanted - 1) : 0);
        out->example[out->count++] = taut_example_certify(c, pass, x, x[t], logits);
        cJSON_AddItemToArray(list, taut_example_json(&out->example[i], x, t));
        if (before && i < 24) out->pair = fmax(out->pair, taut_pair_ratio(c, pass, before, x));
        before = x;
        cli_bar((double)(i + 1) / (double)wanted, "certifying examples");
    }
    cli_bar_end();
    taut_pass_free(pass);
    free(logits);
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
    printf("how empty is it?  pairs of sequences move the logits by up to %.3g a unit, the bound allows %s", s->pair,
           up_text(lip, c->lip));
    if (s->pair > 0 && isfinite(c->lip.v)) printf(" (%.3g times as much)", c->lip.v / s->pair);
    printf(";\n  the median margin is %.3g, the median certified radius %.3g, the longest embedding %.3g\n",
           median_margin(s), median_radius(s), taut_model_reach(c->model).v);
}

static void print_human(const taut_certificate *c, const sample *s, const double *radii, int count)
{
    char lip[32], rms[32], reach[32];
    print_falls(c);
    printf("proved: %s-Lipschitz from embeddings to logits, norm %s, l2 (%s in RMS units)\n", up_text(lip, c->lip),
           c->norm == TAUT_NORM_FLAT ? "flat" : "tokens", up_text(rms, up_rms(c)));
    printf("  for %lld tokens, each within %s of the origin\n", (long long)c->tokens, up_text(reach, c->reach));
    if (!isfinite(c->lip.v)) printf("  no finite constant: the rows with inf above say where\n");
    if (s->count == 0) return;
    print_vacuity(c, s);
    for (int i = 0; i < (c->room.v > 0 ? count : 1); i++)
        printf("%s %-10g %6.2f %%  of %lld examples\n",
               radii[i] == 0 ? "accuracy, nothing moved  " : "certified, moved less than", radii[i],
               100 * certified_accuracy(s, radii[i]), (long long)s->count);
}

static int print_json(const taut_certificate *c, const sample *s, const double *radii, int count)
{
    cJSON *o = cJSON_Duplicate(c->json, true), *list = cJSON_AddArrayToObject(o, "certified_accuracy");
    cJSON_AddItemToObject(o, "lip_rms", up_json(up_rms(c)));
    for (int i = 0; s->count && i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "radius", radii[i]);
        cJSON_AddNumberToObject(row, "accuracy", certified_accuracy(s, radii[i]));
        cJSON_AddItemToArray(list, row);
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

/* The text named by --data, or the one the model was trained on, through the model's own vocabulary. */
static taut_status open_text(taut_text **text, const cli_args *a, const char *path)
{
    cli_model m;
    taut_status s = cli_model_open(&m, path, taut_kernels_find("ref"));
    if (s) return s;
    const taut_data_spec *d = &m.data;
    s = taut_text_open(text, cli_text(a, "--data", d->source), d->tokens, d->val_fraction, m.vocab, d->length, d->seed);
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
    taut_text *text = NULL;
    sample s = { 0 };
    taut_status status = taut_certify(&c, path, strcmp(norm, "flat") == 0 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, room);
    if (!status && wanted && c.model->spec.arch != TAUT_ARCH_GPT)
        status = taut_fail(TAUT_BAD_CONFIG, "examples are next-token predictions; %s is an encoder", a->operand[0]);
    if (!status && wanted) status = open_text(&text, a, path);
    if (!status && wanted) status = try_examples(&c, text, wanted, &s);
    if (!status && out) status = save(&c, out);
    int code = EXIT_DONE;
    if (status)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = print_json(&c, &s, radii, 5);
    else
        print_human(&c, &s, radii, 5);
    taut_text_free(text);
    free(s.example);
    taut_certificate_free(&c);
    free(path);
    return code;
}

static const cli_option options[] = {
    { "--norm", "N", "tokens (largest token moves, the default) or flat (l2 over everything)" },
    { "--radius", "R", "prove it also for embeddings moved by up to R (default 1 with examples, else 0)" },
    { "--data", "TEXT", "another text than the one it was trained on" },
    { "--n-ex", "N", "certify N predictions on the validation split" },
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
