/* What lies near: a recipe among those that are installed with taut, data beside the recipe or the run that names them.
 *
 * A recipe that is not found as it is written, and is called x.ini or recipes/x.ini, is the one of that name in
 * share/taut/recipes beside the folder of the program or the library, or in recipes/ beside the build folder.  A relative
 * data.source that is not found from here (data/find.c) is looked for from the folder of the recipe or the model on, and
 * upwards: runs/a/model.safetensors with data.source = plant.csv finds plant.csv beside runs/ from anywhere. */
#include "api/lookup.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "base/file.h"
#include "data/find.h"

/* FOLDER/NAME for the folder that a path is in, `up` levels above it; NULL: no memory, or there is no such level. */
static char *beside(const char *path, int up, const char *name)
{
    size_t len = strlen(path);
    for (int i = 0; i <= up; i++) {
        while (len > 0 && path[len - 1] != '/') len--;
        if (len == 0) return NULL;
        if (i < up) len--;
    }
    char *joined = taut_malloc(len + strlen(name) + 1);
    if (!joined) return NULL;
    memcpy(joined, path, len);
    strcpy(joined + len, name);
    return joined;
}

/* share/taut/recipes, or recipes, beside the folder of a program or library; NULL: neither is there. */
static char *recipes_beside(const char *own)
{
    char *whole = realpath(own, NULL), *path = whole ? beside(whole, 1, "share/taut/recipes") : NULL;
    if (path && !taut_file_exists(path)) {
        free(path);
        path = beside(whole, 1, "recipes");
    }
    if (path && !taut_file_exists(path)) free(path), path = NULL;
    free(whole);
    return path;
}

/* Where recipes are installed, beside the program or the library; NULL: nowhere. */
static char *recipes_folder(void)
{
    static const char here;
    Dl_info info;
    char *path = recipes_beside("/proc/self/exe");
    if (!path && dladdr(&here, &info) && info.dli_fname) path = recipes_beside(info.dli_fname);
    return path;
}

/* What is not there: a line with the nearest name of those that are. */
static taut_status no_recipe(const char *name, const char *last, const char *folder)
{
    struct dirent **list = NULL;
    const int found = scandir(folder, &list, NULL, alphasort), all = found < 0 ? 0 : found;
    const char **names = taut_calloc((size_t)all + 1, sizeof *names);
    for (int i = 0; names && i < all; i++) names[i] = list[i]->d_name;
    char whole[256];
    const bool ends = strlen(last) > 4 && strcmp(last + strlen(last) - 4, ".ini") == 0;
    snprintf(whole, sizeof whole, "%s%s", last, ends ? "" : ".ini");
    const char *near = names ? taut_nearest(whole, names, all) : NULL;
    const taut_status s = taut_fail(TAUT_BAD_FILE,
                                    "%s: No such file or directory, nor a recipe of that name in %s%s%s%s", name,
                                    folder, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    for (int i = 0; i < all; i++) free(list[i]);
    free(list);
    free(names);
    return s;
}

/* The recipe that a name means where it is no file here: the installed one.  *path is the caller's; NULL: it is a file's. */
static taut_status find_recipe(char **path, const char *name)
{
    const char *last = strncmp(name, "recipes/", 8) == 0 ? name + 8 : name;
    *path = NULL;
    if (taut_file_exists(name) || !*last || strchr(last, '/')) return TAUT_OK;
    char *folder = recipes_folder(), *file = folder ? taut_malloc(strlen(folder) + strlen(last) + 2) : NULL;
    taut_status s = folder && !file ? taut_no_memory(name) : TAUT_OK;
    if (file) sprintf(file, "%s/%s", folder, last);
    if (file && !taut_file_exists(file)) {
        s = no_recipe(name, last, folder);
        free(file);
        file = NULL;
    }
    free(folder);
    *path = file;
    return s;
}

taut_status taut_data_near(char **path, const char *source, const char *file)
{
    static const char *const built_in[] = { "none", "brackets", "shapes", "waves", "animals" };
    *path = NULL;
    for (int i = 0; i < 5; i++)
        if (strcmp(source, built_in[i]) == 0) return TAUT_OK;
    if (!*source || *source == '/') return TAUT_OK;
    char *found = NULL, *whole = realpath(file, NULL);
    const taut_status here = taut_data_find(&found, source);
    free(found);
    for (int up = 0; here == TAUT_BAD_DATA && whole && !*path; up++) {
        char *candidate = beside(whole, up, source);
        if (!candidate) break;
        if (taut_file_exists(candidate))
            *path = candidate;
        else
            free(candidate);
    }
    free(whole);
    return here == TAUT_NO_MEMORY ? here : TAUT_OK;
}

static taut_status settle_source(taut_config *cfg, const char *recipe)
{
    const char *source = taut_config_said(cfg, "data.source");
    char *path = NULL;
    taut_status s = source ? taut_data_near(&path, source, recipe) : TAUT_OK;
    if (!path) return s;
    char *line = taut_malloc(strlen(path) + 16);
    s = line ? TAUT_OK : taut_no_memory(recipe);
    if (line) sprintf(line, "data.source=%s", path);
    if (line) s = taut_config_set(cfg, line);
    free(line);
    free(path);
    return s;
}

taut_status taut_recipe_open(taut_config **out, const char *name, const char *const *overrides, int count)
{
    char *path = NULL;
    taut_status s = find_recipe(&path, name);
    const char *recipe = path ? path : name;
    if (!s) s = taut_config_open(out, recipe);
    if (!s && taut_config_empty(*out)) s = taut_fail(TAUT_BAD_CONFIG, "%s: an empty recipe: it has no key", recipe);
    if (!s) s = taut_overrides_apply(*out, overrides, count);
    if (!s) s = settle_source(*out, recipe);
    free(path);
    return s;
}
