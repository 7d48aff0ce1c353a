/* Attention by position: laws, causal and not; column sums that no column of q beats; a witness that
 * attains the bound in tokens, and one in flat; rounding against long double; weights that are not finite. */
#include "base/float32.h"
#include "bound/posattention.h"
#include "laws.h"

static taut_posattention_spec any(taut_shape in)
{
    return (taut_posattention_spec){ .width = in.d,
                                     .heads = in.d % 2 == 0 ? 1 + rng_int(0, 1) : 1,
                                     .context = in.t + rng_int(0, 2),
                                     .causal = rng_int(0, 1),
                                     .bias = rng_int(0, 1),
                                     .far = rng_int(0, 1),
                                     .fade = 0.25 * (double)rng_int(0, 4),
                                     .gain = 1,
                                     .out_gain = 1 };
}

static taut_module *make(taut_shape in)
{
    taut_posattention_spec spec = any(in);
    if (rng_int(0, 2) == 0) {
        spec.context = in.t, spec.row = rng_int(1, in.t), spec.causal = spec.far = false;
        while (in.t % spec.row) spec.row--;
    }
    return taut_posattention(&spec);
}

static taut_param *named(law *l, const char *name)
{
    for (int i = 0; i < l->params; i++)
        if (strcmp(l->name[i], name) == 0) return l->seen[i];
    return NULL;
}

static void identity(taut_param *p)
{
    for (int64_t i = 0; i < p->rows * p->cols; i++) ((double *)p->value)[i] = i % (p->cols + 1) == 0;
}

/* One head, W_V = W_O = I, all tokens moved alike: a mean of equal moves is that move, so the slope is 1. */
static void witness_tokens(void)
{
    law l;
    law_begin(&l, taut_posattention(&(taut_posattention_spec){ .width = 2, .heads = 1, .context = 5, .causal = true }),
              (taut_shape){ 1, 5, 2 });
    identity(named(&l, "v.weight")), identity(named(&l, "o.weight"));
    law_forward(&l, l.y);
    const double proved = law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v, found = slope_at(&l, TAUT_NORM_TOKENS, 60);
    CHECK_NEAR(proved, 1, 1e-8, "witness: the bound is 1");
    CHECK_LE(found, proved * (1 + 1e-12), "witness: sound");
    CHECK_LE(1 - 1e-9, found, "witness: attained");
    law_end(&l);
}

/* Two heads of gains 1 and 2^-fade that look at different tokens; the heads' values are the same feature, and W_O adds
 * them up: |y| = |W_O| sqrt(1 + 4^-fade), the whole bound. */
static double witness_heads(double fade)
{
    enum { T = 4 };
    const taut_posattention_spec spec = { .width = 2, .heads = 2, .context = T, .causal = true, .fade = fade };
    law l;
    law_begin(&l, taut_posattention(&spec), (taut_shape){ 1, T, 2 });
    const double g = taut_float32(pow(2, -fade)), v[] = { 1, 0, 1, 0 }, o[] = { 1, g, 0, 0 };
    memcpy(named(&l, "v.weight")->value, v, sizeof v), memcpy(named(&l, "o.weight")->value, o, sizeof o);
    double *w = (double *)named(&l, "distance.weight")->value;
    for (int c = 0; c < 2 * T; c++) w[c] = c == 0 || c == T + 1 ? 0 : -60; /* head 0 looks here, head 1 one back */
    law_forward(&l, l.y);
    const double proved = law_ask(&l, TAUT_NORM_TOKENS, 1).lip.v, found = slope_at(&l, TAUT_NORM_TOKENS, 60);
    CHECK_NEAR(proved, 1 + g * g, 1e-7, "two heads: ||W_O|| is what the heads are, too");
    CHECK_LE(found, proved * (1 + 1e-12), "two heads: sound");
    CHECK_LE((1 - 1e-6) * proved, found, "two heads: attained");
    law_end(&l);
    return found / proved;
}

/* Every query reads token 0: a move of it alone moves all T outputs, sqrt(T) in flat. */
static double witness_flat(void)
{
    enum { T = 6 };
    law l;
    law_begin(&l, taut_posattention(&(taut_posattention_spec){ .width = 1, .heads = 1, .context = T, .causal = true }),
              (taut_shape){ 1, T, 1 });
    identity(named(&l, "v.weight")), identity(named(&l, "o.weight"));
    for (int c = 0; c < T; c++) ((double *)named(&l, "distance.weight")->value)[c] = 40 * c;
    law_forward(&l, l.y);
    const double proved = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v, found = slope_at(&l, TAUT_NORM_FLAT, 60);
    CHECK_NEAR(proved, sqrt(T), 1e-7, "flat: the bound is sqrt T");
    CHECK_LE(found, proved * (1 + 1e-12), "flat: sound");
    CHECK_LE(0.999 * proved, found, "flat: attained");
    law_end(&l);
    return found / proved;
}

