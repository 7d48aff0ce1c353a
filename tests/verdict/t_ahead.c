/* Logits from another table, many at a time: each is within what the table promises of ref's, radii from them are never larger
 * than those by ref and hardly smaller, the checker confirms them; a module whose rounding nobody knows leaves all to ref.
 * With TAUT_KERNELS=cuda64 on the device too. */
#include "base/alloc.h"
#include "base/float32.h"
#include "base/json.h"
#include "certify/build.h"
#include "check/check.h"
#include "temp.h"
#include "verdict/predictions.h"

enum { N = 300, T = 4, TOKENS = 30 };

static const char *const recipes[] = {
    "[model]\narch = gpt\nwidth = 24\ndepth = 2\nheads = 2\ncontext = 4\nnorm = none\n",
    "[model]\narch = vit\nimage_height = 8\nimage_width = 8\nimage_channels = 3\npatch = 4\nclasses = 30\nwidth = 24\n"
    "depth = 2\nheads = 2\nattention = position\nnorm = none\npool = mean\npixel_mean = 0.5\npixel_std = 0.5\n",
};

static int32_t ids[N * T], labels[N];
static double pixels[N * 8 * 8 * 3];

static void certify(taut_certificate *c, taut_examples *from, const char *recipe)
{
    taut_model *m = blank_model(recipe, strstr(recipe, "vit") ? 0 : TOKENS, false);
    must(taut_model_init(m, 3));
    must(taut_model_save(m, temp_path("m.safetensors")));
    taut_model_free(m);
    must(taut_certify(c, temp_path("m.safetensors"), TAUT_NORM_FLAT, 0.1));
    const bool sees = taut_model_sees(c->model);
    *from = (taut_examples){ .ids = sees ? NULL : ids,
                             .reals = sees ? pixels : NULL,
                             .labels = labels,
                             .n = N,
                             .t = c->model->in.t,
                             .d = c->model->in.d };
}

static void confirmed(taut_certificate *c)
{
    taut_checked r;
    char *text = taut_json_text(c->json, false);
    temp_put("cert.json", text, strlen(text));
    free(text);
    must(taut_check_files(&r, temp_path("cert.json"), temp_path("m.safetensors")));
    CHECK(r.holds && r.examples == N, r.why);
}

static double against_ref(const char *recipe, const char *table)
{
    taut_certificate c;
    taut_examples from;
    taut_ahead ahead;
    taut_predictions here, there;
    double worst = 0;
    int some = 0;
    certify(&c, &from, recipe);
    must(taut_predictions_make(&here, &c, &from, &(taut_predictions_way){ 0 }, NULL, NULL));
    cJSON_DeleteItemFromObject(c.json, "examples");
    must(taut_ahead_make(&ahead, &c, temp_path("m.safetensors"), table, &from));
    CHECK(ahead.logits && isfinite(ahead.round.v), "a table whose rounding is known");
    must(taut_predictions_make(&there, &c, &from, &(taut_predictions_way){ .ahead = &ahead }, NULL, NULL));
    for (int i = 0; i < N; i++, case_no++) {
        const taut_example *a = &here.example[i], *b = &there.example[i];
        const double off = fabs(a->margin - b->margin);
        CHECK_LE(off, 4 * (ahead.round.v + c.round.v), "margins");
        CHECK_LE(b->radius.v, a->radius.v * (1 + 1e-9), "no radius grows");
        if (strcmp(table, "cpu") != 0) CHECK_LE(a->radius.v * (1 - 1e-6), b->radius.v, "and in double none shrinks");
        some += b->radius.v > 0;
        CHECK(a->predicted == b->predicted, "the same answer");
        worst = fmax(worst, off / (4 * ahead.round.v));
    }
    CHECK(some > N / 2, "most have a radius");
    confirmed(&c);
    taut_ahead_free(&ahead);
    taut_predictions_free(&here), taut_predictions_free(&there);
    taut_certificate_free(&c);
    return worst;
}

static void nobody_knows(void)
{
    taut_certificate c;
    taut_examples from;
    taut_ahead ahead;
    certify(
        &c, &from,
        "[model]\narch = encoder\nwidth = 24\ndepth = 1\nheads = 2\ncontext = 4\nnorm = none\nattention = attlip\n");
    must(taut_ahead_make(&ahead, &c, temp_path("m.safetensors"), "cpu", &from));
    CHECK(!ahead.logits, "no logits, and no error");
    CHECK(taut_ahead_make(&ahead, &c, temp_path("m.safetensors"), "abacus", &from) != TAUT_OK, "no such table");
    taut_certificate_free(&c);
}

static void no_memory(void)
{
    taut_certificate c;
    taut_examples from;
    taut_ahead ahead;
    taut_status s = TAUT_NO_MEMORY;
    int n = 0;
    certify(&c, &from, recipes[1]);
    for (; s == TAUT_NO_MEMORY && n < 1000; case_no++) {
        taut_alloc_fail_at(++n);
        s = taut_ahead_make(&ahead, &c, temp_path("m.safetensors"), "ref", &from);
    }
    taut_alloc_fail_at(0);
    CHECK(!s && n > 10, taut_last_error());
    taut_ahead_free(&ahead);
    taut_certificate_free(&c);
}

int main(void)
{
    const char *table = getenv("TAUT_KERNELS");
    const bool device = table && strcmp(table, "cuda64") == 0;
    double worst = 0;
    test_begin();
    temp_begin();
    for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) pixels[i] = taut_float32(rng_unit());
    if (device && !taut_kernels_find(table)) return test_skip(taut_last_error());
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        worst = fmax(worst, against_ref(recipes[i], "cpu"));
        worst = fmax(worst, against_ref(recipes[i], "ref"));
        if (device) worst = fmax(worst, against_ref(recipes[i], table));
    }
    nobody_knows();
    no_memory();
    return test_end("ahead", "worst margin off / promised = %.3f", worst);
}
