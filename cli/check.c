/* Confirms a certificate.  The library's src/check/ does it; this file only prints. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/about.h"
#include "bound/ledger.h"
#include "bound/print.h"
#include "check/check.h"
#include "cli.h"

static int verdict(const taut_checked *r)
{
    if (r->foreign) return EXIT_UNKNOWN;
    return !r->holds ? EXIT_CONTRADICTION : r->unknown ? EXIT_UNKNOWN : EXIT_DONE;
}

/* As in the certificate. */
static cJSON *region_json(const taut_checked *r)
{
    cJSON *o = cJSON_CreateObject();
    if (r->pixels) cJSON_AddItemToObject(o, "box", cJSON_CreateIntArray((const int[]){ 0, 1 }, 2));
    if (r->series) cJSON_AddItemToObject(o, "rows", up_json((taut_up){ r->rows }));
    cJSON_AddItemToObject(o, "room", up_json((taut_up){ r->room }));
    if (!r->pixels) cJSON_AddItemToObject(o, "reach", up_json((taut_up){ r->reach }));
    return o;
}

static int print_json(const taut_checked *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "holds", r->foreign ? cJSON_CreateNull() : cJSON_CreateBool(r->holds));
    if (!r->holds) cJSON_AddStringToObject(o, "why", r->why);
    if (r->holds) {
        cJSON_AddStringToObject(o, "norm", r->flat ? "flat" : "tokens");
        cJSON_AddItemToObject(o, "lip", up_json((taut_up){ r->lip }));
        cJSON_AddNumberToObject(o, "tokens", (double)r->tokens);
        cJSON_AddItemToObject(o, "region", region_json(r));
        cJSON_AddNumberToObject(o, "numbers", (double)r->numbers);
        cJSON_AddNumberToObject(o, "examples", (double)r->examples);
        cJSON_AddNumberToObject(o, "certified", (double)r->certified);
        cJSON_AddNumberToObject(o, "unknown", (double)r->unknown);
        cJSON_AddNumberToObject(o, "defect", r->defect);
    }
    const int code = cli_json(o);
    return code == EXIT_DONE ? verdict(r) : code;
}

static int print(const cli_args *a, const taut_checked *r)
{
    char lip[32], text[TAUT_ABOUT_ROOM];
    const taut_about about = { .reads = r->pixels   ? TAUT_ABOUT_PIXELS
                                        : r->series ? TAUT_ABOUT_ROWS
                                                    : TAUT_ABOUT_TOKENS,
                               .tokens = r->tokens,
                               .room = r->room,
                               .reach = r->reach,
                               .rows = r->rows,
                               .defect = r->defect };
    if (cli_flag(a, "--json")) return print_json(r);
    if (!r->holds) return cli_refuse(a, "%s: %s", r->foreign ? "cannot say" : "does not check", r->why), verdict(r);
    printf("confirmed: %s-Lipschitz from %s, norm %s, l2\n", up_text(lip, (taut_up){ r->lip }),
           r->series ? "rows to forecasts" : "inputs to logits", r->flat ? "flat" : "tokens");
    printf("  %s\n  %lld numbers of the proof", taut_about_text(text, &about), (long long)r->numbers);
    if (r->examples)
        printf(", %lld examples, %lld with a certified radius", (long long)r->examples, (long long)r->certified);
    printf("%s\n", isinf(r->lip) ? "; an infinite constant promises nothing" : "");
    if (r->unknown)
        printf(
            "unknown: the radii of %lld more examples, which the checker's own forward pass is too coarse to confirm\n",
            (long long)r->unknown);
    return verdict(r);
}

static int run(const cli_args *a)
{
    taut_checked r;
    (void)cli_kernels(a); /* --threads */
    char *path = cli_path(a->operand[1], "model.safetensors");
    if (!path) return cli_refuse(a, "out of memory");
    const taut_status s = taut_check_files(&r, a->operand[0], path);
    free(path);
    return s ? cli_fail(a) : print(a, &r);
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
