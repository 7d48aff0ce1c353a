/* A run that dies at any moment of its file work, or meets a full disk there, loses nothing.
 *
 * The library's calls to write, fsync and rename land here: number n of them never happens (the process dies
 * as by kill -9, perhaps with half of the bytes written) or, from it on, the disk is full.  After every n in
 * turn, what is in the folder must open, and going on must end with the same bytes as a run that was never
 * disturbed. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "temp.h"

typedef enum { NOTHING, DIE, DIE_HALF, FULL } mishap;

static mishap mode;
static int left; /* operations until it happens */

enum { DEAD = 99, CLEAN = 0, REFUSED = 1 };

/* True: there is no space for this write, nor for any after it. */
static bool disturbed(int fd, const void *data, size_t len)
{
    if (mode == NOTHING || --left > 0) return false;
    if (mode == FULL) return true;
    if (mode == DIE_HALF && data && syscall(SYS_write, fd, data, len / 2) < 0) _exit(DEAD + 1);
    _exit(DEAD);
}

ssize_t write(int fd, const void *data, size_t len)
{
    if (fd > 2 && disturbed(fd, data, len)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, data, len);
}

int fsync(int fd) /* a process that dies loses nothing that it has written, so nothing needs to be synced here */
{
    disturbed(fd, NULL, 0);
    return 0;
}

int rename(const char *from, const char *to)
{
    disturbed(-1, NULL, 0);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static const char recipe[] =
    "[data]\nlength = 800\n[model]\nwidth = 8\ndepth = 1\nheads = 2\ncontext = 8\ndropout = 0.1\n"
    "[train]\nsteps = 5\nbatch = 2\noptimiser = muon\ncheckpoint_every = 2\nlog_every = 1\n"
    "eval_every = 2\neval_batches = 2\n";

/* In a child: trains, and ends as told. */
static int train(const char *run, bool resume, mishap what, int after)
{
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        taut_config *cfg = NULL;
        taut_train_summary out;
        mode = what, left = after;
        taut_status s = taut_config_parse(&cfg, recipe, "test");
        if (!s) s = taut_train(&out, cfg, taut_kernels_find("cpu"), &(taut_training){ .run = run, .resume = resume });
        mode = NOTHING;
        if (s && what != FULL) fprintf(stderr, "%s\n", taut_last_error());
        _exit(s ? REFUSED : CLEAN);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *in(const char *run, const char *file)
{
    static char path[4][1300];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", run, file);
    return p;
}

static bool there(const char *run, const char *file) { return access(in(run, file), F_OK) == 0; }

/* Whatever stands under its final name is whole. */
static bool opens(const char *run)
{
    taut_model *m = NULL;
    taut_safetensors *st = NULL;
    bool good = true;
    if (there(run, "model.safetensors")) {
        good = !taut_model_open(&m, in(run, "model.safetensors"), taut_kernels_find("ref"), false);
        taut_model_free(m);
    }
    if (good && there(run, "state.safetensors")) {
        good = !taut_safetensors_open(&st, in(run, "state.safetensors"));
        taut_safetensors_close(st);
    }
    return good;
}

/* The file with every number of seconds (they are the clock's, not the run's) and the length of a safetensors
 * header, which depends on them, cut out. */
static char *content(const char *run, const char *file, size_t *len)
{
    char *data = temp_get(in(run, file), len);
    if (!data) return NULL;
    const bool state = strcmp(file, "state.safetensors") == 0;
    if (state) memset(data, 0, 8);
    for (char *at; (at = memmem(data, *len, "\"seconds\":", 10));) {
        char *end = at + 10;
        while (*end != '}' && *end != ',') end++;
        memmove(at, end, (size_t)(data + *len - end));
        *len -= (size_t)(end - at);
    }
    char *pad = state ? memmem(data, *len, "]}}", 3) : NULL;
    if (pad) {
        char *end = pad += 3;
        while (*end == ' ') end++;
        memmove(pad, end, (size_t)(data + *len - end));
        *len -= (size_t)(end - pad);
    }
    return data;
}

static bool same(const char *a, const char *b, const char *file)
{
    size_t la = 0, lb = 0;
    char *x = content(a, file, &la), *y = content(b, file, &lb);
    const bool equal = x && y && la == lb && memcmp(x, y, la) == 0;
    free(x), free(y);
    return equal;
}

static int files_in(const char *run)
{
    int count = 0;
    DIR *dir = opendir(run);
    for (struct dirent *e; dir && (e = readdir(dir));) count += e->d_name[0] != '.';
    if (dir) closedir(dir);
    return count;
}

static void check_end(const char *run, const char *whole)
{
    CHECK(same(run, whole, "model.safetensors"), "the same model");
    CHECK(same(run, whole, "state.safetensors"), "the same state");
    CHECK(same(run, whole, "log.jsonl"), "the same log");
    CHECK(same(run, whole, "recipe.ini"), "the same recipe");
    CHECK(there(run, "summary.json"), "a summary");
    CHECK(files_in(run) == 5, "and no other file");
}

/* Number n of the operations goes wrong; false when there are not that many. */
static bool trial(const char *whole, mishap what, int n)
{
    char run[64];
    snprintf(run, sizeof run, "run-%d-%d", (int)what, n);
    char path[1200];
    snprintf(path, sizeof path, "%s", temp_path(run));
    case_no = n;
    const int code = train(path, false, what, n);
    if (code == CLEAN) {
        check_end(path, whole);
        return false;
    }
    CHECK(code == (what == FULL ? REFUSED : DEAD), "it ended as told");
    CHECK(opens(path), "no broken file");
    if (what == FULL)
        CHECK(!there(path, "state.safetensors") || files_in(path) <= 5, "a full disk leaves no temporary");
    CHECK(train(path, there(path, "state.safetensors"), NOTHING, 0) == CLEAN, "it goes on");
    check_end(path, whole);
    return true;
}

int main(void)
{
    char whole[1200];
    test_begin();
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    temp_begin();
    snprintf(whole, sizeof whole, "%s", temp_path("whole"));
    CHECK(train(whole, false, NOTHING, 0) == CLEAN, "an undisturbed run");
    check_end(whole, whole);
    int trials[4] = { 0 };
    for (int what = DIE; what <= FULL; what++)
        while (trials[what] < 1000 && trial(whole, (mishap)what, trials[what] + 1)) trials[what]++;
    CHECK(trials[DIE] > 30 && trials[DIE] < 1000, "every operation was tried");
    return test_end("crash", "%d deaths, %d torn writes, %d full disks", trials[DIE], trials[DIE_HALF], trials[FULL]);
}
