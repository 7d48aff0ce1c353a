/* The inputs that a certificate of images is about: p + e, p in [0, 1]^d and |e|_2 <= room, and nothing else.  In a network
 * of identities no pair of such images that climbing finds beats the constant, and a patch in the far corner, moved outward,
 * attains the `out` of the pixels.  A ball around 0 that holds all these images also holds a pair that beats the constant,
 * and a patch longer than `out`: a file that claims a ball is refused, whatever it is called. */
#include "certify/build.h"
#include "certify/certify.h"
#include "check/verdict.h"
#include "model/pass.h"

enum { SIDE = 8, D = SIDE * SIDE, PATCH = 2, TOKENS = 16, WIDTH = 4 };
static const double root2 = 1.4142135623730951, room = 0.05;
static const char vit[] = "[model]\narch = vit\nimage_height = 8\nimage_width = 8\nimage_channels = 1\nclasses = 4\n"
                          "pixel_mean = 0.5\npixel_std = 0.1\npatch = 2\nwidth = 4\ndepth = 1\nheads = 1\nmlp = 4\n"
                          "norm = none\npositions = none\npool = mean\n";
static taut_pass *pass;

/* Patches, queries, keys, values and logits are what they come from; the perceptron adds nothing. */
static void save_identities(void)
{
    taut_model *m = blank_model(vit, 0, false);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const bool square = p->rows == WIDTH && p->cols == WIDTH && !strstr(m->weight[i].path, "mlp");
        for (int k = 0; square && k < WIDTH; k++) ((double *)m->values)[m->weight[i].offset + k * (WIDTH + 1)] = 1;
    }
    must(taut_model_save(m, model_path));
    taut_model_free(m);
}

static int pixel(int patch, int k) { return (patch / 4 * PATCH + k / 2) * SIDE + patch % 4 * PATCH + k % 2; }

static double slope(const double *x, const double *z)
{
    double f[WIDTH], g[WIDTH], apart = 0, moved = 0;
    for (int side = 0; side < 2; side++) {
        taut_pass_forward_real(pass, side ? z : x, 1);
        pass->m->k->get(side ? g : f, pass->logits.data, WIDTH);
    }
    for (int i = 0; i < D; i++) apart += (x[i] - z[i]) * (x[i] - z[i]);
    for (int i = 0; i < WIDTH; i++) moved += (f[i] - g[i]) * (f[i] - g[i]);
    return apart > 0 ? sqrt(moved / apart) : 0;
}

/* Two keys of length r on either side of what fourteen queries of length c look at: they lean to either by `lean`. */
static void balance(double *x, double r, double c, double lean)
{
    for (int t = 0; t < TOKENS; t++) {
        const double along = t < 2 ? (t ? -r : r) / root2 : lean, ahead = t < 2 ? r / root2 : c;
        const double y[] = { along / root2, -along / root2, ahead / root2, -ahead / root2 };
        for (int k = 0; k < WIDTH; k++) x[pixel(t, k)] = 0.5 + 0.1 * y[k];
    }
}

/* A pair inside the ball around 0 that holds all images, as long as they are: how far above the constant it is. */
static double beaten_in_the_ball(double lip)
{
    double x[D], z[D];
    balance(x, 49, 2, 1e-3), balance(z, 49, 2, -1e-3);
    CHECK_LE(norm(x, D), sqrt(D) + room, "inside the ball");
    CHECK_LE(norm(z, D), sqrt(D) + room, "so is the other");
    return slope(x, z) / lip;
}

/* p + e and p' + e, both of the region: e of length room, toward where p already is or anywhere. */
static double slope_in_region(const double *p, const double *toward, double *e, bool outward)
{
    double x[D], z[D];
    for (int i = 0; i < D; i++) e[i] = outward ? p[i] - 0.5 + 0.1 * e[i] : e[i];
    const double scale = room / (norm(e, D) + 1e-300);
    for (int i = 0; i < D; i++) {
        e[i] *= scale;
        x[i] = p[i] + e[i];
        z[i] = fmin(fmax(p[i] + 1e-4 * toward[i], 0), 1) + e[i];
    }
    return slope(x, z);
}

/* The steepest pair that climbing finds, pixel by pixel, from balanced and from random images. */
static double climb(void)
{
    double p[D], toward[D], e[D], start[D], best = 0;
    const bool balanced = rng_int(0, 1), outward = rng_int(0, 1);
    fill(start, D), fill(toward, D);
    balance(p, 7, 2 * rng_unit(), 0);
    for (int i = 0; i < D; i++) p[i] = balanced ? fmin(fmax(p[i], 0), 1) : (double)rng_int(0, 1);
    for (int t = 2; t < TOKENS && balanced; t++)
        for (int k = 0; k < WIDTH; k++) toward[pixel(t, k)] = k == 0 ? 1 : k == 1 ? -1 : 0;
    for (int step = 0; step < 200; step++) {
        const int at = (int)rng_int(0, D - 1);
        const double old = p[at], way = toward[at];
        if (step) p[at] = rng_int(0, 2) ? (double)rng_int(0, 1) : rng_unit();
        if (step % 3 == 1) toward[at] = rng_pm();
        memcpy(e, start, sizeof e);
        const double found = slope_in_region(p, toward, e, outward);
        if (found >= best)
            best = found;
        else
            p[at] = old, toward[at] = way;
    }
    return best;
}

