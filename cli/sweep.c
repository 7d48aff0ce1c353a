/* Many runs of one recipe: every combination of the values of some keys, each in a folder that says which.  A sweep that was
 * stopped, or whose grid has grown, goes on where it was: finished runs are passed over, begun ones resumed.  The same command
 * may be started many times, on all machines that share the folder: each is a worker. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

/* --threads says how many each run has; else those of the machine are divided between the jobs.  0: all there are. */
static int threads_per_run(const cli_args *a, int jobs)
{
    char *json = NULL;
    if (cli_flag(a, "--threads")) return (int)cli_int(a, "--threads", 1, 1, 1 << 16);
    if (jobs == 1 || taut_build_json(&json, NULL)) return 0;
    cJSON *o = cJSON_Parse(json);
    const int all = (int)cli_number(o, "threads");
    taut_string_free(json);
    cJSON_Delete(o);
    return all > jobs ? all / jobs : 1;
}

/* Runs that other workers have. */
static int to_do(const sweep *s)
{
    int left = 0;
    for (int i = 0; i < s->runs; i++) left += s->point[i].stage == SWEEP_OPEN;
    return left;
}

static int leave(const sweep *s, int left)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "done", s->runs - left);
    cJSON_AddNumberToObject(o, "left", left);
    if (cli_flag(s->args, "--json")) return cli_json(o);
    printf("%d of %d runs are with other workers: the last one writes %s/frontier.html\n", left, s->runs, s->out);
    cJSON_Delete(o);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    static sweep s;
    s = (sweep){ .args = a, .recipe = a->operand[0], .out = cli_text(a, "--out", NULL), .runs = 1 };
    if (cli_flag(a, "--slurm")) /* the job's machines may have a device that this one has not */
        cli_look(a);
    else
        (void)cli_table(a); /* said once, and not by every run */
    if (!s.out) return cli_refuse(a, "say where the runs go: --out FOLDER");
    if (strlen(s.out) >= SWEEP_LEN) return cli_refuse(a, "--out is too long a name");
    if (strchr(s.out, '\'') || strchr(s.recipe, '\'')) return cli_refuse(a, "a name with a quote in it");
    if (!cli_flag(a, "--slurm"))
        for (int i = 0; i < 2; i++) {
            const char *const of_a_job[] = { "--sbatch", "--workers" };
            if (cli_flag(a, of_a_job[i]))
                return cli_refuse(a, "%s is about the job that --slurm FILE writes", of_a_job[i]);
        }
    const int jobs = (int)cli_int(a, "--jobs", 1, 1, 64);
    int code = sweep_read(&s, a);
    if (!code) code = sweep_check(&s);
    if (code) return code;
    if (cli_flag(a, "--slurm")) return sweep_slurm(&s, cli_text(a, "--slurm", ""));
    s.threads = threads_per_run(a, jobs);
    code = sweep_run(&s);
    if (code > EXIT_UNKNOWN) return code; /* a signal */
    const int left = to_do(&s);
    if (left) return code ? code : leave(&s, left);
    const int told = sweep_tell(&s);
    return code ? code : told;
}

static const cli_option options[] = {
    { "--out", "FOLDER", "where the runs go, one folder each, named by its values of the grid" },
    { "--grid", "S.K=A,B", "values of a key; may be repeated: every combination is run" },
    { "--set", "S.K=V", "override a key of the recipe in all runs; may be repeated" },
    { "--mean", "S.K", "rank the settings by their mean loss over this key of the grid; may be repeated" },
    { "--jobs", "N", "runs at a time (default 1); they divide the threads, unless --threads says how many each has" },
    { "--leave", NULL, "end when every run that is left is another worker's, instead of waiting in case he dies" },
    { "--stale", "SECONDS", "after this silence a worker on another machine counts as dead (default 60)" },
    { "--slurm", "FILE", "write an array job of workers to FILE and submit it with sbatch, instead of running" },
    { "--workers", "N", "of that job (default: one for each run, at most 32)" },
    { "--sbatch", "OPTIONS", "of that job, such as '-p gpu -t 60'; may be repeated" },
    { NULL, NULL, NULL },
};

const cli_command cli_sweep = {
    "sweep",
    "RECIPE --out FOLDER",
    "trains and certifies many runs, and draws their frontier",
    "taut sweep recipes/tiny.ini --out runs/lr --grid train.lr=0.03,0.07 --jobs 2",
    1,
    1,
    options,
    run,
};
