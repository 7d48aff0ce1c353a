/* From pixels to tokens:  y = (x - mean) / std for every channel, the image cut into patches, one token each.
 * The input is one token, the whole image as (height, width, channels); a patch as large as the image leaves one token.
 *
 * As scale x + shift, scale = 1/std and shift = -mean/std rounded to float: a permutation and a diagonal map.
 * jvp    ty = scale tx, permuted;   vjp  gx = scale gy, permuted back
 * Bound  Lip = max |scale_c|: in flat a permutation is an isometry; in tokens no patch moves further than the image.
 *        |y_t| <= Lip |x| + |shift of a patch|.  If the pixels were in [0, 1] before they were moved by m (ask.box),
 *        |y_t| <= sqrt(sum over the patch of max(|shift_c|, |scale_c + shift_c|)^2) + Lip m, the smaller one where no more
 *        is known of the image. */
#include "base/float32.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_pixels pixels; /* with n = 0 */
} pixels;

static taut_pixels of_batch(const taut_module *m, taut_shape image)
{
    taut_pixels p = ((const pixels *)m)->pixels;
    p.n = image.n;
    return p;
}

static int64_t patches(const taut_pixels *p) { return p->height / p->ph * (p->width / p->pw); }

static taut_plan pixels_plan(const taut_module *m, taut_shape in)
{
    const taut_pixels *p = &((const pixels *)m)->pixels;
    TAUT_CHECK(in.t == 1 && in.d == p->height * p->width * p->channels, "pixels: one token, a whole image");
    return (taut_plan){ .out = { in.n, patches(p), p->ph * p->pw * p->channels } };
}

static void pixels_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_pixels p = of_batch(m, at.x.shape);
    run->k->pixels(y.data, at.x.data, &p, true);
}

static void pixels_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_pixels p = of_batch(m, at.x.shape);
    run->k->pixels(ty.data, tx.data, &p, false);
}

static void pixels_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_pixels p = of_batch(m, at.x.shape);
    run->k->pixels_vjp(gx.data, gy.data, &p);
}

static taut_answer pixels_bound(const taut_module *m, taut_ask in)
{
    const taut_pixels *p = &((const pixels *)m)->pixels;
    const taut_up each = up_int(p->ph * p->pw);
    taut_up lip = UP_ZERO, shifts = UP_ZERO, corners = UP_ZERO;
    for (int64_t c = 0; c < p->channels; c++) {
        const taut_up scale = up_exact(p->scale[c]), shift = up_exact(p->shift[c]);
        const taut_up far = up_max(shift, up_exact(nextafter(fabs(p->scale[c] + p->shift[c]), INFINITY)));
        lip = up_max(lip, scale);
        shifts = up_add(shifts, up_mul(shift, shift));
        corners = up_add(corners, up_mul(far, far));
    }
    lip = up_state(in.ledger, "norm", lip);
    shifts = up_sqrt(up_mul(each, shifts)), corners = up_sqrt(up_mul(each, corners));
    const taut_up round = up_round_sum(up_mul(lip, in.size), shifts);
    taut_up size = up_add(up_mul(lip, in.size), in.box.known ? shifts : up_state(in.ledger, "shift", shifts));
    if (in.box.known) {
        const taut_up box = up_add(up_state(in.ledger, "corner", corners), up_mul(lip, in.box.moved));
        size = in.centre.x.data ? up_min(size, box) : box; /* around a dark image the ball may be the smaller one */
    }
    in.tokens = patches(p);
    return answer_of(in, lip, size, round);
}

static void pixels_describe(const taut_module *m, taut_ledger *l)
{
    const taut_pixels *p = &((const pixels *)m)->pixels;
    ledger_exact(l, "height", (double)p->height);
    ledger_exact(l, "width", (double)p->width);
    ledger_exact(l, "patch_height", (double)p->ph);
    ledger_exact(l, "patch_width", (double)p->pw);
    ledger_list(l, "scale", p->scale, (int)p->channels);
    ledger_list(l, "shift", p->shift, (int)p->channels);
}

/* What an image in double is rounded by when it becomes floats belongs to whoever puts it there: model/bound.c. */
static taut_up pixels_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const taut_pixels *p = &((const pixels *)m)->pixels;
    taut_up scale = UP_ZERO, shift = UP_ZERO;
    for (int64_t c = 0; c < p->channels; c++) {
        scale = up_max(scale, up_exact(p->scale[c]));
        shift = up_add(shift, up_mul(up_exact(p->shift[c]), up_exact(p->shift[c])));
    }
    (void)b;
    const taut_up shifts = up_sqrt(up_mul(up_int(p->height * p->width), shift)); /* all pixels together */
    return strays_of(in, promise_rows(in.table), up_add(up_mul(scale, taut_whole(in)), shifts));
}

static const taut_module_ops pixels_ops = {
    .kind = "pixels",
    .plan = pixels_plan,
    .forward = pixels_forward,
    .jvp = pixels_jvp,
    .vjp = pixels_vjp,
    .bound = pixels_bound,
    .strays = pixels_strays,
    .params = leaf_no_params,
    .describe = pixels_describe,
    .free = leaf_free,
};

taut_module *taut_pixels_module(const taut_pixels_spec *spec)
{
    pixels *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &pixels_ops;
    s->pixels = (taut_pixels){ .height = spec->height,
                               .width = spec->width,
                               .channels = spec->channels,
                               .ph = spec->patch ? spec->patch : spec->height,
                               .pw = spec->patch ? spec->patch : spec->width };
    for (int64_t c = 0; c < spec->channels; c++) {
        s->pixels.scale[c] = taut_float32(1 / spec->std[c]);
        s->pixels.shift[c] = taut_float32(-spec->mean[c] / spec->std[c]);
    }
    return &s->base;
}
