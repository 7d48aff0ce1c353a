/* The same network under the names of every program that taut reads, written here by hand: found, prefix and all, and with the
 * answers that it has under taut's own names, bit for bit, for the numbers are only moved.  What is missing, misshapen, ambiguous
 * or left over is one line, and a list of what was wanted. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/float32.h"
#include "harness.h"
#include "model/hf.h"
#include "model/pass.h"
#include "model/safetensors.h"
#include "must.h"
#include "schemes.h"
#include "temp.h"

enum { TENSORS = 128, TEXT = 96 };

typedef struct {
    char name[TEXT];
    int rank;
    int64_t shape[4];
    double *x;
} tensor;

static tensor made[TENSORS];
static int count;

/* ~ is the prefix, # the block. */
static void spell(char dst[TEXT], const char *from, const char *prefix, int number)
{
    size_t used = 0;
    for (; *from && used < TEXT - 1; from++) {
        if (*from == '~')
            used += (size_t)snprintf(dst + used, TEXT - used, "%s", prefix);
        else if (*from == '#')
            used += (size_t)snprintf(dst + used, TEXT - used, "%d", number);
        else
            dst[used++] = *from;
    }
    dst[used] = 0;
}

/* Weight `path` of ours becomes (a part of) the tensor `name` of theirs. */
static void put(const taut_model *m, const char *path, const char *name, int part, int parts, const char *how)
{
    const taut_weight *w = taut_model_find(m, path);
    if (!w) return; /* a network without biases */
    const int64_t rows = w->param->rows, cols = w->param->cols;
    const bool vector = w->param->role == TAUT_VECTOR, turned = strchr(how, '\'') && !vector,
               kernel = strchr(how, 'k') && !vector;
    double *x = doubles(rows * cols);
    m->k->get(x, w->param->value, rows * cols);
    tensor *t = NULL;
    for (int i = 0; i < count; i++)
        if (strcmp(made[i].name, name) == 0) t = &made[i];
    if (!t) {
        t = &made[count++];
        *t = (tensor){ .rank = kernel ? 4 : vector ? 1 : 2, .x = doubles(parts * rows * cols) };
        snprintf(t->name, sizeof t->name, "%s", name);
        const int64_t shapes[][4] = {
            { parts * cols }, { parts * rows, cols }, { cols, parts * rows }, { rows, 3, 2, 2 }
        };
        memcpy(t->shape, shapes[kernel ? 3 : vector ? 0 : turned ? 2 : 1], sizeof t->shape);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t at = kernel
                                   ? i * cols + j % 3 * 4 + j / 3 /* (row, column, channel) to (channel, row, column) */
                               : turned ? j * parts * rows + part * rows + i
                                        : (part * rows + i) * cols + j;
            t->x[at] = x[i * cols + j];
        }
    free(x);
}

static void put_both(const taut_model *m, const char *ours, const char *theirs, int part, int parts, const char *how)
{
    static const char *const words[] = { "weight", "bias" };
    char path[TEXT], name[TEXT];
    const size_t len = strlen(ours);
    if (ours[len - 1] != '.') {
        put(m, ours, theirs, part, parts, how);
        return;
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%.60s%s", ours, words[i]);
        snprintf(name, sizeof name, "%.60s%s", theirs, words[i]);
        put(m, path, name, part, parts, how);
    }
}

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t n)
{
    memcpy(dst, (double *)arg + first, (size_t)n * sizeof *dst);
    return TAUT_OK;
}

static const char *store(void)
{
    taut_st_entry entry[TENSORS];
    for (int i = 0; i < count; i++) {
        entry[i] = (taut_st_entry){
            .name = made[i].name, .dtype = "F32", .rank = made[i].rank, .fetch = fetch, .arg = made[i].x
        };
        memcpy(entry[i].shape, made[i].shape, sizeof made[i].shape);
    }
    must(taut_safetensors_write(temp_path("theirs.safetensors"), entry, count, NULL, 0));
    return temp_path("theirs.safetensors");
}

static void forget(void)
{
    for (int i = 0; i < count; i++) free(made[i].x);
    count = 0;
}

