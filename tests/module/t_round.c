/* Rounding of potential, sll and cosattention: the same layers in long double, from their pages' formulas.  What the
 * ref kernels compute is never further away than `round`, for weights of every size. */
#include "base/float32.h"
#include "residual_layer.h"

typedef long double real;

static double worst[3];

static real curve(real x, taut_curve f)
{
    return f == TAUT_TANH ? tanhl(x) : f == TAUT_SILU ? x / (1 + expl(-x)) : x > 0 ? x : 0;
}

static real product(const double *w, const real *x, int64_t d)
{
    real sum = 0;
    for (int64_t c = 0; c < d; c++) sum += (real)w[c] * x[c];
    return sum;
}

/* y = x - 2 V^T R f(V x + b) for one token */
static void layer(real *y, const law *l, const taut_potential_spec *s, const double *x, bool sll)
{
    const double *v = taut_ref_values(l->seen[0]), *b = s->bias ? taut_ref_values(l->seen[1]) : NULL;
    const double *last = taut_ref_values(l->seen[s->bias ? 2 : 1]);
    real in[8];
    for (int64_t c = 0; c < s->width; c++) y[c] = in[c] = x[c];
    for (int64_t i = 0; i < s->hidden; i++) {
        real t = sll ? 0x1p-40L : (real)last[0];
        for (int64_t j = 0; sll && j < s->hidden; j++) {
            real g = 0;
            for (int64_t c = 0; c < s->width; c++) g += (real)v[i * s->width + c] * v[j * s->width + c];
            t += fabsl(g) * expl((real)last[j] - last[i]);
        }
        const real a = curve(product(v + i * s->width, in, s->width) + (b ? b[i] : 0), s->curve);
        for (int64_t c = 0; c < s->width; c++) y[c] -= 2 * v[i * s->width + c] * a / t;
    }
}

/* The longest error of a token against the region's own rounding. */
static void judge(law *l, const real *want, int which)
{
    const double radius = longest_token(l->x, l->in);
    const taut_answer b = law_ask(l, TAUT_NORM_TOKENS, radius);
    double error = 0;
    law_forward(l, l->y);
    for (int64_t i = 0; i < taut_rows(l->in); i++) {
        real sum = 0;
        for (int64_t c = i * l->in.d; c < (i + 1) * l->in.d; c++) sum += (l->y[c] - want[c]) * (l->y[c] - want[c]);
        error = fmax(error, (double)sqrtl(sum));
    }
    CHECK_LE(error, b.round.v, "round");
    CHECK_LE(longest_token(l->y, l->in), b.size.v, "region of what is computed");
    if (b.round.v > 0) worst[which] = fmax(worst[which], error / b.round.v);
}

static void check_residual(bool sll)
{
    static const taut_curve curves[] = { TAUT_RELU, TAUT_SILU, TAUT_TANH };
    const taut_shape in = { 1, rng_int(1, 3), rng_int(1, 8) };
    const taut_potential_spec s = {
        .width = in.d, .hidden = rng_int(1, 8), .curve = curves[rng_int(0, 2)], .bias = rng_int(0, 1)
    };
    law l;
    law_begin(&l, sll ? taut_sll(&s) : taut_potential(&s), in);
    const double size = pow(10, 3 * rng_pm());
    for (int64_t i = 0; i < s.hidden * s.width; i++)
        ((double *)l.seen[0]->value)[i] *= size * (sll && rng_int(0, 3) == 0 ? 1e-3 : 1);
    double *last = (double *)l.seen[l.params - 1]->value;
    for (int64_t i = 0; i < (sll ? s.hidden : 1); i++) last[i] *= sll ? 5 : size * size * (rng_int(0, 2) ? 1 : 1e-8);
    real want[24];
    for (int64_t i = 0; i < in.t; i++) layer(want + i * in.d, &l, &s, l.x + i * in.d, sll);
    judge(&l, want, sll);
    law_end(&l);
}

/* n(W x + b) of one head, or W x + b */
static void unit(real *z, const double *w, const double *b, const double *x, int64_t d, int64_t dh, bool n, double eps)
{
    real size = eps, in[8];
    for (int64_t c = 0; c < d; c++) in[c] = x[c];
    for (int64_t r = 0; r < dh; r++) z[r] = product(w + r * d, in, d) + b[r], size += z[r] * z[r];
    for (int64_t r = 0; n && r < dh; r++) z[r] /= sqrtl(size);
}

static void attend(real *y, const law *l, const taut_cosattention_spec *s, int64_t i, int64_t h)
{
    const int64_t d = s->width, dh = d / s->heads, at = h * dh;
    const double *w[8], eps = taut_float32(s->eps), tau = taut_float32(s->tau), out = taut_float32(s->out);
    real q[8], k[8], v[8], o[8] = { 0 }, sum = 0;
    for (int p = 0; p < 8; p++) w[p] = taut_ref_values(l->seen[p]);
    unit(q, w[0] + at * d, w[1] + at, l->x + i * d, d, dh, true, eps);
    for (int64_t j = 0; j < (s->causal ? i + 1 : l->in.t); j++) {
        real logit = 0;
        unit(k, w[2] + at * d, w[3] + at, l->x + j * d, d, dh, true, eps);
        unit(v, w[4] + at * d, w[5] + at, l->x + j * d, d, dh, s->values, eps);
        for (int64_t c = 0; c < dh; c++) logit += tau * q[c] * k[c];
        const real e = expl(logit);
        for (int64_t c = 0; c < dh; c++) o[c] += e * v[c];
        sum += e;
    }
    for (int64_t r = 0; r < d; r++)
        for (int64_t c = 0; c < dh; c++) y[r] += out * w[6][r * d + at + c] * o[c] / sum;
}

static void check_cosine(void)
{
    const taut_shape in = { 1, rng_int(1, 3), 2 * rng_int(1, 4) };
    const taut_cosattention_spec s = { .width = in.d,
                                       .heads = rng_int(1, 2),
                                       .tau = pow(10, 2 * rng_unit() - 1),
                                       .eps = pow(10, -8 * rng_unit()),
                                       .out = rng_pm(),
                                       .values = rng_int(0, 1),
                                       .causal = rng_int(0, 1),
                                       .bias = true };
    law l;
    law_begin(&l, taut_cosattention(&s), in);
    for (int p = 0; p < 8; p++) {
        const double size = p % 2 && rng_int(0, 1) ? 0 : pow(10, rng_pm());
        for (int64_t i = 0; i < l.seen[p]->rows * l.seen[p]->cols; i++) ((double *)l.seen[p]->value)[i] *= size;
    }
    if (rng_int(0, 1)) /* the first token's q and k cancel, where n is steepest */
        for (int p = 0; p < 4; p += 2)
            for (int64_t r = 0; r < in.d; r++)
                ((double *)l.seen[p + 1]->value)[r] = -dot(taut_ref_values(l.seen[p]) + r * in.d, l.x, in.d);
    real want[24];
    for (int64_t i = 0; i < in.t; i++) {
        for (int64_t r = 0; r < in.d; r++) want[i * in.d + r] = taut_ref_values(l.seen[7])[r];
        for (int64_t h = 0; h < s.heads; h++) attend(want + i * in.d, &l, &s, i, h);
    }
    judge(&l, want, 2);
    law_end(&l);
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(400); case_no++) {
        check_residual(false);
        check_residual(true);
        check_cosine();
    }
    return test_end("round", "error / round: potential %.4f sll %.4f cosattention %.4f", worst[0], worst[1], worst[2]);
}
