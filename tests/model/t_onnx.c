/* An ONNX file's weights, BatchNorm folded, answer as the network that tools/dump_onnx.py wrote down; a recipe that asks for
 * what is not there, foreign nodes, cut and damaged files are one line and never a crash. */
#include "harness.h"
#include "model/hf.h"
#include "model/onnx.h"
#include "model/pass.h"
#include "must.h"
#include "temp.h"

static const char *const file = "tests/golden/onnx/vit.onnx", *const recipe = "tests/golden/onnx/recipe.ini";

static double *numbers(const taut_safetensors *st, const char *name)
{
    const taut_st_tensor *t = taut_safetensors_find(st, name);
    double *x = doubles(t->count);
    must(taut_safetensors_read(st, t, x, 0, t->count));
    return x;
}

/* ref: double against double, with the scale and eps as floats on both sides: 1e-12 of logits near 1.  cpu: folded weights
 * rounded to float and some ten float kernels in a row, 1e-5. */
static double answers(const char *kernels, double tol)
{
    taut_hf *hf = NULL;
    taut_model *m = NULL;
    taut_pass *pass = NULL;
    taut_safetensors *st = NULL;
    double ours[6], worst = 0;
    must(taut_hf_open(&hf, file, &(taut_hf_ask){ .recipe = recipe }));
    cJSON *r = taut_hf_report(hf);
    CHECK(cJSON_GetObjectItem(r, "used")->valueint == cJSON_GetObjectItem(r, "tensors")->valueint, "every tensor");
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(r, "notes")) == 2, "folding is said");
    cJSON_Delete(r);
    must(taut_hf_load(&m, hf, "", false, taut_kernels_find(kernels)));
    must(taut_pass_create(&pass, m, 2, 1, false));
    must(taut_safetensors_open(&st, "tests/golden/onnx/expected.safetensors"));
    double *x = numbers(st, "pixels"), *theirs = numbers(st, "logits");
    taut_pass_forward_real(pass, x, 2);
    m->k->get(ours, pass->logits.data, 6);
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(ours[i], theirs[i], tol, kernels);
        worst = fmax(worst, fabs(ours[i] - theirs[i]));
    }
    free(x), free(theirs);
    taut_safetensors_close(st);
    taut_pass_free(pass);
    taut_model_free(m);
    taut_hf_close(hf);
    return worst;
}

static void refused(const char *path, const char *ini, const char *line)
{
    taut_hf *hf = NULL;
    const taut_status s = taut_hf_open(&hf, path, &(taut_hf_ask){ .recipe = ini });
    CHECK(s == TAUT_BAD_FILE || s == TAUT_BAD_CONFIG, line);
    CHECK(strstr(taut_last_error(), line) && !strchr(taut_last_error(), '\n'), taut_last_error());
    taut_hf_close(hf);
}

/* The recipe with one text replaced by another. */
static const char *changed(const char *from, const char *to)
{
    size_t len = 0;
    char *text = temp_get(recipe, &len), *at = strstr(text, from), *out = malloc(len + 256);
    CHECK(at != NULL, from);
    const int size = snprintf(out, len + 256, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    const char *path = temp_put("recipe.ini", out, (size_t)size);
    free(text), free(out);
    return path;
}

static void bad_recipes(void)
{
    refused(file, changed("depth = 2", "depth = 3"), "is missing");
    refused(file, changed("width = 8", "width = 10"), "asks for");
    refused(file, changed("patch = 2", "patch = 4"), "0.projection.weight is 8 x 3 x 2 x 2");
    refused(file, changed("norm = none", "norm = layernorm"), "norm1.weight");
    refused(file, changed("class_token = true", "class_token = false"), "0.positions is 5 x 8");
    refused(file, changed("classes = 3", "classes = 4"), "2.2.weight is 3 x 8");
    refused("tests/golden/hf_vit/model.safetensors", recipe, "the recipe asks for 8 x 12");
}

/* Every cut, and bytes changed at random: refused, or read as something else, within its memory (ASan watches). */
static void damage(void)
{
    size_t len = 0;
    char *data = temp_get(file, &len), *copy = malloc(len);
    int opened = 0;
    for (case_no = 0; case_no < effort(600); case_no++) {
        taut_onnx *o = NULL;
        const size_t cut = case_no % 2 ? len : (size_t)rng_int(0, (int64_t)len - 1);
        memcpy(copy, data, len);
        for (int64_t i = case_no % 2 ? rng_int(1, 4) : 0; i > 0; i--)
            copy[rng_int(0, (int64_t)len - 1)] = (char)rng_int(0, 255);
        if (taut_onnx_open(&o, temp_put("damaged.onnx", copy, cut)) == TAUT_OK) {
            opened++;
            for (int i = 0; i < taut_onnx_count(o); i++) {
                const taut_st_tensor *t = taut_onnx_at(o, i);
                double *x = doubles(t->count);
                taut_onnx_read(o, t, x, 0, t->count);
                free(x);
            }
        }
        taut_onnx_close(o);
    }
    CHECK(opened < effort(600), "some damage is seen");
    char *kind = memmem(data, len, "MatMul", 6);
    while (kind && kind[-1] != 6) kind = memmem(kind + 1, len - (size_t)(kind + 1 - data), "MatMul", 6);
    CHECK(kind != NULL, "a node's kind");
    if (kind) memcpy(kind, "LayNrm", 6);
    refused(temp_put("other.onnx", data, len), recipe, "a node LayNrm");
    refused(temp_text("empty.onnx", ""), recipe, "without weights");
    free(data), free(copy);
}

int main(void)
{
    test_begin();
    temp_begin();
    const double ref = answers("ref", 1e-12), cpu = answers("cpu", 1e-5);
    bad_recipes();
    damage();
    return test_end("onnx", "against PyTorch: ref %.1e, cpu %.1e", ref, cpu);
}
