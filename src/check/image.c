/* From images to tokens, and from tokens to one: pixels, and the forward passes of prefix, pool, l2pool and concat. */
#include "check/ck.h"

bool ck_image_fits(const ck_node *n)
{
    const double *k = n->k, size = k[0] * k[1] * (double)n->w[0].cols;
    return n->tokens == 1 && size == (double)n->width && fmod(k[0], k[2]) == 0 && fmod(k[1], k[3]) == 0;
}

/* (pixel - mean) / std for every channel, cut into patches: a diagonal map and a permutation.  Where this is the first
 * module of the body (node 2) of an image model, it reads p + e with p in [0, 1]^d and |e| <= room: a patch is no
 * longer than what the map makes of the farthest corner of [0, 1]^d, plus norm * room for e. */
ck_bound ck_pixels(ck_fields *f, ck_node *n, double x)
{
    const double each = n->k[2] * n->k[3];
    double most = 0, shifts = 0, corners = 0;
    for (int64_t i = 0; i < n->w[0].cols; i++) {
        const double s = n->w[0].v[i], b = n->w[1].v[i], far = fmax(fabs(b), fmax(fabs(s + b), fabs(-s - b)));
        most = fmax(most, fabs(s)), shifts += each * (b * b), corners += each * (far * far);
    }
    const double norm = ck_claim(f, "norm", most);
    if (!f->c->unit || n != f->c->nodes + 2) return (ck_bound){ norm, norm * x + ck_claim(f, "shift", sqrt(shifts)) };
    return (ck_bound){ norm, ck_claim(f, "corner", sqrt(corners)) + norm * f->c->out->room };
}

/* Patches are in row order, and so are the pixels within a patch. */
void ck_run_pixels(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t w = (int64_t)n->k[1], ph = (int64_t)n->k[2], pw = (int64_t)n->k[3], channels = n->w[0].cols;
    ck_mat y = ck_new(c, x->cols / (ph * pw * channels), ph * pw * channels);
    double far = 0;
    for (int64_t i = 0; i < x->cols; i++) {
        const int64_t ch = i % channels, col = i / channels % w, row = i / channels / w;
        const int64_t patch = row / ph * (w / pw) + col / pw, at = (row % ph * pw + col % pw) * channels + ch;
        const double scaled = n->w[0].v[ch] * x->v[i], shift = n->w[1].v[ch];
        y.v[patch * y.ld + at] = scaled + shift;
        far = fmax(far, fabs(scaled) + fabs(shift));
    }
    y.err = ck_gamma(2) * sqrt((double)y.cols) * far;
    *x = y;
}

void ck_run_prefix(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, x->rows + 1, x->cols);
    for (int64_t i = 0; i < y.rows * y.ld; i++) y.v[i] = i < y.ld ? n->w[0].v[i] : x->v[i - y.ld];
    *x = y;
}

void ck_run_pool(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t rows = n->k[0] != 0 ? x->rows : 1;
    ck_mat y = ck_new(c, 1, x->cols);
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < rows; t++) y.v[i] += x->v[t * x->ld + i];
        y.v[i] /= (double)rows;
    }
    y.err = ck_gamma((double)rows + 2) * ck_longest(*x);
    *x = y;
}

/* Of every feature a sum of squares, each rounded x->rows times at most, and a root.  Squares that
 * underflow lose less than 2^-1074 each, a root then less than 2^-537 sqrt(T), and all roots together less than 2^-480. */
void ck_run_l2pool(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, x->cols);
    (void)n;
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < x->rows; t++) y.v[i] += x->v[t * x->ld + i] * x->v[t * x->ld + i];
        y.v[i] = sqrt(y.v[i]);
    }
    y.err = ck_gamma((double)x->rows + 2) * sqrt((double)x->rows) * ck_longest(*x) + 0x1p-480;
    *x = y;
}

void ck_run_concat(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, n->tokens * n->width);
    for (int64_t i = 0; i < y.cols; i++) y.v[i] = x->v[i / x->cols * x->ld + i % x->cols];
    *x = y;
}
