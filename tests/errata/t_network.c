/* Vector T9: whole networks as "Training Transformers with Enforced Lipschitz Bounds" builds them (N blocks,
 * convex residual 1/(2N), 4 heads, scale 1/d_head, output 1/3, GELU/1.1289, no norm layers), every weight of RMS
 * norm `cap`, every token of RMS at most 1.  Weights and input are the witness of many heads, layer by layer, the
 * perceptron at its steepest; the slope is above what the authors' code and Theorem D.1 answer and below ours. */
#include "laws.h"
#include "taut.h"

enum { D = 16, H = 4, DH = D / H, HIDDEN = 4 * D, M = 30, T = 2 * M + 1 };

/* max(1, |v| max(|q|, |k|)) times the three norms (theorem), or the authors' sum; growth as printed */
static double printed_network(int depth, double cap, bool theorem)
{
    const double a = 1 / (2. * depth);
    double x = 1, lip = 1;
    for (int i = 0; i < depth; i++) {
        const double sum = cap * (cap + 2 * cap * cap * cap * x * x), most = cap * fmax(1, cap * x * cap * x) * 3 * cap;
        lip *= (1 - a) + a / 3 * (theorem ? most : sum);
        lip *= (1 - a) + a * cap * cap / 1.1289;
        x *= (1 - a) + a / 3 * cap * cap;
        x *= (1 - a) + a * cap * cap / 1.1289;
    }
    return lip;
}

/* The same with norms that hold (docs/modules/attention.md, mlp.md), from caps only. */
static double sound_network(int depth, double cap)
{
    const double a = 1 / (2. * depth), gelu = 1.128904145185155 / 1.1289;
    double x = 1, lip = 1;
    for (int i = 0; i < depth; i++) {
        const double c = cap * cap, in = H * c * x * x;
        lip *= (1 - a) + a / 3 * c * (sqrt(H + in * in) + in);
        lip *= (1 - a) + a * c * gelu;
        x *= (1 - a) + a / 3 * c * sqrt(H);
        x *= (1 - a) + a * c / 1.1289;
    }
    return lip;
}

static taut_module *network(int depth)
{
    const double a = 1 / (2. * depth);
    taut_module *child[16];
    const char *name[16] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    for (int i = 0; i < depth; i++) {
        child[2 * i] = taut_mix(
            taut_attention(&(taut_attention_spec){ .width = D, .heads = H, .scale = 1. / DH, .out = 1. / 3 }), 1 - a,
            a);
        child[2 * i + 1] = taut_mix(
            taut_mlp(
                &(taut_mlp_spec){ .width = D, .hidden = HIDDEN, .out = D, .curve = TAUT_GELU, .factor = 1 / 1.1289 }),
            1 - a, a);
    }
    return taut_sequence(2 * depth, name, child);
}

/* W_Q swaps 1 and 2, the others are the identity.  Perceptron: units 0 and 1 read +-axis 0 and, with weight
 * `lean`, axis 1, and write axis 0; every other axis has a unit of its own. */
static void set_block(law *l, int block, double cap, double lean)
{
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < D * D; i++) {
            const int row = i / D, from = p == 0 && (row == 1 || row == 2) ? 3 - row : row;
            ((double *)l->seen[6 * block + p]->value)[i] = cap * (i % D == from);
        }
    double *in = (double *)l->seen[6 * block + 4]->value, *out = (double *)l->seen[6 * block + 5]->value;
    memset(in, 0, HIDDEN * D * 8), memset(out, 0, D * HIDDEN * 8);
    for (int u = 0; u < 2; u++) {
        const double side = u ? -1 : 1;
        in[u * D] = side * sqrt(2) * cap, in[u * D + 1] = lean;
        out[u] = side * cap / (2 * sqrt(2));
    }
    for (int i = 2; i < D; i++) in[i * D + i] = 2 * cap, out[i * HIDDEN + i] = cap / 2;
}

static void measure(int depth, double cap, double least)
{
    law l;
    law_begin(&l, network(depth), (taut_shape){ 1, T, D });
    CHECK(l.params == 6 * depth, "six weights a block");
    memset(l.x, 0, (size_t)l.nx * 8);
    l.x[1] = 4; /* token 0 asks along axis 2; the others are at +-4 on axis 0 */
    for (int j = 1; j < T; j++) l.x[j * D] = j % 2 ? 4 : -4;
    double best = 0, ours = 0;
    for (int k = 0; k <= 12; k++) { /* how far the perceptron leans: its units are to stand at sqrt 2 */
        for (int b = 0; b < depth; b++) set_block(&l, b, cap, cap * sqrt(2) * k / 12.);
        const double bound = law_ask(&l, TAUT_NORM_TOKENS, 4).lip.v;
        memset(l.u, 0, (size_t)l.nx * 8);
        l.u[0] = 1;
        for (int j = 1; j < T; j++) l.u[j * D] = 0.2, l.u[j * D + 2] = j % 2 ? 1 : -1;
        law_forward(&l, l.y);
        const double found = slope_tokens(&l, 12);
        CHECK_LE(found, bound * (1 + 1e-12), "ours holds");
        if (found > best) best = found, ours = bound;
    }
    const double code = printed_network(depth, cap, false), theorem = printed_network(depth, cap, true);
    CHECK(code < best && theorem < best && best <= ours, "printed < found <= ours");
    CHECK_LE(least, best, "as far as this witness goes");
    CHECK_LE(ours, sound_network(depth, cap) * (1 + 1e-6), "joint matrices are no worse than caps");
    printf("N = %d, cap %g: %.4f (code) %.4f (theorem) < %.4f <= %.4f (caps alone %.4f); ", depth, cap, code, theorem,
           best, ours, sound_network(depth, cap));
    law_end(&l);
}

int main(void)
{
    test_begin();
    taut_threads_set(1);
    CHECK_NEAR(printed_network(1, 1, false), 0.9429, 5e-5, "T9 as printed");
    CHECK_NEAR(printed_network(3, 1, true), 0.9440, 5e-5, "(l) as printed");
    CHECK_NEAR(sound_network(1, 1), 1.9120, 5e-5, "T9 sound");
    CHECK_NEAR(sound_network(3, 1.25), 12.22, 5e-3, "T9 sound");
    measure(1, 1, 1.82), measure(3, 1, 1.25), measure(3, 1.25, 3.9);
    printf("\n");
    return test_end("network", "T9: 3 networks beat the published bound, not ours");
}
