/* What a model is, from the shapes of its tensors and what its program does unless told otherwise.  The number of heads is in no
 * shape: config.json has it under one of its names, or the caller says it (--set model.heads=N). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/hf_impl.h"

typedef struct {
    char *dst;
    size_t used, room;
} text;

static void number(text *t, const char *key, int64_t value)
{
    t->used += (size_t)snprintf(t->dst + t->used, t->room - t->used, "%s = %lld\n", key, (long long)value);
}

static void word(text *t, const char *key, const char *value)
{
    t->used += (size_t)snprintf(t->dst + t->used, t->room - t->used, "%s = %s\n", key, value);
}

static void yes(text *t, const char *key, bool value) { word(t, key, value ? "true" : "false"); }

/* Dimension `from_last` of a tensor, counted from behind; 0: it is not there. */
static int64_t size_of(const taut_hf *hf, taut_hf_role role, int from_last)
{
    const taut_shard_tensor *t = taut_hf_at(hf, role, false, 0);
    return t && t->tensor->rank > from_last ? t->tensor->shape[t->tensor->rank - 1 - from_last] : 0;
}

static bool has(const taut_hf *hf, taut_hf_role role, bool bias) { return taut_hf_at(hf, role, bias, 0) != NULL; }

taut_status taut_hf_look_at_head(taut_hf *hf)
{
    const taut_shard_tensor *head = taut_hf_at(hf, HF_HEAD, false, 0), *table = taut_hf_at(hf, HF_EMBED, false, 0);
    hf->tied = !taut_hf_denies(hf, "tie_word_embeddings");
    if (!head || !table) return TAUT_OK;
    const taut_status s = taut_hf_equal(&hf->tied, hf, head, table);
    if (!s && hf->tied) taut_hf_leave(hf, head, "tied: the embedding's numbers again");
    return s;
}

/* What may stand for the number of heads in a config.json. */
static void add_heads(text *t, const taut_hf *hf)
{
    static const char *const names[] = { "num_heads", "n_head", "n_heads", "nhead", "num_attention_heads", "heads" };
    int64_t heads;
    for (size_t i = 0; hf->config && i < sizeof names / sizeof *names; i++)
        if (taut_hf_has(hf, names[i]) && taut_hf_int(hf, &heads, names[i], 1, 4096) == TAUT_OK) {
            number(t, "heads", heads);
            return;
        }
}

/* How pixels are normalised: preprocessor_config.json, or timm's config.json. */
static taut_status add_pixels(text *t, taut_hf *hf)
{
    char mean[96], std[96];
    cJSON *pre = NULL;
    const cJSON *timm = cJSON_GetObjectItemCaseSensitive(hf->config, "pretrained_cfg");
    taut_status s = taut_hf_json_there(hf, "preprocessor_config.json")
                        ? taut_hf_json(&pre, hf, "preprocessor_config.json")
                        : TAUT_OK;
    const bool said = !s && ((taut_hf_list(mean, pre, "image_mean") && taut_hf_list(std, pre, "image_std")) ||
                             (taut_hf_list(mean, timm, "mean") && taut_hf_list(std, timm, "std")));
    if (said) word(t, "pixel_mean", mean);
    if (said) word(t, "pixel_std", std);
    if (!s && !said)
        taut_hf_note(hf, "no file says how pixels are normalised: they are read as they are, in [0, 1] "
                         "(--set model.pixel_mean=..., --set model.pixel_std=...)");
    cJSON_Delete(pre);
    return s;
}

static taut_status add_image(text *t, taut_hf *hf)
{
    const int64_t patch = size_of(hf, HF_PATCH, 0), tokens = size_of(hf, HF_POS, 1);
    const bool front = has(hf, HF_CLASS, false), second = has(hf, HF_DISTIL, false);
    const int64_t side = (int64_t)llround(sqrt((double)(tokens - front - second)));
    word(t, "arch", "vit");
    number(t, "patch", patch);
    number(t, "image_channels", size_of(hf, HF_PATCH, 2));
    number(t, "image_height", side * patch);
    number(t, "image_width", side * patch);
    number(t, "classes", size_of(hf, HF_HEAD, 1));
    word(t, "pool", front ? "class" : "mean");
    if (second) yes(t, "distilled", true);
    yes(t, "final_norm", has(hf, HF_NORM, false));
    if (side < 1 || side * side != tokens - front - second)
        return taut_fail(TAUT_BAD_FILE, "%s: %lld positions are no square of patches: --recipe INI says what it is",
                         hf->folder, (long long)tokens);
    return add_pixels(t, hf);
}

static taut_status add_text(text *t, taut_hf *hf)
{
    const char *pool = NULL;
    const bool causal = hf->scheme->causal, head = causal || has(hf, HF_HEAD, false) || has(hf, HF_TRANSFORM, false);
    taut_status s = head ? taut_hf_look_at_head(hf) : taut_hf_pooling(hf, &pool);
    word(t, "arch", causal ? "gpt" : "encoder");
    if (has(hf, HF_POS, false)) number(t, "context", size_of(hf, HF_POS, 1));
    word(t, "positions", has(hf, HF_POS, false) ? "learned" : "none");
    yes(t, "embed_norm", has(hf, HF_EMBED_NORM, false));
    if (!head) {
        word(t, "head", "none");
        word(t, "pool", pool ? pool : "mean");
    }
    if (head) yes(t, "tied", hf->tied);
    if (head) yes(t, "head_bias", has(hf, HF_HEAD, true));
    if (head && !causal) yes(t, "transform", has(hf, HF_TRANSFORM, false));
    if (!causal && has(hf, HF_NORM, false)) yes(t, "final_norm", true);
    return s;
}

taut_status taut_hf_sizes(taut_hf *hf, char *dst, size_t room)
{
    text t = { dst, 0, room };
    const int in = hf->scheme->transposed, out = !in;
    int64_t depth = 0;
    while (depth < 1000 && taut_hf_at(hf, HF_IN, false, (int)depth)) depth++;
    t.used = (size_t)snprintf(dst, room, "[model]\nnorm = layernorm\n%s", hf->scheme->usual);
    number(&t, "depth", depth);
    number(&t, "width", size_of(hf, HF_IN, in));
    number(&t, "mlp", size_of(hf, HF_IN, out));
    yes(&t, "bias", has(hf, HF_IN, true));
    if (has(hf, HF_SCALE1, false)) word(&t, "residual", "channel");
    add_heads(&t, hf);
    return has(hf, HF_PATCH, false) ? add_image(&t, hf) : add_text(&t, hf);
}
