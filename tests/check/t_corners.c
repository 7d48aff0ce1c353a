/* Certificates as taut certify writes them, of weights at the edge: the checker confirms every one of them, and refuses
 * what would be false.  Infinite logits of attention by position; a column that is heavier in a shorter sequence; numbers
 * that are 1; layers of a potential all of whose weights are 0, and perceptrons and residual layers whose weights are.
 * Proximal steps of length 0, 1e-40 and 1e36, of weights whose squares are no floats, of K steps; distances that see
 * nothing, one token.  Examples of images that are none, of an infinite head, of faint features, radii where no proximal step
 * can be found, and a large bias that all logits share. */
#include "base/float32.h"
#include "certify/build.h"
#include "certify/example.h"
#include "check/verdict.h"

#define TEXT "[model]\nwidth = 4\ndepth = 1\ncontext = 3\nmlp = 6\nnorm = none\nactivation = relu\n"

static double *weight_of(const taut_model *m, const char *path)
{
    return (double *)m->values + taut_model_find(m, path)->offset;
}

static taut_model *random_of(const char *text)
{
    taut_model *m = blank_model(text, 11, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
    return m;
}

/* What taut certify proves of the model, in both norms, is confirmed; the caller frees the certificate of the norm flat. */
static taut_certificate confirmed_of(const taut_model *m, const char *what)
{
    taut_certificate c;
    must(taut_model_save(m, model_path));
    for (int norm = 0; norm < 2; norm++) {
        if (norm) taut_certificate_free(&c);
        must(taut_certify(&c, model_path, norm ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 0.25));
        const taut_checked r = verdict(c.json);
        if (!r.holds) fprintf(stderr, "%s\n", r.why);
        CHECK(r.holds, what);
    }
    return c;
}

static taut_certificate confirmed(taut_model *m, const char *what) /* frees the model */
{
    const taut_certificate c = confirmed_of(m, what);
    taut_model_free(m);
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
        weight_of(m, "block.0.attn.distance.weight")[i & 8 ? 4 : 1] = taut_float32(bad[i & 3]);
        taut_certificate c = confirmed(m, "logits that are not finite");
        CHECK(isinf(c.lip.v) == ((i & 3) != 3), "no constant without finite logits");
        taut_certificate_free(&c);
    }
}

/* A potential whose scale became infinite after it was certified, behind an attention without a constant: the whole has no
 * constant in either case, but the layer's own is no longer proved. */
static void infinite_scale(void)
{
    for (int i = 0; i < 2; i++) {
        const char *path = i ? "block.0.mlp.log_q" : "block.0.mlp.scale";
        taut_model *m = random_of(
            i ? TEXT "arch = encoder\nheads = 2\nattention = l2_free\nnorm_place = post\nmlp_block = sll\n"
              : TEXT "arch = encoder\nheads = 2\nattention = l2_free\nnorm_place = post\nmlp_block = potential\n");
        taut_certificate before = confirmed_of(m, path);
        *weight_of(m, path) = INFINITY;
        taut_certificate after = confirmed(m, path);
        CHECK(isinf(before.lip.v) && isinf(after.lip.v), "no constant in either case");
        cJSON_ReplaceItemInObject(before.json, "model",
                                  cJSON_Duplicate(cJSON_GetObjectItem(after.json, "model"), true));
        CHECK(!verdict(before.json).holds, path);
        taut_certificate_free(&before);
        taut_certificate_free(&after);
    }
}

/* Numbers that are 1: the ledger adds no room to them.  One token has a column of 1, and matrices of one entry are its norm. */
static void ones(void)
{
    static const char *const kinds[] = { "attention = position\n", "arch = encoder\nattention = position\n",
                                         "arch = encoder\nattention = position\ncontext = 2\n", "\n" };
    for (case_no = 0; case_no < 8; case_no++) {
        char text[400];
        snprintf(text, sizeof text, "[model]\nwidth = 1\nheads = 1\ndepth = 1\nmlp = 1\nnorm = none\n%s%s",
                 case_no / 2 == 2 ? "" : "context = 1\n", kinds[case_no / 2]);
        taut_model *m = random_of(text);
        for (int64_t i = 0; case_no % 2 && i < m->slab; i++) ((double *)m->values)[i] = 1;
        taut_certificate c = confirmed(m, kinds[case_no / 2]);
        CHECK(isfinite(c.lip.v), kinds[case_no / 2]);
        taut_certificate_free(&c);
    }
}

