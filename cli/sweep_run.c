/* A worker of a sweep: takes runs that nobody has, each as a process that trains and then one that certifies.  A signal is passed
 * on to those that run: each saves what it has, the worker waits for them, and the same command goes on from there; a second
 * signal ends all of them at once.  Killed without a chance to do so, the worker takes its children with it: the kernel tells
 * them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep.h"

static volatile sig_atomic_t stopped_by; /* the signal; 0: none */
static sweep *running;

static void pass_on(int number)
{
    for (int i = 0; i < running->runs; i++)
        if (running->point[i].child > 0) kill(running->point[i].child, number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (stopped_by) {
        pass_on(SIGKILL);
        _exit(128 + number);
    }
    stopped_by = number;
    if (info->si_code != SI_KERNEL) pass_on(number); /* a terminal has told everybody itself */
}

static bool has(const char *folder, const char *name)
{
    char path[SWEEP_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

cJSON *sweep_look(const char *folder)
{
    char *json = NULL;
    cJSON *o = taut_run_json(&json, folder) ? NULL : cJSON_Parse(json);
    taut_string_free(json);
    return o;
}

/* What is to be done with a run: all of one recipe, so what is finished is what was asked for. */
static int stage_of(const char *folder)
{
    cJSON *o = sweep_look(folder);
    const bool finished = cJSON_IsTrue(cJSON_GetObjectItem(o, "finished")), proved = cJSON_GetObjectItem(o, "about");
    cJSON_Delete(o);
    return !finished ? SWEEP_TRAINS : proved ? SWEEP_DONE : SWEEP_CERTIFIES;
}

static void train_words(const sweep *s, int run, const char *folder, const char *word[SWEEP_WORDS],
                        char room[SWEEP_AXES + 1][SWEEP_LEN])
{
    const char *set[64];
    const int count = sweep_sets(s, run, set, room);
    int n = 0;
    word[n++] = "taut";
    word[n++] = "train";
    word[n++] = s->recipe;
    word[n++] = "--out";
    word[n++] = folder;
    word[n++] = "--json";
    if (has(folder, "state.safetensors")) word[n++] = "--resume";
    for (int i = 0; i < count; i++) word[n++] = "--set", word[n++] = set[i];
    if (cli_flag(s->args, "--kernels")) word[n++] = "--kernels", word[n++] = cli_text(s->args, "--kernels", "");
    word[n] = NULL;
}

/* In the child: told when the sweep dies, its output into the log, and then the other program, which holds the claim too.
 * Workers that mpirun or srun started together are no ranks of one training. */
static void become(const char *const *word, const char *log, int claim, pid_t parent, const sigset_t *mask)
{
    static const char *const together[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE" };
    const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) _exit(EXIT_BAD);
    if (fcntl(claim, F_SETFD, 0) != 0) _exit(EXIT_BAD);
    for (int i = 0; i < 4; i++) unsetenv(together[i]);
    execv("/proc/self/exe", (char *const *)word);
    _exit(EXIT_BAD);
}

/* Signals wait while a child is made, so that none gets lost between its birth and its name in the list. */
static bool start(sweep_point *p, const char *const *word, const char *folder)
{
    char log[SWEEP_PATH + 16];
    sigset_t both, before;
    const pid_t parent = getpid();
    snprintf(log, sizeof log, "%s/sweep.log", folder);
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    const pid_t child = stopped_by ? -1 : fork();
    if (child == 0) become(word, log, p->fd, parent, &before);
    p->child = child > 0 ? child : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child > 0;
}

static void lose(sweep *s, int run, const char *why)
{
    char folder[SWEEP_PATH];
    sweep_folder(s, run, folder);
    fprintf(stderr, "taut sweep: %s %s\n", folder, why);
    sweep_claim_end(s, run, &s->point[run], "failed");
    s->point[run].stage = SWEEP_LOST;
}

/* The next process of a run that is ours, or its end. */
static void advance(sweep *s, int run)
{
    char folder[SWEEP_PATH], cert[SWEEP_PATH + 32], room[SWEEP_AXES + 1][SWEEP_LEN], threads[16];
    const char *word[SWEEP_WORDS];
    sweep_point *p = &s->point[run];
    sweep_folder(s, run, folder);
    snprintf(cert, sizeof cert, "%s/certificate.json", folder);
    snprintf(threads, sizeof threads, "%d", s->threads);
    const int before = (int)p->stage, next = stage_of(folder);
    if (next <= before) {
        lose(s, run, "failed: see its sweep.log");
        return;
    }
    p->stage = next;
    if (next == SWEEP_DONE) {
        sweep_claim_end(s, run, p, NULL);
        return;
    }
    train_words(s, run, folder, word, room);
    const char *const certify[] = { "taut", "certify", folder, "--out", cert, "--json", NULL };
    if (next == SWEEP_CERTIFIES) memcpy(word, certify, sizeof certify);
    int n = 0;
    while (word[n]) n++;
    if (s->threads) word[n++] = "--threads", word[n++] = threads, word[n] = NULL;
    if (start(p, word, folder)) return;
    if (!stopped_by) lose(s, run, "failed: no process can be started");
}

/* Takes the first run that is not done and that nobody has; false: there is none now. */
static bool take(sweep *s)
{
    char folder[SWEEP_PATH];
    for (int i = 0; i < s->runs && !stopped_by; i++) {
        sweep_point *p = &s->point[i];
        if (p->stage != SWEEP_OPEN || p->fd >= 0) continue;
        const sweep_claim claim = sweep_claim_look(s, i, p);
        sweep_folder(s, i, folder);
        if (claim == SWEEP_FAILED) lose(s, i, "failed in another worker: see its sweep.log");
        if (claim != SWEEP_FREE) continue;
        if (sweep_same(s, i)) { /* begun since this worker looked first */
            lose(s, i, "is left alone");
            continue;
        }
        /* One that is done, but has a claim left by a worker who died, is taken all the same: to end a claim clears all. */
        if (stage_of(folder) == SWEEP_DONE && p->number == 0) {
            p->stage = SWEEP_DONE;
            continue;
        }
        const int taken = sweep_claim_take(s, i, p);
        if (taken < 0) lose(s, i, "failed: no file can be made there");
        if (taken <= 0) continue;
        if (sweep_same(s, i))
            lose(s, i, "is left alone");
        else
            advance(s, i);
        return true;
    }
    return false;
}

/* A child has ended, with this state. */
static void ended(sweep *s, int run, int state)
{
    sweep_point *p = &s->point[run];
    p->child = 0;
    if (p->fd < 0) /* another has the run */
        p->stage = SWEEP_OPEN;
    else if (stopped_by)
        sweep_claim_end(s, run, p, "free");
    else if (WIFEXITED(state) && WEXITSTATUS(state) == EXIT_DONE)
        advance(s, run);
    else
        lose(s, run, "failed: see its sweep.log");
}

/* Another worker thought this one dead: the run is his now. */
static void give_up(sweep *s, int run)
{
    char folder[SWEEP_PATH];
    sweep_folder(s, run, folder);
    fprintf(stderr, "taut sweep: %s: this worker was silent for too long, another has taken the run\n", folder);
    close(s->point[run].fd);
    s->point[run].fd = -1;
    kill(s->point[run].child, SIGKILL);
}

/* Looks after the children; returns how many there are, and in *done how many runs are over. */
static int tend(sweep *s, int *done)
{
    int state, active = 0;
    *done = 0;
    for (int i = 0; i < s->runs; i++) {
        sweep_point *p = &s->point[i];
        if (p->child > 0 && waitpid(p->child, &state, WNOHANG) == p->child) ended(s, i, state);
        if (p->child > 0 && p->fd >= 0 && !sweep_claim_beat(s, i, p)) give_up(s, i);
        active += p->child > 0;
        *done += p->stage == SWEEP_DONE || p->stage == SWEEP_LOST;
    }
    return active;
}

static void work(sweep *s, int jobs)
{
    enum {
        SHORT = 20000000
    }; /* nanoseconds between looks at the children; others' runs are looked at every half second */
    char text[64];
    double next = 0;
    for (int done = 0;;) {
        const int active = tend(s, &done);
        snprintf(text, sizeof text, "%d of %d runs", done, s->runs);
        cli_bar((double)done / s->runs, text);
        if (active == 0 && (done == s->runs || stopped_by)) break;
        if (active < jobs && !stopped_by && sweep_now() >= next) {
            if (take(s)) continue;
            if (active == 0 && cli_flag(s->args, "--leave")) break;
            next = sweep_now() + 0.5;
        }
        nanosleep(&(struct timespec){ 0, SHORT }, NULL);
    }
    cli_bar_end();
}

int sweep_run(sweep *s)
{
    const struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    int code = sweep_claim_open(s);
    if (code) return code;
    running = s;
    for (int i = 0; i < s->runs; i++) s->point[i].fd = -1;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    work(s, (int)cli_int(s->args, "--jobs", 1, 1, 64));
    for (int i = 0; i < s->runs; i++)
        if (s->point[i].stage == SWEEP_LOST) code = EXIT_BAD;
    if (!stopped_by) return code;
    cli_refuse(s->args, "stopped; the same command goes on");
    return 128 + stopped_by;
}
