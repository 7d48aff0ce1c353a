#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/status.h"
#include "cli.h"

int cli_fail(const cli_args *a) { return cli_refuse(a, "%s", taut_last_error()); }

int cli_refuse(const cli_args *a, const char *format, ...)
{
    va_list args;
    cli_bar_end();
    fprintf(stderr, "taut %s: ", a->command->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_BAD;
}

int cli_json(cJSON *object)
{
    char *text = taut_json_text(object, true);
    const bool printed = text != NULL;
    fputs(printed ? text : "taut: out of memory", printed ? stdout : stderr);
    fputc('\n', printed ? stdout : stderr);
    free(text);
    cJSON_Delete(object);
    return printed ? EXIT_DONE : EXIT_BAD;
}

char *cli_path(const char *folder, const char *file)
{
    struct stat st;
    const bool inside = stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
    const size_t size = strlen(folder) + strlen(file) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s", folder, inside ? "/" : "", inside ? file : "");
    return path;
}

static double number(const cJSON *o, const char *key) { return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key)); }

static void print_tensors(const cJSON *list, const char *heading)
{
    const cJSON *t, *n;
    if (cJSON_GetArraySize(list)) printf("%s:\n", heading);
    cJSON_ArrayForEach(t, list)
    {
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(t, "why"));
        printf("  %-52s %-4s ", cJSON_GetStringValue(cJSON_GetObjectItem(t, "name")),
               cJSON_GetStringValue(cJSON_GetObjectItem(t, "dtype")));
        cJSON_ArrayForEach(n, cJSON_GetObjectItem(t, "shape")) printf("%.0f%s", n->valuedouble, n->next ? " x " : "");
        printf("%s%s\n", why ? "  " : "", why ? why : "");
    }
}

void cli_print_load(const cJSON *r)
{
    const cJSON *note;
    printf("%s: a %s checkpoint, %.0f file%s, %.0f tensors, %.0f of them used; the head is %s\n",
           cJSON_GetStringValue(cJSON_GetObjectItem(r, "folder")),
           cJSON_GetStringValue(cJSON_GetObjectItem(r, "family")), number(r, "files"),
           number(r, "files") == 1 ? "" : "s", number(r, "tensors"), number(r, "used"),
           cJSON_IsTrue(cJSON_GetObjectItem(r, "tied")) ? "tied to the embedding" : "its own");
    print_tensors(cJSON_GetObjectItem(r, "unused"), "left out");
    print_tensors(cJSON_GetObjectItem(r, "unknown"), "unknown");
    cJSON_ArrayForEach(note, cJSON_GetObjectItem(r, "notes")) printf("note: %s\n", cJSON_GetStringValue(note));
}

static bool bar_shown;

/* How wide the terminal on stderr is; 0: there is none, or it cannot go back to the start of a line and wipe it. */
static int columns(void)
{
    const char *term = getenv("TERM");
    struct winsize size;
    if (!isatty(STDERR_FILENO) || !term || !*term || strcmp(term, "dumb") == 0) return 0;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0 ? 80 : size.ws_col;
}

void cli_bar(double done, const char *text)
{
    const int across = columns(), width = across < 60 ? 8 : 24, full = (int)(done * width);
    char line[256];
    if (across < 20) return;
    int at = snprintf(line, sizeof line, "[");
    for (int i = 0; i < width; i++) line[at++] = i < full ? '#' : '.';
    snprintf(line + at, sizeof line - (size_t)at, "] %3.0f%%  %s", 100 * done, text);
    fprintf(stderr, "\r\033[K%.*s", across - 1, line); /* the last column is left free: writing there may wrap */
    fflush(stderr);
    bar_shown = true;
}

void cli_bar_end(void)
{
    if (bar_shown) fputs("\r\033[K", stderr);
    bar_shown = false;
}
