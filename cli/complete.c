/* Completion for bash, zsh and fish, from the same tables as --help.  Words that the program itself lists (papers, keys of
 * recipes) are asked for when they are needed. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* What may stand behind an option of a command (NULL: of all), or in the place of an operand (option NULL): words, or a command
 * in the shell that prints them. */
static const struct {
    const char *command, *option, *words, *ask;
} values[] = {
    { "certify", "--norm", "tokens flat", NULL },
    { "predict", "--norm", "tokens flat", NULL },
    { "attack", "--norm", "Linf L2 L1", NULL },
    { "embed", "--pool", "mean class", NULL },
    { "attack", "--attack", "fgsm pgd apgd-ce apgd-dlr apgd-t fab fab-t square aa-standard aa-plus aa-rand ta-10",
      NULL },
    { "plan", "--units", "rms l2", NULL },
    { "measure", "--map", "bare attention branch residual block", NULL },
    { "train", "--protocol", "informer2020 full", NULL },
    { "paper", "--scale", "tiny small full", NULL },
    { NULL, "--kernels", "cpu wide ref cuda cuda64", NULL },
    { NULL, "--set", NULL, "taut recipe --json | sed -n 's/.*\"key\":[[:space:]]*\"\\([^\"]*\\)\".*/\\1=/p'" },
    { NULL, "--grid", NULL, "taut recipe --json | sed -n 's/.*\"key\":[[:space:]]*\"\\([^\"]*\\)\".*/\\1=/p'" },
    { "train", NULL, NULL, "ls recipes/*.ini 2>/dev/null" },
    { "sweep", NULL, NULL, "ls recipes/*.ini 2>/dev/null" },
    { "recipe", NULL, NULL, "ls recipes/*.ini 2>/dev/null" },
    { "paper", NULL, NULL, "taut paper --list | sed -n 's/^\\([a-z0-9]*-[a-z0-9-]*\\) .*/\\1/p'" },
};
enum { VALUES = sizeof values / sizeof *values };

static void words_of(int i)
{
    if (values[i].words)
        printf("%s", values[i].words);
    else
        printf("$(%s)", values[i].ask);
}

static void options_of(const cli_command *c)
{
    for (int table = 0; table < 2; table++)
        for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++)
            printf("%s%s%s ", cli_short(o) ? cli_short(o) : "", cli_short(o) ? " " : "", o->name);
}

/* A case over "command option" and then over the command: the same words for bash and zsh. */
static void cases(void)
{
    printf("    case \"$command $before\" in\n");
    for (int i = 0; i < VALUES; i++)
        if (values[i].option) {
            printf("    \"%s %s\") list=\"", values[i].command ? values[i].command : "\"*\"", values[i].option);
            words_of(i);
            printf("\" ;;\n");
        }
    printf("    *)\n        case $command in\n");
    for (int i = 0; i < cli_command_count; i++) {
        printf("        %s) list=\"", cli_commands[i]->name);
        options_of(cli_commands[i]);
        for (int v = 0; v < VALUES; v++)
            if (!values[v].option && strcmp(values[v].command, cli_commands[i]->name) == 0) words_of(v);
        printf("\" ;;\n");
    }
    printf("        esac ;;\n    esac\n");
}

/* Inside single quotes of fish. */
static void quote(const char *text)
{
    for (; *text; text++) printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
}

static void commands(void)
{
    for (int i = 0; i < cli_command_count; i++) printf("%s ", cli_commands[i]->name);
}

void cli_complete_bash(void)
{
    printf("_taut() {\n    local list= command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD-1]}\n");
    cases();
    printf("    [ \"$COMP_CWORD\" = 1 ] && list=\"");
    commands();
    printf("\"\n    mapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
           "complete -o default -F _taut taut\n");
}

void cli_complete_zsh(void)
{
    printf("#compdef taut\nlocal list= command=${words[2]} before=${words[CURRENT-1]}\n");
    cases();
    printf("    [ \"$CURRENT\" = 2 ] && list=\"");
    commands();
    printf("\"\ncompadd -- ${=list} || _files\n");
}

void cli_complete_fish(void)
{
    for (int i = 0; i < cli_command_count; i++) {
        const cli_command *c = cli_commands[i];
        printf("complete -c taut -n __fish_use_subcommand -f -a %s -d '", c->name);
        quote(c->summary);
        printf("'\n");
        for (int table = 0; table < 2; table++)
            for (const cli_option *o = table ? cli_common : c->options; o && o->name; o++) {
                printf("complete -c taut -n '__fish_seen_subcommand_from %s' -l %s%s -d '", c->name, o->name + 2,
                       o->value ? " -r" : "");
                quote(o->help);
                printf("'");
                for (int v = 0; v < VALUES; v++)
                    if (values[v].option && strcmp(values[v].option, o->name) == 0 &&
                        (!values[v].command || strcmp(values[v].command, c->name) == 0)) {
                        printf(" -a '");
                        if (values[v].words)
                            quote(values[v].words);
                        else
                            printf("("), quote(values[v].ask), printf(")");
                        printf("'");
                    }
                printf("\n");
            }
    }
    for (int v = 0; v < VALUES; v++)
        if (!values[v].option) {
            printf("complete -c taut -n '__fish_seen_subcommand_from %s' -a '(", values[v].command);
            quote(values[v].ask);
            printf(")'\n");
        }
}
