/* Every weight is normal with deviation 0.02, biases 0, gains 1.  GPT-2 divides the deviation of the matrices that write
 * into the residual stream by sqrt(2 depth), as taut's own start does; BERT does not, so there it is multiplied back. */
#include "model/builtin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *tokenizer;
    int64_t tokens;
    bool plain; /* no smaller residual matrices */
    const char *recipe;
} shape;

static const shape shapes[] = {
    { "gpt2", "tokenizers/gpt2", 50257, false,
      "[model]\narch = gpt\nwidth = 768\ndepth = 12\nheads = 12\ncontext = 1024\nmlp = 3072\nactivation = "
      "gelu_tanh\n" },
    { "bert-base", "tokenizers/bert-base-uncased", 30522, true,
      "[model]\narch = encoder\nwidth = 768\ndepth = 12\nheads = 12\ncontext = 512\nmlp = 3072\nnorm_eps = 1e-12\n" },
};

static const shape *find(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

bool taut_builtin_is(const char *name) { return find(name) != NULL; }

const char *taut_builtin_tokenizer(const char *name)
{
    TAUT_CHECK(find(name), "no built-in shape of that name");
    return find(name)->tokenizer;
}

static taut_status read_spec(taut_model_spec *spec, char **recipe, const shape *sh)
{
    taut_config *cfg = NULL;
    taut_status s = taut_config_parse(&cfg, sh->recipe, sh->name);
    if (s) return s;
    (void)taut_config_text(cfg, "data.source", "none");
    (void)taut_config_real(cfg, "data.val_fraction", 1, 0, 1);
    s = taut_model_spec_read(spec, cfg);
    if (!s) s = taut_config_finish(cfg);
    if (!s && !(*recipe = taut_config_print(cfg))) s = taut_no_memory(sh->name);
    taut_config_free(cfg);
    return s;
}

static void undo_scaling(taut_model *m)
{
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        const size_t len = strlen(w->path);
        static const char *const ends[] = { ".attn.o.weight", ".mlp.out.weight" };
        for (int e = 0; e < 2; e++)
            if (len > strlen(ends[e]) && strcmp(w->path + len - strlen(ends[e]), ends[e]) == 0)
                m->k->axpby(w->param->value, sqrt(2.0 * (double)m->spec.depth), w->param->value, 0, taut_weight_len(w));
    }
}

taut_status taut_builtin_create(taut_model **out, const char *name, const char *vocab, const taut_kernels *k,
                                uint64_t seed)
{
    const shape *sh = find(name);
    TAUT_CHECK(sh, "no built-in shape of that name");
    taut_model_spec spec;
    taut_model *m = NULL;
    char *recipe = NULL;
    taut_status s = read_spec(&spec, &recipe, sh);
    if (!s) s = taut_model_create(&m, &spec, sh->tokens, recipe, vocab, k);
    if (!s) s = taut_model_bind(m, false);
    if (!s) s = taut_model_init(m, seed);
    if (!s && sh->plain) undo_scaling(m);
    free(recipe);
    if (s)
        taut_model_free(m);
    else
        *out = m;
    return s;
}
