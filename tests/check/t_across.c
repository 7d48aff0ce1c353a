/* Certificates made on one architecture check on the other: four small models, each trained and certified on x86_64 and on
 * aarch64 (tools/dump_certificates), are confirmed on whichever machine this is.  None is confirmed of another's weights. */
#include "check/check.h"
#include "harness.h"

enum { MACHINES = 2, MODELS = 4 };
static const char *const machine[MACHINES] = { "x86_64", "aarch64" };
static const struct {
    const char *name;
    int64_t examples;
} model[MODELS] = { { "text", 2 }, { "position", 2 }, { "image", 2 }, { "forecast", 0 } };

/* The certificate of model i from machine a, held against the weights of model j from machine b. */
static taut_checked check(int a, int i, int b, int j)
{
    char cert[128], weights[128];
    taut_checked r;
    snprintf(cert, sizeof cert, "tests/golden/certificates/%s/%s.json", machine[a], model[i].name);
    snprintf(weights, sizeof weights, "tests/golden/certificates/%s/%s.safetensors", machine[b], model[j].name);
    if (taut_check_files(&r, cert, weights)) {
        fprintf(stderr, "%s and %s: %s\n", cert, weights, taut_last_error());
        exit(1);
    }
    if (!r.holds && a == b && i == j) fprintf(stderr, "%s: %s\n", cert, r.why);
    return r;
}

int main(void)
{
    int confirmed = 0, refused = 0;
    test_begin();
    for (case_no = 0; case_no < MACHINES * MODELS; case_no++) {
        const int a = case_no / MODELS, i = case_no % MODELS;
        const taut_checked r = check(a, i, a, i);
        CHECK(r.holds && !r.unknown, "confirmed as a whole");
        CHECK(r.lip > 0 && isfinite(r.lip), "a constant that promises something");
        CHECK(r.examples == model[i].examples && r.certified == r.examples, "every example has a radius");
        confirmed += r.holds && !r.unknown;
        const bool twin = check(a, i, !a, i).holds, other = check(a, i, a, (i + 1) % MODELS).holds;
        CHECK(!twin, "of the other machine's weights it says nothing");
        CHECK(!other, "nor of another model's");
        refused += !twin + !other;
    }
    return test_end("across", "%d certificates of two machines confirmed, %d refused of other weights", confirmed,
                    refused);
}
