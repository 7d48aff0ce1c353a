/* Rounding.  The same network written down a second time, from docs/certificate.md alone, in long double and plain
 * loops: what the ref kernels compute in double is never further from it than the certificate's `round`, and it is
 * the same function (so the oracle also checks which function a certificate is about). */
#include "base/float32.h"
#include "certify/certify.h"
#include "laws.h"
#include "model/pass.h"
#include "must.h"
#include "taut.h"
#include "temp.h"

enum { T = 6, D = 12, HIDDEN = 16, V = 7 };
typedef long double real;
typedef struct {
    real v[T][D];
} tokens;

static const taut_model *m; /* the model that is computed */
static double worst[2], closest;
static int networks;

/* ---- the oracle ---- */

static const double *weight(const char *path, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s%s", path, *path ? "." : "", name);
    const taut_weight *w = taut_model_find(m, full);
    return w ? taut_ref_values(w->param) : NULL;
}

static real fl32(double x) { return (real)taut_float32(x); }

/* y = W x + b; b may be absent */
static void affine(real *y, const double *w, const double *b, const real *x, int rows, int cols)
{
    for (int r = 0; r < rows; r++) {
        y[r] = b ? b[r] : 0;
        for (int c = 0; c < cols; c++) y[r] += (real)w[r * cols + c] * x[c];
    }
}

static real activation(real x)
{
    const real pi = 3.141592653589793238462643383279502884L, u = sqrtl(2 / pi) * (x + 0.044715L * x * x * x);
    switch (m->spec.activation) {
    case TAUT_GELU:
        return x / 2 * erfcl(-x / sqrtl(2));
    case TAUT_GELU_TANH:
        return x / (1 + expl(-2 * u));
    case TAUT_RELU:
        return x > 0 ? x : 0;
    case TAUT_SILU:
        return x / (1 + expl(-x));
    case TAUT_TANH:
        return tanhl(x);
    case TAUT_ABS:
        return fabsl(x);
    case TAUT_ELU:
        return x > 0 ? x : expm1l(x);
    }
    return 0;
}

/* y may be x */
static void normalised(real *y, const real *x, const char *path)
{
    const int d = (int)m->spec.width;
    const double *g = weight(path, "weight"), *b = weight(path, "bias");
    const taut_norm_kind kind = m->spec.norm;
    real mean = 0, square = 0;
    for (int i = 0; i < d; i++) mean += x[i] / d;
    if (kind == TAUT_NORM_RMS) mean = 0;
    for (int i = 0; i < d; i++) square += (x[i] - mean) * (x[i] - mean) / d;
    const real by = kind == TAUT_NORM_CENTER ? fl32((double)d / (d - 1)) : 1 / sqrtl(square + fl32(m->spec.norm_eps));
    for (int i = 0; i < d; i++) y[i] = g[i] * (x[i] - mean) * by + (b ? b[i] : 0);
}

/* Pairs (i, i + dh/2) of every head turned by position * base^(-2i/dh). */
static void turned(real *x, int position)
{
    const int h = (int)m->spec.heads, dh = (int)m->spec.width / h, half = dh / 2;
    for (int i = 0; m->spec.positions == TAUT_POS_ROPE && i < h * half; i++) {
        real *a = x + i / half * dh + i % half, *b = a + half;
        const real angle = position * powl(m->spec.rope_base, -2.0L * (i % half) / dh), c = cosl(angle),
                   s = sinl(angle), old = *a;
        *a = c * old - s * *b;
        *b = s * old + c * *b;
    }
}

static void attend(real *o, const tokens *q, const tokens *k, const tokens *v, int i, int head, int keys)
{
    const int heads = (int)m->spec.heads, dh = (int)m->spec.width / heads, at = head * dh;
    const real slope = m->spec.positions == TAUT_POS_ALIBI ? exp2l(-8.0L * (head + 1) / heads) : 0;
    real s[T], most = -INFINITY, sum = 0;
    for (int j = 0; j < keys; j++) {
        s[j] = -slope * (real)abs(i - j);
        for (int c = at; c < at + dh; c++) s[j] += fl32(m->spec.attention_scale) * q->v[i][c] * k->v[j][c];
        most = fmaxl(most, s[j]);
    }
    for (int j = 0; j < keys; j++) sum += s[j] = expl(s[j] - most);
    for (int c = at; c < at + dh; c++) {
        o[c] = 0;
        for (int j = 0; j < keys; j++) o[c] += s[j] / sum * v->v[j][c];
    }
}

