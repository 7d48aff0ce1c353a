/* Checkpoints as transformers stores them (tools/dump_huggingface.py wrote them) answer as transformers' own models do;
 * the report names what is left out; whatever is missing, foreign or misshapen is one line that says so.
 *
 * Errors are relative to the largest logit.  ref: both sides are double and weights are exact, but taut rounds eps and the
 * scale to float: 1e-7.  cpu: 1e-5, some twenty float kernels in a row with sums of at most 24 products. */
#include "base/alloc.h"
#include "base/file.h"
#include "harness.h"
#include "model/hf.h"
#include "model/pass.h"
#include "model/safetensors.h"
#include "must.h"
#include "temp.h"

static double worst[2];

static double *numbers(const taut_safetensors *st, const char *name, int64_t shape[3])
{
    const taut_st_tensor *t = taut_safetensors_find(st, name);
    if (!t) must(taut_fail(TAUT_BAD_FILE, "no %s in the expected answers", name));
    for (int i = 0; i < 3; i++) shape[i] = i < t->rank ? t->shape[i] : 1;
    double *x = doubles(t->count);
    must(taut_safetensors_read(st, t, x, 0, t->count));
    return x;
}

static void compare(const char *folder, taut_model *m, double tol, double *most)
{
    char path[256];
    int64_t shape[3], out[3];
    taut_safetensors *st = NULL;
    taut_pass *pass = NULL;
    int32_t ids[64];
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    must(taut_safetensors_open(&st, path));
    const bool image = m->embed.rows == 0;
    double *x = numbers(st, image ? "pixels" : "ids", shape), *theirs = numbers(st, "logits", out);
    const int64_t len = out[0] * out[1] * out[2];
    for (int64_t i = 0; !image && i < shape[0] * shape[1]; i++) ids[i] = (int32_t)x[i];
    must(taut_pass_create(&pass, m, shape[0], image ? 1 : shape[1], false));
    if (image)
        taut_pass_forward_real(pass, x, shape[0]);
    else
        taut_pass_forward(pass, ids, shape[0], shape[1]);
    CHECK(taut_len(pass->logits.shape) == len, folder);
    double *ours = doubles(len), largest = 0;
    m->k->get(ours, pass->logits.data, len);
    for (int64_t i = 0; i < len; i++) largest = fmax(largest, fabs(theirs[i]));
    for (int64_t i = 0; i < len; i++) {
        CHECK_LE(fabs(ours[i] - theirs[i]) / largest, tol, folder);
        *most = fmax(*most, fabs(ours[i] - theirs[i]) / largest);
    }
    free(x), free(theirs), free(ours);
    taut_pass_free(pass);
    taut_safetensors_close(st);
}

/* Loaded, and stored and opened again as an ordinary model: the same answers. */
static void answers(const char *folder)
{
    for (int cpu = 0; cpu < 2; cpu++) {
        const taut_kernels *k = taut_kernels_find(cpu ? "cpu" : "ref");
        const double tol = cpu ? 1e-5 : 1e-7;
        taut_hf *hf = NULL;
        taut_model *m = NULL, *again = NULL;
        must(taut_hf_open(&hf, folder, NULL));
        must(taut_hf_load(&m, hf, "bytes", false, k));
        taut_hf_close(hf);
        compare(folder, m, tol, &worst[cpu]);
        must(taut_model_save(m, temp_path("model.safetensors")));
        must(taut_model_open(&again, temp_path("model.safetensors"), k, false));
        compare(folder, again, cpu ? tol : 1e-6, &worst[1]); /* token types: a sum rounded to float */
        taut_model_free(again);
        taut_model_free(m);
    }
}

static int count(const cJSON *report, const char *list)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(report, list));
}

