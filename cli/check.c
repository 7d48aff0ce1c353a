#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/check.h"
#include "cli.h"

static int confirmed(const cli_args *a, const taut_checked *r)
{
    const char *norm = r->flat ? "flat" : "tokens";
    if (cli_flag(a, "--json")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "holds", r->holds);
        if (!r->holds) cJSON_AddStringToObject(o, "why", r->why);
        if (r->holds) {
            cJSON_AddStringToObject(o, "norm", norm);
            if (isfinite(r->lip))
                cJSON_AddNumberToObject(o, "lip", r->lip);
            else
                cJSON_AddStringToObject(o, "lip", "inf");
            cJSON_AddNumberToObject(o, "tokens", (double)r->tokens);
            cJSON_AddNumberToObject(o, "numbers", (double)r->numbers);
            cJSON_AddNumberToObject(o, "examples", (double)r->examples);
            cJSON_AddNumberToObject(o, "certified", (double)r->certified);
        }
        const int code = cli_json(o);
        return code == EXIT_DONE && !r->holds ? EXIT_CONTRADICTION : code;
    }
    if (!r->holds) return cli_refuse(a, "does not check: %s", r->why), EXIT_CONTRADICTION;
    printf("confirmed: %.9g-Lipschitz from embeddings to logits, norm %s, for %lld tokens within %.9g of the origin\n",
           r->lip, norm, (long long)r->tokens, r->reach);
    printf("  %lld numbers of the proof", (long long)r->numbers);
    if (r->examples)
        printf(", %lld examples, %lld of them with a certified radius", (long long)r->examples,
               (long long)r->certified);
    printf("%s\n", isinf(r->lip) ? "; an infinite constant promises nothing" : "");
    return EXIT_DONE;
}

static int run(const cli_args *a)
{
    taut_checked r;
    char *path = cli_model_path(a->operand[1]);
    if (!path) return cli_refuse(a, "out of memory");
    const taut_status s = taut_check_files(&r, a->operand[0], path);
    free(path);
    return s ? cli_fail(a) : confirmed(a, &r);
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
