/* Proves a Lipschitz constant of a stored model, shows which layer spends it, certifies predictions, writes the proof. */
#include "certify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/net.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "cli.h"
#include "verdict/noise.h"

static int show(double done, void *what)
{
    cli_bar(done, what);
    return 0;
}

/* Examples spread over the validation split, each judged by its last question. */
static taut_status try_examples(taut_certificate *c, const taut_source *data, int64_t wanted, bool local,
                                taut_predictions *out)
{
    taut_examples from = { .data = data, .spread = true, .n = wanted };
    taut_status s = taut_examples_settle(&from, c->model);
    if (!s) s = taut_predictions_make(out, c, &from, local, show, "certifying examples");
    cli_bar_end();
    return s;
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
    taut_net *m = NULL;
    taut_status s = taut_net_open_on(&m, path, taut_kernels_find("ref"), 0);
    if (s) return s;
    s = taut_net_source(data, m, cli_text(a, "--data", NULL));
    taut_net_free(m);
    return s;
}

/* How long the rows of a forecaster's inputs may be, and the data where it is needed. */
static taut_status prepare(taut_source **data, double *rows, const cli_args *a, const char *path,
                           const taut_model_spec *m, int64_t wanted)
{
    const char *given = cli_text(a, "--rows", NULL);
    taut_up longest = UP_NONE;
    taut_status s = TAUT_OK;
    *rows = INFINITY;
    if (m->arch != TAUT_ARCH_FORECASTER && given) return taut_fail(TAUT_BAD_CONFIG, "--rows is for forecasters");
    if (m->arch == TAUT_ARCH_FORECASTER && wanted)
        return taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: certified are predictions of classes and next tokens",
                         path);
    if (m->arch == TAUT_ARCH_ENCODER && wanted)
        return taut_fail(TAUT_BAD_CONFIG, "examples are next-token predictions; %s is an encoder", path);
    if (given && strcmp(given, "inf") != 0) *rows = cli_real(a, "--rows", 0, 0, 1e300);
    if (wanted || (m->arch == TAUT_ARCH_FORECASTER && !given)) s = open_data(data, a, path);
    if (!s && *data && !wanted) s = taut_rows_longest(&longest, *data, TAUT_TRAIN, TAUT_TEST);
    if (!s && *data && !wanted) *rows = longest.v;
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
    if (cli_flag(a, "--local") && !wanted) return cli_refuse(a, "--local is about examples: say how many with --n-ex");
    char *path = cli_path(a->operand[0], "model.safetensors");
    if (!path) return cli_refuse(a, "out of memory");
    if (out && same_file(path, out)) {
        free(path);
        return cli_refuse(a, "--out %s is the model itself", out);
    }
    taut_certificate c;
    taut_source *data = NULL;
    taut_predictions s = { 0 };
    double rows;
    taut_status status = taut_certificate_open(&c, path, strcmp(norm, "flat") == 0 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS,
                                               room);
    if (!status) status = prepare(&data, &rows, a, a->operand[0], &c.model->spec, wanted);
    if (!status) status = taut_certificate_prove(&c, rows);
    if (!status && wanted) status = try_examples(&c, data, wanted, cli_flag(a, "--local"), &s);
    if (!status && out) status = save(&c, out);
    int code = EXIT_DONE;
    if (status)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = certify_print_json(&c, &s, radii, 5);
    else
        certify_print(&c, &s, radii, 5, cli_flag(a, "--units"));
    taut_source_free(data);
    taut_predictions_free(&s);
    taut_certificate_free(&c);
    free(path);
    return code;
}

static const cli_option options[] = {
    { "--norm", "N", "tokens (largest token moves, the default) or flat (l2 over everything)" },
    { "--radius", "R", "prove it also for inputs moved by up to R (default 1 with examples, else 0)" },
    { "--data", "NAME", "another text, other images or another series than it was trained on" },
    { "--rows", "R", "of a forecaster: for rows up to R long, or inf for any (default: the longest row of its data)" },
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
