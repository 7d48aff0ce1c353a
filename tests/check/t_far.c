/* Weights, rooms and rows of every size that a file can hold, from nothing to 1e38 and 1e300: what taut certify proves is
 * confirmed, also where a factor is 0 and what it multiplies has no end, and a halved norm of attention's heads is refused. */
#include "certify/certify.h"
#include "check/kinds.h"
#include "check/verdict.h"

static int confirmed, bounded, halved;

/* Every tensor of one size, or some of their own. */
static void save_far(int kind)
{
    static const double sizes[] = { 0, 1e-38, 1e-20, 1e-10, 1, 1e10, 1e19, 1e25, 1e30, 1e38 };
    taut_model *m = blank_model(kinds[kind], is_image(kind) || is_series(kind) ? 0 : 11, false);
    const double most = sizes[rng_int(0, 9)];
    for (int i = 0; i < m->weights; i++) {
        double *to = (double *)m->values + m->weight[i].offset, size = rng_int(0, 2) ? most : sizes[rng_int(0, 9)];
        if (strstr(m->weight[i].path, "log_q")) size = 1; /* of exponents */
        for (int64_t k = 0; k < taut_weight_len(&m->weight[i]); k++) to[k] = taut_float32(size * rng_pm());
    }
    must(taut_model_save(m, model_path));
    taut_model_free(m);
}

static void halve(cJSON *cert, cJSON *j)
{
    for (cJSON *k = j->child; k; k = k->next) halve(cert, k);
    if (!j->string || !strstr(j->string, "_norm") || !cJSON_IsNumber(j) || !(j->valuedouble > 0)) return;
    const double true_one = j->valuedouble;
    j->valuedouble = true_one / 2;
    CHECK(!verdict(cert).holds, j->string);
    j->valuedouble = true_one;
    halved++;
}

int main(void)
{
    static const double rooms[] = { 0, 0.25, 1e10, 1e100, 1e150, 1e160, 1e300, INFINITY };
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (case_no = 0; case_no < effort(600); case_no++) {
        const int kind = case_no % KINDS;
        taut_certificate c;
        save_far(kind);
        must(taut_certify_rows(&c, model_path, rng_int(0, 1) ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, rooms[rng_int(0, 6)],
                               is_series(kind) ? rooms[rng_int(0, 7)] : INFINITY));
        const taut_checked r = verdict(c.json);
        CHECK(r.holds, r.why);
        confirmed += r.holds, bounded += isfinite(c.lip.v);
        if (case_no % 4 == 0) halve(c.json, c.json);
        taut_certificate_free(&c);
    }
    free(model_path), free(cert_path);
    return test_end("far", "%d certificates confirmed, %d with a finite constant; %d norms halved and refused",
                    confirmed, bounded, halved);
}
