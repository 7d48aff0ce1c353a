/* What a checker confirms is the function of a file's taut.tree, and what runs is its recipe's: a file in which they differ is
 * refused, however the tree spells its version; an older tree may say less, but nothing else. */
#include "harness.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "model/slabs.h"
#include "must.h"
#include "temp.h"

#define SHAPE "[model]\narch = gpt\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 12\n"
enum { TOKENS = 13, MOST = 64 };

static taut_model *model_of(const char *recipe)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    must(taut_config_parse(&cfg, recipe, "test"));
    must(taut_model_spec_read(&spec, cfg));
    taut_config_free(cfg);
    must(taut_model_create(&m, &spec, TOKENS, recipe, "chars:a,20-2b", taut_kernels_find("ref")));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 9));
    return m;
}

/* Is a file of m with this tree opened?  If not, a line says why. */
static bool opens(const taut_model *m, const char *tree)
{
    taut_slab_view view[MOST];
    taut_st_entry entry[MOST];
    const taut_st_meta meta[] = { { "taut.recipe", m->recipe }, { "taut.vocab", m->vocab }, { "taut.tree", tree } };
    const char *path = temp_path("model.safetensors");
    taut_model *back = NULL;
    for (int i = 0; i < m->weights; i++) {
        view[i] = (taut_slab_view){ m->k, m->weight[i].param->value };
        entry[i] = taut_slab_entry(&view[i], m->weight[i].path, "F32", m->weight[i].param);
    }
    must(taut_safetensors_write(path, entry, m->weights, meta, 3));
    const taut_status s = taut_model_open(&back, path, taut_kernels_find("cpu"), false);
    CHECK(s == TAUT_OK || (s == TAUT_BAD_FILE && strstr(taut_last_error(), "builds another function")), tree);
    taut_model_free(back);
    return s == TAUT_OK;
}

/* `text` with its first `from` made `to`. */
static char *swapped(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at) must(taut_fail(TAUT_BAD_FILE, "no %s in %s", from, text));
    char *made = malloc(strlen(text) + strlen(to) + 1);
    sprintf(made, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return made;
}

int main(void)
{
    static const struct {
        const char *begins;
        bool same, other; /* is a tree that begins so opened where it is the recipe's, and where it has other heads? */
    } cases[] = {
        { "{\"version\":4", true, false },
        { "{ \"version\":4", false, false },
        { "{\"more\":1,\"version\":4", false, false },
        { "{\"version\":3", true, false },
        { "{ \"version\" : 2.0", true, false },
        { "{\"version\":3,\"more\":1", false, false },
        { "{\"version\":5", true, true }, /* no checker reads these two */
        { "{\"version\":1", true, true },
        { "{,\"version\":4", false, false },
        { "x{\"version\":4", false, false },
    };
    test_begin();
    temp_begin();
    taut_model *m = model_of(SHAPE), *fading = model_of(SHAPE "attention = position\nfade = 0\n");
    char *tree = taut_model_tree(m), *other = swapped(tree, "\"heads\":2", "\"heads\":4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *a = swapped(tree, "{\"version\":4", cases[i].begins),
             *b = swapped(other, "{\"version\":4", cases[i].begins);
        CHECK(opens(m, a) == cases[i].same, cases[i].begins);
        CHECK(opens(m, b) == cases[i].other, cases[i].begins);
        free(a), free(b);
    }
    char *less = swapped(tree, ",\"rope\":0", ""), *old = swapped(less, "\"version\":4", "\"version\":3");
    char *parts = swapped(old, "\"of\":[", "\"of\":[{\"rule\":\"sequence\"},");
    CHECK(!opens(m, less) && opens(m, old), "an older tree says less");
    CHECK(!opens(m, parts), "but has no more parts");
    CHECK(!opens(m, "") && !opens(m, "[]x") && opens(m, "[]"), "no tree at all");
    /* without a list its gains would be others, and a checker could confirm that */
    char *gains = taut_model_tree(fading), *first = swapped(gains, ",\"gain\":[1,1]", "");
    char *both = swapped(first, ",\"gain\":[1,1]", ""), *roots = swapped(both, "\"version\":4", "\"version\":3");
    char *listed = swapped(gains, "\"version\":4", "\"version\":3"), *none = swapped(roots, ",\"causal\":1", "");
    CHECK(opens(fading, gains) && opens(fading, listed), "gains as the recipe has them");
    char *unnamed = swapped(roots, "\"name\":\"attn\",", "");
    CHECK(!opens(fading, both) && !opens(fading, roots) && !opens(fading, unnamed), "an older tree with other gains");
    CHECK(opens(fading, none), "which says so little that no checker confirms it");
    free(gains), free(first), free(both), free(roots), free(listed), free(none), free(unnamed);
    free(tree), free(other), free(less), free(old), free(parts);
    taut_model_free(m), taut_model_free(fading);
    return test_end("tree of a file", "is the recipe's");
}
