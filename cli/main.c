#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

const cli_command *const cli_commands[] = { &cli_train, &cli_sweep,  &cli_recipe,  &cli_eval,     &cli_sample,
                                            &cli_embed, &cli_info,   &cli_convert, &cli_measure,  &cli_certify,
                                            &cli_check, &cli_attack, &cli_predict, &cli_forecast, &cli_plan,
                                            &cli_paper, &cli_bench,  &cli_report,  &cli_man };
enum { COMMANDS = sizeof cli_commands / sizeof *cli_commands };
const int cli_command_count = COMMANDS;

static void usage(FILE *to)
{
    fprintf(to, "taut %s: trains, measures, certifies and attacks Lipschitz-bounded transformers\n\n", TAUT_VERSION);
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  taut %-8s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(to, "\ntaut COMMAND --help says more.\n");
}

static int unknown(const char *word)
{
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) names[i] = cli_commands[i]->name;
    const char *near = taut_nearest(word, names, COMMANDS);
    cli_say("", "no command is called %s%s%s%s (taut --help lists them)", word, near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
    return EXIT_BAD;
}

/* A result that nobody got is a failure: a full disk behind stdout shows here. */
static int told(int code)
{
    const bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || code != EXIT_DONE) return code;
    cli_say("", "cannot write the result to stdout");
    return EXIT_BAD;
}

int main(int argc, char **argv)
{
    cli_wait_asleep(argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error as a full disk is, not a death */
    if (argc < 2) {
        if (cli_group_here().rank == 0) usage(stderr);
        return EXIT_BAD;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return told(EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("taut %s\n", TAUT_VERSION);
        return told(EXIT_DONE);
    }
    for (int i = 0; i < COMMANDS; i++) {
        cli_args args;
        if (strcmp(argv[1], cli_commands[i]->name) != 0) continue;
        if (!cli_parse(&args, cli_commands[i], argc - 2, argv + 2)) return EXIT_BAD;
        if (cli_flag(&args, "--help")) {
            cli_help(cli_commands[i]);
            return told(EXIT_DONE);
        }
        return told(cli_commands[i]->run(&args));
    }
    return unknown(argv[1]);
}
