/* Paths, as far as arguments need them, and tables that are written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

char *cli_path(const char *folder, const char *file)
{
    struct stat st;
    const bool inside = stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
    const size_t size = strlen(folder) + strlen(file) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s", folder, inside ? "/" : "", inside ? file : "");
    return path;
}

bool cli_same_file(const char *model, const char *out)
{
    char *path = cli_path(model, "model.safetensors");
    struct stat x, y;
    const bool same = path && stat(path, &x) == 0 && stat(out, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    free(path);
    return same;
}

const char *cli_make_folder(const char *path)
{
    struct stat st;
    int why = 0; /* the first that went wrong; that a part is there already is fine */
    char *part = strdup(path);
    if (!part) return strerror(ENOMEM);
    for (char *slash = part; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash) *slash = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST && !why) why = errno;
        if (slash) *slash = '/';
    }
    free(part);
    if (stat(path, &st) != 0) return strerror(why ? why : errno);
    return S_ISDIR(st.st_mode) ? NULL : strerror(ENOTDIR);
}

void cli_cell(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', to);
}

int cli_write(const cli_args *a, const char *path, void (*print)(FILE *, const void *), const void *what)
{
    char *part = malloc(strlen(path) + 8);
    if (part) sprintf(part, "%s.part", path);
    FILE *to = part ? fopen(part, "wb") : NULL;
    bool good = to != NULL;
    if (to) print(to, what);
    if (to) good = !ferror(to);
    if (to && fclose(to)) good = false;
    good = good && rename(part, path) == 0;
    const int why = errno;
    if (!good && to) remove(part);
    free(part);
    return good ? EXIT_DONE : cli_refuse(a, "%s: %s", path, strerror(why));
}
