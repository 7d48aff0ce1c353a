/* Checkpoints of other programs: whatever their tensors are called and shaped, and whatever config.json, an index of shards or
 * the caller say, a model comes out or one line that says what is wrong, and the list of what was wanted can be made.
 *
 * An input is text: config.json (or, behind an i, the index of shards), a line ==, and then lines of a name and sizes, or of
 * what the caller says: set:, map:, prefix:.  The file of tensors around them is right, so that mutations reach what reads
 * the names. */
#include "fuzz.h"

#include <sys/stat.h>

#include "model/hf.h"
#include "model/safetensors.h"

enum { MOST = 256, LIST = 8, ELEMENTS = 1 << 16 };

typedef struct {
    char *set[LIST], *map[LIST], *prefix;
    int sets, maps;
} says;

static void seed_golden(const char *folder, const char *more)
{
    static char text[1 << 15];
    char path[256];
    size_t len = 0;
    taut_safetensors *st = NULL;
    snprintf(path, sizeof path, "tests/golden/%s/config.json", folder);
    char *config = temp_get(path, &len), *p = text + snprintf(text, sizeof text, "%s\n==\n%s", config, more);
    snprintf(path, sizeof path, "tests/golden/%s/model.safetensors", folder);
    if (taut_safetensors_open(&st, path)) abort();
    for (int i = 0; i < taut_safetensors_count(st); i++) {
        const taut_st_tensor *t = taut_safetensors_at(st, i);
        p += sprintf(p, "%s", t->name);
        for (int k = 0; k < t->rank; k++) p += sprintf(p, " %lld", (long long)t->shape[k]);
        p += sprintf(p, "\n");
    }
    fuzz_seed_text(text);
    taut_safetensors_close(st);
    free(config);
}

static void fuzz_begin(void)
{
    static const char *const golden[] = { "hf_gpt2", "hf_bert", "hf_roberta", "hf_vit", "hf_deit" };
    for (int i = 0; i < 5; i++) seed_golden(golden[i], i % 2 ? "set:model.head=none\n" : "");
    fuzz_seed_text("\n==\nset:model.heads=2\nmodule.transformer.wte.weight 300 8\nmodule.transformer.wpe.weight 6 8\n"
                   "module.transformer.h.0.ln_1.weight 8\nmodule.transformer.h.0.attn.c_attn.weight 24 8\n"
                   "module.transformer.h.0.attn.c_proj.weight 8 8\nmodule.transformer.h.0.ln_2.weight 8\n"
                   "module.transformer.h.0.mlp.c_fc.weight 12 8\nmodule.transformer.h.0.mlp.c_proj.weight 8 12\n"
                   "module.transformer.ln_f.weight 8\nlm_head.weight 300 8\n");
    fuzz_seed_text("\n==\nset:model.heads=2\nset:model.arch=encoder\nprefix:encoder.\nmap:embed.weight=table\n"
                   "map:block.#.mlp.in.weight=w.#.x\nencoder.layers.0.self_attn.in_proj_weight 24 8\n"
                   "encoder.layers.0.self_attn.in_proj_bias 24\nencoder.layers.0.self_attn.out_proj.weight 8 8\n"
                   "encoder.layers.0.linear1.weight 12 8\nencoder.layers.0.linear2.weight 8 12\n"
                   "encoder.layers.0.norm1.weight 8\nencoder.layers.0.norm2.bias 8\ntable 300 8\n");
    fuzz_seed_text(
        "i{\"metadata\":{},\"weight_map\":{\"wte.weight\":\"model.safetensors\",\"x\":\"other.safetensors\"}}\n"
        "==\nwte.weight 300 8\n");
}

