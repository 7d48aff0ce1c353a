/* The grid of a sweep: reading it, the folders of its runs, and whether all of it can be run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

enum { NAME = 255 }; /* a file system's longest name */

/* "train.lr=0.1,0.2"; a value that is given twice is one run. */
static bool read_axis(sweep_axis *x, const char *text)
{
    const char *equal = strchr(text, '='), *at = equal ? equal + 1 : "";
    if (!equal || equal == text || equal - text >= (int)sizeof x->key) return false;
    memcpy(x->key, text, (size_t)(equal - text));
    x->key[equal - text] = '\0';
    for (x->count = 0; *at && x->count < SWEEP_VALUES;) {
        const size_t len = strcspn(at, ",");
        bool twice = false;
        if (len == 0 || len >= sizeof x->value[0]) return false;
        memcpy(x->value[x->count], at, len);
        x->value[x->count][len] = '\0';
        for (int i = 0; i < x->count; i++) twice |= strcmp(x->value[i], x->value[x->count]) == 0;
        x->count += !twice;
        at += len + (at[len] == ',');
    }
    return x->count > 0 && !*at;
}

const char *sweep_value(const sweep *s, int run, int axis)
{
    for (int i = 0; i < axis; i++) run /= s->axis[i].count;
    return s->axis[axis].value[run % s->axis[axis].count];
}

