/* A sweep as an array job of Slurm: every task is a worker, so that the number of tasks need not be the number of runs, and a
 * task that is lost or put off costs nothing but its time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep.h"

/* In quotes for sh; the arguments of a sweep have no quote in them. */
static void word(FILE *f, const char *text) { fprintf(f, " '%s'", text); }

static bool is_ours(const char *option)
{
    static const char *const ours[] = { "--slurm", "--workers", "--sbatch", "--leave", "--json" };
    for (int i = 0; i < 5; i++)
        if (strcmp(option, ours[i]) == 0) return true;
    return false;
}

static int write_job(const sweep *s, const char *path, int workers)
{
    char program[SWEEP_PATH];
    const cli_args *a = s->args;
    const ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    FILE *f = fopen(path, "w");
    if (!f) return cli_refuse(a, "%s: %s", path, strerror(errno));
    program[len > 0 ? len : 0] = '\0';
    fprintf(f, "#!/bin/sh\n#SBATCH --array=0-%d\n#SBATCH --job-name=taut\n#SBATCH --output=%s/worker-%%a.log\n",
            workers - 1, s->out);
    for (int i = 0; i < a->given; i++)
        if (strcmp(a->name[i], "--sbatch") == 0) fprintf(f, "#SBATCH %s\n", a->value[i]);
    fprintf(f, "exec");
    word(f, program);
    fprintf(f, " sweep");
    word(f, s->recipe);
    for (int i = 0; i < a->given; i++) {
        if (is_ours(a->name[i])) continue;
        fprintf(f, " %s", a->name[i]);
        if (a->value[i]) word(f, a->value[i]);
    }
    fprintf(f, " --leave\n");
    const bool lost = ferror(f) != 0;
    return fclose(f) || lost ? cli_refuse(a, "%s: cannot be written", path) : EXIT_DONE;
}

/* What sbatch says is the job's number, and a cluster's name behind a semicolon. */
static int submit(const sweep *s, const char *path, char job[64])
{
    int ends[2], state = 0;
    if (pipe(ends) != 0) return cli_refuse(s->args, "sbatch: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execlp("sbatch", "sbatch", "--parsable", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    if (!said || fscanf(said, "%63[0-9]", job) != 1) *job = '\0';
    if (said) fclose(said);
    if (child < 0 || waitpid(child, &state, 0) != child) return cli_refuse(s->args, "sbatch: %s", strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return cli_refuse(s->args, "%s is written, but there is no sbatch here: submit it where there is one", path);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0 || !*job)
        return cli_refuse(s->args, "%s is written, but sbatch did not take it", path);
    return EXIT_DONE;
}

int sweep_slurm(const sweep *s, const char *path)
{
    char job[64] = "";
    const int workers = (int)cli_int(s->args, "--workers", s->runs < 32 ? s->runs : 32, 1, SWEEP_RUNS);
    const char *missing = cli_make_folder(s->out);
    if (missing) return cli_refuse(s->args, "%s: cannot make the folder: %s", s->out, missing);
    int code = write_job(s, path, workers);
    if (!code) code = submit(s, path, job);
    if (code) return code;
    printf("job %s: %d workers for %d runs (%s)\n  watch it   squeue -j %s; tail %s/worker-*.log\n"
           "  stop it    scancel %s; the same command goes on\n  the end    %s/frontier.html, by the last worker\n",
           job, workers, s->runs, path, job, s->out, job, s->out);
    return EXIT_DONE;
}
