/* Certificates as taut certify writes them, of weights at the edge: the checker confirms every one of them, and refuses
 * what would be false.  Infinite logits of attention by position; a column that is heavier in a shorter sequence; layers
 * of a potential all of whose weights are 0, and perceptrons and residual layers whose weights are. */
#include "base/json.h"
#include "certify/build.h"
#include "certify/certify.h"
#include "check/check.h"
#include "temp.h"

#define TEXT "[model]\nwidth = 4\ndepth = 1\ncontext = 3\nmlp = 6\nnorm = none\nactivation = relu\n"
static char *model_path, *cert_path;

static taut_checked verdict(const cJSON *cert)
{
    taut_checked r;
    char *text = taut_json_text(cert, false);
    temp_put("cert.json", text, strlen(text));
    free(text);
    must(taut_check_files(&r, cert_path, model_path));
    return r;
}

static double *weight_of(const taut_model *m, const char *path)
{
    return (double *)m->values + taut_model_find(m, path)->offset;
}

static taut_model *random_of(const char *text)
{
    taut_model *m = blank_model(text, 11, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = (double)(float)(0.6 * rng_pm());
    return m;
}

/* What taut certify proves of the model, in both norms, is confirmed; the caller frees the certificate of the norm flat. */
static taut_certificate confirmed(taut_model *m, const char *what)
{
    taut_certificate c;
    must(taut_model_save(m, model_path));
    taut_model_free(m);
    for (int norm = 0; norm < 2; norm++) {
        if (norm) taut_certificate_free(&c);
        must(taut_certify(&c, model_path, norm ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 0.25));
        const taut_checked r = verdict(c.json);
        if (!r.holds) fprintf(stderr, "%s\n", r.why);
        CHECK(r.holds, what);
    }
    return c;
}

static cJSON *found(cJSON *j, const char *key)
{
    cJSON *f = cJSON_GetObjectItem(j, key);
    for (cJSON *k = j->child; k && !f; k = k->next) f = found(k, key);
    return f;
}

/* Three tokens have no column above 1; of two, both read token 0. */
static void shorter(void)
{
    static const double table[] = { 60, 0, 20, 40, -40 };
    taut_model *m = random_of(TEXT "arch = encoder\nheads = 1\nattention = position\n");
    memcpy(weight_of(m, "block.0.attn.distance.weight"), table, sizeof table);
    taut_certificate c = confirmed(m, "a heavier column in a shorter sequence");
    cJSON *column = found(c.json, "column");
    CHECK_NEAR(column->valuedouble, 2, 1e-6, "the column of two tokens");
    column->valuedouble = 1.001;
    CHECK(!verdict(c.json).holds, "the column of three tokens is refused");
    taut_certificate_free(&c);
}

static void infinite_logits(void)
{
    static const double bad[] = { INFINITY, -INFINITY, NAN, 3e38 };
    for (int i = 0; i < 16; i++) {
        taut_model *m = random_of(i & 4 ? TEXT "arch = encoder\nheads = 2\nattention = position\n"
                                        : TEXT "heads = 2\nattention = position\n");
        weight_of(m, "block.0.attn.distance.weight")[i & 8 ? 4 : 1] = (double)(float)bad[i & 3];
        taut_certificate c = confirmed(m, "logits that are not finite");
        CHECK(isinf(c.lip.v) == ((i & 3) != 3), "no constant without finite logits");
        taut_certificate_free(&c);
    }
}

/* Each kind with all weights 0, then with all but one 0. */
static void zeros(void)
{
    static const char *const kinds[] = { "mlp_block = potential\nheads = 2\n", "mlp_block = sll\nheads = 2\n",
                                         "attention = position\nheads = 2\n", "attention = cosine\nheads = 2\n",
                                         "heads = 2\n" };
    for (case_no = 0; case_no < 5; case_no++)
        for (int one = -1; one < 16; one++) {
            char text[400];
            snprintf(text, sizeof text, "%s%s", TEXT, kinds[case_no]);
            taut_model *m = random_of(text);
            for (int i = 0; i < m->weights; i++)
                if (i != one)
                    memset((double *)m->values + m->weight[i].offset, 0, (size_t)taut_weight_len(&m->weight[i]) * 8);
            taut_certificate c = confirmed(m, kinds[case_no]);
            taut_certificate_free(&c);
        }
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    shorter();
    infinite_logits();
    zeros();
    free(model_path), free(cert_path);
    return test_end("corners", "as certify writes them");
}
