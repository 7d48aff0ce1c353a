/* The runs of a sweep as processes.  A signal is passed on to those that run: each saves what it has, the sweep waits for
 * them, and the same command goes on from there; a second signal ends all of them at once.  Killed without a chance to do
 * so, the sweep takes its children with it: the kernel tells them. */
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
        if (running->child[i] > 0) kill(running->child[i], number);
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

/* Trained to the end that the recipe has now: a longer one goes on. */
static bool finished(const sweep *s, int run, const char *folder)
{
    const char *set[64];
    char room[SWEEP_AXES][SWEEP_LEN], *json = NULL;
    cJSON *o = sweep_look(folder), *recipe = NULL;
    const cJSON *summary = cJSON_GetObjectItem(o, "summary");
    bool done = cJSON_IsTrue(cJSON_GetObjectItem(o, "finished"));
    const int count = sweep_sets(s, run, set, room);
    const taut_recipe_options options = { .size = sizeof options, .overrides = set, .count = count };
    if (done && !taut_recipe_json(&json, s->recipe, &options)) recipe = cJSON_Parse(json);
    const cJSON *steps = cJSON_GetObjectItem(cJSON_GetObjectItem(recipe, "values"), "train.steps");
    const bool early = cli_number(summary, "best_step") > 0; /* a run with patience may end where it likes */
    if (steps && !early) done = cli_number(summary, "steps") >= strtod(cJSON_GetStringValue(steps), NULL);
    taut_string_free(json);
    cJSON_Delete(recipe);
    cJSON_Delete(o);
    return done;
}

void sweep_words(const sweep *s, int run, const char *folder, const char *word[SWEEP_WORDS],
                 char room[SWEEP_AXES][SWEEP_LEN])
{
    static char threads[16];
    static const char *const passed[] = { "--threads", "--seed", "--kernels" };
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
    for (int i = 0; i < 3; i++)
        if (cli_flag(s->args, passed[i])) word[n++] = passed[i], word[n++] = cli_text(s->args, passed[i], "");
    if (s->threads) {
        snprintf(threads, sizeof threads, "%d", s->threads);
        word[n++] = "--threads", word[n++] = threads;
    }
    word[n] = NULL;
}

/* In the child: told when the sweep dies, its output into the log, and then the other program. */
static void become(const char *const *word, const char *log, pid_t parent, const sigset_t *mask)
{
    const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) _exit(EXIT_BAD);
    execv("/proc/self/exe", (char *const *)word);
    _exit(EXIT_BAD);
}

/* Signals wait while a child is made, so that none gets lost between its birth and its name in the list. */
static bool start(sweep *s, int run, const char *const *word, const char *folder)
{
    char log[SWEEP_PATH + 16];
    sigset_t both, before;
    const pid_t parent = getpid();
    snprintf(log, sizeof log, "%s/sweep.log", folder);
    if (!cli_make_folder(folder)) return false;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    const pid_t child = fork();
    if (child == 0) become(word, log, parent, &before);
    s->child[run] = child > 0 ? child : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child > 0;
}

/* Waits for one child; returns its run, or -1. */
static int reap(sweep *s, bool *well)
{
    int state = 0;
    pid_t who;
    do who = wait(&state);
    while (who < 0 && errno == EINTR);
    for (int i = 0; who > 0 && i < s->runs; i++)
        if (s->child[i] == who) {
            s->child[i] = 0;
            *well = WIFEXITED(state) && WEXITSTATUS(state) == EXIT_DONE;
            return i;
        }
    return -1;
}

static int train_all(sweep *s, int jobs)
{
    char folder[SWEEP_PATH], room[SWEEP_AXES][SWEEP_LEN], text[64];
    const char *word[SWEEP_WORDS];
    int active = 0, failed = 0, done = 0;
    for (int next = 0; (next < s->runs && !stopped_by) || active;) {
        if (next < s->runs && active < jobs && !stopped_by) {
            sweep_folder(s, next, folder);
            if (finished(s, next, folder)) {
                next++, done++;
                continue;
            }
            sweep_words(s, next, folder, word, room);
            if (!start(s, next, word, folder)) return cli_refuse(s->args, "%s: cannot start a run there", folder);
            next++, active++;
            continue;
        }
        bool well = false;
        const int which = reap(s, &well);
        active--, done++;
        if (!well && which >= 0 && !stopped_by) {
            sweep_folder(s, which, folder);
            fprintf(stderr, "taut sweep: %s failed: see its sweep.log\n", folder);
            failed++;
        }
        snprintf(text, sizeof text, "%d of %d runs", done, s->runs);
        cli_bar((double)done / s->runs, text);
    }
    cli_bar_end();
    return failed ? EXIT_BAD : EXIT_DONE;
}

/* Trained to its end, and without a certificate of the model as it is now. */
static bool to_certify(const char *folder)
{
    cJSON *o = sweep_look(folder);
    const bool wanted = cJSON_IsTrue(cJSON_GetObjectItem(o, "finished")) && !cJSON_GetObjectItem(o, "about");
    cJSON_Delete(o);
    return wanted;
}

static int certify_all(sweep *s)
{
    char folder[SWEEP_PATH], cert[SWEEP_PATH + 32];
    for (int i = 0; i < s->runs && !stopped_by; i++) {
        sweep_folder(s, i, folder);
        snprintf(cert, sizeof cert, "%s/certificate.json", folder);
        const char *word[] = { "taut", "certify", folder, "--out", cert, "--json", NULL };
        bool well = false;
        if (!to_certify(folder)) continue;
        const bool lost = !start(s, i, word, folder) || reap(s, &well) < 0 || !well;
        if (lost && !stopped_by) return cli_refuse(s->args, "%s: cannot be certified", folder);
    }
    return EXIT_DONE;
}

int sweep_run(sweep *s)
{
    const struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    running = s;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    const int trained = train_all(s, (int)cli_int(s->args, "--jobs", 1, 1, 64)), certified = certify_all(s);
    if (!stopped_by) return trained ? trained : certified;
    cli_refuse(s->args, "stopped; the same command goes on");
    return 128 + stopped_by;
}
