/* lift: the logits of a softmax over distances; its derivative and the adjoint; cpu within its promise of ref. */
#include "kernels/pair.h"

static void random_case(int64_t rows, int64_t d)
{
    pair q = pair_new(rows * d, 2), t = pair_new(rows * d, 1), g = pair_new(rows * d, 1);
    pair out[4], cot[2];
    for (int i = 0; i < 4; i++) out[i] = pair_new(rows * (d + 1), 1);
    for (int i = 0; i < 2; i++) cot[i] = pair_new(rows * (d + 1), 1);
    SAME_BITS(out[1], (ref->lift(R(&out[0]), R(&out[1]), R(&q), rows, d), cpu->lift(out[0].f, out[1].f, q.f, rows, d)));
    SAME_BITS(out[3], (ref->lift_jvp(R(&out[2]), R(&out[3]), R(&t), R(&q), rows, d),
                       cpu->lift_jvp(out[2].f, out[3].f, t.f, q.f, rows, d)));
    SAME_BITS(g, (ref->lift_vjp(R(&g), R(&cot[0]), R(&cot[1]), R(&q), rows, d),
                  cpu->lift_vjp(g.f, cot[0].f, cot[1].f, q.f, rows, d)));
    const double most = (double)(d + 1) * UNIT * 4 * (double)d;
    pair_near(&out[0], NULL, 0, 0, "lift: a copy and ones");
    pair_near(&out[1], NULL, 0, promise_lift(promised, d), "lift");
    for (int i = 2; i < 4; i++) pair_near(&out[i], NULL, most, 0, "lift_jvp");
    pair_near(&g, NULL, 2 * UNIT * 4, 0, "lift_vjp");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++) {
            double apart = 0;
            for (int64_t c = 0; c < d; c++)
                apart += (q.d[i * d + c] - q.d[j * d + c]) * (q.d[i * d + c] - q.d[j * d + c]);
            const double want = 0.5 * (dot(q.d + i * d, q.d + i * d, d) - apart);
            CHECK_NEAR(dot(out[0].d + i * (d + 1), out[1].d + j * (d + 1), d + 1), want, 1e-12 * (1 + 4 * (double)d),
                       "distance");
        }
    const double left = dot(out[2].d, cot[0].d, out[2].len) + dot(out[3].d, cot[1].d, out[3].len);
    CHECK_NEAR(left, dot(t.d, g.d, t.len), 1e-12 * (1 + (double)(rows * d)), "adjoint");
    for (int i = 0; i < 4; i++) pair_free(&out[i]);
    for (int i = 0; i < 2; i++) pair_free(&cot[i]);
    pair_free(&q), pair_free(&t), pair_free(&g);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(20); case_no++) random_case(rng_int(0, 30), rng_int(1, 40));
    for (int64_t d = 1; d < 4; d++) random_case(30, d);
    random_case(300, 64);
    return test_end("lift", "worst error / promised = %.3f", worst);
}
