/* Every architecture on the table under test against ref: the same weights and inputs give the same logits, directional
 * derivatives and gradients, of every weight and of the input.  ref obeys the laws of modules (laws.h), so the table does.  The
 * tolerance is no promise: of doubles it is what long sums may differ by, of floats a ten-thousandth of the largest number. */
#include "check/kinds.h"
#include "kernels/pair.h"
#include "model/pass.h"
#include "temp.h"

enum { EXAMPLES = 3 };

typedef struct {
    taut_model *m;
    taut_pass *pass;
    taut_real *tx, *ty;
} side;

static void open_side(side *s, const taut_kernels *k, const char *path)
{
    must(taut_model_open(&s->m, path, k, true));
    must(taut_pass_create(&s->pass, s->m, EXAMPLES, s->m->in.t, true));
    taut_pass_shape(s->pass, EXAMPLES, s->m->in.t);
    s->tx = taut_reals(k, taut_len(s->pass->x.shape));
    s->ty = taut_reals(k, taut_len(s->pass->logits.shape));
}

static void close_side(side *s)
{
    s->m->k->release(s->tx), s->m->k->release(s->ty);
    taut_pass_free(s->pass);
    taut_model_free(s->m);
}

/* The largest difference, relative to the largest number of ref's. */
static double apart(const side *s, const taut_real *of[2], int64_t len)
{
    double *a = doubles(len), *b = doubles(len), most = 0, size = 0;
    s[0].m->k->get(a, of[0], len);
    s[1].m->k->get(b, of[1], len);
    for (int64_t i = 0; i < len; i++) {
        size = fmax(size, fabs(a[i]));
        const double e = fabs(a[i] - b[i]);
        if (!(e <= most)) most = e;
    }
    free(a), free(b);
    return size > 0 ? most / size : most;
}

static void put_both(const side *s, taut_real *of[2], const double *x, int64_t len)
{
    for (int i = 0; i < 2; i++) s[i].m->k->put(of[i], x, len);
}

static void compare(const side *s, taut_real *a, taut_real *b, int64_t len, const char *what, const char *kind)
{
    const taut_real *of[2] = { a, b };
    const double error = apart(s, of, len), tol = cpu->unit < 0x1p-40 ? 1e-9 : 1e-4;
    char line[256];
    snprintf(line, sizeof line, "%s of %.200s", what, kind);
    CHECK_LE(error, tol, line);
    worst = fmax(worst, error / tol);
}

static void check_kind(int kind, const char *path)
{
    side s[2];
    save_kind(kind, path);
    open_side(&s[0], ref, path), open_side(&s[1], cpu, path);
    const int64_t nx = taut_len(s[0].pass->x.shape), ny = taut_len(s[0].pass->logits.shape);
    double *x = doubles(nx), *v = doubles(ny);
    fill(x, nx);
    for (int64_t i = 0; i < nx; i++) x[i] = taut_float32(is_image(kind) ? fabs(x[i]) : x[i]);
    put_both(s, (taut_real *[2]){ s[0].pass->x.data, s[1].pass->x.data }, x, nx);
    for (int i = 0; i < 2; i++) taut_pass_run(s[i].pass);
    compare(s, s[0].pass->logits.data, s[1].pass->logits.data, ny, "the logits", kinds[kind]);
    fill(x, nx);
    for (int64_t i = 0; i < nx; i++) x[i] = taut_float32(x[i]);
    put_both(s, (taut_real *[2]){ s[0].tx, s[1].tx }, x, nx);
    for (int i = 0; i < 2; i++) {
        taut_pass *p = s[i].pass;
        taut_jvp(s[i].m->root, &p->run, (taut_tensor){ s[i].ty, p->logits.shape }, (taut_tensor){ s[i].tx, p->x.shape },
                 (taut_point){ p->x, p->trace });
    }
    compare(s, s[0].ty, s[1].ty, ny, "the derivative", kinds[kind]);
    fill(v, ny);
    for (int64_t i = 0; i < ny; i++) v[i] = taut_float32(v[i]);
    put_both(s, (taut_real *[2]){ s[0].pass->logits.data, s[1].pass->logits.data }, v, ny);
    for (int i = 0; i < 2; i++) taut_pass_backward(s[i].pass);
    compare(s, s[0].pass->gx, s[1].pass->gx, nx, "the input's gradient", kinds[kind]);
    compare(s, s[0].m->grads, s[1].m->grads, s[0].m->slab, "the weights' gradients", kinds[kind]);
    close_side(&s[0]), close_side(&s[1]);
    free(x), free(v);
}

int main(void)
{
    pair_begin();
    temp_begin();
    for (case_no = 0; case_no < KINDS; case_no++) check_kind((int)case_no, temp_path("model.safetensors"));
    return test_end("models", "%d architectures, worst error / allowed = %.3f", KINDS, worst);
}
