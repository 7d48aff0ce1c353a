/* Many runs of one recipe: every combination of the values of some keys, each in a folder of its own that says which.
 * A sweep that was stopped goes on where it was: finished runs are passed over, begun ones resumed.  What is chosen by a sweep is
 * chosen by validation loss: with --mean, by its mean over the values of keys that are no choice, such as the seed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

extern char **environ;

enum { AXES = 16, VALUES = 64, RUNS = 1000, LEN = 256, NAME = 255 };

typedef struct {
    char key[64], value[VALUES][64];
    int count;
    bool mean; /* no choice: settings are judged by the mean over it */
} axis;

typedef struct {
    const cli_args *args;
    const char *recipe, *out;
    axis axis[AXES];
    int axes, runs;
    pid_t child[RUNS]; /* 0: not running */
} sweep;

/* "train.lr=0.1,0.2" */
static bool read_axis(axis *x, const char *text)
{
    const char *equal = strchr(text, '='), *at = equal ? equal + 1 : "";
    if (!equal || equal == text || equal - text >= (int)sizeof x->key) return false;
    memcpy(x->key, text, (size_t)(equal - text));
    x->key[equal - text] = '\0';
    for (x->count = 0; *at && x->count < VALUES;) {
        const size_t len = strcspn(at, ",");
        if (len == 0 || len >= sizeof x->value[0]) return false;
        memcpy(x->value[x->count], at, len);
        x->value[x->count++][len] = '\0';
        at += len + (at[len] == ',');
    }
    return x->count > 0 && !*at;
}

static const char *value_of(const sweep *s, int run, int axis_index)
{
    for (int i = 0; i < axis_index; i++) run /= s->axis[i].count;
    return s->axis[axis_index].value[run % s->axis[axis_index].count];
}

static void folder_of(const sweep *s, int run, char path[LEN * 8])
{
    int len = snprintf(path, LEN * 8, "%s/%03d", s->out, run);
    char *name = path + len;
    for (int i = 0; i < s->axes; i++)
        len += snprintf(path + len, (size_t)(LEN * 8 - len), "_%s=%s", s->axis[i].key, value_of(s, run, i));
    for (; (name = strchr(name, '/')); *name = '-') {} /* a value may be a path */
}