/* Two heads that write each feature somewhere else, W_V = W_O = I: in flat nothing gets longer, where head by head the
 * constant would be sqrt 2.  On a torus of 2 x 3 a head shifts all tokens and loses none. */
static double witness_joint(void)
{
    double least = 1;
    for (int torus = 0; torus < 2; torus++) {
        law l;
        const taut_posattention_spec spec = { .width = 2, .heads = 2, .context = 6, .row = torus ? 3 : 0 };
        law_begin(&l, taut_posattention(&spec), (taut_shape){ 1, 6, 2 });
        identity(named(&l, "v.weight")), identity(named(&l, "o.weight"));
        taut_param *w = named(&l, "distance.weight");
        for (int64_t i = 0; i < 2 * w->cols; i++)
            ((double *)w->value)[i] = i % w->cols == (torus ? 4 * (i / w->cols) : w->cols / 2) ? 0 : -80;
        law_forward(&l, l.y);
        const double proved = law_ask(&l, TAUT_NORM_FLAT, 1).lip.v, found = slope_at(&l, TAUT_NORM_FLAT, 60);
        CHECK_NEAR(proved, 1, 1e-6, "joint: the bound is 1");
        CHECK_LE(found, proved * (1 + 1e-12), "joint: sound");
        CHECK_LE(0.999 * proved, found, "joint: attained");
        if (torus) { /* head 1 reads the token one row up and one column left */
            CHECK_NEAR(l.y[2 * 4 + 1], l.x[2 * 0 + 1], 1e-12, "a shift round the torus");
            CHECK_NEAR(l.y[2 * 0 + 1], l.x[2 * 5 + 1], 1e-12, "over both edges");
            CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v < INFINITY, "all tokens there");
        }
        least = fmin(least, found / proved);
        law_end(&l);
    }
    return least;
}

/* Encoder, three tokens: each reads another, and no column is heavier than 1.  Of two tokens both read token 0: a move of
 * it moves both, sqrt 2, and the constant for three must hold for two. */
static double witness_shorter(void)
{
    const double table[] = { 60, 0, 20, 40, -40 };
    law l;
    law_begin(&l, taut_posattention(&(taut_posattention_spec){ .width = 1, .heads = 1, .context = 3 }),
              (taut_shape){ 1, 2, 1 });
    identity(named(&l, "v.weight")), identity(named(&l, "o.weight"));
    memcpy(named(&l, "distance.weight")->value, table, sizeof table);
    law_forward(&l, l.y);
    const taut_posattention_weights p = { .heads = 1, .tokens = 3, .table = table, .span = 5 };
    const double proved = sqrt(up_posattention_column(&p, 0).v), found = slope_at(&l, TAUT_NORM_FLAT, 60);
    CHECK_LE(found, proved, "shorter: sound");
    CHECK_LE(0.999 * proved, found, "shorter: attained");
    law_end(&l);
    return found / proved;
}

/* q in long double, and every sum of its columns, for every length. */
static void columns(void)
{
    const int64_t n = rng_int(1, 12), context = n + rng_int(0, 3);
    const bool causal = rng_int(0, 1);
    const int64_t zero = causal ? 0 : context - 1, span = zero + context;
    double w[64];
    const double size = rng_int(0, 3) ? 3 : rng_int(0, 1) ? 300 : 2000;
    for (int64_t c = 0; c < span; c++) w[c] = size * rng_pm();
    const taut_posattention_weights p = { .heads = 1, .tokens = n, .table = w, .span = span, .causal = causal };
    const double proved = up_posattention_column(&p, 0).v;
    long double most = 0;
    for (int64_t t = 1; t <= n; t++)
        for (int64_t j = 0; j < t; j++) {
            long double sum = 0;
            for (int64_t i = causal ? j : 0; i < t; i++) {
                long double z = 0;
                for (int64_t k = 0; k < (causal ? i + 1 : t); k++)
                    z += expl((long double)w[zero + i - k] - w[zero + i - j]);
                sum += 1 / z;
            }
            most = fmaxl(most, sum);
        }
    CHECK_LE((double)most, proved, "no column is heavier");
    if (size < 320) CHECK_NEAR(proved, (double)most, 1e-12 * proved, "and the heaviest is found");
}

