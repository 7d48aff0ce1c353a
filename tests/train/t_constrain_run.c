/* A run with a target, killed at every single rename of its files in turn, or stopped between two checkpoints:
 * whatever model is in the folder certifies at or under the target, and going on ends with the same bytes as a run
 * left alone.  The learning rate is absurd on purpose, so that every checkpoint has to be enforced.  Once with caps on
 * the matrices, once with the head filling the target. */
#include <fcntl.h>
#include <omp.h>
#include <sys/wait.h>

#include "harness.h"
#include "proved.h"
#include "temp.h"
#include "train/constrain/enforce.h"
#include "train/train.h"

enum { DEAD = 99 };
static const double target = 2;
static int left; /* renames until this process dies; 0: it does not */

int rename(const char *from, const char *to)
{
    if (left && --left == 0) _exit(DEAD);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static const char capped[] =
    "[data]\nlength = 800\n[model]\nwidth = 8\ndepth = 1\nheads = 2\ncontext = 8\nnorm = none\n"
    "residual = convex\ntied = false\ndropout = 0.1\n"
    "[train]\nsteps = 8\nbatch = 2\noptimiser = muon\nlr = 30\ncheckpoint_every = 3\n"
    "[constrain]\nmethod = softcap\ncap = 4\ntarget_lipschitz = 2\nembed = 1\n";
static const char filled[] =
    "[data]\nlength = 800\n[model]\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 8\nnorm = none\nattention = position\n"
    "positions = none\nactivation = abs\nresidual = convex\nresidual_alpha = 0.5\nfirst_residual = false\n"
    "mlp_residual = false\ntied = false\nhead_bias = true\ninit = orthogonal\n"
    "[train]\nsteps = 8\nbatch = 2\noptimiser = muon\nlr = 0.5\nweight_decay = 1\nmomentum = 0.9\ncheckpoint_every = "
    "3\n"
    "[constrain]\nmethod = none\nfill = 4\ntarget_lipschitz = 2\nembed = 1\n";
static const char *recipe = capped;

static volatile int stop;
static int stop_after; /* steps; 0: never */

static void progress(const taut_progress *p, void *arg)
{
    (void)arg;
    if (stop_after && p->step == stop_after) stop = 1;
}

/* In a child, since it may die.  Returns its exit code. */
static int train(const char *run, bool resume, int die, int after)
{
    int status = 0;
    omp_pause_resource_all(omp_pause_soft); /* a proof before has started threads, which no child has */
    const pid_t child = fork();
    if (child == 0) {
        taut_config *cfg = NULL;
        taut_train_summary out;
        left = die, stop_after = after;
        taut_status s = taut_config_parse(&cfg, recipe, "test");
        const taut_training o = { .run = run, .resume = resume, .progress = progress, .stop = &stop };
        if (!s) s = taut_train(&out, cfg, taut_kernels_find("cpu"), &o);
        if (s) fprintf(stderr, "%s\n", taut_last_error());
        _exit(s ? 1 : 0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool there(const char *run, const char *file)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", run, file);
    return access(path, F_OK) == 0;
}

static double constant(const char *run)
{
    char path[1300];
    taut_model *m = NULL;
    const taut_constrain_spec s = { .target = target };
    snprintf(path, sizeof path, "%s/model.safetensors", run);
    if (taut_model_open(&m, path, taut_kernels_find("ref"), false)) return INFINITY;
    const double c = proved_constant(m, &s);
    taut_model_free(m);
    return c;
}

static bool same_model(const char *a, const char *b)
{
    char path[1300];
    size_t la = 0, lb = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", a);
    char *x = temp_get(path, &la);
    snprintf(path, sizeof path, "%s/model.safetensors", b);
    char *y = temp_get(path, &lb);
    const bool same = x && y && la == lb && memcmp(x, y, la) == 0;
    free(x), free(y);
    return same;
}

/* Dies at rename number n, or stops after n steps; false when there are not that many. */
static bool trial(const char *whole, int n, bool dies)
{
    char name[32], run[1200];
    snprintf(name, sizeof name, "%s-%s-%d", recipe == filled ? "fill" : "cap", dies ? "die" : "stop", n);
    snprintf(run, sizeof run, "%s", temp_path(name));
    case_no = n;
    const int code = train(run, false, dies ? n : 0, dies ? 0 : n);
    CHECK(code == 0 || (dies && code == DEAD), "it ended as told");
    if (there(run, "model.safetensors")) CHECK_LE(constant(run), target, "what is there is under its target");
    if (dies && code == 0) return false;
    /* the state of a stop is not shrunk: what a resumed run writes first must be all the same */
    if (!dies) CHECK(train(run, true, 2, 0) == DEAD, "it died after its first file");
    if (!dies) CHECK_LE(constant(run), target, "which was under its target");
    CHECK(train(run, there(run, "state.safetensors"), 0, 0) == 0, "it goes on");
    CHECK_LE(constant(run), target, "to under its target");
    CHECK(same_model(run, whole), "and to the same bytes");
    return true;
}

static int every_end(const char *with, const char *name)
{
    char whole[1200];
    int deaths = 0;
    recipe = with;
    snprintf(whole, sizeof whole, "%s", temp_path(name));
    CHECK(train(whole, false, 0, 0) == 0, "an undisturbed run");
    CHECK_LE(constant(whole), target, "under its target");
    CHECK_LE(0.2 * target, constant(whole), "but not far: the target is what holds it");
    while (deaths < 100 && trial(whole, deaths + 1, true)) deaths++;
    CHECK(deaths >= 6, "every rename was tried");
    for (int n = 1; n < 8; n++) trial(whole, n, false);
    return deaths;
}

int main(void)
{
    test_begin();
    temp_begin();
    const int deaths = every_end(capped, "whole") + every_end(filled, "full");
    return test_end("constrained", "%d deaths, 14 stops: every model certifies under its target", deaths);
}
