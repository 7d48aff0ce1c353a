/* Features of texts by an encoder: one row of numbers per line of the files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct {
    char **text;         /* lines that are not blank */
    const char **file;   /* of each */
    int64_t *line, *all; /* its number, from 1 on; its tokens */
    double *y;           /* (count, width) */
    int64_t count, width, context;
} sheet;

static bool grow(sheet *s, char *text, const char *file, int64_t line)
{
    if ((s->count & (s->count - 1)) == 0) { /* room for twice as many */
        const size_t room = s->count ? 2 * (size_t)s->count : 1;
        char **texts = realloc(s->text, room * sizeof *texts);
        if (texts) s->text = texts;
        const char **files = realloc(s->file, room * sizeof *files);
        if (files) s->file = files;
        int64_t *lines = realloc(s->line, room * sizeof *lines);
        if (lines) s->line = lines;
        if (!texts || !files || !lines) return false;
    }
    s->text[s->count] = text;
    s->file[s->count] = file;
    s->line[s->count++] = line;
    return true;
}

/* Every line of a file; false after one line on stderr. */
static bool read_file(const cli_args *a, sheet *s, const char *path)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    bool good = in != NULL;
    errno = in ? 0 : errno;
    for (int64_t number = 1; good; number++) {
        const ssize_t len = getline(&line, &room, in);
        if (len < 0) break;
        if (memchr(line, 0, (size_t)len)) {
            cli_refuse(a, "%s:%lld: NUL in a line of text", path, (long long)number);
            good = false;
            break;
        }
        line[strcspn(line, "\r\n")] = 0;
        if (line[strspn(line, " \t")] == 0) continue;
        good = grow(s, line, path, number);
        if (!good) errno = ENOMEM;
        if (good) line = NULL;
        room = good ? 0 : room;
    }
    const bool failed = !in || ferror(in) || (!good && errno == ENOMEM);
    if (failed) cli_refuse(a, "%s: %s", path, strerror(errno));
    free(line);
    if (in && in != stdin) fclose(in);
    return good && !failed;
}

static taut_status ask(const cli_args *a, sheet *s, char **about)
{
    taut_net *net = NULL;
    taut_net_facts f = { 0 };
    const taut_open_options how = { .size = sizeof how, .kernels = cli_table(a), .seed = cli_seed(a) };
    const taut_features_options o = { .size = sizeof o,
                                      .pool = cli_text(a, "--pool", NULL),
                                      .unit = cli_flag(a, "--unit") };
    taut_status status = taut_net_open(&net, a->operand[0], &how);
    if (!status) status = taut_net_look(net, &f);
    if (!status) status = taut_net_json(net, about);
    s->width = f.width;
    s->context = f.context;
    s->all = calloc((size_t)s->count + 1, sizeof *s->all);
    s->y = calloc((size_t)(s->count * s->width) + 1, sizeof *s->y);
    for (int64_t i = 0; !status && s->all && s->y && i < s->count; i++) {
        status = taut_net_features(net, s->y + i * s->width, s->all + i, (const char *const *)s->text + i, 1, &o);
        if (status) cli_refuse(a, "%s:%lld: %s", s->file[i], (long long)s->line[i], taut_last_error());
        if (!status) cli_bar((double)(i + 1) / (double)s->count, "features");
    }
    cli_bar_end();
    taut_net_free(net);
    if (status && !s->width) cli_fail(a);
    return status;
}

/* What is proved of the features, where the model's output they are. */
static cJSON *prove(const cli_args *a, const char *model_json)
{
    cJSON *model = cJSON_Parse(model_json), *found = NULL;
    const bool own = strcmp(cli_word(model, "gives"), "features") == 0 && !cli_flag(a, "--pool");
    const taut_certify_options o = { .size = sizeof o, .metric = TAUT_TOKENS };
    taut_cert *c = NULL;
    char *json = NULL;
    cJSON_Delete(model);
    if (!own) {
        cli_refuse(a,
                   "--bound is about what a model gives: of %s that are not these features (taut convert --set "
                   "model.head=none)",
                   a->operand[0]);
        return NULL;
    }
    taut_status s = taut_certify_file(&c, a->operand[0], &o);
    if (!s) s = taut_cert_report(c, &json);
    taut_cert_free(c);
    if (s)
        cli_fail(a);
    else
        found = cJSON_Parse(json);
    taut_string_free(json);
    return found;
}

static const char meaning[] =
    "features move by at most this times as far as the embeddings of the tokens do (the token that "
    "moves farthest, l2), before they are divided by their length";

