/* One HTML page about runs: what their folders hold, as charts with the numbers behind them. */
#include <stdio.h>
#include <sys/stat.h>

#include "cli.h"
#include "report/run.h"

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int run(const cli_args *a)
{
    taut_page page;
    const char *out = cli_text(a, "--out", "report.html");
    (void)cli_kernels(a);
    for (int i = 0; i < a->operands; i++)
        if (!is_folder(a->operand[i])) return cli_refuse(a, "%s: there is no such folder", a->operand[i]);
    taut_page_begin(&page, cli_text(a, "--title", "taut: a report"), cli_text(a, "--svg", NULL));
    taut_report_frontier(&page, a->operands, (char *const *)a->operand);
    for (int i = 0; i < a->operands; i++) taut_report_run(&page, a->operand[i]);
    const int figures = page.figures;
    if (taut_page_end(&page, out)) return cli_fail(a);
    if (cli_flag(a, "--json")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", out);
        cJSON_AddNumberToObject(o, "figures", figures);
        return cli_json(o);
    }
    printf("%s: %d figure%s\n", out, figures, figures == 1 ? "" : "s");
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--out", "FILE", "where the page goes (default report.html)" },
    { "--svg", "FOLDER", "also write each chart as a file of its own" },
    { "--title", "TEXT", "the page's title" },
    { NULL, NULL, NULL },
};

const cli_command cli_report = {
    "report", "RUN...", "writes one HTML page about runs", "taut report runs/tiny --out report.html", 1, 64,
    options,  run,
};
