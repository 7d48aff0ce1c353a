/* The papers' tables and figures as commands. */
#include "paper.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "bound/print.h"
#include "cli.h"

static const struct {
    const char *id, *what;
    cJSON *(*make)(const paper_options *);
} figures[] = {
    { "enforced-table1", "NanoGPT's architectures: bound, loss and activations with and without constraints",
      paper_enforced_table1 },
    { "enforced-fig2", "loss against the proved bound, every weight constraint with AdamW and Muon",
      paper_enforced_fig2 },
    { "enforced-fig3", "a constrained and a free CIFAR-10 MLP under l2 attacks", paper_enforced_fig3 },
    { "enforced-fig4", "CIFAR-10 MLP: accuracy against the proved bound, the paper's constraints",
      paper_enforced_fig4 },
    { "jasmin-table1", "ViTs with JaSMin and Specformer under attack, three seeds", paper_jasmin_table1 },
    { "jasmin-table2", "ViTs with the penalties and weights of the paper's CIFAR-10 table, beside its figures",
      paper_jasmin_table2 },
    { "jasmin-fig3", "the bound g_1 over the softmax Jacobian's norm", paper_jasmin_fig3 },
    { "jasmin-fig4", "the slope of a whole ViT over test images, with and without penalties", paper_jasmin_fig4 },
    { "jasmin-fig6", "bounds of every head of a ViT, without and with JaSMin", paper_jasmin_fig6 },
    { "plash-fig4", "how often PLASH's deviation is certified: the paper's certificate as printed, mended, and ours",
      paper_plash_fig4 },
    { "plash-deviation", "the bound on the deviation beside the truth, where clusters approximate attention",
      paper_plash_deviation },
    { "plash-table1", "forecasting with softmax, ProbSparse and PLASH attention on ETT and weather",
      paper_plash_table1 },
    { "plash-table2", "latency of PLASH attention beside exact attention", paper_plash_table2 },
    { "plash-fig3", "peak memory of PLASH attention beside exact attention", paper_plash_fig3 },
    { "attlip-fig1", "what every proximal solver spends to reach a residual", paper_attlip_fig1 },
    { "attlip-table1", "constants of AttLip and l2 attention against the length, proved and measured",
      paper_attlip_table1 },
    { "attlip-table2", "masked-language models: perplexity, proved constant and their product for every attention",
      paper_attlip_table2 },
    { "castin-fig1", "slopes of attention against the length, on text and on steep inputs", paper_castin_fig1 },
    { "castin-fig2", "the factor that decides up to which length sqrt(n) is attained", paper_castin_fig2 },
    { "castin-fig3", "slopes that grow like the square of the radius", paper_castin_fig3 },
    { "bounds-table", "published bounds of one head, ours and the truth", paper_bounds_table },
};
enum { FIGURES = sizeof figures / sizeof *figures };

static int list(const cli_args *a)
{
    cJSON *all = cli_flag(a, "--json") ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < FIGURES; i++) {
        if (all)
            cJSON_AddItemToArray(all, cJSON_CreateString(figures[i].id));
        else
            printf("  %-16s %s\n", figures[i].id, figures[i].what);
    }
    return all ? cli_json(all) : EXIT_DONE;
}

/* Every figure answers { "title", "columns": [...], "rows": [[...]], "note" }, and perhaps numbers of its own. */
/* What is proved is printed rounded up, everything else to the nearest. */
static void print_cell(const cJSON *cell, const char *column)
{
    char word[32];
    if (!cJSON_IsNumber(cell))
        printf("%16s", cJSON_GetStringValue(cell));
    else if (column && strstr(column, "proved"))
        printf("%16s", up_text(word, (taut_up){ cell->valuedouble }));
    else
        printf("%16.5g", cell->valuedouble);
}

static void print_table(const cJSON *o)
{
    const cJSON *row, *cell, *columns = cJSON_GetObjectItem(o, "columns");
    printf("%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(o, "title")));
    cJSON_ArrayForEach(cell, columns) printf("%16s", cJSON_GetStringValue(cell));
    putchar('\n');
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "rows"))
    {
        int at = 0;
        cJSON_ArrayForEach(cell, row) print_cell(cell, cJSON_GetStringValue(cJSON_GetArrayItem(columns, at++)));
        putchar('\n');
    }
    cJSON_ArrayForEach(cell, o) if (cJSON_IsNumber(cell)) printf("%s %.5g\n", cell->string, cell->valuedouble);
    printf("%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(o, "note")));
}

static int run(const cli_args *a)
{
    const char *names[FIGURES], *scale = cli_text(a, "--scale", "small"), *id = a->operands ? a->operand[0] : NULL;
    (void)cli_kernels(a);
    if (cli_flag(a, "--list")) return list(a);
    if (!id) return cli_refuse(a, "which figure?  taut paper --list names them");
    if (strcmp(scale, "small") != 0 && strcmp(scale, "full") != 0)
        return cli_refuse(a, "--scale is small or full, not %s", scale);
    for (int i = 0; i < FIGURES; i++) {
        names[i] = figures[i].id;
        if (strcmp(id, figures[i].id) != 0) continue;
        char folder[64];
        snprintf(folder, sizeof folder, "runs/%s-%s", id, scale);
        cJSON *o = figures[i].make(&(paper_options){ .small = strcmp(scale, "small") == 0,
                                                     .out = cli_text(a, "--out", folder),
                                                     .data = cli_text(a, "--data", NULL) });
        cli_bar_end();
        if (!o) return cli_fail(a);
        if (cli_flag(a, "--json")) return cli_json(o);
        print_table(o);
        cJSON_Delete(o);
        return EXIT_DONE;
    }
    const char *near = taut_nearest(id, names, FIGURES);
    return cli_refuse(a, "no figure is called %s%s%s%s (taut paper --list)", id, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "");
}

static const cli_option options[] = {
    { "--list", NULL, "name the figures" },
    { "--scale", "S", "small (minutes on two cores, the default) or full" },
    { "--out", "DIR", "folder for the runs; finished ones are kept and not run again" },
    { "--data", "TEXT", "another text" },
    { NULL, NULL, NULL },
};

const cli_command cli_paper = {
    "paper", "ID", "reproduces a table or figure of a paper", "taut paper enforced-fig2 --scale small", 0, 1,
    options, run,
};
