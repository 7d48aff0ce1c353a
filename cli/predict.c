/* Classes of somebody's own images or texts, with probabilities and the radius within which no change can turn them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char *place_of(char into[32], const cJSON *row)
{
    const double line = cli_number(row, "line"), index = cli_number(row, "index");
    if (isnan(line) && isnan(index)) return strcpy(into, "");
    snprintf(into, 32, "%.0f", isnan(line) ? index : line);
    return into;
}

/* The last `most` bytes of a name, from the start of a character on. */
static const char *tail(const char *name, size_t most)
{
    const size_t len = strlen(name);
    const char *from = len > most ? name + len - most : name;
    while ((*from & 0xC0) == 0x80) from++;
    return from;
}

static void print_row(const cJSON *row)
{
    char place[32], name[96], radius[32];
    const bool answers = cJSON_GetObjectItem(row, "class");
    snprintf(name, sizeof name, "%s%s%s", tail(cli_word(row, "file"), 38),
             *place_of(place, row) ? cJSON_GetObjectItem(row, "line") ? ":" : "#" : "", place);
    printf("  %-44s", name);
    if (answers)
        printf(" %-20.20s %9.2f %%  %s", cli_word(row, "class"), 100 * cli_number(row, "probability"),
               cli_number(row, "radius") > 0 ? cli_down(radius, row, "radius") : "unknown");
    else
        printf(" no answer: a number is not finite");
    printf("%s\n", cJSON_IsTrue(cJSON_GetObjectItem(row, "cut")) ? "  (cut)" : "");
}

static void print(const cJSON *o, const char *out)
{
    const cJSON *rows = cJSON_GetObjectItem(o, "predictions"), *row;
    const bool pixels = strcmp(cli_word(o, "reads"), "pixels") == 0, flat = strcmp(cli_word(o, "norm"), "flat") == 0;
    int certified = 0, cut = 0;
    printf("  %-44s %-20s %11s  %s\n", "", "class", "probability", "proved radius");
    cJSON_ArrayForEach(row, rows)
    {
        print_row(row);
        certified += cli_number(row, "radius") > 0;
        cut += cJSON_IsTrue(cJSON_GetObjectItem(row, "cut"));
    }
    printf("proved of %d of %d: the class stays if %s by less than the radius (l2, norm %s)\n", certified,
           cJSON_GetArraySize(rows),
           pixels && flat ? "the pixels together, from 0 to 1, move"
           : pixels       ? "the pixels, from 0 to 1, move"
           : flat         ? "the embeddings of the tokens together move"
                          : "each token's embedding moves",
           cli_word(o, "norm"));
    printf("  %s\n  of the probabilities nothing is proved\n", cli_word(o, "about"));
    if (cut) printf("  %d texts are longer than the model reads and were cut off there\n", cut);
    if (cJSON_GetObjectItem(o, "no_constant")) printf("  %s\n", cli_word(o, "no_constant"));
    if (out) printf("  written to %s\n", out);
}

/* file,place,class,probability,radius, and a column of probabilities per class. */
static void print_csv(FILE *to, const void *answer)
{
    const cJSON *o = answer, *row, *one;
    char text[32];
    fprintf(to, "file,place,class,probability,radius");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(o, "classes")) fputc(',', to), cli_cell(to, cJSON_GetStringValue(one));
    fputc('\n', to);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "predictions"))
    {
        const bool answers = cJSON_GetObjectItem(row, "class");
        cli_cell(to, cli_word(row, "file"));
        fprintf(to, ",%s,", place_of(text, row));
        if (answers) cli_cell(to, cli_word(row, "class"));
        fprintf(to, ",%s", answers ? taut_number_print(text, cli_number(row, "probability")) : "");
        fprintf(to, ",%s", taut_number_print(text, cli_number(row, "radius")));
        cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "probabilities"))
            fprintf(to, ",%s", taut_number_print(text, cJSON_GetNumberValue(one)));
        for (int i = 0; !answers && i < cJSON_GetArraySize(cJSON_GetObjectItem(o, "classes")); i++) fputc(',', to);
        fputc('\n', to);
    }
}

static int run(const cli_args *a)
{
    const char *norm = cli_text(a, "--norm", NULL), *out = cli_text(a, "--out", NULL);
    const taut_predict_options o = { .size = sizeof o,
                                     .file = a->operand + 1,
                                     .files = a->operands - 1,
                                     .metric = !norm                       ? TAUT_OWN
                                               : strcmp(norm, "flat") == 0 ? TAUT_FLAT
                                                                           : TAUT_TOKENS,
                                     .room = cli_real(a, "--radius", 1, 1e-300, 1e300),
                                     .resize = cli_flag(a, "--resize"),
                                     .text = cli_text(a, "--text", NULL),
                                     .progress = cli_show,
                                     .arg = "predicting" };
    char *json = NULL;
    cli_look(a);
    if (norm && strcmp(norm, "tokens") != 0 && strcmp(norm, "flat") != 0)
        return cli_refuse(a, "--norm is tokens (the largest token) or flat (l2 over everything), not %s", norm);
    if (cli_flag(a, "--csv") && cli_flag(a, "--json")) return cli_refuse(a, "--csv or --json: one of them on stdout");
    for (int i = 0; out && i < a->operands; i++)
        if (cli_same_file(a->operand[i], out))
            return cli_refuse(a, "--out %s would take the place of what is read", out);
    const taut_status s = taut_predict_file(&json, a->operand[0], &o);
    cli_bar_end();
    if (s) return cli_fail(a);
    cJSON *found = cJSON_Parse(json);
    const int code = out ? cli_write(a, out, print_csv, found) : EXIT_DONE;
    if (code == EXIT_DONE && cli_flag(a, "--json")) puts(json);
    if (code == EXIT_DONE && cli_flag(a, "--csv")) print_csv(stdout, found);
    if (code == EXIT_DONE && !cli_flag(a, "--json") && !cli_flag(a, "--csv")) print(found, out);
    cJSON_Delete(found);
    taut_string_free(json);
    return code;
}

static const cli_option options[] = {
    { "--out", "FILE",
      "write a CSV: file, line or number in it, class, probability, radius, and each class's probability" },
    { "--csv", NULL, "that table on stdout" },
    { "--norm", "N",
      "tokens (largest token moves) or flat (l2 over everything); default: that of the model's target, else flat for "
      "images" },
    { "--radius", "R", "prove it for inputs moved by up to R: no radius is larger (default 1)" },
    { "--resize", NULL, "pictures of another size are made the model's" },
    { "--text", "NAMES", "of a CSV or TSV: the columns that are the text (default: as in training)" },
    { NULL, NULL, NULL },
};

const cli_command cli_predict = {
    "predict",
    "MODEL FILE...",
    "classes of own images or texts, with the radius in which each is proved to stay",
    "taut predict runs/a photo.png folder images.npz --out classes.csv",
    2,
    64,
    options,
    run,
};
