/* state.safetensors: a run that is saved, forgotten, loaded and carried on ends with the same bits as one that
 * never stopped; the state of another run is refused. */
#include "train/state.h"

#include "base/alloc.h"
#include "model/safetensors.h"
#include "small.h"
#include "temp.h"

static const char *const recipes[] = {
    "[data]\nlength = 2000\n[model]\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 12\ndropout = 0.2\n"
    "[train]\nsteps = 12\nbatch = 3\naccumulate = 2\nlr = 0.01\nweight_decay = 0.1\nwarmup = 3\n",

    "[data]\nlength = 2000\n[model]\narch = encoder\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 12\ndropout "
    "= 0.2\n"
    "[train]\nsteps = 12\nbatch = 3\noptimiser = muon\n",

    "[data]\nlength = 2000\n[model]\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 12\npositions = rope\n"
    "[train]\nsteps = 12\nbatch = 3\noptimiser = sgd\n",
};

static void steps(taut_trainer *t, int count)
{
    taut_step step;
    for (int i = 0; i < count; i++) must(taut_trainer_step(t, &step));
}

static void goes_on(const char *recipe, const char *kernels)
{
    taut_trainer whole, first, rest;
    const char *path = temp_path("state.safetensors");
    taut_config *cfg[3] = { trainer_of(&whole, recipe, kernels), trainer_of(&first, recipe, kernels),
                            trainer_of(&rest, recipe, kernels) };
    steps(&whole, 12);
    steps(&first, 5);
    first.clock.seconds = 0.1 + 1e-9;
    must(taut_state_save(&first.clock, first.optimiser, path));
    must(taut_state_load(&rest.clock, rest.optimiser, path));
    CHECK(memcmp(&first.clock, &rest.clock, sizeof first.clock) == 0, "the clock, to the bit");
    steps(&rest, 7);
    const size_t size = (size_t)whole.model->slab * whole.model->k->elem;
    CHECK(memcmp(whole.model->values, rest.model->values, size) == 0, "weights, to the bit");
    CHECK(memcmp(whole.optimiser->first, rest.optimiser->first, size) == 0, "momenta, to the bit");
    if (whole.optimiser->second)
        CHECK(memcmp(whole.optimiser->second, rest.optimiser->second, size) == 0, "squares, to the bit");
    CHECK(whole.clock.step == rest.clock.step && whole.clock.tokens == rest.clock.tokens, "counts");
    CHECK(memcmp(whole.clock.recent, rest.clock.recent, sizeof whole.clock.recent) == 0, "the last losses");
    trainer_end(&whole, cfg[0]);
    trainer_end(&first, cfg[1]);
    trainer_end(&rest, cfg[2]);
}

/* ---- what is refused ---- */

static void refused(const char *recipe, const char *path, const char *why)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, recipe, "cpu");
    const taut_status s = taut_state_load(&t.clock, t.optimiser, path);
    CHECK(s == TAUT_BAD_FILE, why);
    CHECK(strstr(taut_last_error(), why) && strstr(taut_last_error(), path), taut_last_error());
    trainer_end(&t, cfg);
}

static void another_run(const char *path)
{
    static const char model[] = "[data]\nlength = 2000\n[model]\nwidth = %d\ndepth = %d\nheads = 2\ncontext = 12\n"
                                "[train]\nbatch = 3\noptimiser = %s\n[data]\ntokens = %s\n";
    char recipe[512];
    refused(recipes[2], path, "");
    refused(recipes[1], path, "");
    snprintf(recipe, sizeof recipe, model, 24, 1, "adamw", "chars");
    refused(recipe, path, "embed.weight");
    snprintf(recipe, sizeof recipe, model, 16, 2, "adamw", "chars");
    refused(recipe, path, "block.1");
    snprintf(recipe, sizeof recipe, model, 16, 1, "sgd", "chars");
    refused(recipe, path, "another model or optimiser");
    snprintf(recipe, sizeof recipe, model, 16, 1, "adamw", "bytes");
    refused(recipe, path, "vocabulary");
}

/* The good file with one string of its header replaced by another of the same length. */
static void changed(const char *path, const char *from, const char *into, const char *why)
{
    size_t len = 0;
    char *data = temp_get(path, &len), *at = memmem(data, len, from, strlen(from));
    CHECK(at && strlen(from) == strlen(into), from);
    if (at) memcpy(at, into, strlen(into));
    refused(recipes[0], temp_put("changed.safetensors", data, len), why);
    free(data);
}

static void damaged(const char *path)
{
    size_t len = 0;
    char *data = temp_get(path, &len);
    refused(recipes[0], temp_put("cut.safetensors", data, len - 1), "");
    refused(recipes[0], temp_put("empty.safetensors", data, 0), "");
    free(data);
    refused(recipes[0], temp_path("nowhere"), "");
    changed(path, "\"step\":\"5\"", "\"stop\":\"5\"", "not the state of a taut run");
    changed(path, "\"step\":\"5\"", "\"step\":\"x\"", "makes no sense");
    changed(path, "\"tokens\":\"360\"", "\"tokens\":\"-36\"", "makes no sense");
    changed(path, "\"recent\"", "\"rezent\"", "not the state of a taut run");
    changed(path, "m.pos.weight", "m.poz.weight", "m.pos.weight");
}

/* ---- memory ---- */

static bool saves(const taut_trainer *t, const char *path, long n)
{
    taut_alloc_fail_at(n);
    const taut_status s = taut_state_save(&t->clock, t->optimiser, path);
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY, taut_last_error());
    return s == TAUT_OK;
}

static bool loads(taut_trainer *t, const char *path, long n)
{
    taut_alloc_fail_at(n);
    const taut_status s = taut_state_load(&t->clock, t->optimiser, path);
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY, taut_last_error());
    return s == TAUT_OK;
}

static long out_of_memory(const char *path)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, recipes[0], "cpu");
    const int files = temp_count();
    long saving = 1, loading = 1;
    while (loading < 10000 && !loads(&t, path, loading)) loading++;
    while (saving < 1000 && !saves(&t, path, saving)) saving++;
    CHECK(saves(&t, path, saving + 1) && loads(&t, path, loading + 1), "a failure was overlooked");
    CHECK(temp_count() == files, "no temporary is left");
    CHECK(saving > 5 && loading > 50, "they did fail");
    trainer_end(&t, cfg);
    return saving + loading - 2;
}

int main(void)
{
    char path[1200];
    taut_trainer t;
    test_begin();
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* where fsync costs nothing */
    temp_begin();
    for (case_no = 0; case_no < 6; case_no++) goes_on(recipes[case_no / 2], case_no % 2 ? "ref" : "cpu");
    snprintf(path, sizeof path, "%s", temp_path("good.safetensors"));
    taut_config *cfg = trainer_of(&t, recipes[0], "cpu");
    steps(&t, 5);
    must(taut_state_save(&t.clock, t.optimiser, path));
    trainer_end(&t, cfg);
    another_run(path);
    damaged(path);
    return test_end("state", "bit for bit; %ld allocations failed one by one", out_of_memory(path));
}
