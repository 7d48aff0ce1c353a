/* Reading what the library answered. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

cJSON *cli_answer(const cli_args *a, char *json)
{
    if (cli_flag(a, "--json")) puts(json);
    cJSON *o = cJSON_Parse(json);
    taut_string_free(json);
    return o;
}

const char *cli_word(const cJSON *o, const char *key)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return found ? found : "";
}

double cli_number(const cJSON *o, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(o, key);
    if (cJSON_IsString(found)) return strcmp(found->valuestring, "inf") == 0 ? INFINITY : NAN;
    return cJSON_IsNumber(found) ? found->valuedouble : NAN;
}

const char *cli_up(char dst[32], const cJSON *o, const char *key) { return taut_number_up(dst, cli_number(o, key)); }
const char *cli_down(char dst[32], const cJSON *o, const char *key)
{
    return taut_number_down(dst, cli_number(o, key));
}