/* A network of the scheme's kind with numbers of its own, and the same under their names. */
static taut_model *make(const scheme *s)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    char ours[TEXT], theirs[TEXT];
    must(taut_config_parse(&cfg, s->recipe, "recipe"));
    must(taut_model_spec_read(&spec, cfg));
    taut_config_free(cfg);
    must(
        taut_model_create(&m, &spec, taut_arch_reads_tokens(spec.arch) ? 9 : 0, "", "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(m, false));
    for (int i = 0; i < m->weights; i++) {
        const int64_t len = taut_weight_len(&m->weight[i]);
        double *x = doubles(len);
        for (int64_t j = 0; j < len; j++) x[j] = taut_float32(rng_pm());
        m->k->put(m->weight[i].param->value, x, len);
        free(x);
    }
    forget();
    for (int i = 0; i < 20 && s->name[i][0]; i++)
        for (int b = 0; b < (strchr(s->name[i][0], '#') ? 2 : 1); b++) {
            static const char *const stacked[] = { "q.", "k.", "v." };
            const char *how = s->name[i][2] ? s->name[i][2] : "";
            const bool three = strchr(how, '+');
            spell(theirs, s->name[i][1], s->prefix, b);
            for (int part = 0; part < (three ? 3 : 1); part++) {
                spell(ours, s->name[i][0], "", b);
                if (three) strcat(ours, stacked[part]);
                put_both(m, ours, theirs, part, three ? 3 : 1, how);
            }
        }
    return m;
}

static void same_answers(taut_model *a, taut_model *b, const char *what)
{
    static const int32_t ids[] = { 1, 8, 3, 3, 0 };
    double pixels[48], *y[2];
    taut_model *const both[] = { a, b };
    int64_t len = 0;
    for (int i = 0; i < 48; i++) pixels[i] = rng_unit();
    for (int i = 0; i < 2; i++) {
        taut_pass *pass = NULL;
        must(taut_pass_create(&pass, both[i], 1, a->embed.rows ? 5 : 1, false));
        if (a->embed.rows)
            taut_pass_forward(pass, ids, 1, 5);
        else
            taut_pass_forward_real(pass, pixels, 1);
        const int64_t now = taut_len(pass->logits.shape);
        CHECK(i == 0 || now == len, what);
        len = now;
        y[i] = doubles(len);
        a->k->get(y[i], pass->logits.data, len);
        taut_pass_free(pass);
    }
    for (int64_t i = 0; i < len; i++) CHECK(y[0][i] == y[1][i] && isfinite(y[0][i]), what);
    free(y[0]), free(y[1]);
}

static const char *const heads[] = { "model.heads=2" };

static void read_all(void)
{
    for (case_no = 0; case_no < SCHEMES; case_no++) {
        const scheme *s = &schemes[case_no];
        taut_model *ours = make(s), *theirs = NULL;
        taut_hf *hf = NULL;
        must(taut_hf_open(&hf, store(), &(taut_hf_ask){ .set = heads, .sets = 1 }));
        cJSON *r = taut_hf_report(hf);
        CHECK(strcmp(cJSON_GetObjectItem(r, "family")->valuestring, s->family) == 0, s->family);
        CHECK(strcmp(cJSON_GetObjectItem(r, "prefix")->valuestring, s->prefix) == 0, s->family);
        CHECK(cJSON_GetObjectItem(r, "used")->valueint == count, s->family);
        cJSON_Delete(r);
        must(taut_hf_load(&theirs, hf, "bytes", false, taut_kernels_find("ref")));
        taut_hf_close(hf);
        same_answers(ours, theirs, s->family);
        taut_model_free(theirs);
        taut_model_free(ours);
    }
}

static void refused(const taut_hf_ask *ask, const char *line)
{
    taut_hf *hf = NULL;
    taut_model *m = NULL;
    taut_status s = taut_hf_open(&hf, store(), ask);
    if (!s) s = taut_hf_load(&m, hf, "bytes", false, taut_kernels_find("ref"));
    CHECK(s == TAUT_BAD_FILE || s == TAUT_BAD_CONFIG, line);
    CHECK(s && strstr(taut_last_error(), line) && !strchr(taut_last_error(), '\n'), taut_last_error());
    taut_hf_close(hf);
}

static tensor *find(const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(made[i].name, name) == 0) return &made[i];
    must(taut_fail(TAUT_BAD_FILE, "no %s", name));
    return NULL;
}

