/* From images to tokens. */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

static bool fits(const ck_node *n)
{
    const double *k = n->k, size = k[0] * k[1] * (double)n->w[0].cols;
    return n->tokens == 1 && size == (double)n->width && fmod(k[0], k[2]) == 0 && fmod(k[1], k[3]) == 0;
}

static void shape(const ck_node *n, int64_t *tokens, int64_t *width)
{
    *tokens = (int64_t)(n->k[0] / n->k[2] * (n->k[1] / n->k[3]));
    *width /= *tokens;
}

/* (pixel - mean) / std for every channel, cut into patches: a diagonal map and a permutation.  Where this is the first
 * module of the body (node 2) of an image model, it reads p + e with p in [0, 1]^d and |e| <= room: a patch is no
 * longer than what the map makes of the farthest corner of [0, 1]^d, plus norm * room for e. */
static ck_bound prove(ck_fields *f, ck_node *n, double x)
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
static void run(ck *c, const ck_node *n, ck_mat *x)
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

const ck_rule ck_rule_pixels = { .name = "pixels",
                                 .prove = prove,
                                 .run = run,
                                 .fits = fits,
                                 .shape = shape,
                                 .constants = { "#height", "#width", "#patch_height", "#patch_width" },
                                 .tensors = { { "=scale", "c" }, { "=shift", "c" } } };
