/* The papers' tables and figures as commands. */
#include "papers/paper.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "bound/arithmetic.h"
#include "cli/cli.h"
#include "kernels/kernels.h"
#include "taut.h"

static const struct {
    const char *id, *small, *what;
    cJSON *(*make)(const paper_options *);
    bool rows; /* each row is trained by itself: --only */
    bool data; /* --data is for it */
    const char
        *full; /* how long the full size takes where nothing is trained; NULL: seconds, or the first network says */
    double gigabytes; /* of memory that have to be free before that begins */
} figures[] = {
    { "enforced-table1", "7 min", "NanoGPT's architectures: bound, loss and activations with and without constraints",
      paper_enforced_table1, true, true, NULL, 0 },
    { "enforced-fig2", "4 min", "loss against the proved bound, nine weight constraints with AdamW and Muon",
      paper_enforced_fig2, true, true, NULL, 0 },
    { "enforced-fig3", "3 min", "a constrained and a free CIFAR-10 MLP under l2 attacks", paper_enforced_fig3, false,
      true, NULL, 0 },
    { "enforced-fig4", "4 min", "CIFAR-10 MLP: accuracy against the proved bound, the paper's constraints",
      paper_enforced_fig4, true, true, NULL, 0 },
    { "jasmin-table1", "7 min", "ViTs with JaSMin and Specformer under attack, three seeds", paper_jasmin_table1, true,
      true, NULL, 0 },
    { "jasmin-table2", "2 min", "ViTs with the penalties and weights of the paper's CIFAR-10 table, beside its figures",
      paper_jasmin_table2, true, true, NULL, 0 },
    { "jasmin-fig3", "1 s", "the bound g_1 over the softmax Jacobian's norm", paper_jasmin_fig3, false, false, NULL,
      0 },
    { "jasmin-fig4", "2 min", "the slope of a whole ViT over test images, with and without penalties",
      paper_jasmin_fig4, false, true, NULL, 0 },
    { "jasmin-fig6", "1 min", "bounds of every head of a ViT, without and with JaSMin", paper_jasmin_fig6, false, true,
      NULL, 0 },
    { "plash-fig4", "1 min",
      "how often PLASH's deviation is certified: the paper's certificate as printed, mended, and ours",
      paper_plash_fig4, false, false, "17 min", 0.5 },
    { "plash-deviation", "1 s", "the bound on the deviation beside the truth, where clusters approximate attention",
      paper_plash_deviation, false, false, NULL, 0 },
    { "plash-table1", "30 min",
      "forecasting with softmax, ProbSparse, PLASH attention and its rivals on ETT and weather", paper_plash_table1,
      true, false, NULL, 0 },
    { "plash-table2", "3 min", "latency of PLASH attention beside exact attention", paper_plash_table2, false, false,
      "more than 10 min", 1 },
    { "plash-fig3", "2 min", "peak memory of PLASH attention beside exact attention", paper_plash_fig3, false, false,
      "2 min", 1 },
    { "attlip-fig1", "80 s", "what every proximal solver spends to reach a residual", paper_attlip_fig1, false, false,
      "more than 15 min", 0.5 },
    { "attlip-table1", "1 min", "constants of AttLip and l2 attention against the length, proved and measured",
      paper_attlip_table1, false, false, "5 min", 1 },
    { "attlip-table2", "2 min",
      "masked-language models: perplexity, proved constant and their product for every attention", paper_attlip_table2,
      true, true, NULL, 0 },
    { "castin-fig1", "2 min", "slopes of attention against the length, on text and on steep inputs", paper_castin_fig1,
      false, true, NULL, 0 },
    { "castin-fig2", "12 s", "the factor that decides up to which length sqrt(n) is attained", paper_castin_fig2, false,
      true, NULL, 0 },
    { "castin-fig3", "1 s", "slopes that grow like the square of the radius", paper_castin_fig3, false, false, NULL,
      0 },
    { "bounds-table", "7 s", "published bounds of one head, ours and the truth", paper_bounds_table, false, false, NULL,
      0 },
};
enum { FIGURES = sizeof figures / sizeof *figures };

