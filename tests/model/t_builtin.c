/* The built-in shapes are the originals': as many weights as transformers counts, and the spread they start with. */
#include "harness.h"
#include "model/builtin.h"
#include "must.h"

/* Mean and standard deviation of a weight's first numbers, against what was asked; ten standard errors. */
static void spread(const taut_model *m, const char *path, double mean, double std)
{
    const taut_weight *w = taut_model_find(m, path);
    CHECK(w != NULL, path);
    if (!w) return;
    int64_t count = taut_weight_len(w);
    if (count > 200000) count = 200000;
    double *x = doubles(count), sum = 0, squares = 0;
    m->k->get(x, w->param->value, count);
    for (int64_t i = 0; i < count; i++) sum += x[i];
    for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    const double n = (double)count;
    CHECK_NEAR(sum / n, mean, 10 * std / sqrt(n), path);
    CHECK_NEAR(sqrt(squares / n), std, 10 * std / sqrt(2 * n), path);
    free(x);
}

int main(void)
{
    static const struct {
        const char *name;
        int64_t weights;
        double residual;
        int64_t tokens, context;
    } shapes[] = {
        { "gpt2", 124439808, 0.02 / 4.898979485566356, 50257, 1024 },
        { "bert-base", 109514298 - 2 * 768, 0.02, 30522, 512 }, /* two token types, here part of the positions */
    };
    test_begin();
    CHECK(!taut_builtin_is("gpt3") && !taut_builtin_is(""), "no other names");
    for (case_no = 0; case_no < 2; case_no++) {
        taut_model *m = NULL;
        CHECK(taut_builtin_is(shapes[case_no].name), shapes[case_no].name);
        must(taut_builtin_create(&m, shapes[case_no].name, "bytes", taut_kernels_find("cpu"), 3));
        CHECK(taut_model_size(m) == shapes[case_no].weights, "as many weights");
        CHECK(m->embed.rows == shapes[case_no].tokens && m->spec.context == shapes[case_no].context, "tokens");
        CHECK(m->spec.depth == 12 && m->spec.heads == 12 && m->spec.width == 768 && m->spec.mlp == 3072, "sizes");
        spread(m, "embed.weight", 0, 0.02);
        spread(m, "pos.weight", 0, 0.02);
        spread(m, "block.11.attn.q.weight", 0, 0.02);
        spread(m, "block.3.mlp.in.weight", 0, 0.02);
        spread(m, "block.7.attn.o.weight", 0, shapes[case_no].residual);
        spread(m, "block.0.mlp.out.weight", 0, shapes[case_no].residual);
        spread(m, "block.5.norm1.weight", 1, 0);
        spread(m, "block.5.mlp.in.bias", 0, 0);
        taut_model_free(m);
    }
    return test_end("builtin", "2 shapes");
}