static void reports(void)
{
    static const struct {
        const char *folder, *family;
        int files, tensors, used, unused, notes;
        bool tied;
    } cases[] = {
        { "tests/golden/hf_gpt2", "gpt2", 1, 28, 28, 0, 0, true },
        { "tests/golden/hf_gpt2_shards", "gpt2", 2, 29, 29, 0, 0, false },
        { "tests/golden/hf_bert", "bert", 1, 42, 42, 0, 1, true },
        { "tests/golden/hf_roberta", "roberta", 1, 42, 42, 0, 2, true },
        { "tests/golden/hf_vit", "vit", 1, 40, 40, 0, 0, false },
        { "tests/golden/hf_deit", "deit", 1, 41, 41, 0, 0, false },
    };
    for (case_no = 0; case_no < 6; case_no++) {
        taut_hf *hf = NULL;
        must(taut_hf_open(&hf, cases[case_no].folder, NULL));
        cJSON *r = taut_hf_report(hf);
        CHECK(strcmp(cJSON_GetObjectItem(r, "family")->valuestring, cases[case_no].family) == 0, "family");
        CHECK(cJSON_GetObjectItem(r, "files")->valueint == cases[case_no].files, "files");
        CHECK(cJSON_GetObjectItem(r, "tensors")->valueint == cases[case_no].tensors, "tensors");
        CHECK(cJSON_GetObjectItem(r, "used")->valueint == cases[case_no].used, "used");
        CHECK(count(r, "unused") == cases[case_no].unused && count(r, "unknown") == 0, "unused");
        CHECK(count(r, "notes") == cases[case_no].notes + 1, "notes");
        CHECK(cJSON_IsTrue(cJSON_GetObjectItem(r, "tied")) == cases[case_no].tied, "tied");
        cJSON_Delete(r);
        taut_hf_close(hf);
    }
}

/* A copy of a checkpoint in a folder of our own, its config with one text replaced by another. */
static const char *copy(const char *folder, const char *file, const char *from, const char *to)
{
    static char dir[2048];
    char source[256], path[256], *at;
    size_t len = 0;
    must(taut_dir_make(temp_path("c")));
    remove(temp_path("c/model.safetensors"));
    const char *const files[] = { "config.json", file, "model-00002-of-00002.safetensors",
                                  "model.safetensors.index.json", "preprocessor_config.json" };
    for (int i = 0; i < 5; i++) {
        snprintf(source, sizeof source, "%s/%s", folder, files[i]);
        snprintf(path, sizeof path, "c/%s", files[i]);
        char *text = temp_get(source, &len);
        remove(temp_path(path));
        if (!text) continue;
        char *changed = malloc(len + 256);
        if (i != 1 && from && (at = strstr(text, from))) {
            const size_t head = (size_t)(at - text);
            const int rest = snprintf(changed, len + 256, "%.*s%s%s", (int)head, text, to, at + strlen(from));
            temp_put(path, changed, (size_t)rest);
        } else {
            temp_put(path, text, len);
        }
        free(changed);
        free(text);
    }
    snprintf(dir, sizeof dir, "%s", temp_path("c"));
    return dir;
}

static void refused(const char *folder, const char *line)
{
    taut_hf *hf = NULL;
    taut_model *m = NULL;
    taut_status s = taut_hf_open(&hf, folder, NULL);
    if (!s) s = taut_hf_load(&m, hf, "bytes", false, taut_kernels_find("ref"));
    CHECK(s == TAUT_BAD_FILE || s == TAUT_BAD_CONFIG, line);
    CHECK(strstr(taut_last_error(), line) && !strchr(taut_last_error(), '\n'), taut_last_error());
    CHECK(strlen(taut_last_error()) > 0, line);
    taut_model_free(m);
    taut_hf_close(hf);
}