/* The axes in the order of their keys, so that neither the order of --grid nor the length of the grid tells in a name. */
static void by_key(const sweep *s, int order[SWEEP_AXES])
{
    for (int i = 0; i < s->axes; i++) {
        int at = i;
        for (; at > 0 && strcmp(s->axis[order[at - 1]].key, s->axis[i].key) > 0; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

void sweep_folder(const sweep *s, int run, char path[SWEEP_PATH])
{
    int order[SWEEP_AXES];
    int len = snprintf(path, SWEEP_PATH, "%s/%s", s->out, s->axes ? "" : "run");
    char *name = path + len;
    by_key(s, order);
    for (int i = 0; i < s->axes; i++)
        len += snprintf(path + len, (size_t)(SWEEP_PATH - len), "%s%s=%s", i ? "_" : "", s->axis[order[i]].key,
                        sweep_value(s, run, order[i]));
    for (; (name = strchr(name, '/')); *name = '-') {} /* a value may be a path */
}

int sweep_sets(const sweep *s, int run, const char *set[64], char room[SWEEP_AXES + 1][SWEEP_LEN])
{
    int count = 0;
    snprintf(room[SWEEP_AXES], SWEEP_LEN, "train.seed=%.40s", cli_text(s->args, "--seed", ""));
    if (cli_flag(s->args, "--seed")) set[count++] = room[SWEEP_AXES];
    for (int i = 0; i < s->args->given; i++)
        if (strcmp(s->args->name[i], "--set") == 0 && count < 64 - SWEEP_AXES) set[count++] = s->args->value[i];
    for (int i = 0; i < s->axes; i++) {
        snprintf(room[i], SWEEP_LEN, "%s=%s", s->axis[i].key, sweep_value(s, run, i));
        set[count++] = room[i];
    }
    return count;
}

/* The longest name that a run's folder may have, less where it lies. */
static size_t longest_name(const sweep *s)
{
    size_t len = 4;
    for (int i = 0; i < s->axes; i++) {
        size_t most = 0;
        for (int v = 0; v < s->axis[i].count; v++)
            if (strlen(s->axis[i].value[v]) > most) most = strlen(s->axis[i].value[v]);
        len += strlen(s->axis[i].key) + most + 2;
    }
    return len;
}

/* --mean KEY: the key of a grid. */
static bool read_mean(sweep *s, const char *key)
{
    for (int i = 0; i < s->axes; i++)
        if (strcmp(s->axis[i].key, key) == 0) return s->axis[i].mean = true;
    return false;
}

/* Is KEY=VALUE about a key of the grid?  NULL: no. */
static const char *in_grid(const sweep *s, const char *set)
{
    for (int i = 0; i < s->axes; i++) {
        const size_t len = strlen(s->axis[i].key);
        if (strncmp(set, s->axis[i].key, len) == 0 && strchr(" =", set[len])) return s->axis[i].key;
    }
    return NULL;
}

int sweep_read(sweep *s, const cli_args *a)
{
    for (int i = 0; i < a->given; i++) {
        if (strcmp(a->name[i], "--grid") != 0) continue;
        if (s->axes == SWEEP_AXES || !read_axis(&s->axis[s->axes], a->value[i]) || strchr(a->value[i], '\''))
            return cli_refuse(a, "--grid %s is not section.key=value,value,...", a->value[i]);
        for (int j = 0; j < s->axes; j++)
            if (strcmp(s->axis[j].key, s->axis[s->axes].key) == 0)
                return cli_refuse(a, "--grid %s is given twice", s->axis[j].key);
        s->runs *= s->axis[s->axes++].count;
        if (s->runs > SWEEP_RUNS) return cli_refuse(a, "that is more than %d runs", SWEEP_RUNS);
    }
    if (longest_name(s) > NAME) return cli_refuse(a, "--grid: the folder of a run would be too long a name");
    for (int i = 0; i < a->given; i++) {
        const bool set = strcmp(a->name[i], "--set") == 0;
        if (set && strchr(a->value[i], '\'')) return cli_refuse(a, "a --set with a quote");
        if (set && in_grid(s, a->value[i]))
            return cli_refuse(a, "%s is in --grid and in --set", in_grid(s, a->value[i]));
        if (strcmp(a->name[i], "--mean") == 0 && !read_mean(s, a->value[i]))
            return cli_refuse(a, "--mean %s: there is no --grid of it", a->value[i]);
    }
    return EXIT_DONE;
}

/* What the library says of an override, which is one of the grid's or of --set. */
static int refuse(const sweep *s)
{
    const char *line = taut_last_error();
    if (strncmp(line, "set ", 4) != 0) return cli_fail(s->args);
    const char *option = "--set";
    for (int i = 0; i < s->axes; i++)
        if (strncmp(line + 4, s->axis[i].key, strlen(s->axis[i].key)) == 0) option = "--grid";
    return cli_refuse(s->args, "%s %s", option, line + 4);
}

/* The values of a recipe under this run's overrides (asked), or of the one in its folder; NULL after a line. */
static cJSON *values_of(const sweep *s, int run, const char *folder, bool asked)
{
    char path[SWEEP_PATH + 16], room[SWEEP_AXES + 1][SWEEP_LEN], *json = NULL;
    const char *set[64];
    snprintf(path, sizeof path, "%s/recipe.ini", folder);
    const int count = asked ? sweep_sets(s, run, set, room) : 0;
    const taut_recipe_options o = { .size = sizeof o, .overrides = set, .count = count, .run = asked ? folder : NULL };
    if (taut_recipe_json(&json, asked ? s->recipe : path, &o)) return refuse(s), NULL;
    cJSON *all = cJSON_Parse(json), *values = cJSON_DetachItemFromObject(all, "values");
    taut_string_free(json);
    cJSON_Delete(all);
    return values;
}

int sweep_same(const sweep *s, int run)
{
    char folder[SWEEP_PATH], record[SWEEP_PATH + 32];
    int code = EXIT_DONE;
    sweep_folder(s, run, folder);
    snprintf(record, sizeof record, "%s/state.safetensors", folder);
    cJSON *asked = values_of(s, run, folder, true);
    if (!asked) return EXIT_BAD;
    cJSON *there = access(record, F_OK) == 0 ? values_of(s, run, folder, false) : cJSON_CreateObject();
    if (!there) code = EXIT_BAD;
    for (const cJSON *a = asked->child; a && !code; a = a->next) {
        const cJSON *t = cJSON_GetObjectItemCaseSensitive(there, a->string);
        if (t && strcmp(a->valuestring, t->valuestring) != 0)
            code = cli_refuse(s->args, "%s: its run has %s = %s, now %s is asked for: another --out keeps both", folder,
                              a->string, t->valuestring, a->valuestring);
    }
    cJSON_Delete(asked);
    cJSON_Delete(there);
    return code;
}

int sweep_check(const sweep *s)
{
    char path[2][SWEEP_PATH];
    for (int i = 0; i < s->runs; i++) {
        sweep_folder(s, i, path[0]);
        for (int j = 0; j < i; j++) {
            sweep_folder(s, j, path[1]);
            if (strcmp(path[0], path[1]) == 0) return cli_refuse(s->args, "--grid: two runs would both be %s", path[0]);
        }
        if (sweep_same(s, i)) return EXIT_BAD;
    }
    return EXIT_DONE;
}
