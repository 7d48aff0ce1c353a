/* Tightness of the attention bound, H = 1, 2, 4, 8 heads of width 4, weights of norm 1, tokens of RMS 1 (l2 norm
 * X): token 0 asks along axis 2 (W_Q swaps 1 and 2) and sits on axis 1; m tokens at X E0 and m at -X E0 weigh the
 * same.  With a = |scale| X^2 it moves by nearly (sqrt(1 + a^2) + a) when token 0 moves along E0 and the others
 * along E0 cos +- E2 sin, tan = a.  The bound is sqrt(H + a^2) + a.  Alone, and in the convex residual of a
 * Lipschitz transformer. */
#include "laws.h"
#include "taut.h"

enum { HEAD = 4, M = 40, T = 2 * M + 1 };

static double least = 1;

static void set_weights(law *l, int64_t d)
{
    for (int p = 0; p < 4; p++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) {
                const int64_t from = p == 0 && (i == 1 || i == 2) ? 3 - i : i;
                ((double *)l->seen[p]->value)[i * d + j] = j == from;
            }
}

static void witness(int64_t heads, double factor, bool residual)
{
    const int64_t d = HEAD * heads;
    const double size = sqrt((double)d), a = factor * (double)heads, c = residual ? 1. / 3 : 1;
    taut_module *m = taut_attention(
        &(taut_attention_spec){ .width = d, .heads = heads, .scale = factor / HEAD, .out = c });
    law l;
    law_begin(&l, residual ? taut_mix(m, 5. / 6, 1. / 6) : m, (taut_shape){ 1, T, d });
    set_weights(&l, d);
    memset(l.x, 0, (size_t)l.nx * 8);
    l.x[1] = size;
    for (int64_t j = 1; j < T; j++) l.x[j * d] = j % 2 ? size : -size;
    memset(l.u, 0, (size_t)l.nx * 8);
    l.u[0] = 1;
    for (int64_t j = 1; j < T; j++) l.u[j * d] = 1, l.u[j * d + 2] = j % 2 ? a : -a;
    law_forward(&l, l.y);
    const double bound = law_ask(&l, TAUT_NORM_TOKENS, size).lip.v, found = slope_tokens(&l, 30);
    const double one = sqrt((double)heads + a * a) + a, want = residual ? 5. / 6 + one / 18 : one;
    CHECK_NEAR(bound, want, 1e-6 * want, "sqrt(H + a^2) + a");
    CHECK_LE(found, bound * (1 + 1e-12), "sound");
    CHECK_LE(0.92 * bound, found, "nearly attained");
    least = fmin(least, found / bound);
    printf("%s%lld heads%s %.3f of %.3f", heads == 1 && factor < 2 && !residual ? "" : ", ", (long long)heads,
           residual ? " (residual)" : "", found, bound);
    law_end(&l);
}

int main(void)
{
    test_begin();
    for (int64_t heads = 1; heads <= 8; heads *= 2) witness(heads, 1, false);
    for (int64_t heads = 1; heads <= 8; heads *= 2) witness(heads, 3, false);
    witness(1, 1, true), witness(4, 1, true), witness(8, 1, true);
    printf("\n");
    return test_end("tight", "least found / bound %.4f", least);
}
