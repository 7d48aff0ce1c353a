/* Many runs of one recipe: every combination of the values of some keys, each in a folder that says which.  A sweep that was
 * stopped, or whose grid has grown, goes on where it was: finished runs are passed over, begun ones resumed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

static int write_slurm(const sweep *s, const char *path)
{
    char folder[SWEEP_PATH], room[SWEEP_AXES][SWEEP_LEN];
    const char *word[SWEEP_WORDS];
    FILE *f = fopen(path, "w");
    if (!f) return cli_refuse(s->args, "%s: %s", path, strerror(errno));
    fprintf(f, "#!/bin/sh\n#SBATCH --array=0-%d\n#SBATCH --job-name=taut\ncase $SLURM_ARRAY_TASK_ID in\n", s->runs - 1);
    for (int i = 0; i < s->runs; i++) {
        sweep_folder(s, i, folder);
        sweep_words(s, i, folder, word, room);
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

/* Unless --threads says how many each run has, those of the machine are divided between the jobs. */
static int threads_per_run(const cli_args *a, int jobs)
{
    char *json = NULL;
    if (jobs == 1 || cli_flag(a, "--threads") || taut_build_json(&json, NULL)) return 0;
    cJSON *o = cJSON_Parse(json);
    const int all = (int)cli_number(o, "threads");
    taut_string_free(json);
    cJSON_Delete(o);
    return all > jobs ? all / jobs : 1;
}

static int run(const cli_args *a)
{
    static sweep s;
    s = (sweep){ .args = a, .recipe = a->operand[0], .out = cli_text(a, "--out", NULL), .runs = 1 };
    (void)cli_table(a);
    if (!s.out) return cli_refuse(a, "say where the runs go: --out FOLDER");
    if (strlen(s.out) >= SWEEP_LEN) return cli_refuse(a, "--out is too long a name");
    if (strchr(s.out, '\'') || strchr(s.recipe, '\'')) return cli_refuse(a, "a name with a quote in it");
    const int jobs = (int)cli_int(a, "--jobs", 1, 1, 64);
    int code = sweep_read(&s, a);
    if (!code) code = sweep_check(&s);
    if (code) return code;
    if (cli_flag(a, "--slurm")) return write_slurm(&s, cli_text(a, "--slurm", ""));
    s.threads = threads_per_run(a, jobs);
    code = sweep_run(&s);
    if (code > EXIT_UNKNOWN) return code; /* a signal */
    const int told = sweep_tell(&s);
    return code ? code : told;
}

static const cli_option options[] = {
    { "--out", "FOLDER", "where the runs go, one folder each, named by its values of the grid" },
    { "--grid", "S.K=A,B", "values of a key; may be repeated: every combination is run" },
    { "--set", "S.K=V", "override a key of the recipe in all runs; may be repeated" },
    { "--mean", "S.K", "rank the settings by their mean loss over this key of the grid; may be repeated" },
    { "--jobs", "N", "runs at a time (default 1); they divide the threads, unless --threads says how many each has" },
    { "--slurm", "FILE", "write a Slurm array script instead of running" },
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