static double longest_patch(const double *x)
{
    double most = 0;
    for (int t = 0; t < TOKENS; t++) {
        double sum = 0;
        for (int k = 0; k < WIDTH; k++) sum += pow((x[pixel(t, k)] - 0.5) / 0.1, 2);
        most = fmax(most, sqrt(sum));
    }
    return most;
}

/* The node of the pixels: its out is attained in the region, and not true of the ball. */
static void patches(const taut_certificate *c)
{
    const cJSON *body = cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(c->json, "proof"), "of"), 0);
    const cJSON *node = cJSON_GetArrayItem(cJSON_GetObjectItem(body, "of"), 0);
    const double out = cJSON_GetNumberValue(cJSON_GetObjectItem(node, "out"));
    double x[D];
    for (int i = 0; i < D; i++) x[i] = 1;
    for (int k = 0; k < WIDTH; k++) x[pixel(3, k)] += room / 2;
    CHECK_LE(longest_patch(x), out, "a patch of the region");
    CHECK_LE(out * (1 - 1e-6), longest_patch(x), "out is attained"); /* 1/std is a float */
    balance(x, 49, 2, 0);
    CHECK_LE(out * 4, longest_patch(x), "a patch of the ball");
}

/* A copy whose `part` has this text for this key (NULL: nothing), judged. */
static taut_checked with(const cJSON *cert, const char *part, const char *key, const char *text)
{
    cJSON *copy = cJSON_Duplicate(cert, true), *o = part ? cJSON_GetObjectItem(copy, part) : copy;
    cJSON_DeleteItemFromObject(o, key);
    if (text) cJSON_AddItemToObject(o, key, cJSON_Parse(text));
    const taut_checked r = verdict(copy);
    cJSON_Delete(copy);
    return r;
}

static void forged(const cJSON *cert)
{
    static const char *const boxes[] = { NULL, "[0,2]", "[-1,1]", "[0]", "[0,1,1]", "{\"a\":0,\"b\":1}", "\"[0, 1]\"" };
    taut_checked r = verdict(cert);
    CHECK(r.holds && r.pixels == D && r.room == room, r.why);
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
        CHECK(!with(cert, "region", "box", boxes[i]).holds, boxes[i] ? boxes[i] : "no box");
    CHECK(!with(cert, "region", "reach", "8.05").holds, "a ball that holds the region");
    CHECK(!with(cert, "region", "reach", "1e12").holds, "and any other");
    CHECK(!with(cert, NULL, "reach", "8.05").holds, "wherever it stands");
    CHECK(!with(cert, NULL, "region", NULL).holds, "no region");
    CHECK(!with(cert, "region", "room", "0.0501").holds, "more room");
    CHECK(with(cert, "region", "room", "0.0499").holds, "less room is less");
}

/* As version 2 had it: the region's fields around the proof. */
static cJSON *version_2(const cJSON *cert, double reach)
{
    cJSON *copy = cJSON_Duplicate(cert, true);
    cJSON_DeleteItemFromObject(copy, "region");
    cJSON_ReplaceItemInObject(copy, "version", cJSON_CreateNumber(2));
    cJSON_AddNumberToObject(copy, "room", room);
    cJSON_AddNumberToObject(copy, "reach", reach);
    return copy;
}

static void texts(void)
{
    taut_certificate c;
    taut_model *m = blank_model("[model]\nwidth = 4\ndepth = 1\nheads = 1\nmlp = 4\ncontext = 3\n", 5, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = 0.5;
    must(taut_model_save(m, model_path));
    taut_model_free(m);
    must(taut_certify(&c, model_path, TAUT_NORM_TOKENS, room));
    CHECK(verdict(c.json).holds && verdict(c.json).pixels == 0, "a text");
    CHECK(!with(c.json, "region", "box", "[0,1]").holds, "its embeddings are in no box");
    CHECK(!with(c.json, "region", "reach", "1.2").holds, "less than an embedding that is moved");
    cJSON *old = version_2(c.json, c.reach.v);
    CHECK(verdict(old).holds, "of texts version 2 said the same");
    cJSON_Delete(old);
    taut_certificate_free(&c);
}

int main(void)
{
    double found[2] = { 0 }, ball[2];
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (int n = 0; n < 2; n++) {
        taut_certificate c;
        save_identities();
        must(taut_certify(&c, model_path, (taut_norm)n, room));
        must(taut_pass_create(&pass, c.model, 1, 1, false));
        for (case_no = 0; case_no < effort(4); case_no++) found[n] = fmax(found[n], climb() / c.lip.v);
        ball[n] = beaten_in_the_ball(c.lip.v);
        CHECK_LE(found[n], 1, "no pair of the region beats the constant");
        CHECK_LE(1.05, ball[n], "a pair of the ball does");
        patches(&c);
        forged(c.json);
        cJSON *old = version_2(c.json, c.reach.v);
        const taut_checked r = verdict(old);
        CHECK(!r.holds && strstr(r.why, "version 2"), "the certificates that claimed a ball");
        cJSON_Delete(old);
        taut_pass_free(pass);
        taut_certificate_free(&c);
    }
    texts();
    free(model_path), free(cert_path);
    return test_end("region", "found / proved %.3f and %.3f in the region, %.3f and %.3f in the ball", found[0],
                    found[1], ball[0], ball[1]);
}