static void bad_configs(void)
{
    static const char *const gpt2 = "tests/golden/hf_gpt2", *const bert = "tests/golden/hf_bert",
                             *const vit = "tests/golden/hf_vit";
    static const char *const cases[][4] = {
        { "gpt2", "\"n_embd\": 16", "\"n_embd\": 20", "config.json asks for 29 x 20" },
        { "gpt2", "\"n_embd\": 16", "\"n_embd\": 16, \"n_embd\": 16", "n_embd is there twice" },
        { "gpt2", "\"vocab_size\": 29", "\"vocab_size\": 30", "vocab_size is 30, the embedding has 29 rows" },
        { "gpt2", "\"vocab_size\": 29", "\"vocab_size\": \"29\"", "vocab_size is something else" },
        { "gpt2", "\"n_embd\": 16", "\"n_embd\": 16.5", "n_embd is something else" },
        { "gpt2", "\"n_embd\"", "\"n_embed\"", "n_embd is missing" },
        { "gpt2", "\"n_layer\": 2", "\"n_layer\": 3", "h.2.ln_1.weight is missing" },
        { "gpt2", "\"n_layer\": 2", "\"n_layer\": 1", "12 tensors are unknown" },
        { "gpt2", "\"n_positions\": 8", "\"n_positions\": 9", "config.json asks for 9 x 16" },
        { "gpt2", "\"n_head\": 4", "\"n_head\": 5", "not a multiple" },
        { "gpt2", "gelu_new", "quick_gelu", "no activation that taut has" },
        { "gpt2", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false", "no model with scale_attn_weights" },
        { "gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": \"gpt_neo\"", "none that taut reads" },
        { "gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": 7", "no model_type" },
        { "gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": \"bert\"", "not a bert checkpoint" },
        { "gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", "lm_head.weight is missing" },
        { "gpt2", "{", "", "no JSON object" },
        { "vit", "\"patch_size\": 4", "\"patch_size\": 2", "projection.weight is 16 x 3 x 4 x 4" },
        { "vit", "\"patch_size\": 4", "\"patch_size\": 3", "does not divide" },
        { "vit", "\"image_size\": 8", "\"image_size\": 12",
          "position_embeddings is 1 x 5 x 16, config.json asks for 10" },
        { "vit", "\"num_channels\": 3", "\"num_channels\": 1", "wants one number, or one for each of 1 channels" },
        { "vit", "\"qkv_bias\": true", "\"qkv_bias\": false", "no model with qkv_bias" },
        { "vit", "image_mean", "mean", "image_mean is no list" },
        { "bert", "\"intermediate_size\": 24", "\"intermediate_size\": 25", "config.json asks for 25 x 16" },
        { "bert", "\"max_position_embeddings\": 8", "\"max_position_embeddings\": 7", "config.json asks for 7 x 16" },
        { "bert", "\"is_decoder\": false", "\"is_decoder\": true", "no model with is_decoder" },
    };
    for (case_no = 0; case_no < (int)(sizeof cases / sizeof *cases); case_no++)
        refused(copy(*cases[case_no][0] == 'v'   ? vit
                     : *cases[case_no][0] == 'b' ? bert
                                                 : gpt2,
                     "model.safetensors", cases[case_no][1], cases[case_no][2]),
                cases[case_no][3]);
    copy(vit, "model.safetensors", NULL, NULL);
    remove(temp_path("c/preprocessor_config.json"));
    refused(temp_path("c"), "preprocessor_config.json");
    refused("tests/golden", "nor an index of shards");
    must(taut_dir_make(temp_path("empty")));
    temp_text("empty/config.json", "{\"model_type\": \"gpt2\"} {}");
    refused(temp_path("empty"), "something stands behind");
    temp_text("empty/config.json", "{\"model_type\": \"gpt2\"}");
    refused(temp_path("empty"), "model.safetensors");
}

static void bad_shards(void)
{
    static const char *const folder = "tests/golden/hf_gpt2_shards";
    static const char *const cases[][3] = {
        { "\"model-00001-of-00002.safetensors\"", "\"model-00002-of-00002.safetensors\"", "where it is not" },
        { "\"model-00001-of-00002.safetensors\"", "\"../model-00001-of-00002.safetensors\"", "no plain file name" },
        { "\"model-00001-of-00002.safetensors\"", "\"model-00003-of-00002.safetensors\"", "No such file" },
        { "\"model-00001-of-00002.safetensors\"", "7", "no plain file name" },
        { "\"lm_head.weight\"", "\"lm_head.other\"", "where it is not" },
        { "\"weight_map\"", "\"map\"", "weight_map" },
    };
    for (case_no = 0; case_no < (int)(sizeof cases / sizeof *cases); case_no++)
        refused(copy(folder, "model-00001-of-00002.safetensors", cases[case_no][0], cases[case_no][1]),
                cases[case_no][2]);
}

/* The header of a file with one text replaced by another of the same length. */
static void patched(const char *folder, const char *from, const char *to, const char *line)
{
    char path[2100];
    size_t len = 0;
    const char *dir = copy(folder, "model.safetensors", NULL, NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    char *data = temp_get(path, &len), *at = memmem(data, len, from, strlen(from));
    CHECK(at && strlen(from) == strlen(to), from);
    memcpy(at, to, strlen(to));
    temp_put("c/model.safetensors", data, len);
    free(data);
    refused(dir, line);
}

static void bad_tensors(void)
{
    const char *gpt2 = "tests/golden/hf_gpt2";
    patched(gpt2, "transformer.h.1.ln_2.bias", "transformer.h.1.ln_3.bias", "h.1.ln_2.bias is missing");
    patched(gpt2, "transformer.wte.weight", "transformer.wta.weight", "not a gpt2 checkpoint");
    patched(gpt2, "\"F32\",\"shape\":[29,16]", "\"I32\",\"shape\":[29,16]", "is I32; weights are");
    patched(gpt2, "\"shape\":[16,48]", "\"shape\":[48,16]", "is 48 x 16, config.json asks for 16 x 48");
    patched(gpt2, "\"shape\":[29,16]", "\"shape\":[464,1]", "config.json asks for 464 x 16");
}

/* A tensor that nobody knows is refused, and taken when the caller says so; one that is known is only listed. */
static void extra_tensors(void)
{
    static const char *const names[] = { "transformer.h.0.attn.bias", "adapter.weight" };
    for (int i = 0; i < 2; i++) {
        const char *dir = copy("tests/golden/hf_gpt2", "model.safetensors", NULL, NULL);
        char header[64 * 1024], path[2100];
        size_t len = 0;
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        char *data = temp_get(path, &len), *whole = malloc(2 * len);
        const uint64_t old = *(const uint64_t *)(const void *)data, end = len - 8 - old;
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%llu,%llu]},%.*s",
                 names[i], (unsigned long long)end, (unsigned long long)end + 4, (int)old - 1, data + 9);
        const uint64_t size = strlen(header);
        memcpy(whole, &size, 8);
        memcpy(whole + 8, header, size);
        memcpy(whole + 8 + size, data + 8 + old, end);
        memcpy(whole + 8 + size + end, "\0\0\0\0", 4);
        temp_put("c/model.safetensors", whole, 8 + size + end + 4);
        free(data), free(whole);
        taut_hf *hf = NULL;
        taut_model *m = NULL;
        must(taut_hf_open(&hf, dir, NULL));
        cJSON *r = taut_hf_report(hf);
        CHECK(count(r, "unused") == (i == 0) && count(r, "unknown") == (i == 1), names[i]);
        cJSON_Delete(r);
        const taut_status s = taut_hf_load(&m, hf, "bytes", false, taut_kernels_find("ref"));
        CHECK((s == TAUT_OK) == (i == 0), names[i]);
        if (s) CHECK(strstr(taut_last_error(), "1 tensor is unknown") != NULL, taut_last_error());
        if (s) must(taut_hf_load(&m, hf, "bytes", true, taut_kernels_find("ref")));
        compare("tests/golden/hf_gpt2", m, 1e-7, &worst[0]);
        taut_model_free(m);
        taut_hf_close(hf);
    }
}

