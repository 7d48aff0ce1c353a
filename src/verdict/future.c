/* The band.  x is the window as taut computes it, x' that of a table whose rows are off by at most E (real numbers, standardised
 * by the same means and deviations).  A number v of a table is rounded when it is read, by up to 2^-53 |v|, and twice when it is
 * standardised.  |v| / deviation is at most the standardised number plus |mean| / deviation, so that with rows, the length of the
 * longest row of x, and far, that of the means over the deviations,
 *     |x'_t - x_t| <= room = E + 2^-50 (rows + E + far) + 2^-1000    (the last where something underflows)
 * wherever the row stands in the window.  The certificate for rows no longer than that, moved by room, then gives for the numbers
 * that are computed
 *     |y'_j - y_j| <= half = lip room + defect + 2 round,
 * each number of a row of the forecast moving by no more than the row.  What is said is mean + deviation y, rounded to nearest
 * after each operation; the same operations on y + half and y - half, each rounded outward, enclose it for every such y', as
 * rounding is monotone. */
#include "verdict/future.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "certify/certify.h"
#include "model/pass.h"

static double next_up(double x) { return nextafter(x, INFINITY); }

/* What is said of the standardised number y, and between what it stays if that moves by up to half. */
static void to_units(taut_future *f, int64_t i, double y, double mean, double deviation, taut_up half)
{
    f->said[i] = mean + deviation * y;
    f->high[i] = next_up(mean + next_up(deviation * next_up(y + half.v)));
    f->low[i] = -next_up(-mean + next_up(deviation * next_up(-y + half.v)));
}

/* The computed forecast of the window x, standardised. */
static taut_status ask(double *y, taut_model *m, const double *x, int64_t len)
{
    taut_pass *pass = NULL;
    taut_status s = taut_pass_create(&pass, m, 1, m->in.t, false);
    if (s) return s;
    taut_pass_forward_real(pass, x, 1);
    m->k->get(y, pass->logits.data, len);
    taut_pass_free(pass);
    for (int64_t i = 0; i < len; i++)
        if (!isfinite(y[i])) return taut_fail(TAUT_NOT_FINITE, "a number of the forecast is not finite");
    return TAUT_OK;
}

/* How far a computed, standardised number of the forecast can move. */
static taut_status prove(taut_up *half, taut_future *f, taut_certificate *c, taut_up rows)
{
    *half = UP_NONE;
    const taut_status s = taut_certificate_prove(c, rows.v);
    if (s) return s;
    f->about = taut_certificate_about(c);
    f->about.room = f->noise; /* as it was asked; the proof's is a little more */
    f->about.defect = 0;      /* it is in the band */
    *half = up_add(up_add(up_mul(c->lip, c->room), c->defect), up_ldexp(c->round, 1));
    if (!isfinite(half->v)) taut_why_not(f->why, c);
    return TAUT_OK;
}

static taut_status make(taut_future *f, taut_certificate *c, const taut_series *s, const double *x, double *y,
                        taut_up rows)
{
    taut_up half = UP_NONE;
    taut_status status = ask(y, c->model, x, f->rows * f->cols);
    if (!status && f->noise > 0) status = prove(&half, f, c, rows);
    for (int64_t i = 0; !status && i < f->rows * f->cols; i++) {
        const int64_t at = s->target[i % f->cols];
        to_units(f, i, y[i], s->mean[at], s->std[at], half);
        if (!isfinite(f->said[i])) status = taut_fail(TAUT_NOT_FINITE, "a number of the forecast is not finite");
        taut_up *most = &f->moves[i % f->cols];
        *most = up_max(*most, up_wrap(fmax(next_up(f->high[i] - f->said[i]), next_up(f->said[i] - f->low[i]))));
    }
    return status;
}

/* The series is what the model of this very file reads. */
static taut_status check_fit(const taut_model_spec *m, const taut_series *s)
{
    if (m->ahead && s->rows >= m->seq && s->cols == m->columns && s->marks == m->marks && s->targets == m->classes)
        return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA,
                     "%lld rows of %lld columns and %lld time features; the model reads %lld of %lld and %lld",
                     (long long)s->rows, (long long)s->cols, (long long)s->marks, (long long)m->seq,
                     (long long)m->columns, (long long)m->marks);
}

static taut_status begin(taut_future *f, double **x, const taut_model *m)
{
    f->rows = m->spec.ahead, f->cols = m->spec.classes;
    const size_t len = (size_t)(f->rows * f->cols);
    *x = taut_malloc(((size_t)(m->in.t * m->in.d) + len) * sizeof **x);
    f->said = taut_calloc(len, 3 * sizeof *f->said);
    f->moves = taut_calloc((size_t)f->cols, sizeof *f->moves);
    if (!*x || !f->said || !f->moves) return taut_no_memory("a forecast");
    f->low = f->said + len, f->high = f->low + len;
    return TAUT_OK;
}

taut_status taut_future_make(taut_future *f, const char *model, const taut_series *s)
{
    taut_certificate c;
    double *x = NULL;
    *f = (taut_future){ .noise = f->noise };
    taut_status status = taut_certificate_open(&c, model, TAUT_NORM_TOKENS, f->noise);
    if (status) return status;
    memcpy(f->model, c.sha, sizeof f->model);
    status = check_fit(&c.model->spec, s);
    if (!status) status = begin(f, &x, c.model);
    if (!status) {
        const taut_model_spec *m = &c.model->spec;
        const int64_t t = c.model->in.t, d = c.model->in.d;
        taut_up rows = UP_ZERO;
        taut_series_window(x, s, m->seq, m->label, m->ahead);
        for (int64_t i = 0; i < t; i++) rows = up_max(rows, up_norm_frobenius(x + i * d, d));
        taut_up far = UP_ZERO;
        for (int64_t i = 0; i < s->cols; i++)
            far = up_hypot(far, up_div(up_exact(fabs(s->mean[i])), lo_exact(s->std[i])));
        const taut_up error = up_mul((taut_up){ 0x1p-50 }, up_add(up_add(rows, c.room), far));
        c.room = up_add(c.room, up_add(error, (taut_up){ 0x1p-1000 }));
        status = make(f, &c, s, x, x + t * d, rows);
    }
    taut_certificate_free(&c);
    free(x);
    if (status) taut_future_free(f);
    return status;
}

void taut_future_free(taut_future *f)
{
    free(f->said);
    free(f->moves);
    f->said = f->low = f->high = NULL;
    f->moves = NULL;
}
