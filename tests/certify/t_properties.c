/* Properties of the attention bound that its proof promises: never above the published
 * valid bounds; blind to what the network is blind to (rotations of the features, K -> cK with Q -> Q/c, shifts
 * b_K and b_V); and the exact norm where all tokens are alike. */
#include "laws.h"
#include "taut.h"

static double worst_castin, worst_turn;

static void set(law *l, int p, const double *w)
{
    memcpy(l->seen[p]->value, w, (size_t)(l->seen[p]->rows * l->seen[p]->cols) * 8);
}

/* sqrt 3 |V| sqrt(a^2 (f n + 1) + n), f = 1 (proved) or 4 (printed): both are valid */
static double castin(double f, double a, double n) { return sqrt(3) * sqrt(a * a * (f * n + 1) + n); }

/* P2: one feature, A = a, V = 1, tokens of size 1. */
static void below_castin(void)
{
    law l;
    const int64_t n = rng_int(0, 3) ? rng_int(1, 9) : rng_int(10, 3000);
    const double a = pow(10, 4 * rng_unit() - 2), one[] = { 1 }, q[] = { rng_int(0, 1) ? a : -a };
    law_begin(&l, taut_attention(&(taut_attention_spec){ .width = 1, .heads = 1, .scale = 1, .out = 1 }),
              (taut_shape){ 1, 1, 1 });
    set(&l, 0, q), set(&l, 1, one), set(&l, 2, one), set(&l, 3, one);
    const taut_ask in = { .norm = TAUT_NORM_FLAT, .tokens = n, .size = { 1 } };
    const double ours = taut_bound_of(l.m, in).lip.v, sharp = castin(1, a, (double)n);
    CHECK_LE(ours, sharp, "P2: below n + 1");
    CHECK_LE(sharp, castin(4, a, (double)n), "P2: below 4n + 1");
    worst_castin = fmax(worst_castin, ours / sharp);
    law_end(&l);
}

static void random_orthogonal(double *u, int64_t d)
{
    for (int64_t i = 0; i < d; i++) {
        fill(u + i * d, d);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double c = dot(u + i * d, u + j * d, d);
                for (int64_t k = 0; k < d; k++) u[i * d + k] -= c * u[j * d + k];
            }
        const double size = norm(u + i * d, d);
        for (int64_t k = 0; k < d; k++) u[i * d + k] /= size;
    }
}

/* W U^T for the three that read, U W for the one that writes */
static void turn(law *l, const double *u, int64_t d, bool bias)
{
    for (int p = 0; p < 4; p++) {
        double *w = (double *)l->seen[bias ? 2 * p : p]->value, old[64];
        memcpy(old, w, (size_t)(d * d) * 8);
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) {
                double sum = 0;
                for (int64_t k = 0; k < d; k++)
                    sum += p < 3 ? old[i * d + k] * u[j * d + k] : u[i * d + k] * old[k * d + j];
                w[i * d + j] = sum;
            }
    }
}

/* P3 */
static void invariant(void)
{
    const int64_t heads = rng_int(1, 2), d = heads * 2 * rng_int(1, 2);
    const bool rope = rng_int(0, 1);
    double u[64], before[2];
    law l;
    law_begin(&l,
              taut_attention(&(taut_attention_spec){
                  .width = d, .heads = heads, .scale = 0.5, .out = 1, .bias = true, .rope = rope, .rope_base = 100 }),
              (taut_shape){ 1, 4, d });
    memset(l.seen[7]->value, 0, (size_t)d * 8); /* b_O is not turned below */
    for (int n = 0; n < 2; n++) before[n] = law_ask(&l, (taut_norm)n, 1.3).lip.v;
    random_orthogonal(u, d);
    turn(&l, u, d, true);
    for (int64_t i = 0; i < d * d; i++) ((double *)l.seen[0]->value)[i] /= 8, ((double *)l.seen[2]->value)[i] *= 8;
    for (int64_t i = 0; i < d; i++) {
        ((double *)l.seen[1]->value)[i] /= 8;
        if (rope)
            ((double *)l.seen[3]->value)[i] *= 8;
        else
            ((double *)l.seen[3]->value)[i] = 5 * rng_pm();
        ((double *)l.seen[5]->value)[i] = 5 * rng_pm();
    }
    for (int n = 0; n < 2; n++) {
        const double now = law_ask(&l, (taut_norm)n, 1.3).lip.v;
        CHECK_NEAR(now, before[n], 1e-5 * before[n], "P3: turned, rescaled, shifted");
        worst_turn = fmax(worst_turn, fabs(now / before[n] - 1));
    }
    law_end(&l);
}

/* P4: all tokens alike and no position in the logits: attention is the mean, so ||J|| = ||W_O W_V||; with a causal mask
 * times the norm of the Cesaro matrix. */
static void alike(bool causal)
{
    enum { D = 4, T = 5 };
    double m[D * D] = { 0 }, x[D];
    law l, linear;
    law_begin(&l,
              taut_attention(&(taut_attention_spec){ .width = D, .heads = 1, .scale = 1, .out = 1, .causal = causal }),
              (taut_shape){ 1, T, D });
    fill(x, D);
    for (int i = 0; i < T * D; i++) l.x[i] = x[i % D];
    law_forward(&l, l.y);
    const double *o = (double *)l.seen[3]->value, *v = (double *)l.seen[2]->value;
    for (int i = 0; i < D * D; i++)
        for (int k = 0; k < D; k++) m[i] += o[i / D * D + k] * v[k * D + i % D];
    law_begin(&linear, taut_linear(D, D, false, TAUT_INIT_NORMAL, 1), (taut_shape){ 1, 1, D });
    set(&linear, 0, m);
    const double want = slope_at(&linear, TAUT_NORM_FLAT, 3000) * (causal ? 1.309172626020146 : 1);
    CHECK_NEAR(slope_at(&l, TAUT_NORM_FLAT, 3000), want, 1e-6 * want, "P4: equal tokens");
    CHECK_LE(want, law_ask(&l, TAUT_NORM_FLAT, norm(x, D)).lip.v * (1 + 1e-9), "P4: the bound");
    law_end(&l), law_end(&linear);
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(400); case_no++) below_castin();
    for (case_no = 0; case_no < effort(100); case_no++) invariant();
    for (case_no = 0; case_no < 10; case_no++) alike(false), alike(true);
    return test_end("properties", "ours / published at most %.4f; turned bounds agree to %.1e", worst_castin,
                    worst_turn);
}
