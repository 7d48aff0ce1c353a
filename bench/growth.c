/* How five commands grow with a model: the time and memory of train, certify, check, measure and attack against width, depth,
 * context (tokens) and examples, one of them at a time, for a ViT on built-in images; and the exponent that fits best, by least
 * squares of logarithms, with its interval (measure/fit.h); last: between the two largest sizes alone.  Each command is run as
 * a user would run it.
 *
 * Time is that of the processors, which other programs on the machine lengthen less than that of the clock; memory is the peak.
 * From both what the program takes to say its version is subtracted.  A term that is small at these sizes and grows faster than
 * the rest is not seen: an exponent is about the sizes beside it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/timing.h"
#include "measure/fit.h"

static const char recipe[] = "[data]\nsource = shapes\nlength = 2000\n"
                             "[model]\narch = vit\nheads = 4\n"
                             "[train]\nbatch = 8\nlr = 0.001\neval_batches = 1\n";

enum { WIDTH, DEPTH, CONTEXT, EXAMPLES, AXES, SIZES = 4, SIDE = 16, WORD = 96 };
static const char *const axis_name[AXES] = { "width", "depth", "context", "examples" };
static const int middle[AXES] = { 64, 2, 64, 16 };
static const int sizes[AXES][SIZES] = { { 64, 128, 256, 512 }, { 2, 4, 8, 16 }, { 4, 16, 64, 256 }, { 8, 16, 32, 64 } };
static const int small_sizes[AXES][SIZES] = { { 8, 16 }, { 1, 2 }, { 4, 16 }, { 8, 16 } };

enum { TRAIN, CERTIFY, CHECK, MEASURE, ATTACK, COMMANDS };
static const char *const command_name[COMMANDS] = { "train", "certify", "check", "measure", "attack" };

typedef struct {
    char recipe[WORD], run[WORD], cert[WORD], threads[WORD];
    bench_cost start;
} place;

/* One command for a model of these sizes; the commands of one size are run in their order, each on what those before it made. */
static bench_cost run_one(const place *p, int command, const int at[AXES])
{
    char width[WORD], depth[WORD], patch[WORD], steps[WORD], count[WORD];
    snprintf(width, sizeof width, "model.width=%d", at[WIDTH]);
    snprintf(depth, sizeof depth, "model.depth=%d", at[DEPTH]);
    snprintf(patch, sizeof patch, "model.patch=%d", (int)(SIDE / sqrt(at[CONTEXT]) + 0.5));
    snprintf(steps, sizeof steps, "train.steps=%d", at[EXAMPLES] / 8);
    snprintf(count, sizeof count, "%d", at[EXAMPLES]);
    const char *const word[COMMANDS][18] = {
        { "taut", "train", p->recipe, "--out", p->run, "--overwrite", "--set", width, "--set", depth, "--set", patch,
          "--set", steps, "--threads", p->threads },
        { "taut", "certify", p->run, "--norm", "flat", "--n-ex", count, "--out", p->cert, "--threads", p->threads },
        { "taut", "check", p->cert, p->run, "--threads", p->threads },
        { "taut", "measure", p->run, "--network", count, "--threads", p->threads },
        { "taut", "attack", p->run, "--attack", "pgd", "--norm", "L2", "--eps", "0.25", "--n-ex", count, "--threads",
          p->threads },
    };
    bench_cost c = bench_self(word[command]);
    c.processor = fmax(c.processor - p->start.processor, 0);
    c.bytes = fmax(c.bytes - p->start.bytes, 0);
    return c;
}

static void add_list(cJSON *o, const char *name, const double *x, int count)
{
    cJSON_AddItemToObject(o, name, cJSON_CreateDoubleArray(x, count));
}

static void add_fit(cJSON *o, const char *name, const double *n, const double *y, int count)
{
    const taut_growth g = taut_growth_fit(n, y, count);
    cJSON *f = cJSON_AddObjectToObject(o, name);
    cJSON_AddNumberToObject(f, "exponent", g.exponent);
    cJSON_AddNumberToObject(f, "low", g.low);
    cJSON_AddNumberToObject(f, "high", g.high);
    cJSON_AddNumberToObject(f, "last", taut_growth_fit(n + count - 2, y + count - 2, 2).exponent);
}

static taut_status grow(cJSON *o, const place *p, int axis, const int *size, int count)
{
    double n[SIZES] = { 0 }, seconds[COMMANDS][SIZES], bytes[COMMANDS][SIZES];
    for (int i = 0; i < count; i++) {
        int at[AXES];
        memcpy(at, middle, sizeof at);
        at[axis] = size[i];
        n[i] = size[i];
        for (int c = 0; c < COMMANDS; c++) {
            const bench_cost cost = run_one(p, c, at);
            if (cost.code != 0)
                return taut_fail(TAUT_BAD_FILE, "taut %s ended with %d at %s %d", command_name[c], cost.code,
                                 axis_name[axis], size[i]);
            seconds[c][i] = cost.processor, bytes[c][i] = cost.bytes;
        }
    }
    cJSON *of = cJSON_AddObjectToObject(o, axis_name[axis]);
    add_list(of, "sizes", n, count);
    for (int c = 0; c < COMMANDS; c++) {
        cJSON *one = cJSON_AddObjectToObject(of, command_name[c]);
        add_list(one, "processor_s", seconds[c], count);
        add_fit(one, "time", n, seconds[c], count);
        add_list(one, "bytes", bytes[c], count);
        add_fit(one, "memory", n, bytes[c], count);
    }
    return TAUT_OK;
}

static taut_status grow_all(cJSON *o, const char *folder, bool small)
{
    place p;
    snprintf(p.recipe, sizeof p.recipe, "%s/growth.ini", folder);
    snprintf(p.run, sizeof p.run, "%s/run", folder);
    snprintf(p.cert, sizeof p.cert, "%s/cert.json", folder);
    snprintf(p.threads, sizeof p.threads, "%d", taut_threads());
    FILE *f = fopen(p.recipe, "w");
    const bool written = f && fputs(recipe, f) >= 0;
    if (!f || fclose(f) != 0 || !written) return taut_fail(TAUT_BAD_FILE, "%s: could not be written", p.recipe);
    p.start = bench_self((const char *const[]){ "taut", "--version", NULL });
    const double start = bench_now();
    for (int axis = 0; axis < AXES; axis++) {
        const taut_status s = grow(o, &p, axis, small ? small_sizes[axis] : sizes[axis], small ? 2 : SIZES);
        if (s) return s;
    }
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddNumberToObject(o, "seconds", bench_now() - start);
    return TAUT_OK;
}

cJSON *bench_growth(bool small)
{
    char folder[] = "/tmp/taut_bench_XXXXXX";
    if (!mkdtemp(folder)) {
        taut_fail(TAUT_BAD_FILE, "no temporary folder could be made");
        return NULL;
    }
    cJSON *o = cJSON_CreateObject();
    const taut_status s = grow_all(o, folder, small);
    bench_remove(folder);
    if (!s) return o;
    cJSON_Delete(o);
    return NULL;
}