static void attention(tokens *y, const tokens *x, int t, const char *path)
{
    const int d = (int)m->spec.width;
    const bool causal = m->spec.arch == TAUT_ARCH_GPT;
    tokens q, k, v, o;
    for (int i = 0; i < t; i++) {
        affine(q.v[i], weight(path, "q.weight"), weight(path, "q.bias"), x->v[i], d, d);
        affine(k.v[i], weight(path, "k.weight"), weight(path, "k.bias"), x->v[i], d, d);
        affine(v.v[i], weight(path, "v.weight"), weight(path, "v.bias"), x->v[i], d, d);
        turned(q.v[i], i), turned(k.v[i], i);
    }
    for (int i = 0; i < t; i++) {
        for (int h = 0; h < m->spec.heads; h++) attend(o.v[i], &q, &k, &v, i, h, causal ? i + 1 : t);
        affine(y->v[i], weight(path, "o.weight"), NULL, o.v[i], d, d);
        const double *b = weight(path, "o.bias");
        for (int c = 0; c < d; c++) y->v[i][c] = fl32(m->spec.attention_out) * y->v[i][c] + (b ? b[c] : 0);
    }
}

static void perceptron(tokens *y, const tokens *x, int t, const char *path)
{
    const int d = (int)m->spec.width, hidden = (int)m->spec.mlp;
    real h[HIDDEN];
    for (int i = 0; i < t; i++) {
        affine(h, weight(path, "in.weight"), weight(path, "in.bias"), x->v[i], hidden, d);
        for (int c = 0; c < hidden; c++) h[c] = fl32(m->spec.activation_factor) * activation(h[c]);
        affine(y->v[i], weight(path, "out.weight"), weight(path, "out.bias"), h, d, hidden);
    }
}

static void branch(tokens *x, int t, int block, const char *what, const char *norm_name,
                   void (*f)(tokens *, const tokens *, int, const char *))
{
    char path[64], norm_path[64];
    const double a = taut_spec_alpha(&m->spec);
    const real keep = m->spec.convex ? fl32(1 - a) : 1, mix = m->spec.convex ? fl32(a) : 1;
    const bool norm_there = m->spec.norm != TAUT_NORM_NONE, pre = m->spec.place == TAUT_PLACE_PRE;
    tokens in = *x, y;
    snprintf(path, sizeof path, "block.%d.%s", block, what);
    snprintf(norm_path, sizeof norm_path, "block.%d.%s", block, norm_name);
    for (int i = 0; norm_there && pre && i < t; i++) normalised(in.v[i], x->v[i], norm_path);
    f(&y, &in, t, path);
    for (int i = 0; i < t; i++) {
        for (int c = 0; c < m->spec.width; c++) x->v[i][c] = keep * x->v[i][c] + mix * y.v[i][c];
        if (norm_there && !pre) normalised(x->v[i], x->v[i], norm_path);
    }
}

static void logits_of(real *logits, const double *embeddings, int t)
{
    const taut_model_spec *s = &m->spec;
    const int d = (int)s->width, classes = (int)m->embed.rows;
    const double *position = weight("pos", "weight"), *head = weight("head", "weight");
    tokens x;
    for (int i = 0; i < t; i++) {
        for (int c = 0; c < d; c++) x.v[i][c] = (real)embeddings[i * d + c] + (position ? position[i * d + c] : 0);
        if (s->embed_norm) normalised(x.v[i], x.v[i], "embed_norm");
    }
    for (int b = 0; b < s->depth; b++) {
        branch(&x, t, b, "attn", "norm1", attention);
        branch(&x, t, b, "mlp", "norm2", perceptron);
    }
    for (int i = 0; i < t; i++) {
        real h[D];
        if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE) normalised(x.v[i], x.v[i], "norm");
        if (s->arch == TAUT_ARCH_ENCODER) {
            affine(h, weight("transform", "weight"), weight("transform", "bias"), x.v[i], d, d);
            for (int c = 0; c < d; c++) x.v[i][c] = fl32(s->activation_factor) * activation(h[c]);
            if (s->norm != TAUT_NORM_NONE) normalised(x.v[i], x.v[i], "transform_norm");
        }
        affine(logits + i * classes, head ? head : taut_ref_values(&m->embed), weight("head", "bias"), x.v[i], classes,
               d);
        for (int c = 0; c < classes; c++) logits[i * classes + c] *= fl32(s->logit_scale);
    }
}

/* ---- models to compute ---- */

