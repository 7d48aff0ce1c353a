/* Confirms a certificate: the library's checker does it, this file prints.
 *
 * A run's own certificate (RUN/certificate.json, checked against RUN) is the one that a report shows: what was found of it, good
 * or bad, is kept as RUN/check.json, where the report looks for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (cli_number(o, "tolerance") > 0 || cJSON_GetObjectItem(o, "for"))
        printf("  radii are for logits within %s of those in real arithmetic%s%s: that they are is not for a checker "
               "to say\n",
               cli_down(lip, o, "tolerance"), cJSON_GetObjectItem(o, "for") ? ", stated for the kernels " : "",
               cJSON_GetObjectItem(o, "for") ? cli_word(o, "for") : "");
    if (cli_number(o, "unknown") > 0)
        printf(
            "unknown: the radii of %.0f more examples, which the checker's own forward pass is too coarse to confirm\n",
            cli_number(o, "unknown"));
}

static void put(FILE *to, const void *text) { fprintf(to, "%s\n", (const char *)text); }

/* RUN/check.json, if the certificate is RUN's own and the folder may be written to; NULL: it is not kept.  The caller frees. */
static char *record_of(const char *cert, const char *run)
{
    struct stat given, own;
    char *beside = cli_path(run, "certificate.json"), *path = NULL;
    const bool folder = stat(run, &own) == 0 && S_ISDIR(own.st_mode) && access(run, W_OK) == 0;
    if (folder && beside && stat(cert, &given) == 0 && stat(beside, &own) == 0 && given.st_dev == own.st_dev &&
        given.st_ino == own.st_ino)
        path = cli_path(run, "check.json");
    free(beside);
    return path;
}

static int run(const cli_args *a)
{
    char *json = NULL;
    cli_look(a);
    if (taut_check_json(&json, a->operand[0], a->operand[1])) return cli_fail(a);
    char *record = record_of(a->operand[0], a->operand[1]);
    const int kept = record ? cli_write(a, record, put, json) : EXIT_DONE;
    cJSON *o = cli_answer(a, json);
    if (!cli_flag(a, "--json")) print(a, o);
    const int code = verdict(o);
    if (!cli_flag(a, "--json") && code == EXIT_DONE && record && kept == EXIT_DONE)
        printf("  kept in %s, for taut report\n", record);
    cJSON_Delete(o);
    free(record);
    return code != EXIT_DONE ? code : kept;
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