static void say_bound(FILE *to, const cJSON *bound)
{
    char lip[32];
    if (!bound) return;
    fprintf(to, "proved: %s-Lipschitz: %s;\n  %s\n", cli_up(lip, bound, "lip"), meaning, cli_word(bound, "about"));
}

static int print_json(const sheet *s, const cJSON *bound)
{
    cJSON *o = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(o, "texts");
    cJSON_AddNumberToObject(o, "width", (double)s->width);
    if (bound) {
        cJSON_AddItemToObject(o, "lip", cJSON_Duplicate(cJSON_GetObjectItem(bound, "lip"), true));
        cJSON_AddStringToObject(o, "meaning", meaning);
        cJSON_AddStringToObject(o, "about", cli_word(bound, "about"));
    }
    for (int64_t i = 0; i < s->count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "file", s->file[i]);
        cJSON_AddNumberToObject(row, "line", (double)s->line[i]);
        cJSON_AddNumberToObject(row, "tokens", (double)s->all[i]);
        cJSON_AddBoolToObject(row, "cut", s->all[i] > s->context);
        cJSON_AddItemToObject(row, "features", cJSON_CreateDoubleArray(s->y + i * s->width, (int)s->width));
        cJSON_AddItemToArray(rows, row);
    }
    return cli_json(o);
}

static void print_csv(FILE *to, const void *sheet_)
{
    const sheet *s = sheet_;
    char text[32];
    fprintf(to, "file,line,tokens");
    for (int64_t j = 0; j < s->width; j++) fprintf(to, ",f%lld", (long long)j);
    fputc('\n', to);
    for (int64_t i = 0; i < s->count; i++) {
        cli_cell(to, s->file[i]);
        fprintf(to, ",%lld,%lld", (long long)s->line[i], (long long)s->all[i]);
        for (int64_t j = 0; j < s->width; j++) fprintf(to, ",%s", taut_number_print(text, s->y[i * s->width + j]));
        fputc('\n', to);
    }
}

static int tell(const cli_args *a, const sheet *s, const cJSON *bound)
{
    const char *out = cli_text(a, "--out", NULL);
    int64_t cut = 0;
    for (int64_t i = 0; i < s->count; i++) cut += s->all[i] > s->context;
    const int code = out ? cli_write(a, out, print_csv, s) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    if (cli_flag(a, "--json")) return print_json(s, bound);
    if (!out) print_csv(stdout, s);
    FILE *to = out ? stdout : stderr;
    if (out) printf("%s: features of %lld lines, %lld numbers each\n", out, (long long)s->count, (long long)s->width);
    if (cut)
        fprintf(to, "%lld of them are longer than %lld tokens and were cut off there\n", (long long)cut,
                (long long)s->context);
    say_bound(to, bound);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    sheet s = { 0 };
    char *about = NULL;
    const char *pool = cli_text(a, "--pool", NULL);
    int code = EXIT_DONE;
    if (pool && strcmp(pool, "mean") != 0 && strcmp(pool, "class") != 0)
        return cli_refuse(a, "--pool is mean or class, not %s", pool);
    for (int i = 1; i < a->operands && code == EXIT_DONE; i++)
        if (!read_file(a, &s, a->operand[i])) code = EXIT_BAD;
    if (code == EXIT_DONE && s.count == 0) code = cli_refuse(a, "%s: no line of text in it", a->operand[1]);
    if (code == EXIT_DONE && ask(a, &s, &about)) code = EXIT_BAD;
    cJSON *bound = NULL;
    if (code == EXIT_DONE && (!s.all || !s.y)) code = cli_refuse(a, "out of memory");
    if (code == EXIT_DONE && cli_flag(a, "--bound") && !(bound = prove(a, about))) code = EXIT_BAD;
    if (code == EXIT_DONE) code = tell(a, &s, bound);
    for (int64_t i = 0; i < s.count; i++) free(s.text[i]);
    free(s.text), free(s.file), free(s.line), free(s.all), free(s.y);
    taut_string_free(about);
    cJSON_Delete(bound);
    return code;
}

static const cli_option options[] = {
    { "--out", "FILE", "write the table there (CSV), instead of to stdout" },
    { "--pool", "HOW",
      "mean of all tokens, or class: the first one's (default: as the model says, mean if it does not)" },
    { "--unit", NULL, "divide each row by its length, as cosines want it" },
    { "--bound", NULL, "also prove the Lipschitz constant of the features, and say what it means" },
    { NULL, NULL, NULL },
};

const cli_command cli_embed = {
    "embed",
    "MODEL FILE...",
    "features of each line of a text, by an encoder",
    "taut embed minilm.safetensors sentences.txt --out features.csv",
    2,
    64,
    options,
    run,
};