/* The layer in long double, from the formula at the top of its file. */
static double rounding(void)
{
    const taut_shape in = { 1, rng_int(1, 5), 2 * rng_int(1, 3) };
    const taut_posattention_spec s = any(in);
    const int64_t dh = in.d / s.heads, zero = s.causal ? 0 : s.context - 1;
    law l;
    law_begin(&l, taut_posattention(&s), in);
    const double size = pow(10, 2 * rng_pm());
    taut_param *table = named(&l, "distance.weight");
    for (int64_t i = 0; i < table->rows * table->cols; i++) ((double *)table->value)[i] *= 20 * size;
    const double *wv = taut_ref_values(named(&l, "v.weight")), *wo = taut_ref_values(named(&l, "o.weight"));
    law_forward(&l, l.y);
    double error = 0;
    for (int64_t i = 0; i < in.t; i++) {
        long double o[6] = { 0 }, square = 0;
        for (int64_t h = 0; h < s.heads; h++) {
            const double *w = taut_ref_values(table) + h * table->cols + zero + i;
            const long double g = taut_float32(pow(1 + (double)taut_offset(h, s.far, s.context), -s.fade));
            for (int64_t j = 0; j < (s.causal ? i + 1 : in.t); j++) {
                long double z = 0;
                for (int64_t k = 0; k < (s.causal ? i + 1 : in.t); k++) z += expl((long double)w[-k] - w[-j]);
                for (int64_t r = h * dh; r < (h + 1) * dh; r++)
                    for (int64_t c = 0; c < in.d; c++) o[r] += g / z * wv[r * in.d + c] * l.x[j * in.d + c];
            }
        }
        for (int64_t r = 0; r < in.d; r++) {
            long double y = s.bias ? taut_ref_values(named(&l, "o.bias"))[r] : 0;
            for (int64_t c = 0; c < in.d; c++) y += wo[r * in.d + c] * o[c];
            square += (y - l.y[i * in.d + r]) * (y - l.y[i * in.d + r]);
        }
        error = fmax(error, (double)sqrtl(square));
    }
    const double round = law_ask(&l, TAUT_NORM_TOKENS, longest_token(l.x, in)).round.v;
    CHECK_LE(error, round, "rounding");
    law_end(&l);
    return error / round;
}

/* Causal: what comes later changes nothing before it. */
static void no_future(void)
{
    const taut_shape in = { 1, 5, 4 };
    law l;
    law_begin(&l, taut_posattention(&(taut_posattention_spec){ .width = 4, .heads = 2, .context = 6, .causal = true }),
              in);
    double y[20];
    memcpy(y, l.y, sizeof y);
    for (int c = 3 * 4; c < 5 * 4; c++) l.x[c] += 1;
    law_forward(&l, l.y);
    CHECK(memcmp(y, l.y, 3 * 4 * sizeof *y) == 0, "tokens 0 to 2 see nothing of 3 and 4");
    CHECK(memcmp(y + 12, l.y + 12, 8 * sizeof *y) != 0, "which do change");
    law_end(&l);
}

static void corners(void)
{
    law l;
    law_begin(&l, taut_posattention(&(taut_posattention_spec){ .width = 2, .heads = 2, .context = 3, .bias = true }),
              (taut_shape){ 1, 2, 2 });
    const char *const names[] = { "v.weight", "o.weight", "distance.weight" };
    for (int i = 0; i < 3; i++)
        for (int n = 0; n < 2; n++) {
            double *w = (double *)named(&l, names[i])->value, keep = w[1];
            w[1] = i == 1 ? INFINITY : NAN;
            CHECK(law_ask(&l, (taut_norm)n, 1).lip.v == INFINITY, names[i]);
            CHECK(law_ask(&l, (taut_norm)n, 1).size.v == INFINITY, names[i]);
            w[1] = keep;
        }
    memset(named(&l, "o.weight")->value, 0, 4 * sizeof(double));
    CHECK(law_ask(&l, TAUT_NORM_FLAT, 1).lip.v == 0, "W_O = 0: constant");
    law_end(&l);
}

int main(void)
{
    double worst = 0;
    test_begin();
    laws(make, 1);
    witness_tokens();
    const double heads = fmin(witness_heads(0), fmin(witness_heads(0.25), witness_heads(0.5)));
    const double flat = witness_flat(), shorter = witness_shorter(), joint = witness_joint();
    for (case_no = 0; case_no < effort(300); case_no++) {
        columns();
        worst = fmax(worst, rounding());
    }
    no_future();
    corners();
    return test_end("posattention", "worst slope / bound = %.6f, witnesses %.6f %.6f %.6f %.6f, error / round %.3f",
                    law_worst, heads, flat, shorter, joint, worst);
}
