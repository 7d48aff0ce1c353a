/* What lies near: a recipe among those that are installed with taut, data beside the recipe or the run that names them.
 *
 * A recipe that is not found as it is written, and is called x.ini or recipes/x.ini, is the one of that name in
 * share/taut/recipes beside the folder of the program or the library, or in recipes/ beside the build folder.  A relative
 * data.source that is not found from here (data/find.c) is looked for from the folder of the recipe or the model on, and
 * upwards: runs/a/model.safetensors with data.source = plant.csv finds plant.csv beside runs/ from anywhere. */
#include "api/near.h"

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

/* share/taut/recipes, or recipes/, beside the folder of a library or program; NULL: it is not there. */
static char *recipe_beside(const char *own, const char *name)
{
    static const char *const folders[] = { "share/taut/recipes/", "recipes/" };
    char relative[512], *whole = realpath(own, NULL), *path = NULL;
    for (int i = 0; i < 2 && whole && !path; i++) {
        if (snprintf(relative, sizeof relative, "%s%s", folders[i], name) >= (int)sizeof relative) continue;
        path = beside(whole, 1, relative);
        if (path && !taut_file_exists(path)) free(path), path = NULL;
    }
    free(whole);
    return path;
}

/* The installed recipe of that name, beside the program or the library; NULL: there is none. */
static char *installed(const char *name)
{
    static const char here;
    const char *last = strncmp(name, "recipes/", 8) == 0 ? name + 8 : name;
    Dl_info info;
    if (!*last || strchr(last, '/')) return NULL;
    char *path = recipe_beside("/proc/self/exe", last);
    if (!path && dladdr(&here, &info) && info.dli_fname) path = recipe_beside(info.dli_fname, last);
    return path;
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
    char *path = taut_file_exists(name) ? NULL : installed(name);
    const char *recipe = path ? path : name;
    taut_status s = taut_config_open(out, recipe);
    if (!s && taut_config_empty(*out)) s = taut_fail(TAUT_BAD_CONFIG, "%s: an empty recipe: it has no key", recipe);
    if (!s) s = taut_overrides_apply(*out, overrides, count);
    if (!s) s = settle_source(*out, recipe);
    free(path);
    return s;
}