/* Each kind with all weights 0, then with all but one 0. */
static void zeros(void)
{
    static const char *const kinds[] = { "mlp_block = potential\nheads = 2\n",
                                         "mlp_block = sll\nheads = 2\n",
                                         "attention = position\nheads = 2\n",
                                         "attention = cosine\nheads = 2\n",
                                         "heads = 2\n",
                                         "arch = encoder\nattention = l2\nheads = 2\n",
                                         "arch = encoder\nattention = attlip\nheads = 2\nattlip_turn = true\n" };
    for (case_no = 0; case_no < 7; case_no++)
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

/* lip is finite, or not; either way what is stated is confirmed. */
static void prox_corners(void)
{
    static const struct {
        const char *keys, *path;
        double value;
        bool finite;
    } corner[] = {
        { "attention = attlip\nattlip_learned = true\n", "block.0.attn.root", 0, false },
        { "attention = attlip\nattlip_learned = true\n", "block.0.attn.root", 1e-20, true },
        { "attention = attlip\nattlip_learned = true\n", "block.0.attn.root", -1e18, true },
        { "attention = attlip\nattlip_learned = true\n", "block.0.attn.root", NAN, false },
        { "attention = attlip\nattlip_reflected = true\n", "block.0.attn.weight", 3e38, true },
        { "attention = attlip\n", "block.0.attn.weight", INFINITY, false },
        { "attention = attlip\nattlip_steps = 3\n", "block.0.attn.weight", 1, false },
        { "attention = l2\n", "block.0.attn.q.weight", 0, true },
        { "attention = l2\n", "block.0.attn.q.weight", 1e6, true },
        { "attention = l2\n", "block.0.attn.q.weight", 1e-30, true },
        { "attention = l2_free\n", "block.0.attn.q.weight", 0.5, false },
    };
    for (case_no = 0; case_no < 2 * (int)(sizeof corner / sizeof *corner); case_no++) {
        const int i = case_no / 2;
        char text[400];
        snprintf(text, sizeof text,
                 "[model]\nwidth = 4\ndepth = 1\ncontext = %d\nmlp = 6\nnorm = none\nactivation = relu\n"
                 "arch = encoder\nheads = 2\n%s",
                 case_no % 2 ? 1 : 3, corner[i].keys);
        taut_model *m = random_of(text);
        const taut_weight *w = taut_model_find(m, corner[i].path);
        for (int64_t k = 0; k < taut_weight_len(w); k++)
            ((double *)m->values)[w->offset + k] = taut_float32(k % 3 ? corner[i].value : -corner[i].value);
        taut_certificate c = confirmed(m, corner[i].keys);
        CHECK(isfinite(c.lip.v) == corner[i].finite, corner[i].keys);
        taut_certificate_free(&c);
    }
}

static const char prox_text[] = "[model]\narch = vit\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = "
                                "4\npixel_mean = 0.5\npixel_std = 0.25\n"
                                "patch = 2\nwidth = 4\ndepth = 1\nheads = 2\nmlp = 6\nnorm = none\nattention = "
                                "attlip\nmlp_block = sll\nactivation = relu\n";

/* An example of 16 pixels, with this radius, in the place of all others. */
static cJSON *example_of(taut_certificate *c, double radius, const char *key, const cJSON *instead)
{
    cJSON *e = cJSON_CreateObject(), *list = cJSON_CreateArray(), *pixels = cJSON_AddArrayToObject(e, "pixels");
    cJSON_AddItemToArray(list, e);
    for (int i = 0; i < 16; i++) cJSON_AddItemToArray(pixels, cJSON_CreateNumber(i / 16.));
    cJSON_AddNumberToObject(e, "predicted", 0);
    cJSON_AddNumberToObject(e, "margin", 0);
    cJSON_AddNumberToObject(e, "radius", radius);
    cJSON_AddStringToObject(e, "verdict", radius > 0 ? "certified" : "unknown");
    if (instead) cJSON_ReplaceItemInObject(e, key, cJSON_Duplicate(instead, true));
    cJSON_DeleteItemFromObject(c->json, "examples");
    cJSON_AddItemToObject(c->json, "examples", list);
    return e;
}

/* A head that always says 0, by 1: any example is right.  Pixels that are no image are refused; so is a text. */
static void no_images(void)
{
    static const char *const strange[] = { "[0]",
                                           "[]",
                                           "7",
                                           "\"x\"",
                                           "{}",
                                           "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1.01]",
                                           "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,-1e-9]",
                                           "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,null]",
                                           "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]" };
    taut_model *m = blank_model(prox_text, 0, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.5 * rng_pm());
    memset(weight_of(m, "head.weight"), 0, 16 * sizeof(double));
    weight_of(m, "head.bias")[0] = 1, memset(weight_of(m, "head.bias") + 1, 0, 3 * sizeof(double));
    taut_certificate c = confirmed(m, "a head that says 0");
    example_of(&c, 0.25, NULL, NULL);
    taut_checked r = verdict(c.json);
    CHECK(r.holds && r.certified == 1 && r.unknown == 0, r.why);
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        cJSON *j = cJSON_Parse(strange[i]);
        example_of(&c, 0.25, "pixels", j);
        CHECK(!verdict(c.json).holds, strange[i]);
        cJSON_Delete(j);
    }
    cJSON *e = example_of(&c, 0.25, NULL, NULL);
    cJSON_AddItemToObject(e, "ids", cJSON_CreateArray());
    CHECK(!verdict(c.json).holds, "a text and an image");
    taut_certificate_free(&c);
}