static bool has(const char *folder, const char *name)
{
    char path[LEN * 9];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* What the run's folder says of itself; NULL: there is none. */
static cJSON *look(const char *folder)
{
    char *json = NULL;
    cJSON *o = taut_run_json(&json, folder) ? NULL : cJSON_Parse(json);
    taut_string_free(json);
    return o;
}

static bool finished(const char *folder)
{
    cJSON *o = look(folder);
    const bool done = cJSON_IsTrue(cJSON_GetObjectItem(o, "finished"));
    cJSON_Delete(o);
    return done;
}

/* The words of `taut train` (or of `taut certify` of a finished one) for this run; the caller has room for 64. */
static void words_of(const sweep *s, int run, const char *folder, const char **word, char set[AXES][LEN])
{
    int n = 0;
    word[n++] = "taut";
    word[n++] = "train";
    word[n++] = s->recipe;
    word[n++] = "--out";
    word[n++] = folder;
    word[n++] = "--json";
    if (has(folder, "state.safetensors")) word[n++] = "--resume";
    for (int i = 0; i < s->axes; i++) {
        snprintf(set[i], LEN, "%s=%s", s->axis[i].key, value_of(s, run, i));
        word[n++] = "--set";
        word[n++] = set[i];
    }
    static const char *const passed[] = { "--threads", "--seed", "--kernels" };
    for (int i = 0; i < 3; i++)
        if (cli_flag(s->args, passed[i])) {
            word[n++] = passed[i];
            word[n++] = cli_text(s->args, passed[i], "");
        }
    word[n] = NULL;
}

static pid_t start(const char *const *word, const char *folder)
{
    char log[LEN * 9];
    pid_t child = 0;
    posix_spawn_file_actions_t files;
    snprintf(log, sizeof log, "%s/sweep.log", folder);
    if (!cli_make_folder(folder) || posix_spawn_file_actions_init(&files)) return 0;
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (posix_spawn(&child, "/proc/self/exe", &files, NULL, (char *const *)word, environ)) child = 0;
    posix_spawn_file_actions_destroy(&files);
    return child;
}

/* Waits for one child; returns its run, or -1. */
static int reap(sweep *s, bool *well)
{
    int state = 0;
    const pid_t who = wait(&state);
    for (int i = 0; who > 0 && i < s->runs; i++)
        if (s->child[i] == who) {
            s->child[i] = 0;
            *well = WIFEXITED(state) && WEXITSTATUS(state) == EXIT_DONE;
            return i;
        }
    return -1;
}

static int run_all(sweep *s, int jobs)
{
    char folder[LEN * 8], set[AXES][LEN], text[64];
    const char *word[64];
    int running = 0, failed = 0, done = 0;
    for (int next = 0; next < s->runs || running;) {
        if (next < s->runs && running < jobs) {
            folder_of(s, next, folder);
            if (finished(folder)) {
                next++, done++;
                continue;
            }
            words_of(s, next, folder, word, set);
            s->child[next] = start(word, folder);
            if (!s->child[next]) return cli_refuse(s->args, "%s: cannot start a run there", folder);
            next++, running++;
            continue;
        }
        bool well = false;
        const int which = reap(s, &well);
        running--, done++;
        if (!well && which >= 0) {
            folder_of(s, which, folder);
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
    cJSON *o = look(folder);
    const bool wanted = cJSON_IsTrue(cJSON_GetObjectItem(o, "finished")) && !cJSON_GetObjectItem(o, "about");
    cJSON_Delete(o);
    return wanted;
}

static int certify_all(sweep *s)
{
    char folder[LEN * 8], cert[LEN * 9];
    for (int i = 0; i < s->runs; i++) {
        folder_of(s, i, folder);
        snprintf(cert, sizeof cert, "%s/certificate.json", folder);
        const char *word[] = { "taut", "certify", folder, "--out", cert, "--json", NULL };
        bool well = false;
        if (!to_certify(folder)) continue;
        s->child[i] = start(word, folder);
        if (!s->child[i] || reap(s, &well) < 0 || !well) return cli_refuse(s->args, "%s: cannot be certified", folder);
    }
    return EXIT_DONE;
}

typedef struct {
    int run; /* the first of them */
    double loss, spread;
} setting;

/* Best first; NaN, a setting whose runs are not all there, last. */
static int by_loss(const void *a_, const void *b_)
{
    const setting *a = a_, *b = b_;
    if (isnan(a->loss) || isnan(b->loss)) return isnan(a->loss) - isnan(b->loss);
    return a->loss < b->loss ? -1 : a->loss > b->loss;
}

/* The settings: runs that differ only in keys of --mean are one; returns how many. */
static int settings_of(const sweep *s, const double *loss, setting *out)
{
    int count = 0;
    for (int run = 0; run < s->runs; run++) {
        double sum = 0, square = 0;
        int many = 0, first = run;
        for (int other = 0; other < s->runs; other++) {
            bool same = true;
            for (int i = 0; i < s->axes; i++)
                if (!s->axis[i].mean && strcmp(value_of(s, run, i), value_of(s, other, i)) != 0) same = false;
            if (!same) continue;
            if (other < first) first = other;
            sum += loss[other], square += loss[other] * loss[other], many++;
        }
        if (first < run) continue;
        out[count++] = (setting){ run, sum / many, sqrt(fmax(0, square / many - sum / many * (sum / many))) };
    }
    qsort(out, (size_t)count, sizeof *out, by_loss);
    return count;
}

/* One line a setting, best first. */
static void rank(const sweep *s, const double *loss, cJSON *list)
{
    setting all[RUNS] = { { 0 } };
    const int count = settings_of(s, loss, all);
    for (int i = 0; i < count; i++) {
        char text[LEN * 8] = "";
        for (int x = 0, len = 0; x < s->axes; x++)
            if (!s->axis[x].mean && s->axis[x].count > 1)
                len += snprintf(text + len, sizeof text - (size_t)len, "%s%s=%s", len ? " " : "", s->axis[x].key,
                                value_of(s, all[i].run, x));
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "setting", text);
        cJSON_AddNumberToObject(one, "val_loss", all[i].loss);
        cJSON_AddNumberToObject(one, "spread", all[i].spread);
        cJSON_AddItemToArray(list, one);
        if (cli_flag(s->args, "--json")) continue;
        printf("%-80s  loss %8.4f +- %.4f over %d runs\n", text, all[i].loss, all[i].spread, s->runs / count);
    }
}

/* One line of the table, and the run's validation loss. */
static double tell_run(const sweep *s, const char *folder, cJSON *runs)
{
    char word[32];
    cJSON *o = look(folder), *one = cJSON_CreateObject();
    const double loss = cli_number(cJSON_GetObjectItem(o, "summary"), "val_loss");
    cJSON_AddStringToObject(one, "run", folder);
    cJSON_AddNumberToObject(one, "val_loss", loss);
    cJSON_AddNumberToObject(one, "lip", cli_number(o, "lip"));
    if (!cli_flag(s->args, "--json"))
        printf("%-60s  loss %8.4f  bound %s %s\n", folder, loss, cli_up(word, o, "lip"), cli_word(o, "about"));
    cJSON_AddItemToArray(runs, one);
    cJSON_Delete(o);
    return loss;
}

/* The frontier: a page of plots, and a line for each run. */
static int tell(const sweep *s)
{
    char(*folder)[LEN * 8] = calloc((size_t)s->runs, sizeof *folder), page[LEN * 2];
    const char **list = calloc((size_t)s->runs, sizeof *list);
    cJSON *o = cJSON_CreateObject(), *runs = cJSON_AddArrayToObject(o, "runs");
    double loss[RUNS];
    int code = EXIT_DONE;
    if (!folder || !list) return cli_refuse(s->args, "out of memory");
    for (int i = 0; i < s->runs; i++) {
        folder_of(s, i, folder[i]);
        list[i] = folder[i];
        loss[i] = tell_run(s, folder[i], runs);
    }
    if (cli_flag(s->args, "--mean")) rank(s, loss, cJSON_AddArrayToObject(o, "settings"));
    snprintf(page, sizeof page, "%s/frontier.html", s->out);
    const taut_page_options options = { .size = sizeof options, .title = s->recipe, .frontier = 1 };
    if (taut_report_page(NULL, page, list, s->runs, &options)) code = cli_fail(s->args);
    free(folder);
    free(list);
    if (!code && cli_flag(s->args, "--json")) return cli_json(o);
    if (!code) printf("%s\n", page);
    cJSON_Delete(o);
    return code;
}

static int write_slurm(const sweep *s, const char *path)
{
    char folder[LEN * 8], set[AXES][LEN];
    const char *word[64];
    FILE *f = fopen(path, "w");
    if (!f) return cli_refuse(s->args, "%s: %s", path, strerror(errno));
    fprintf(f, "#!/bin/sh\n#SBATCH --array=0-%d\n#SBATCH --job-name=taut\ncase $SLURM_ARRAY_TASK_ID in\n", s->runs - 1);
    for (int i = 0; i < s->runs; i++) {
        folder_of(s, i, folder);
        words_of(s, i, folder, word, set);
        fprintf(f, "%d) set --", i);
        for (int w = 1; word[w]; w++)
            if (strcmp(word[w], "--resume") != 0) fprintf(f, " '%s'", word[w]);
        fprintf(f, "; run='%s' ;;\n", folder);
    }
    fprintf(f, "esac\n[ -e \"$run/state.safetensors\" ] && set -- \"$@\" --resume\n"
               "taut \"$@\" && taut certify \"$run\" --out \"$run/certificate.json\"\n");
    const bool lost = ferror(f) != 0;
    if (fclose(f) || lost) return cli_refuse(s->args, "%s: cannot be written", path);
    printf("%s: %d runs; sbatch %s, then this command again without --slurm for the frontier\n", path, s->runs, path);
    return EXIT_DONE;
}

/* --mean KEY: the key of a grid. */
static bool read_mean(sweep *s, const char *key)
{
    for (int i = 0; i < s->axes; i++)
        if (strcmp(s->axis[i].key, key) == 0) return s->axis[i].mean = true;
    return false;
}

/* The longest name that folder_of may give a run's folder, less where it lies. */
static size_t longest_name(const sweep *s)
{
    size_t len = 4; /* /000 */
    for (int i = 0; i < s->axes; i++) {
        size_t most = 0;
        for (int v = 0; v < s->axis[i].count; v++)
            if (strlen(s->axis[i].value[v]) > most) most = strlen(s->axis[i].value[v]);
        len += strlen(s->axis[i].key) + most + 2;
    }
    return len;
}

static int run(const cli_args *a)
{
    static sweep s;
    s = (sweep){ .args = a, .recipe = a->operand[0], .out = cli_text(a, "--out", NULL), .runs = 1 };
    (void)cli_table(a);
    if (!s.out) return cli_refuse(a, "say where the runs go: --out FOLDER");
    if (strlen(s.out) >= LEN) return cli_refuse(a, "--out is too long a name");
    if (strchr(s.out, '\'') || strchr(s.recipe, '\'')) return cli_refuse(a, "a name with a quote in it");
    if (access(s.recipe, F_OK)) return cli_refuse(a, "%s: there is no such recipe", s.recipe);
    for (int i = 0; i < a->given; i++) {
        if (strcmp(a->name[i], "--grid") != 0) continue;
        if (s.axes == AXES || !read_axis(&s.axis[s.axes], a->value[i]) || strchr(a->value[i], '\''))
            return cli_refuse(a, "--grid %s is not section.key=value,value,...", a->value[i]);
        s.runs *= s.axis[s.axes++].count;
        if (s.runs > RUNS) return cli_refuse(a, "that is more than %d runs", RUNS);
    }
    if (longest_name(&s) > NAME) return cli_refuse(a, "--grid: the folder of a run would be too long a name");
    for (int i = 0; i < a->given; i++)
        if (strcmp(a->name[i], "--mean") == 0 && !read_mean(&s, a->value[i]))
            return cli_refuse(a, "--mean %s: there is no --grid of it", a->value[i]);
    const int jobs = (int)cli_int(a, "--jobs", 1, 1, 64);
    if (cli_flag(a, "--slurm")) return write_slurm(&s, cli_text(a, "--slurm", ""));
    const int trained = run_all(&s, jobs), certified = certify_all(&s), told = tell(&s);
    return trained ? trained : certified ? certified : told;
}

static const cli_option options[] = {
    { "--out", "FOLDER", "where the runs go, one folder each" },
    { "--grid", "S.K=A,B", "values of a key; may be repeated: every combination is run" },
    { "--mean", "S.K", "rank the settings by their mean loss over this key of the grid; may be repeated" },
    { "--jobs", "N", "runs at a time (default 1; see also --threads)" },
    { "--slurm", "FILE", "write a Slurm array script instead of running" },
    { NULL, NULL, NULL },
};

const cli_command cli_sweep = {
    "sweep",
    "RECIPE --out FOLDER",
    "trains and certifies many runs, and draws their frontier",
    "taut sweep recipes/tiny.ini --out runs/lr --grid train.lr=0.001,0.003 --jobs 2 --threads 1",
    1,
    1,
    options,
    run,
};