static taut_model *model_of(const char *text)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *made = NULL;
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_problem(cfg));
    taut_config_free(cfg);
    must(taut_model_create(&made, &spec, V, text, "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(made, false));
    return made;
}

static void random_weights(const taut_model *made, double size)
{
    for (int i = 0; i < made->weights; i++) {
        const taut_param *p = made->weight[i].param;
        const double scale = p->role == TAUT_VECTOR ? 0.5 : size / sqrt((double)p->cols);
        for (int64_t j = 0; j < p->rows * p->cols; j++)
            ((double *)p->value)[j] = taut_float32((p->init == TAUT_INIT_ONE) +
                                                   scale * rng_pm() * pow(10, -rng_unit()));
    }
}

static void random_recipe(char *text, size_t room)
{
    static const char *const norms[] = { "none", "centernorm", "layernorm", "rmsnorm" },
                             *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh", "abs" },
                             *const positions[] = { "learned", "rope", "alibi", "none" };
    const int heads = (int)rng_int(1, 3), width = heads * 2 * (int)rng_int(1, 2), norm = (int)rng_int(0, 3);
    snprintf(text, room,
             "[model]\narch = %s\nwidth = %d\nheads = %d\ndepth = %d\ncontext = %d\nmlp = %d\nnorm = %s\n"
             "%snorm_eps = %g\npositions = %s\nbias = %s\ntied = %s\nactivation = %s\n"
             "activation_factor = %g\nresidual = %s\nattention_factor = %g\nattention_out = %g\nlogit_scale = %g\n",
             rng_int(0, 1) ? "gpt" : "encoder", width, heads, (int)rng_int(1, 3), (int)rng_int(1, T),
             (int)rng_int(1, HIDDEN), norms[norm],
             norm == 0       ? ""
             : rng_int(0, 1) ? "norm_place = pre\n"
                             : "norm_place = post\n",
             norm < 2 ? 1e-5 : pow(10, -3 * rng_unit()), positions[rng_int(0, 3)], rng_int(0, 1) ? "true" : "false",
             rng_int(0, 1) ? "true" : "false", curves[rng_int(0, 5)], 1 / 1.1289, rng_int(0, 1) ? "plain" : "convex",
             3 * rng_unit(), 1. / 3, 1.7);
}

/* How far the computed logits are from the oracle's, in both norms. */
static void distance(double error[2], taut_pass *pass, const int32_t *ids, int t)
{
    const int classes = (int)m->embed.rows, d = (int)m->spec.width;
    double x[T * D], got[T * V];
    real want[T * V];
    taut_pass_forward(pass, ids, 1, t);
    m->k->get(x, pass->x.data, t * d);
    m->k->get(got, pass->logits.data, t * classes);
    logits_of(want, x, t);
    error[0] = error[1] = 0;
    for (int i = 0; i < t; i++) {
        real sum = 0;
        for (int c = 0; c < classes; c++)
            sum += (got[i * classes + c] - want[i * classes + c]) * (got[i * classes + c] - want[i * classes + c]);
        error[TAUT_NORM_TOKENS] = fmax(error[TAUT_NORM_TOKENS], (double)sqrtl(sum));
        error[TAUT_NORM_FLAT] = hypot(error[TAUT_NORM_FLAT], (double)sqrtl(sum));
    }
}

static void network(void)
{
    char text[1024];
    taut_certificate c;
    taut_pass *pass = NULL;
    const char *path = temp_path("model.safetensors");
    random_recipe(text, sizeof text);
    taut_model *made = model_of(text);
    random_weights(made, pow(10, 1.4 * rng_unit() - 0.7));
    must(taut_model_save(made, path));
    taut_model_free(made);
    for (int n = 0; n < 2; n++) {
        must(taut_certify(&c, path, (taut_norm)n, 0));
        m = c.model;
        must(taut_pass_create(&pass, c.model, 1, c.tokens, false));
        for (int k = 0; k < 4; k++) {
            int32_t ids[T];
            double error[2];
            for (int i = 0; i < T; i++) ids[i] = (int32_t)rng_int(0, V - 1);
            distance(error, pass, ids, (int)c.tokens);
            const int before = fails;
            CHECK_LE(error[n], c.round.v, n == TAUT_NORM_FLAT ? "round, flat" : "round, tokens");
            if (fails > before) fprintf(stderr, "%s", text);
            worst[n] = fmax(worst[n], error[n] / c.round.v);
            closest = fmax(closest, error[n]);
        }
        taut_pass_free(pass);
        taut_certificate_free(&c);
    }
    networks++;
}

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < effort(250); case_no++) network();
    return test_end("round", "%d networks x 8; error / round: tokens %.4f flat %.4f; largest error %.3g", networks,
                    worst[0], worst[1], closest);
}
