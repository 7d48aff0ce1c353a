/* One HTML page about runs: what their folders hold, as charts with the numbers behind them. */
#include <stdio.h>

#include "cli.h"

static int run(const cli_args *a)
{
    const char *out = cli_text(a, "--out", "report.html");
    const taut_page_options o = { .size = sizeof o,
                                  .title = cli_text(a, "--title", NULL),
                                  .svg = cli_text(a, "--svg", NULL),
                                  .radius = cli_real(a, "--radius", 0, 0, 1e9) };
    int figures = 0;
    cli_look(a);
    if (taut_report_page(&figures, out, a->operand, a->operands, &o)) return cli_fail(a);
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
    { "--radius", "R",
      "how far inputs are moved in the page's first sentence (default: a round number that half of the "
      "right answers reach)" },
    { "--svg", "FOLDER", "also write each chart as a file of its own" },
    { "--title", "TEXT", "the page's title" },
    { NULL, NULL, NULL },
};

const cli_command cli_report = {
    "report", "RUN...", "writes one HTML page about runs", "taut report runs/tiny --out report.html", 1, 64,
    options,  run,
};
