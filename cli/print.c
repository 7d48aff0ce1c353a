#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

/* cJSON's own printing keeps fifteen digits when that is nearly the same: every number becomes raw text. */
static bool spell(cJSON *o)
{
    char text[32];
    for (; o; o = o->next) {
        if (o->child && !spell(o->child)) return false;
        if (!cJSON_IsNumber(o)) continue;
        const char *number = isfinite(o->valuedouble) ? taut_number_print(text, o->valuedouble) : "null";
        o->valuestring = cJSON_malloc(strlen(number) + 1); /* freed by cJSON_Delete with the item */
        if (!o->valuestring) return false;
        memcpy(o->valuestring, number, strlen(number) + 1);
        o->type = (o->type & ~0xFF) | cJSON_Raw;
    }
    return true;
}

int cli_json(cJSON *object)
{
    char *text = object && spell(object) ? cJSON_Print(object) : NULL;
    const bool printed = text != NULL;
    fputs(printed ? text : "taut: out of memory", printed ? stdout : stderr);
    fputc('\n', printed ? stdout : stderr);
    cJSON_free(text);
    cJSON_Delete(object);
    return printed ? EXIT_DONE : EXIT_BAD;
}

static void print_tensors(const cJSON *list, const char *heading)
{
    const cJSON *t, *n;
    if (cJSON_GetArraySize(list)) printf("%s:\n", heading);
    cJSON_ArrayForEach(t, list)
    {
        const char *why = cli_word(t, "why");
        printf("  %-52s %-4s ", cli_word(t, "name"), cli_word(t, "dtype"));
        cJSON_ArrayForEach(n, cJSON_GetObjectItem(t, "shape")) printf("%.0f%s", n->valuedouble, n->next ? " x " : "");
        printf("%s%s\n", *why ? "  " : "", why);
    }
}

void cli_print_load(const cJSON *r)
{
    const cJSON *note;
    printf("%s: a %s checkpoint, %.0f file%s, %.0f tensors, %.0f of them used; %s\n", cli_word(r, "folder"),
           cli_word(r, "family"), cli_number(r, "files"), cli_number(r, "files") == 1 ? "" : "s",
           cli_number(r, "tensors"), cli_number(r, "used"),
           cJSON_IsFalse(cJSON_GetObjectItem(r, "head"))  ? "it has no head"
           : cJSON_IsTrue(cJSON_GetObjectItem(r, "tied")) ? "the head is tied to the embedding"
                                                          : "the head is its own");
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
    if (cli_is_mute() || !isatty(STDERR_FILENO) || !term || !*term || strcmp(term, "dumb") == 0) return 0;
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

int cli_show(double done, void *text)
{
    cli_bar(done, text);
    return 0;
}
