/* The keys of recipes: all there are, or those of one recipe with their values. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

void cli_section(const char *key, char last[64], const char *format)
{
    const int len = (int)strcspn(key, ".");
    if (strncmp(key, last, (size_t)len) == 0 && last[len] == '\0') return;
    snprintf(last, 64, "%.*s", len, key);
    printf(format, last);
}

static void print_keys(const cJSON *keys)
{
    const cJSON *o;
    char last[64] = "";
    cJSON_ArrayForEach(o, keys)
    {
        const char *key = cli_word(o, "key"), *users = cli_word(o, "used_by");
        cli_section(key, last, "\n[%s]\n");
        printf("%s = %s%s\n    %s\n    %s\n", strchr(key, '.') + 1, cli_word(o, "default"),
               cJSON_IsTrue(cJSON_GetObjectItem(o, "depends")) ? "   (depends on other keys)" : "",
               cli_word(o, "meaning"), cli_word(o, "wants"));
        if (*users) printf("    with %s\n", users);
    }
}

static void print_values(const cJSON *values)
{
    const cJSON *v;
    char last[64] = "";
    cJSON_ArrayForEach(v, values)
    {
        cli_section(v->string, last, "\n[%s]\n");
        printf("%s = %s\n", strchr(v->string, '.') + 1, cJSON_GetStringValue(v));
    }
}

static int run(const cli_args *a)
{
    const char *set[64];
    char *json = NULL;
    int count = 0;
    for (int i = 0; i < a->given; i++)
        if (strcmp(a->name[i], "--set") == 0) set[count++] = a->value[i];
    const taut_recipe_options o = { .size = sizeof o, .overrides = set, .count = count };
    cli_look(a);
    if (count && !a->operands) return cli_refuse(a, "--set is about a recipe: say which");
    if (taut_recipe_json(&json, a->operands ? a->operand[0] : NULL, &o)) return cli_fail(a);
    cJSON *found = cli_answer(a, json);
    if (!cli_flag(a, "--json")) {
        print_keys(cJSON_GetObjectItem(found, "keys"));
        print_values(cJSON_GetObjectItem(found, "values"));
    }
    cJSON_Delete(found);
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--set", "S.K=V", "override a key of the recipe; may be repeated" },
    { NULL, NULL, NULL },
};

const cli_command cli_recipe = {
    "recipe",
    "[RECIPE]",
    "lists every key that a recipe may have, or those of one recipe with their values",
    "taut recipe recipes/tiny.ini",
    0,
    1,
    options,
    run,
};