/* Weights of 1e30: nobody finds the proximal step.  Then nothing is said of a radius, and nothing else is lost. */
static void unsolved(void)
{
    taut_model *m = blank_model(prox_text, 0, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.5 * rng_pm());
    for (int i = 0; i < 16; i++) weight_of(m, "block.0.attn.weight")[i] *= 0x1p100;
    taut_certificate c = confirmed(m, "large weights");
    CHECK(isfinite(c.lip.v), "the constant holds for any weights");
    example_of(&c, 1e-3, NULL, NULL);
    const taut_checked r = verdict(c.json);
    CHECK(r.holds && r.certified == 0 && r.unknown == 1, "unknown");
    taut_certificate_free(&c);
}

static void add_examples(const taut_certificate *c)
{
    taut_pass *pass;
    double logits[11];
    int32_t ids[3];
    must(taut_pass_create(&pass, c->model, 1, 3, false));
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    for (int e = 0; e < 10; e++) {
        for (int i = 0; i < 3; i++) ids[i] = (int32_t)rng_int(0, 10);
        const taut_input x = { ids, NULL };
        const taut_example one = taut_example_certify(c, pass, x, 0, logits);
        if (isfinite(one.margin)) cJSON_AddItemToArray(list, taut_example_json(&one, x, 3));
    }
    taut_pass_free(pass);
}

/* Of a model with a weight that is not finite examples say nothing, and a radius is refused. */
static void infinite_head(void)
{
    taut_model *m = random_of(TEXT "heads = 2\nhead_bias = true\ntied = false\n");
    weight_of(m, "head.weight")[1] = -INFINITY;
    taut_certificate c = confirmed(m, "an infinite head");
    add_examples(&c);
    taut_checked r = verdict(c.json);
    CHECK(r.holds && r.examples > 0 && r.certified == 0, r.why);
    cJSON *e = cJSON_GetArrayItem(cJSON_GetObjectItem(c.json, "examples"), 0);
    cJSON_SetNumberValue(cJSON_GetObjectItem(e, "radius"), 1e-9);
    cJSON_SetValuestring(cJSON_GetObjectItem(e, "verdict"), "certified");
    CHECK(!verdict(c.json).holds, "a radius of an infinite head");
    taut_certificate_free(&c);
}

/* Features near 1e-150 on their way: the checker's forward pass knows nothing of them, and says so; it refutes nothing. */
static void faint(void)
{
    taut_model *m = blank_model(
        "[model]\narch = mlp\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = 2\n"
        "hidden = 2 2 2 2 2 2 2 2 2\nactivation = relu\n",
        0, false);
    weight_of(m, "layer.0.weight")[16] = 0x1p-20, weight_of(m, "layer.0.bias")[0] = 1;
    for (int layer = 1; layer < 9; layer++) {
        char path[40];
        snprintf(path, sizeof path, "layer.%d.weight", layer);
        weight_of(m, path)[0] = weight_of(m, path)[3] = layer < 5 ? 0x1p-125 : 0x1p125;
    }
    weight_of(m, "head.weight")[0] = weight_of(m, "head.weight")[3] = 1;
    taut_certificate c = confirmed(m, "faint features");
    example_of(&c, 0.25, NULL, NULL);
    const taut_checked r = verdict(c.json);
    CHECK(r.holds && r.certified + r.unknown == 1, r.why);
    taut_certificate_free(&c);
}

/* A bias that all logits share moves no prediction, but takes digits from every logit that is computed. */
static void common_bias(void)
{
    for (double bias = 1; bias < 1e14; bias *= 1e3) {
        taut_model *m = random_of(TEXT "heads = 2\nhead_bias = true\n");
        for (int i = 0; i < 11; i++) weight_of(m, "head.bias")[i] = taut_float32(bias);
        taut_certificate c = confirmed(m, "a common bias");
        add_examples(&c);
        const taut_checked r = verdict(c.json);
        CHECK(r.holds && r.unknown == 0, r.why);
        CHECK(bias > 1e6 || r.certified > 5, "radii");
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
    infinite_scale();
    ones();
    zeros();
    prox_corners();
    no_images();
    unsolved();
    infinite_head();
    faint();
    common_bias();
    free(model_path), free(cert_path);
    return test_end("corners", "as certify writes them");
}
