#include "data/augment.h"

#include <math.h>

#include "base/rng.h"

/* counters of the draws */
enum { FLIP, DOWN, RIGHT, KIND, CORNER_Y, CORNER_X, TURN, ZOOM, BRIGHT, CONTRAST, VIVID, ERASE_Y, ERASE_X };
enum { SPARED = ERASE_X + 1, SHARE = 16 };

static double around_one(double spread, uint64_t key, uint64_t draw)
{
    return 1 + spread * (2 * taut_rng_unit(key, draw) - 1);
}

static double inside(double x) { return fmin(fmax(x, 0), 1); }

/* Reflected at the first and the last pixel, as often as it takes; -1: outside, and nothing comes from there. */
static int64_t from_line(int64_t i, int64_t len, bool reflect)
{
    if (i >= 0 && i < len) return i;
    if (!reflect) return -1;
    const int64_t period = len > 1 ? 2 * (len - 1) : 1, at = (i % period + period) % period;
    return at < len ? at : period - at;
}

static const uint8_t *pixel(const uint8_t *pixels, taut_frame f, int64_t y, int64_t x, bool reflect)
{
    y = from_line(y, f.height, reflect), x = from_line(x, f.width, reflect);
    return y < 0 || x < 0 ? NULL : pixels + (y * f.width + x) * f.channels;
}

static void move(double *out, const uint8_t *pixels, taut_frame f, int64_t down, int64_t right, bool flip, bool reflect)
{
    for (int64_t y = 0; y < f.height; y++)
        for (int64_t x = 0; x < f.width; x++) {
            const int64_t turned = x + right;
            const uint8_t *from = pixel(pixels, f, y + down, flip ? f.width - 1 - turned : turned, reflect);
            for (int64_t c = 0; c < f.channels; c++) *out++ = from ? from[c] / 255.0 : 0;
        }
}

/* Between its four pixels, linearly. */
static void sample(double *out, const uint8_t *pixels, taut_frame f, double y, double x, bool reflect)
{
    const double top = floor(y), left = floor(x), b = y - top, r = x - left;
    const double weight[4] = { (1 - b) * (1 - r), (1 - b) * r, b * (1 - r), b * r };
    for (int64_t c = 0; c < f.channels; c++) out[c] = 0;
    for (int i = 0; i < 4; i++) {
        const uint8_t *from = pixel(pixels, f, (int64_t)top + i / 2, (int64_t)left + i % 2, reflect);
        for (int64_t c = 0; from && c < f.channels; c++) out[c] += weight[i] * from[c] / 255;
    }
}

/* move, of an image that is turned and zoomed around its centre. */
static void turn(double *out, const uint8_t *pixels, taut_frame f, int64_t down, int64_t right, bool flip,
                 const taut_augment *a, uint64_t key)
{
    const double angle = a->turn * (2 * taut_rng_unit(key, TURN) - 1) * (3.14159265358979323846 / 180);
    const double zoom = pow(1 + a->zoom, 2 * taut_rng_unit(key, ZOOM) - 1);
    const double cosine = cos(angle) / zoom, sine = sin(angle) / zoom;
    const double cy = (double)(f.height - 1) / 2, cx = (double)(f.width - 1) / 2;
    for (int64_t y = 0; y < f.height; y++)
        for (int64_t x = 0; x < f.width; x++, out += f.channels) {
            const double dy = (double)(y + down) - cy, dx = (flip ? -1 : 1) * ((double)(x + right) - cx);
            sample(out, pixels, f, cy + cosine * dy - sine * dx, cx + sine * dy + cosine * dx, a->reflect);
        }
}

/* Saturation: from each pixel's grey; brightness; contrast: from the mean of all numbers. */
static void colour(double *x, taut_frame f, double spread, uint64_t key)
{
    const double bright = around_one(spread, key, BRIGHT), contrast = around_one(spread, key, CONTRAST);
    const double vivid = around_one(spread, key, VIVID);
    const int64_t len = taut_frame_len(f);
    double mean = 0;
    for (int64_t i = 0; i < len; i += f.channels) {
        double grey = 0;
        for (int64_t c = 0; c < f.channels; c++) grey += x[i + c] / (double)f.channels;
        for (int64_t c = 0; c < f.channels; c++) mean += x[i + c] = inside(bright * (grey + vivid * (x[i + c] - grey)));
    }
    mean /= (double)len;
    for (int64_t i = 0; i < len; i++) x[i] = inside(mean + contrast * (x[i] - mean));
}

