/* The AttLip paper's Table 2: masked-language models that differ in their attention alone.  Perplexity over the masked
 * tokens of the whole validation split, the constant proved of the whole model from embeddings to logits (l2 over all
 * tokens), their product; the published figures under each.  The settings are those of recipes/mlm-*.ini. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bound/ledger.h"
#include "certify/certify.h"
#include "cli/cli.h"
#include "papers/net.h"
#include "papers/paper.h"

static const char around[] =
    "[data]\ntokens = bytes\n[model]\narch = encoder\nheads = 4\nmlp_block = sll\nnorm = none\n"
    "activation = relu\ninit = orthogonal\ntied = false\n"
    "[train]\nlr = 0.01\nwarmup = 50\neval_batches = 40\n";
static const struct {
    const char *name, *line[8]; /* what differs */
    const char *published[3];   /* perplexity, constant, product */
} models[] = {
    { "none",
      { "model.attention_blocks=0", "model.positions=rope", "model.rope_base=100" },
      { "988", "not stated", "not stated" } },
    { "softmax", { "model.positions=rope", "model.rope_base=100" }, { "22", "unbounded", "not stated" } },
    { "l2", { "model.attention=l2" }, { "28", "2117", "5.9e4" } },
    { "attlip",
      { "model.attention=attlip", "model.attlip_learned=true", "model.attlip_reflected=true", "model.attlip_turn=true",
        "model.attlip_near=1", "model.positions=rope", "model.rope_base=100" },
      { "141", "1", "141" } },
};
enum { MODELS = sizeof models / sizeof *models };

static taut_status train(const char *run, int which, const paper_options *o, const char *source)
{
    static const struct {
        const char *key;
        int small, full;
    } sizes[] = { { "model.width", 64, 128 },        { "model.depth", 1, 2 },
                  { "model.context", 64, 128 },      { "model.mlp", 128, 256 },
                  { "train.steps", 1000, 6000 },     { "train.batch", 16, 32 },
                  { "train.eval_every", 500, 1500 }, { "train.checkpoint_every", 1000, 3000 } };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char text[SIZES + 1][512];
    const char *line[SIZES + 9];
    int count = 0;
    for (; count < SIZES; count++)
        snprintf(text[count], sizeof text[0], "%s=%d", sizes[count].key,
                 o->small ? sizes[count].small : sizes[count].full);
    snprintf(text[count++], sizeof text[0], "data.source=%s", source);
    for (int i = 0; i < count; i++) line[i] = text[i];
    for (int i = 0; i < 8 && models[which].line[i]; i++) line[count++] = models[which].line[i];
    return paper_net_train(o, run, around, line, count);
}

static taut_status add_rows(cJSON *table, int which, const paper_options *o, const char *source)
{
    char run[4200];
    taut_certificate c;
    snprintf(run, sizeof run, "%s/%s", o->out, models[which].name);
    taut_status s = train(run, which, o, source);
    if (s) return s;
    char *path = taut_model_path(run);
    s = path ? taut_certify(&c, path, TAUT_NORM_FLAT, 0) : taut_no_memory("a path");
    free(path);
    if (s) return s;
    const double perplexity = exp(paper_summary(run, "val_loss"));
    const taut_up product = up_mul(up_exact(perplexity), c.lip);
    paper_row(table, models[which].name, (const double[]){ perplexity, c.lip.v, product.v }, 3);
    taut_certificate_free(&c);
    cJSON *row = cJSON_CreateArray();
    cJSON_AddItemToArray(row, cJSON_CreateString("published"));
    for (int i = 0; i < 3; i++) cJSON_AddItemToArray(row, cJSON_CreateString(models[which].published[i]));
    cJSON_AddItemToArray(cJSON_GetObjectItem(table, "rows"), row);
    return TAUT_OK;
}

cJSON *paper_attlip_table2(const paper_options *o)
{
    static const char *const columns[] = { "attention", "perplexity", "proved constant", "proved product" };
    const char *source = paper_source(o, o->small ? "wikitext2/valid.txt" : "wikitext2/train.txt", "brackets");
    cJSON *table = paper_table(
        "attlip table 2: masked bytes; the constant of the whole model, embeddings to logits, and their product",
        columns, 4,
        (paper_words){
            .published = "the row below each: word pieces of OpenWebText; constants of the attention block alone; the "
                         "attlip model they trained takes K steps, which have no constant.",
            .ours =
                "seed 1, bytes (small: one block, 64 features, 1,000 steps of 1,024 tokens); constants proved of "
                "everything between embeddings and logits, in l2 over all tokens; attlip trained and certified as the "
                "exact layer, with positions inside its potential.",
            .why = "Perplexities of word pieces and of bytes cannot be compared.  Of our constants the head makes "
                   "most; the "
                   "attention's own is 1 for attlip here too, the published one for l2 is not a bound (attlip-table1), "
                   "and "
                   "softmax has one only because inputs are no longer than its embeddings.  l2 has learned positions, "
                   "from "
                   "which it learns little in this time.",
            .data = source });
    for (int i = 0; i < MODELS; i++) {
        if (!paper_wants(o, models[i].name)) continue;
        cli_bar((double)i / MODELS, models[i].name);
        if (add_rows(table, i, o, source)) {
            cJSON_Delete(table);
            return NULL;
        }
    }
    return table;
}
