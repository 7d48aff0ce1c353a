/* Certificates as taut certify writes them, of every architecture, those of texts and images with examples: confirmed as
 * they are; refused when any one of their numbers is lowered by a thousandth or by half (of an example: raised), when any
 * node loses its rule, and for a file of which one bit was flipped. */
#include "base/float32.h"
#include "base/json.h"
#include "certify/build.h"
#include "certify/example.h"
#include "check/check.h"
#include "temp.h"

#define TEXT "[model]\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 5\nmlp = 6\n"
#define VIT                                                                                                       \
    "[model]\narch = vit\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = 4\npixel_mean = 0.5\n" \
    "pixel_std = 0.25\npatch = 2\nwidth = 8\ndepth = 1\nheads = 2\nmlp = 12\n"
#define SERIES "[model]\narch = forecaster\nseq = 5\nahead = 2\ncolumns = 2\nmarks = 1\nwidth = 8\nheads = 2\nmlp = 6\n"
static const char *const kinds[] = {
    TEXT "norm = layernorm\n",
    TEXT "norm = rmsnorm\nnorm_place = post\npositions = rope\nactivation = silu\ntied = false\n",
    TEXT "norm = none\nactivation = abs\nresidual = convex\npositions = alibi\nlogit_scale = 0.5\n",
    TEXT "arch = encoder\nnorm = centernorm\nactivation = maxmin\nattention = cosine\ncosine_eps = 0.1\n",
    TEXT
    "norm = none\nattention = cosine\ncosine_values = true\ncosine_eps = 0.1\nresidual = channel\ndroppath = 0.1\n",
    TEXT "norm = none\nactivation = relu\nmlp_block = potential\n",
    TEXT "norm = none\nactivation = relu\nmlp_block = sll\n",
    TEXT "norm = none\nattention = position\nactivation = relu\n",
    TEXT "arch = encoder\nnorm = centernorm\nnorm_place = post\nattention = l2\n",
    TEXT "arch = encoder\nnorm = none\nattention = attlip\nattlip_head_width = 3\nattlip_learned = true\n"
         "positions = rope\nattlip_near = 0.5\n",
    VIT "norm = none\n",
    VIT "norm = none\nattention = l2\nresidual = convex\n",
    VIT "norm = none\nattention = attlip\nattlip_reflected = true\nattlip_turn = true\nattlip_eta = 0.25\n"
        "mlp_block = sll\nactivation = relu\npool = mean\n",
    VIT "norm = layernorm\npool = mean\npositions = none\n",
    VIT "norm = none\nresidual = convex\nattention = position\ntorus = true\npool = concat\nactivation = relu\n"
        "head_hidden = 5\n",
    ("[model]\narch = mlp\nimage_height = 3\nimage_width = 2\nimage_channels = 2\nclasses = 4\npixel_mean = 0.5 0.25\n"
     "pixel_std = 0.5\nhidden = 6 4\nactivation = relu\n"),
    SERIES "label = 2\ndepth = 1\nnorm_eps = 0.1\n",
    SERIES "label = 2\ndepth = 3\nattention = l2\ndistil = true\nbias = false\nnorm_eps = 0.1\n",
    SERIES
    "label = 5\ndepth = 1\ndecoder_depth = 2\nnorm = none\nattention = position\nactivation = abs\nresidual = convex\n",
    SERIES "label = 1\ndepth = 2\nnorm = none\nattention = attlip\nattlip_head_width = 3\nlogit_scale = 0.5\n",
    SERIES
    "label = 0\ndepth = 1\nattention = cosine\ncosine_eps = 0.1\nnorm = rmsnorm\nnorm_eps = 0.1\nactivation = maxmin\n",
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static char *model_path, *cert_path;
static int tried, refused, certified;

static taut_checked verdict(const cJSON *cert)
{
    taut_checked r;
    char *text = taut_json_text(cert, false);
    temp_put("cert.json", text, strlen(text));
    free(text);
    must(taut_check_files(&r, cert_path, model_path));
    return r;
}

static bool confirmed(const cJSON *cert)
{
    const taut_checked r = verdict(cert);
    if (!r.holds) fprintf(stderr, "%s\n", r.why);
    return r.holds && r.unknown == 0;
}

static void must_refuse(const cJSON *cert, const char *what)
{
    const bool bad = !verdict(cert).holds;
    tried++, refused += bad;
    CHECK(bad, what);
}

/* Choices, not bounds: any of them is as true.  A radius with another input may be. */
static bool is_choice(const char *key)
{
    static const char *const free_keys[] = { "weights", "units", "room", "rows", "ids", "pixels" };
    bool found = false;
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++) found = found || strcmp(key, free_keys[i]) == 0;
    return found;
}

