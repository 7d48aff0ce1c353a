/* What a radius looks like: certified images as they are, and moved that far by noise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/rng.h"
#include "report/cells.h"
#include "report/png.h"
#include "report/run.h"

enum { MOST = 4, KINDS = 2, SIDE = 512, CHANNELS = 4 };

typedef struct {
    int height, width, channels;
} size;

static bool read_size(size *s, const cJSON *certify)
{
    const cJSON *image = cJSON_GetObjectItemCaseSensitive(certify, "image");
    const double h = taut_report_number(image, "height"), w = taut_report_number(image, "width"),
                 c = taut_report_number(image, "channels");
    if (!(h >= 1 && h <= SIDE && w >= 1 && w <= SIDE && c >= 1 && c <= CHANNELS)) return false;
    *s = (size){ (int)h, (int)w, (int)c };
    return true;
}

/* pixels + r v / |v|, v normal; what a screen cannot show is cut off. */
static taut_markup picture(const cJSON *pixels, const size *s, double r, uint64_t key)
{
    taut_markup out = { 0 };
    const int count = s->height * s->width, all = count * s->channels;
    double *v = taut_calloc((size_t)all, sizeof *v), norm = 0;
    uint8_t *rgba = taut_malloc(4 * (size_t)count);
    out.failed = !v || !rgba || cJSON_GetArraySize(pixels) != all;
    const cJSON *x = out.failed ? NULL : pixels->child;
    for (int i = 0; x && i < all; i++) v[i] = taut_rng_normal(key, (uint64_t)i), norm += v[i] * v[i];
    for (int i = 0; x && i < all; i++, x = x->next) {
        const double now = cJSON_GetNumberValue(x) + r * v[i] / sqrt(norm);
        const uint8_t byte = (uint8_t)lrint(255 * fmin(fmax(now, 0), 1));
        uint8_t *at = rgba + 4 * (i / s->channels);
        if (s->channels < 3) at[0] = at[1] = at[2] = i % s->channels ? at[0] : byte;
        if (s->channels >= 3 && i % s->channels < 3) at[i % s->channels] = byte;
        at[3] = 255;
    }
    if (!out.failed) taut_png_address(&out, rgba, s->width, s->height);
    free(v);
    free(rgba);
    return out;
}

void taut_report_moved(taut_page *p, const cJSON *certify, const char *run, double radius)
{
    static const char *const head[] = { "example", "certified up to (l2)" };
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(certify, "examples"), *one;
    taut_markup address[KINDS * MOST] = { { 0 } };
    taut_tile tile[KINDS * MOST];
    taut_cells cells = { 0 };
    char name[96], row[32], word[32], title[MOST][48];
    size s;
    int shown = 0, at = 0;
    if (!(radius > 0) || !read_size(&s, certify)) return;
    cJSON_ArrayForEach(one, list)
    {
        const double sure = taut_report_lowered(taut_report_number(one, "radius"));
        const cJSON *pixels = cJSON_GetObjectItemCaseSensitive(one, "pixels");
        at++;
        if (shown == MOST || !(sure >= radius)) continue;
        snprintf(title[shown], sizeof title[shown], "example %d", at);
        taut_cells_add(&cells, "%s", title[shown]);
        taut_cells_number(&cells, "%.6g", sure);
        for (int k = 0; k < KINDS; k++)
            address[KINDS * shown + k] = picture(pixels, &s, k * radius, taut_rng_key(1, 0, (uint64_t)at));
        shown++;
    }
    bool broken = cells.failed;
    for (int i = 0; i < KINDS * shown; i++) {
        broken |= address[i].failed;
        tile[i % KINDS * shown + i / KINDS] = (taut_tile){ .title = title[i / KINDS], .picture = address[i].data };
    }
    snprintf(name, sizeof name, "%.60s-moved", run);
    snprintf(row, sizeof row, "by %s", taut_number_print(word, radius));
    if (shown && !broken)
        taut_page_tiles(p, name, "What this radius looks like",
                        "Images whose answer is proved to stand, and the same images moved that far by random noise; "
                        "every other change of this size is covered too, also one that somebody chose.",
                        &(taut_tiles){ KINDS, shown, (const char *const[]){ "as it is", row }, NULL, tile },
                        &(taut_table){ shown, 2, head, (const char *const *)cells.word });
    for (int i = 0; i < KINDS * shown; i++) taut_markup_free(&address[i]);
    taut_cells_free(&cells);
}