/* "name 3 4" as a member of the header; returns its bytes, 0 for what is no tensor. */
static size_t put_tensor(char *line, size_t begin, char **to)
{
    char *name = line, *p = line + strcspn(line, " ");
    size_t count = 1;
    if (p == name || strpbrk(line, "\"\\")) return 0;
    for (const char *c = line; *c; c++)
        if (*c < ' ' || *c > '~') return 0;
    char sizes[64] = "";
    for (int rank = 0; *p == ' ' && rank < 5; rank++) {
        *p++ = 0;
        const long size = strtol(p, &p, 10);
        if (size < 1 || size > ELEMENTS || (count *= (size_t)size) > ELEMENTS / 4) return 0;
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%ld", rank ? "," : "", size);
    }
    if (strlen(name) > 200) return 0;
    *to += sprintf(*to, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", begin ? "," : "",
                   name, sizes, begin, begin + 4 * count);
    return 4 * count;
}

static bool caller_says(says *s, char *line)
{
    if (strncmp(line, "set:", 4) == 0 && s->sets < LIST) return s->set[s->sets++] = line + 4, true;
    if (strncmp(line, "map:", 4) == 0 && s->maps < LIST) return s->map[s->maps++] = line + 4, true;
    if (strncmp(line, "prefix:", 7) == 0) return s->prefix = line + 7, true;
    return false;
}

/* The lines as a file of tensors, and what the caller says. */
static void write_tensors(says *s, char *lines, const char *name)
{
    static char file[8 + MOST * 400 + 8 + 4 * ELEMENTS];
    char *to = file + 8;
    size_t used = 0;
    int count = 0;
    *to++ = '{';
    for (char *line = lines, *next; line && count < MOST; line = next) {
        if ((next = strchr(line, '\n'))) *next++ = 0;
        if (caller_says(s, line)) continue;
        const size_t bytes = used > ELEMENTS ? 0 : put_tensor(line, used, &to);
        used += bytes;
        count += bytes > 0;
    }
    *to++ = '}';
    const uint64_t head = (uint64_t)(to - file) - 8;
    for (int i = 0; i < 8; i++) file[i] = (char)(head >> 8 * i);
    static const float small = 0.01F;
    for (size_t i = 0; i < used; i += 4) memcpy(to + i, &small, 4);
    temp_put(name, file, (size_t)(to - file) + used);
}

static void try_model(const taut_hf *hf)
{
    taut_model *m = NULL;
    const bool text = taut_hf_tokens(hf) > 0;
    cJSON *report = taut_hf_report(hf);
    CHECK(report != NULL, "a report");
    cJSON_Delete(report);
    const taut_status s = taut_hf_load(&m, hf, text ? "bytes" : "", case_no % 2, taut_kernels_find("ref"));
    if (s) {
        CHECK(*taut_last_error() && !strchr(taut_last_error(), '\n'), taut_last_error());
        return;
    }
    CHECK(taut_model_finite(m), "every weight was read");
    taut_model_free(m);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    static char text[FUZZ_LONGEST * 2 + 8];
    says s = { 0 };
    if (len >= sizeof text) return;
    memcpy(text, data, len);
    text[len] = 0;
    char *lines = strstr(text, "\n==\n");
    if (!lines) return;
    *lines = 0;
    const bool index = *text == 'i';
    const char *folder = temp_path("ck");
    mkdir(folder, 0777);
    remove(temp_path("ck/config.json"));
    remove(temp_path("ck/model.safetensors.index.json"));
    write_tensors(&s, lines + 4, "ck/model.safetensors");
    if (*text) temp_text(index ? "ck/model.safetensors.index.json" : "ck/config.json", text + index);
    const taut_hf_ask ask = { .prefix = s.prefix,
                              .map = (const char *const *)s.map,
                              .set = (const char *const *)s.set,
                              .maps = s.maps,
                              .sets = s.sets };
    taut_hf *hf = NULL;
    const taut_status status = taut_hf_open(&hf, temp_path("ck"), &ask);
    CHECK(!status == (hf != NULL), "a checkpoint or an error");
    if (status) CHECK(*taut_last_error() && !strchr(taut_last_error(), '\n'), taut_last_error());
    if (hf) try_model(hf);
    taut_hf_close(hf);
    cJSON *why = taut_hf_explain(temp_path("ck"), &ask);
    CHECK(why != NULL, "an explanation");
    cJSON_Delete(why);
}
