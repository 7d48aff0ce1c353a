/* What comes behind the newest rows of a table, and how far that can be if those rows are off. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { SHOWN = 5 }; /* columns on a screen */

/* How far each number can be, as it is proved. */
static bool print_band(const cJSON *o)
{
    char off[32];
    const bool proved = cJSON_IsTrue(cJSON_GetObjectItem(o, "proved"));
    if (proved)
        printf("  proved: each number stays within +- what is under its name if no row that was read is off by more "
               "than %s\n"
               "    (l2 over the row, each column in its standard deviations), %s\n",
               cli_down(off, o, "noise"), cli_word(o, "about"));
    else
        printf("  nothing is proved of how far noise can move it: %s\n", cli_word(o, "no_constant"));
    return proved;
}

static void print(const cJSON *o, const char *out)
{
    const cJSON *columns = cJSON_GetObjectItem(o, "columns"), *date;
    const int all = cJSON_GetArraySize(columns), shown = all < SHOWN ? all : SHOWN;
    char text[32];
    int row = 0;
    printf("%s: read %.0f rows up to %s, one every %s\n", cli_word(o, "data"), cli_number(o, "rows_read"),
           cli_word(o, "last"), cli_word(o, "step"));
    if (cJSON_GetObjectItem(o, "repaired"))
        printf("  among the newest rows of the table: %s\n", cli_word(o, "repaired"));
    const bool band = cJSON_GetObjectItem(o, "noise") && print_band(o);
    printf("\n  %-26s", "");
    for (int c = 0; c < shown; c++) printf(" %-16.16s", cli_word(cJSON_GetArrayItem(columns, c), "name"));
    if (band) printf("\n  %-26s", "");
    for (int c = 0; band && c < shown; c++) printf(" +- %-13s", cli_up(text, cJSON_GetArrayItem(columns, c), "moves"));
    printf("\n");
    cJSON_ArrayForEach(date, cJSON_GetObjectItem(o, "dates"))
    {
        printf("  %-26s", cJSON_GetStringValue(date));
        for (int c = 0; c < shown; c++) {
            const cJSON *values = cJSON_GetObjectItem(cJSON_GetArrayItem(columns, c), "values");
            printf(" %-16.7g", cJSON_GetNumberValue(cJSON_GetArrayItem(values, row)));
        }
        printf("\n");
        row++;
    }
    if (all > shown) printf("  and %d columns more (--out, --json)\n", all - shown);
    if (out) printf("  written to %s\n", out);
}

static int run(const cli_args *a)
{
    const char *out = cli_text(a, "--out", NULL), *table = a->operand[1];
    const char *list[64];
    int count = 0;
    for (int i = 0; i < a->given; i++)
        if (strcmp(a->name[i], "--set") == 0) list[count++] = a->value[i];
    const taut_forecast_options o = { .size = sizeof o,
                                      .data = table,
                                      .noise = cli_real(a, "--noise", 0, 0, 1e9),
                                      .csv = out,
                                      .overrides = list,
                                      .count = count };
    char *json = NULL;
    cli_look(a);
    if (cli_flag(a, "--noise") && !(o.noise > 0)) return cli_refuse(a, "--noise 0 moves nothing");
    if (out && (cli_same_file(a->operand[0], out) || cli_same_file(table, out)))
        return cli_refuse(a, "--out %s would take the place of what is read", out);
    if (taut_forecast_file(&json, a->operand[0], &o)) return cli_fail(a);
    cJSON *found = cli_answer(a, json);
    if (!cli_flag(a, "--json")) print(found, out);
    cJSON_Delete(found);
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--out", "FILE", "write the forecast as CSV: date, each column, with --noise its low and high" },
    { "--noise", "E", "prove where the forecast stays if each row is off by up to E (l2, in standard deviations)" },
    { "--set", "S.K=V",
      "a rule for holes in this table, in the place of the model's: data.missing=hold, data.gaps, data.repeats" },
    { NULL, NULL, NULL },
};

const cli_command cli_forecast = {
    "forecast",
    "MODEL CSV",
    "what comes behind the newest rows of a table, in its units, with the proved band",
    "taut forecast runs/plant plant.csv --noise 0.01 --out future.csv",
    2,
    2,
    options,
    run,
};
