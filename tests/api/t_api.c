/* The public header alone: train, open, ask for logits and a bound; bad calls answer with one line. */
#include <taut.h>

#include "harness.h"

static void bad_calls(taut_net *net)
{
    static const int32_t far[] = { 100000 };
    double logits[1], bound;
    taut_net *other = NULL;
    CHECK(taut_net_open(&other, "tests/api", "cpu") == TAUT_BAD_FILE, "a folder is no model");
    CHECK(taut_net_open(&other, "nowhere", "cpu") == TAUT_BAD_FILE, "a missing file");
    CHECK(taut_net_open(&other, "nowhere", "gpu") == TAUT_BAD_CONFIG, "kernels nobody has");
    CHECK(taut_net_logits(net, logits, far, 1, 1) == TAUT_BAD_DATA, "an id outside the vocabulary");
    CHECK(taut_net_logits(net, logits, far, 1, 1000) == TAUT_BAD_DATA, "a sequence too long");
    CHECK(taut_file_bound(&bound, "nowhere", TAUT_FLAT) == TAUT_BAD_FILE, "no bound of nothing");
    CHECK(strlen(taut_last_error()) > 0 && !strchr(taut_last_error(), '\n'), "one line");
}

/* Two inputs that differ in one token may not differ more in the logits than the bound times the embeddings
 * do; here only the weaker statement that the bound is a number and the logits are finite. */
int main(void)
{
    static const char *const small[] = { "model.width=16",  "model.depth=1", "model.heads=2", "model.context=16",
                                         "model.norm=none", "train.steps=3", "train.batch=2" };
    char folder[] = "/tmp/taut_api_XXXXXX", path[64];
    taut_result r;
    taut_net *net = NULL;
    double bound[2] = { 0, 0 };
    test_begin();
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    taut_threads_set(1);
    CHECK(taut_train_recipe(&r, "recipes/tiny.ini", folder, small, 7, 0) == TAUT_OK, "train");
    CHECK(r.steps == 3 && isfinite(r.val_loss), "the result");
    CHECK(taut_net_open(&net, path, "cpu") == TAUT_OK, "open");
    if (!net) return 1;
    const int32_t ids[] = { 1, 2, 3, 4, 5, 6 };
    double *logits = doubles(6 * taut_net_tokens(net));
    CHECK(taut_net_logits(net, logits, ids, 2, 3) == TAUT_OK, "logits");
    for (int64_t i = 0; i < 6 * taut_net_tokens(net); i++) CHECK(isfinite(logits[i]), "finite logits");
    CHECK(taut_file_bound(&bound[0], path, TAUT_TOKENS) == TAUT_OK && bound[0] > 0, "a bound");
    CHECK(taut_file_bound(&bound[1], path, TAUT_FLAT) == TAUT_OK && isfinite(bound[1]), "finite without norms");
    bad_calls(net);
    free(logits);
    taut_net_free(net);
    const char *const files[] = { "model.safetensors", "state.safetensors", "recipe.ini", "log.jsonl", "summary.json" };
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        CHECK(remove(path) == 0, "every file of a run is there");
    }
    CHECK(remove(folder) == 0, "and nothing else");
    return test_end("api", "bounds %.3g and %.3g", bound[0], bound[1]);
}
