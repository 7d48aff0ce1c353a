/* Manual pages and shell completion, from the same tables as --help: nothing is written twice. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* troff takes a leading dot or quote for a request and every backslash and hyphen for something of its own. */
static void put(const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; *text; text++) switch (*text) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        default:
            putchar(*text);
        }
}

static void title(const char *name, int section, const char *summary)
{
    printf(".TH TAUT%s%s %d \"\" \"taut %s\"\n.SH NAME\ntaut%s%s \\- ", *name ? "-" : "", name, section, TAUT_VERSION,
           *name ? "-" : "", name);
    put(summary);
    putchar('\n');
}

static void entry(const char *brief, const char *tag, const char *value, const char *text)
{
    printf(".TP\n\\fB");
    if (brief) {
        put(brief);
        printf("\\fR, \\fB");
    }
    put(tag);
    printf("\\fR%s%s%s\n", value ? " \\fI" : "", value ? value : "", value ? "\\fR" : "");
    put(text);
    putchar('\n');
}

static void page_of(const cli_command *c, int section)
{
    title(c->name, section, c->summary);
    printf(".SH SYNOPSIS\n\\fBtaut %s\\fR ", c->name);
    put(c->operands);
    printf(" [\\fIoptions\\fR]\n.SH OPTIONS\n");
    for (int table = 0; table < 2; table++)
        for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++)
            entry(cli_short(o), o->name, o->value, o->help);
    printf(".SH EXAMPLE\n.nf\n");
    put(c->example);
    printf("\n.fi\n.SH SEE ALSO\n.BR taut (1)\n");
}

static void page_of_taut(void)
{
    title("", 1, "trains, measures, certifies and attacks Lipschitz-bounded transformers");
    printf(".SH SYNOPSIS\n\\fBtaut\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n");
    for (int i = 0; i < cli_command_count; i++) entry(NULL, cli_commands[i]->name, NULL, cli_commands[i]->summary);
    printf(".SH EXIT STATUS\n");
    entry(NULL, "0", NULL, "done");
    entry(NULL, "1", NULL, "bad input or a failed world, with one line on stderr");
    entry(NULL, "2", NULL, "a contradiction: something that is proved was beaten, or a certificate does not check");
    entry(NULL, "3", NULL, "no fault was found in a certificate, but not all of it could be confirmed");
    entry(NULL, "130, 143", NULL, "stopped by Ctrl-C or SIGTERM; training has saved what it has, unless asked twice");
    printf(".SH ENVIRONMENT\n");
    entry(NULL, "TAUT_DATA", NULL, "the folder where data sets are looked for by their names");
    entry(NULL, "OMP_NUM_THREADS", NULL, "threads, where --threads does not say; without both, one per processor");
    entry(NULL, "OMP_WAIT_POLICY", NULL,
          "passive unless it is set: threads that wait sleep; active: they spin, which slows other programs down");
    entry(NULL, "TAUT_SILENCE", NULL,
          "of processes that train together: the seconds without a sign of life after which one is given up; else 40");
    printf(".SH SEE ALSO\n");
    for (int i = 0; i < cli_command_count; i++)
        printf(".BR taut\\-%s (%d)%s\n", cli_commands[i]->name, cli_commands[i] == &cli_recipe ? 5 : 1,
               i + 1 < cli_command_count ? "," : "");
}

/* taut-recipe(5): the command and the format are one page. */
static int page_of_recipe(const cli_args *a)
{
    char *json = NULL, last[64] = "", text[1200];
    if (taut_recipe_json(&json, NULL, NULL)) return cli_fail(a);
    cJSON *all = cJSON_Parse(json);
    const cJSON *o;
    taut_string_free(json);
    page_of(&cli_recipe, 5);
    printf(".SH FORMAT\nLines \\fBkey = value\\fR below a \\fB[section]\\fR; a comment starts a line with ; or #, or "
           "follows a space.\n");
    cJSON_ArrayForEach(o, cJSON_GetObjectItem(all, "keys"))
    {
        const char *key = cli_word(o, "key"), *users = cli_word(o, "used_by");
        cli_section(key, last, ".SH KEYS OF [%s]\n");
        snprintf(text, sizeof text, "%s.  Wants %s.  Default: %s%s%s%s%s.", cli_word(o, "meaning"),
                 cli_word(o, "wants"), *cli_word(o, "default") ? cli_word(o, "default") : "none",
                 cJSON_IsTrue(cJSON_GetObjectItem(o, "depends")) ? " (depends on other keys)" : "",
                 *users ? ".  With " : "", users, "");
        entry(NULL, key, NULL, text);
    }
    cJSON_Delete(all);
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    cli_look(a);
    if (cli_flag(a, "--json")) return cli_refuse(a, "a manual page is no JSON");
    static const struct {
        const char *option;
        void (*print)(void);
    } shells[] = { { "--bash", cli_complete_bash }, { "--zsh", cli_complete_zsh }, { "--fish", cli_complete_fish } };
    for (int i = 0; i < 3; i++)
        if (cli_flag(a, shells[i].option)) {
            shells[i].print();
            return EXIT_DONE;
        }
    if (a->operands && strcmp(a->operand[0], "recipe") == 0) return page_of_recipe(a);
    if (a->operands == 0 || strcmp(a->operand[0], "taut") == 0) {
        page_of_taut();
        return EXIT_DONE;
    }
    for (int i = 0; i < cli_command_count; i++)
        if (strcmp(a->operand[0], cli_commands[i]->name) == 0) {
            page_of(cli_commands[i], 1);
            return EXIT_DONE;
        }
    return cli_refuse(a, "no command is called %s (taut --help lists them)", a->operand[0]);
}

static const cli_option options[] = {
    { "--bash", NULL, "print bash's completion of taut instead" },
    { "--zsh", NULL, "zsh's" },
    { "--fish", NULL, "fish's" },
    { NULL, NULL, NULL },
};

const cli_command cli_man = {
    "man",   "[COMMAND]", "prints a manual page, or the shell's completion", "taut man train | man -l -", 0, 1,
    options, run,
};
