/* The steps of a forward pass in double, each with its error: a token (a row) is within err of what real arithmetic
 * would make of the input of the module that is run.
 *   affine    a blocked sum: gamma (|W|_F |x| + |b|), gamma as in matrix.c
 *   activate  |computed - f(z)| <= 18 u |z|: libm within 4 ulp (1e-15), a few roundings, |f(z)| <= |z|
 *   centre    a projection, and d + 4 roundings;  weigh: four
 *   divide    z/sd moves by at most err over the smallest sd on the way; |z/sd| <= sqrt(over) */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

ck_mat ck_affine(ck *c, ck_mat x, double factor, ck_mat w, ck_mat b)
{
    const double gamma = ck_gamma(ck_roundings(w.cols) + 6), most = ck_longest(x);
    ck_mat y = ck_product(c, ck_turn(c, x), ck_turn(c, w));
    for (int64_t i = 0; i < y.rows; i++)
        for (int64_t j = 0; j < y.cols; j++) y.v[i * y.ld + j] = factor * y.v[i * y.ld + j] + (b.v ? b.v[j] : 0);
    y.err = fabs(factor) * (ck_length(w) * (gamma * most + x.err) + w.err * most) + gamma * ck_length(b);
    return y;
}

void ck_weigh(ck_mat *x, double factor, ck_mat g, ck_mat b)
{
    double most = g.v ? 0 : 1, size = ck_longest(*x);
    for (int64_t j = 0; j < g.cols; j++) most = fmax(most, fabs(g.v[j]));
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++)
            x->v[i * x->ld + j] = factor * x->v[i * x->ld + j] * (g.v ? g.v[j] : 1) + (b.v ? b.v[j] : 0);
    x->err = fabs(factor) * most * (x->err + ck_gamma(4) * size) + ck_gamma(4) * ck_length(b);
}

static double value(int curve, double x)
{
    if (curve == CK_GELU) return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    if (curve == CK_GELU_TANH) return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (curve == CK_SILU) return x / (1 + exp(-x));
    if (curve == CK_ELU && x < 0) return expm1(x);
    return curve == CK_TANH ? tanh(x) : x > 0 ? x : curve == CK_ABS ? -x : 0;
}

double ck_slope_at(double curve, double x)
{
    const double root = 0.79788456080286535588, u = root * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-x));
    if (fabs(x) > 40 && (curve == CK_GELU || curve == CK_GELU_TANH || curve == CK_SILU)) return x > 0;
    if (curve == CK_GELU) return 0.5 * (1 + erf(x * 0.70710678118654752440)) + 0.5 * root * x * exp(-0.5 * x * x);
    if (curve == CK_GELU_TANH)
        return 0.5 * (1 + tanh(u)) + 0.5 * root * x * (1 - tanh(u) * tanh(u)) * (1 + 3 * 0.044715 * x * x);
    if (curve == CK_SILU) return s + x * s * (1 - s);
    if (curve == CK_TANH) return 1 - tanh(x) * tanh(x);
    if (curve == CK_ELU) return x > 0 ? 1 : exp(x);
    return x > 0 ? 1 : x < 0 && curve == CK_ABS ? -1 : 0;
}

void ck_activate(ck_mat *x, double curve, double factor)
{
    x->err = ck_slopes(curve).hi * x->err + 18 * CK_U * ck_longest(*x);
    for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] = value((int)curve, x->v[i]);
    ck_weigh(x, factor, (ck_mat){ 0 }, (ck_mat){ 0 });
}

void ck_centre(ck_mat *x)
{
    x->err += ck_gamma((double)x->cols + 4) * ck_longest(*x);
    for (int64_t t = 0; t < x->rows; t++) {
        double *v = x->v + t * x->ld, mean = 0;
        for (int64_t i = 0; i < x->cols; i++) mean += v[i];
        for (int64_t i = 0; i < x->cols; i++) v[i] -= mean / (double)x->cols;
    }
}

/* err is then of a group */
void ck_divide(ck_mat *x, int64_t group, double over, double eps)
{
    const double gamma = ck_gamma((double)group + 16);
    double worst = 0;
    for (int64_t t = 0; t < x->rows; t++)
        for (double *v = x->v + t * x->ld, *end = v + x->cols; v < end; v += group) {
            double square = 0;
            for (int64_t i = 0; i < group; i++) square += v[i] * v[i];
            const double low = fmax(sqrt(square) * (1 - 2 * gamma) - x->err, 0), sd = sqrt(square / over + eps);
            worst = fmax(worst, ck_over(1, sqrt(low * low / over + eps) * (1 - 16 * CK_U)));
            for (int64_t i = 0; i < group; i++) v[i] /= sd;
        }
    x->err = worst * x->err + gamma * sqrt(over);
}
