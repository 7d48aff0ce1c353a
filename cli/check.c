/* Confirms a certificate: the library's checker does it, this file prints. */
#include <math.h>
#include <stdio.h>

#include "cli.h"

static int verdict(const cJSON *o)
{
    const cJSON *holds = cJSON_GetObjectItem(o, "holds");
    if (cJSON_IsFalse(holds)) return EXIT_CONTRADICTION;
    return cJSON_IsTrue(holds) && cli_number(o, "unknown") == 0 ? EXIT_DONE : EXIT_UNKNOWN;
}

static void print(const cli_args *a, const cJSON *o)
{
    char lip[32];
    const cJSON *holds = cJSON_GetObjectItem(o, "holds");
    if (!cJSON_IsTrue(holds)) {
        cli_refuse(a, "%s: %s", cJSON_IsNull(holds) ? "cannot say" : "does not check", cli_word(o, "why"));
        return;
    }
    printf("confirmed: %s-Lipschitz from %s, norm %s, l2\n", cli_up(lip, o, "lip"),
           cJSON_GetObjectItem(cJSON_GetObjectItem(o, "region"), "rows") ? "rows to forecasts" : "inputs to logits",
           cli_word(o, "norm"));
    printf("  %s\n  %.0f numbers of the proof", cli_word(o, "about"), cli_number(o, "numbers"));
    if (cli_number(o, "examples") > 0)
        printf(", %.0f examples, %.0f with a certified radius", cli_number(o, "examples"), cli_number(o, "certified"));
    printf("%s\n", isinf(cli_number(o, "lip")) ? "; an infinite constant promises nothing" : "");
    if (cli_number(o, "unknown") > 0)
        printf(
            "unknown: the radii of %.0f more examples, which the checker's own forward pass is too coarse to confirm\n",
            cli_number(o, "unknown"));
}

static int run(const cli_args *a)
{
    char *json = NULL;
    (void)cli_table(a); /* --threads */
    if (taut_check_json(&json, a->operand[0], a->operand[1])) return cli_fail(a);
    cJSON *o = cli_answer(a, json);
    if (!cli_flag(a, "--json")) print(a, o);
    const int code = verdict(o);
    cJSON_Delete(o);
    return code;
}

static const cli_option options[] = { { NULL, NULL, NULL } };

const cli_command cli_check = {
    "check",
    "CERT MODEL",
    "confirms a certificate by other means than those that made it",
    "taut check cert.json runs/tiny",
    2,
    2,
    options,
    run,
};