static int list(const cli_args *a)
{
    cJSON *all = cJSON_CreateObject(), *each = cJSON_AddArrayToObject(all, "figures");
    const bool json = cli_flag(a, "--json");
    if (!json) printf("%-16s %-9s %s\n", "ID", "small", "what");
    for (int i = 0; i < FIGURES; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddItemToArray(each, one);
        cJSON_AddStringToObject(one, "id", figures[i].id);
        cJSON_AddStringToObject(one, "what", figures[i].what);
        cJSON_AddStringToObject(one, "small", figures[i].small);
        if (!json) printf("%-16s %-9s %s\n", figures[i].id, figures[i].small, figures[i].what);
    }
    if (json) return cli_json(all);
    cJSON_Delete(all);
    printf("\nsmall: about how long --scale small takes on two cores\n");
    return EXIT_DONE;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether the full size of what trains nothing has the memory that it takes; a training asks for its own. */
static taut_status fits(int which)
{
    return taut_memory_check(figures[which].gigabytes * 1e9, taut_memory_available(), figures[which].id);
}

/* One figure: what came out, and the command, time and threads that it took. */
static int make(const cli_args *a, int which, const char *scale)
{
    char folder[64], command[4096];
    int kept = 0;
    const bool tiny = strcmp(scale, "tiny") == 0;
    const char *data = cli_text(a, "--data", NULL), *kernels = cli_text(a, "--kernels", NULL);
    const char *only = cli_text(a, "--only", NULL);
    const bool full = strcmp(scale, "full") == 0, device = kernels && strncmp(kernels, "cuda", 4) == 0;
    const bool asks = full && !device && !cli_flag(a, "--yes");
    if (only && !figures[which].rows)
        return cli_refuse(a, "%s is made as a whole: --only is not for it", figures[which].id);
    if (only && strspn(only, ",") == strlen(only)) return cli_refuse(a, "--only has no word");
    if (data && !figures[which].data) return cli_refuse(a, "%s reads no data: --data is not for it", figures[which].id);
    if (!*cli_text(a, "--out", "runs")) return cli_refuse(a, "--out: the folder has no name");
    if (full && figures[which].full && fits(which)) return cli_fail(a);
    if (asks && figures[which].full)
        return cli_refuse(a, "at full size it takes %s on two cores: --yes begins", figures[which].full);
    const double start = now();
    snprintf(folder, sizeof folder, "runs/%s-%s", figures[which].id, scale);
    snprintf(command, sizeof command, "taut paper %s --scale %s%s%s%s%s%s%s", figures[which].id, scale,
             data ? " --data " : "", data ? data : "", kernels ? " --kernels " : "", kernels ? kernels : "",
             only ? " --only " : "", only ? only : "");
    cJSON *o = figures[which].make(&(paper_options){ .small = !full,
                                                     .ask = asks,
                                                     .tiny = tiny,
                                                     .out = cli_text(a, "--out", folder),
                                                     .data = data,
                                                     .only = only,
                                                     .k = cli_table(a),
                                                     .kept = &kept });
    cli_bar_end();
    if (!o) return cli_stop_asked() ? (void)cli_fail(a), 128 + cli_stop_asked() : cli_fail(a);
    if (only && !cJSON_GetArraySize(cJSON_GetObjectItem(o, "rows"))) {
        cJSON_Delete(o);
        return cli_refuse(a, "no row of %s has a name with %s", figures[which].id, only);
    }
    if (!cli_flag(a, "--json")) paper_print(o);
    cJSON_AddStringToObject(o, "command", command);
    cJSON_AddNumberToObject(o, "seconds", now() - start);
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddNumberToObject(o, "runs_kept", kept);
    if (cli_flag(a, "--json")) return cli_json(o);
    cJSON_Delete(o);
    printf("command    %s: %.1f s, %d threads", command, now() - start, taut_threads());
    if (kept) printf(", %d runs were there already", kept);
    putchar('\n');
    return EXIT_DONE;
}

/* Whether there is room for the threads of products, and the arithmetic that they make can be trusted. */
static taut_status ready(void)
{
    const taut_kernels *ref;
    const taut_status s = taut_kernels_open(&ref, "ref");
    return s ? s : taut_arithmetic_test();
}

static int run(const cli_args *a)
{
    const char *names[FIGURES], *scale = cli_text(a, "--scale", "small"), *id = a->operands ? a->operand[0] : NULL;
    cli_look(a);
    if (strcmp(scale, "tiny") != 0 && strcmp(scale, "small") != 0 && strcmp(scale, "full") != 0)
        return cli_refuse(a, "--scale is tiny, small or full, not %s", scale);
    if (cli_flag(a, "--list")) return list(a);
    if (!id) return cli_refuse(a, "which figure?  taut paper --list names them");
    for (int i = 0; i < FIGURES; i++) {
        names[i] = figures[i].id;
        if (strcmp(id, figures[i].id) == 0) return ready() ? cli_fail(a) : make(a, i, scale);
    }
    const char *near = taut_nearest(id, names, FIGURES);
    return cli_refuse(a, "no figure is called %s%s%s%s (taut paper --list)", id, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "");
}

static const cli_option options[] = {
    { "--list", NULL, "name the figures" },
    { "--scale", "S", "small (minutes on two cores, the default), full, or tiny (seconds: does it run?)" },
    { "--yes", NULL,
      "begin a full size without a device; else it says how long that, or its first network, would take" },
    { "--out", "DIR", "folder for the runs; finished ones with the same settings are kept" },
    { "--only", "WORDS", "only rows whose name holds all of these words, a comma between two: rows can be shared out" },
    { "--data", "TEXT", "another text" },
    { NULL, NULL, NULL },
};

const cli_command cli_paper = {
    "paper", "ID", "reproduces a table or figure of a paper", "taut paper enforced-fig2 --scale small", 0, 1,
    options, run,
};
