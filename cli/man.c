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

static void title(const char *name, const char *summary)
{
    printf(".TH TAUT%s%s 1 \"\" \"taut %s\"\n.SH NAME\ntaut%s%s \\- ", *name ? "-" : "", name, TAUT_VERSION,
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

static void page_of(const cli_command *c)
{
    title(c->name, c->summary);
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
    title("", "trains, measures, certifies and attacks Lipschitz-bounded transformers");
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
    printf(".SH SEE ALSO\n");
    for (int i = 0; i < cli_command_count; i++)
        printf(".BR taut\\-%s (1)%s\n", cli_commands[i]->name, i + 1 < cli_command_count ? "," : "");
}

static void complete_bash(void)
{
    printf("_taut() {\n    local words=\n    case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < cli_command_count; i++) {
        printf("    %s) words=\"", cli_commands[i]->name);
        for (int table = 0; table < 2; table++)
            for (const cli_option *o = table ? cli_common : cli_commands[i]->options; o && o->name; o++)
                printf("%s%s%s ", cli_short(o) ? cli_short(o) : "", cli_short(o) ? " " : "", o->name);
        printf("\" ;;\n");
    }
    printf("    esac\n    [ \"$COMP_CWORD\" = 1 ] && words=\"");
    for (int i = 0; i < cli_command_count; i++) printf("%s ", cli_commands[i]->name);
    printf("\"\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n");
    printf("complete -o default -F _taut taut\n");
}

static int run(const cli_args *a)
{
    (void)cli_table(a);
    if (cli_flag(a, "--json")) return cli_refuse(a, "a manual page is no JSON");
    if (cli_flag(a, "--bash")) {
        complete_bash();
        return EXIT_DONE;
    }
    if (a->operands == 0 || strcmp(a->operand[0], "taut") == 0) {
        page_of_taut();
        return EXIT_DONE;
    }
    for (int i = 0; i < cli_command_count; i++)
        if (strcmp(a->operand[0], cli_commands[i]->name) == 0) {
            page_of(cli_commands[i]);
            return EXIT_DONE;
        }
    return cli_refuse(a, "no command is called %s (taut --help lists them)", a->operand[0]);
}

static const cli_option options[] = {
    { "--bash", NULL, "print bash's completion of taut instead" },
    { NULL, NULL, NULL },
};

const cli_command cli_man = {
    "man",   "[COMMAND]", "prints a manual page, or the shell's completion", "taut man train | man -l -", 0, 1,
    options, run,
};