/* Each allocation fails once: a status, and (under ASan) nothing leaks. */
static void out_of_memory(const char *folder, const char *recipe)
{
    bool done = false;
    long n = 1;
    for (; n < 4000 && !done; n += 1 + n / 64) { /* all of the first, then some */
        taut_hf *hf = NULL;
        taut_model *m = NULL;
        taut_alloc_fail_at(n);
        taut_status s = taut_hf_open(&hf, folder, &(taut_hf_ask){ .recipe = recipe });
        if (!s) s = taut_hf_load(&m, hf, "bytes", false, taut_kernels_find("ref"));
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, taut_last_error());
        done = s == TAUT_OK;
        taut_model_free(m);
        taut_hf_close(hf);
    }
    CHECK(done && n > 100, "every allocation was tried");
}

int main(void)
{
    test_begin();
    temp_begin();
    answers("tests/golden/hf_gpt2");
    answers("tests/golden/hf_gpt2_shards");
    answers("tests/golden/hf_bert");
    answers("tests/golden/hf_roberta");
    answers("tests/golden/hf_vit");
    answers("tests/golden/hf_deit");
    reports();
    bad_configs();
    bad_shards();
    bad_tensors();
    extra_tensors();
    out_of_memory("tests/golden/hf_bert", NULL);
    out_of_memory("tests/golden/hf_gpt2_shards", NULL);
    out_of_memory("tests/golden/onnx/vit.onnx", "tests/golden/onnx/recipe.ini");
    return test_end("huggingface", "against transformers: ref %.1e, cpu %.1e", worst[0], worst[1]);
}
