#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const cli_option cli_common[] = {
    { "--json", NULL, "print one JSON object and nothing else" },
    { "--seed", "N", "seed of everything random" },
    { "--threads", "N", "threads to use (default: OMP_NUM_THREADS, or one per processor)" },
    { "--kernels", "NAME",
      "cpu (float, fast; cpu-base, cpu-v3, cpu-v4: one build), wide (float, products in double), ref (double, the "
      "definition), on a GPU cuda or cuda64; a command that computes nothing with them opens no GPU" },
    { "--help", NULL, "this text" },
    { NULL, NULL, NULL },
};

const char *cli_short(const cli_option *o)
{
    return strcmp(o->name, "--out") == 0 ? "-o" : strcmp(o->name, "--help") == 0 ? "-h" : NULL;
}

static const cli_option *find(const cli_command *c, const char *name, size_t len)
{
    for (int table = 0; table < 2; table++)
        for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++)
            if ((strlen(o->name) == len && strncmp(o->name, name, len) == 0) ||
                (cli_short(o) && strcmp(cli_short(o), name) == 0))
                return o;
    return NULL;
}

static bool unknown(const cli_command *c, const char *name)
{
    const char *list[64];
    int count = 0;
    for (int table = 0; table < 2; table++)
        for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++) list[count++] = o->name;
    const char *near = taut_nearest(name, list, count);
    cli_say(c->name, "unknown option %s%s%s%s", name, near ? " (did you mean " : "", near ? near : "",
            near ? "?)" : "");
    return false;
}

static bool complain(const cli_command *c, const char *what, const char *about)
{
    cli_say(c->name, "%s%s (see taut %s --help)", what, about, c->name);
    return false;
}

bool cli_parse(cli_args *a, const cli_command *c, int argc, char **argv)
{
    *a = (cli_args){ .command = c };
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *equal = strchr(word, '=');
        if (word[0] != '-' || !word[1]) {
            if (a->operands == c->most) return complain(c, "too many arguments: ", word);
            a->operand[a->operands++] = word;
            continue;
        }
        const cli_option *o = find(c, word, equal ? (size_t)(equal - word) : strlen(word));
        if (!o) return unknown(c, word);
        if (a->given == 64) return complain(c, "too many options", "");
        if (!o->value && equal) return complain(c, o->name, " takes no value");
        if (o->value && !equal && i + 1 == argc) return complain(c, o->name, " needs a value");
        a->name[a->given] = o->name;
        a->value[a->given++] = !o->value ? "" : equal ? equal + 1 : argv[++i];
    }
    if (!cli_flag(a, "--help") && a->operands < c->least) return complain(c, "missing ", c->operands);
    return true;
}

void cli_help(const cli_command *c)
{
    printf("taut %s %s\n    %s\n\n", c->name, c->operands, c->summary);
    for (int table = 0; table < 2; table++)
        for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++)
            printf("  %s%s%-*s %-8s %s\n", cli_short(o) ? cli_short(o) : "", cli_short(o) ? ", " : "",
                   cli_short(o) ? 10 : 14, o->name, o->value ? o->value : "", o->help);
    printf("\nexample\n    %s\n", c->example);
}

const char *cli_text(const cli_args *a, const char *name, const char *def)
{
    for (int i = a->given - 1; i >= 0; i--) /* the last one counts */
        if (strcmp(a->name[i], name) == 0) return a->value[i];
    return def;
}

bool cli_flag(const cli_args *a, const char *name) { return cli_text(a, name, NULL) != NULL; }

static void bad_number(const cli_args *a, const char *name, const char *text, const char *kind, double lo, double hi)
{
    cli_say(a->command->name, "%s %s is not a %s from %.15g to %.15g", name, text, kind, lo, hi);
    exit(EXIT_BAD);
}

int64_t cli_int(const cli_args *a, const char *name, int64_t def, int64_t lo, int64_t hi)
{
    const char *text = cli_text(a, name, NULL);
    int64_t v = def;
    if (text && (!taut_number_int(&v, text) || v < lo || v > hi))
        bad_number(a, name, text, "whole number", (double)lo, (double)hi);
    return v;
}

double cli_real(const cli_args *a, const char *name, double def, double lo, double hi)
{
    const char *text = cli_text(a, name, NULL);
    double v = def;
    if (text && (!taut_number_real(&v, text) || !(lo <= v && v <= hi))) bad_number(a, name, text, "number", lo, hi);
    return v;
}

/* device: one that is named is opened; else this processor's kernels stand for it. */
static const char *table(const cli_args *a, bool device)
{
    static const char *const names[] = { "cpu", "wide", "ref", "cuda", "cuda64", "cpu-base", "cpu-v3", "cpu-v4" };
    const char *name = cli_text(a, "--kernels", "cpu");
    char *about = NULL;
    if (!device && (strcmp(name, "cuda") == 0 || strcmp(name, "cuda64") == 0)) name = "cpu";
    if (taut_build_json(&about, name)) {
        const char *near = taut_nearest(name, names, sizeof names / sizeof *names);
        if (near && strcmp(near, name) == 0) near = NULL; /* it exists, but not here */
        cli_say(a->command->name, "%s%s%s%s", taut_last_error(), near ? "; did you mean " : "", near ? near : "",
                near ? "?" : "");
        exit(EXIT_BAD);
    }
    taut_string_free(about);
    taut_threads_set((int)cli_int(a, "--threads", 0, 0, 1024));
    (void)cli_seed(a); /* a bad one is refused also where nothing is random */
    return name;
}

const char *cli_table(const cli_args *a) { return table(a, true); }
void cli_look(const cli_args *a) { (void)table(a, false); }

uint64_t cli_seed(const cli_args *a) { return (uint64_t)cli_int(a, "--seed", 1, 0, INT64_MAX); }