static void refuse_all(void)
{
    const taut_hf_ask two = { .set = heads, .sets = 1 };
    taut_model_free(make(&schemes[1]));
    refused(NULL, "--set model.heads=N");
    refused(&(taut_hf_ask){ .set = (const char *const[]){ "model.heads=3" }, .sets = 1 }, "not a multiple");
    refused(&(taut_hf_ask){ .set = heads, .sets = 1, .prefix = "other." }, "named as in none of");
    refused(&(taut_hf_ask){ .set = heads, .sets = 1, .map = (const char *const[]){ "norm.weight" }, .maps = 1 },
            "MINE=THEIRS");
    refused(&(taut_hf_ask){ .set = heads, .sets = 1, .map = (const char *const[]){ "nrm.weight=x" }, .maps = 1 },
            "no weight nrm.weight");
    refused(&(taut_hf_ask){ .set = heads, .sets = 1, .map = (const char *const[]){ "norm.weight=x" }, .maps = 1 },
            "tensor x is missing");
    tensor *t = find("_orig_mod.transformer.h.1.ln_2.bias");
    snprintf(t->name, sizeof t->name, "_orig_mod.transformer.h.1.ln_3.bias");
    refused(&two, "h.1.ln_2.bias is missing");
    cJSON *why = taut_hf_explain(store(), &two), *wanted = cJSON_GetObjectItem(why, "wanted");
    CHECK(cJSON_GetArraySize(wanted) == 1 && cJSON_GetArraySize(cJSON_GetObjectItem(why, "unknown")) == 1,
          "one missing, one unknown");
    CHECK(strcmp(cJSON_GetObjectItem(wanted->child, "name")->valuestring, "block.1.norm2.bias") == 0, "its name");
    CHECK(cJSON_IsNull(cJSON_GetObjectItem(wanted->child, "found")), "nothing is there");
    cJSON_Delete(why);
    taut_hf_ask own = two;
    own.map = (const char *const[]){ "block.1.norm2.bias=_orig_mod.transformer.h.1.ln_3.bias" };
    own.maps = 1;
    taut_hf *hf = NULL;
    must(taut_hf_open(&hf, store(), &own)); /* a map puts it right */
    taut_hf_close(hf);
    snprintf(t->name, sizeof t->name, "_orig_mod.transformer.h.1.ln_2.bias");
    t = find("_orig_mod.transformer.h.0.mlp.c_proj.weight");
    t->shape[0] = 12, t->shape[1] = 8;
    refused(&two, "h.0.mlp.c_proj.weight is 12 x 8, the model asks for 8 x 12");
    t->shape[0] = 8, t->shape[1] = 12;
    made[count] = (tensor){ .name = "left.over", .rank = 1, .shape = { 1 }, .x = doubles(1) };
    made[count++].x[0] = 0;
    refused(&two, "1 tensor is unknown to a nanogpt model, the first is left.over");
    snprintf(made[count - 1].name, TEXT, "b.transformer.wte.weight");
    refused(&two, "under \"_orig_mod.transformer.\" and under \"b.transformer.\"");
    forget();
}

/* Every allocation fails once. */
static void out_of_memory(void)
{
    bool done = false;
    taut_model_free(make(&schemes[2]));
    store();
    for (long n = 1; n < 4000 && !done; n += 1 + n / 64) {
        taut_hf *hf = NULL;
        taut_model *m = NULL;
        taut_alloc_fail_at(n);
        taut_status s = taut_hf_open(
            &hf, temp_path("theirs.safetensors"),
            &(taut_hf_ask){
                .set = heads, .sets = 1, .map = (const char *const[]){ "norm.bias=~norm.bias" }, .maps = 1 });
        if (!s) s = taut_hf_load(&m, hf, "", false, taut_kernels_find("ref"));
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, taut_last_error());
        done = s == TAUT_OK;
        taut_model_free(m);
        taut_hf_close(hf);
    }
    CHECK(done, "every allocation was tried");
    forget();
}

int main(void)
{
    test_begin();
    temp_begin();
    read_all();
    refuse_all();
    out_of_memory();
    return test_end("schemes", "%d ways to name a network", (int)SCHEMES);
}