static void erase(double *x, taut_frame f, int64_t side, uint64_t key)
{
    const int64_t top = (int64_t)taut_rng_below(key, ERASE_Y, (uint64_t)f.height) - side / 2;
    const int64_t left = (int64_t)taut_rng_below(key, ERASE_X, (uint64_t)f.width) - side / 2;
    double mean[TAUT_CHANNELS] = { 0 };
    for (int64_t i = 0; i < taut_frame_len(f); i++) mean[i % f.channels] += x[i] / (double)(f.height * f.width);
    for (int64_t i = top < 0 ? 0 : top; i < top + side && i < f.height; i++)
        for (int64_t j = left < 0 ? 0 : left; j < left + side && j < f.width; j++)
            for (int64_t c = 0; c < f.channels; c++) x[(i * f.width + j) * f.channels + c] = mean[c];
}

void taut_augment_image(double *out, const uint8_t *pixels, taut_frame f, const taut_augment *a, uint64_t key)
{
    const uint64_t ways = (uint64_t)(2 * a->crop + 1);
    const bool flip = a->flip && taut_rng_unit(key, FLIP) < 0.5;
    const int64_t down = (int64_t)taut_rng_below(key, DOWN, ways) - a->crop;
    const int64_t right = (int64_t)taut_rng_below(key, RIGHT, ways) - a->crop;
    const bool changed = taut_rng_unit(key, SPARED) >= a->spared;
    if (changed && (a->turn > 0 || a->zoom > 0))
        turn(out, pixels, f, down, right, flip, a, key);
    else
        move(out, pixels, f, down, right, flip, a->reflect);
    if (changed && a->colour > 0) colour(out, f, a->colour, key);
    if (changed && a->erase > 0) erase(out, f, a->erase, key);
}

/* Beta(alpha, alpha) by Joehnk's method: (u, v) uniform until u^(1/alpha) + v^(1/alpha) <= 1, then the first over the sum.
 * Alpha up to 4 is accepted once in 70 tries at worst; after 4096 of them it is 1/2. */
static double beta(double alpha, uint64_t key)
{
    for (uint64_t i = 0; i < 4096; i++) {
        const double u = pow(taut_rng_unit(key, SHARE + 2 * i), 1 / alpha);
        const double v = pow(taut_rng_unit(key, SHARE + 2 * i + 1), 1 / alpha);
        if (u + v <= 1 && u + v > 0) return u / (u + v);
    }
    return 0.5;
}

/* A box of area 1 - share, as far as whole pixels go, around any pixel, cut off at the border. */
static double paste(double *a, const double *b, taut_frame f, double share, uint64_t key)
{
    const double side = sqrt(1 - share);
    const int64_t high = (int64_t)(side * (double)f.height + 0.5), wide = (int64_t)(side * (double)f.width + 0.5);
    const int64_t y = (int64_t)taut_rng_below(key, CORNER_Y, (uint64_t)f.height) - high / 2;
    const int64_t x = (int64_t)taut_rng_below(key, CORNER_X, (uint64_t)f.width) - wide / 2;
    int64_t pasted = 0;
    for (int64_t i = y < 0 ? 0 : y; i < y + high && i < f.height; i++)
        for (int64_t j = x < 0 ? 0 : x; j < x + wide && j < f.width; j++, pasted++)
            for (int64_t c = 0; c < f.channels; c++) {
                const int64_t at = (i * f.width + j) * f.channels + c;
                a[at] = b[at];
            }
    return 1 - (double)pasted / (double)(f.height * f.width);
}

double taut_augment_mix(double *a, const double *b, taut_frame f, const taut_augment *s, uint64_t key)
{
    const bool cut = s->cutmix > 0 && (s->mixup == 0 || taut_rng_unit(key, KIND) < 0.5);
    const double share = beta(cut ? s->cutmix : s->mixup, key);
    if (cut) return paste(a, b, f, share, key);
    for (int64_t i = 0; i < taut_frame_len(f); i++) a[i] = share * a[i] + (1 - share) * b[i];
    return share;
}