static bool is_upward(const char *key) { return strcmp(key, "radius") == 0 || strcmp(key, "margin") == 0; }

/* Random inputs, whatever the model makes of them. */
static void add_examples(taut_certificate *c)
{
    taut_pass *pass;
    int32_t ids[8];
    double pixels[16], logits[16];
    const bool images = c->model->embed.rows == 0;
    const int64_t count = images ? c->model->in.d : c->tokens;
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    must(taut_pass_create(&pass, c->model, 1, c->tokens, false));
    for (int e = 0; e < 2; e++) {
        for (int64_t i = 0; i < count && !images; i++) ids[i] = (int32_t)rng_int(0, 10);
        for (int64_t i = 0; i < count && images; i++) pixels[i] = rng_unit();
        const taut_input x = images ? (taut_input){ NULL, pixels } : (taut_input){ ids, NULL };
        const taut_example one = taut_example_certify(c, pass, x, 1, logits);
        if (one.margin < 0.02) continue; /* so near a tie the checker's own rounding may leave it open */
        cJSON_AddItemToArray(list, taut_example_json(&one, x, count));
        certified += one.radius.v > 0;
    }
    taut_pass_free(pass);
}

static void bend(const cJSON *cert, cJSON *j, const char *key)
{
    for (cJSON *k = j->child; k; k = k->next) bend(cert, k, k->string ? k->string : key);
    if (cJSON_IsNumber(j) && j->valuedouble != 0 && !is_choice(key)) {
        const bool up = is_upward(key); /* a radius has some room for rounding and for solvers */
        const double v = j->valuedouble, less[] = { up ? 1.5 * v + 1e-3 : v * (1 - 1e-3), up ? 3 * v + 1 : v / 2 };
        for (int i = 0; i < 2; i++) {
            j->valuedouble = less[i];
            must_refuse(cert, key);
        }
        j->valuedouble = v;
    }
    if (strcmp(key, "rule") == 0 && cJSON_IsString(j)) {
        char *word = j->valuestring;
        j->valuestring = strdup(strcmp(word, "scale") == 0 ? "linear" : "scale");
        must_refuse(cert, "rule");
        free(j->valuestring);
        j->valuestring = word;
    }
}

static void flip(const cJSON *cert)
{
    static char bytes[1 << 17];
    FILE *f = fopen(model_path, "rb");
    const size_t len = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (!f || len == 0 || len == sizeof bytes) abort();
    fclose(f);
    for (int i = 0; i < 3; i++) {
        const size_t at = len - 1 - (size_t)rng_int(0, 400);
        bytes[at] = (char)(bytes[at] ^ (1 << rng_int(0, 7)));
        temp_put("model.safetensors", bytes, len);
        must_refuse(cert, "a flipped bit");
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (case_no = 0; case_no < KINDS * (effort(2) < 2 ? 1 : 2); case_no++) {
        const char *text = kinds[case_no % KINDS];
        const bool images = strstr(text, "image_height") != NULL, series = strstr(text, "forecaster") != NULL;
        taut_certificate c;
        taut_model *m = blank_model(text, images || series ? 0 : 11, false);
        for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
        for (int i = 0; i < m->weights; i++)
            if (strstr(m->weight[i].path, "mlp.scale")) ((double *)m->values)[m->weight[i].offset] = 3;
        must(taut_model_save(m, model_path));
        taut_model_free(m);
        must(taut_certify_rows(&c, model_path, case_no / KINDS ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 0.25,
                               series ? 2 : INFINITY));
        if (!series && (images || !strstr(text, "encoder"))) add_examples(&c);
        CHECK(isfinite(c.lip.v) && confirmed(c.json), text);
        bend(c.json, c.json, "");
        flip(c.json);
        taut_certificate_free(&c);
    }
    free(model_path), free(cert_path);
    return test_end("bend", "%d architectures, %d certified examples, %d mutations, %d refused", KINDS, certified,
                    tried, refused);
}
