/* What went wrong, and who says it of processes that mpirun or srun started together. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static bool mute; /* one of several ranks, and not the first: its results are those of the first */

cli_group cli_group_here(void)
{
    cli_group g = { 0, 1, false };
    char *json = NULL;
    if (taut_build_json(&json, NULL)) return g;
    cJSON *o = cJSON_Parse(json);
    g = (cli_group){ (int)cli_number(o, "rank"), (int)cli_number(o, "ranks"),
                     cJSON_IsTrue(cJSON_GetObjectItem(o, "agreed")) };
    taut_string_free(json);
    cJSON_Delete(o);
    return g;
}

/* What went wrong is said once.  Failures that the ranks agreed on, the first says; others may well be those of all, such as a
 * slip on the command line: then the first says them too, and the launcher ends the rest while they wait. */
static void speak(const char *command, const char *format, va_list args)
{
    const cli_group g = cli_group_here();
    const unsigned turn = 2 + 3 * (unsigned)(g.rank < 10 ? g.rank : 10); /* seconds, one after the other */
    cli_bar_end();
    if (g.rank > 0 && (g.agreed || sleep(turn) > 0)) return;
    fprintf(stderr, "taut%s%s: ", *command ? " " : "", command);
    if (g.rank > 0) fprintf(stderr, "rank %d: ", g.rank);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void cli_say(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    speak(command, format, args);
    va_end(args);
}

int cli_refuse(const cli_args *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    speak(a->command->name, format, args);
    va_end(args);
    return EXIT_BAD;
}

/* The library names an option without dashes; where its line begins with one that was given, they are put back. */
int cli_fail(const cli_args *a)
{
    const char *line = taut_last_error();
    const size_t word = strcspn(line, " ");
    bool option = false;
    for (int i = 0; i < a->given; i++)
        option |= strlen(a->name[i]) == word + 2 && strncmp(a->name[i] + 2, line, word) == 0;
    return cli_refuse(a, "%s%s", option && strncmp(line, "out of memory", 13) != 0 ? "--" : "", line);
}

bool cli_hush(void)
{
    mute = cli_group_here().rank > 0;
    if (mute && !freopen("/dev/null", "w", stdout)) exit(EXIT_BAD);
    return mute;
}

bool cli_is_mute(void) { return mute; }
