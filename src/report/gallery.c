/* Inputs that an attack turned (attack.json's gallery, from taut attack --gallery): the image, the image that was found, and what
 * was added to it.  Images come as hex, a byte a number; of the difference 128 is nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/cells.h"
#include "report/png.h"
#include "report/run.h"

enum { MOST = 6, KINDS = 3, SIDE = 512 };
static const char *const kind[KINDS] = { "clean", "attacked", "difference" };

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* What was taken away is blue, what was added is red, where nothing happened the paper shows. */
static void colour(uint8_t rgba[4], const uint8_t *pixel, int channels, bool difference)
{
    if (difference) {
        int sum = 0;
        for (int c = 0; c < channels; c++) sum += pixel[c] - 128;
        const int v = abs(sum) * 2 / channels;
        memcpy(rgba, sum > 0 ? (uint8_t[]){ 214, 62, 42 } : (uint8_t[]){ 30, 112, 214 }, 3);
        rgba[3] = (uint8_t)(v > 255 ? 255 : v);
        return;
    }
    for (int c = 0; c < 3; c++) rgba[c] = pixel[channels < 3 ? 0 : c];
    rgba[3] = 255;
}

/* The picture's address; failed: it is not one. */
static taut_markup picture(const cJSON *one, const char *name)
{
    taut_markup out = { 0 };
    const char *hex = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, name));
    const double h = taut_report_number(one, "height"), w = taut_report_number(one, "width"),
                 c = taut_report_number(one, "channels");
    const bool sound = hex && h >= 1 && h <= SIDE && w >= 1 && w <= SIDE && c >= 1 && c <= 4 &&
                       (double)strlen(hex) == 2 * h * w * c;
    const int pixels = sound ? (int)h * (int)w : 0, channels = sound ? (int)c : 0;
    uint8_t *rgba = taut_malloc(4 * (size_t)pixels + 4);
    out.failed = !sound || !rgba;
    for (int i = 0; !out.failed && i < pixels; i++) {
        uint8_t pixel[4] = { 0 };
        for (int k = 0; k < channels; k++) {
            const char *at = hex + 2 * (i * channels + k);
            if (digit(at[0]) < 0 || digit(at[1]) < 0) out.failed = true;
            pixel[k] = (uint8_t)(16 * digit(at[0]) + digit(at[1]));
        }
        if (!out.failed) colour(rgba + 4 * i, pixel, channels, name == kind[KINDS - 1]);
    }
    if (!out.failed) taut_png_address(&out, rgba, (int)w, (int)h);
    free(rgba);
    return out;
}

static const char *class_of(char word[48], const cJSON *one, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(one, key);
    if (cJSON_IsString(v))
        snprintf(word, 48, "%.40s", v->valuestring);
    else
        snprintf(word, 48, "class %.0f", taut_report_number(one, key));
    return word;
}

typedef struct {
    taut_markup address[KINDS * MOST];
    char under[KINDS * MOST][48], title[KINDS * MOST][96];
    taut_tile tile[KINDS * MOST];
    taut_cells cells;
    int count;
    bool broken;
} gallery;

static void take(gallery *g, const cJSON *one, int all)
{
    char word[48], label[48];
    const int at = g->count++;
    const double far = taut_report_number(one, "distance"),
                 sure = taut_report_lowered(taut_report_number(one, "certified"));
    for (int k = 0; k < KINDS; k++) {
        const int i = k * all + at;
        g->address[i] = picture(one, kind[k]);
        g->broken |= g->address[i].failed;
        if (k < KINDS - 1)
            class_of(word, one, k ? "became" : "label");
        else
            snprintf(word, sizeof word, "%.3g", far);
        snprintf(g->title[i], sizeof g->title[i], "example %.0f, %s: %s", taut_report_number(one, "example"), kind[k],
                 word);
        memcpy(g->under[i], word, sizeof word);
        g->tile[i] = (taut_tile){ .title = g->title[i], .under = g->under[i], .picture = g->address[i].data };
    }
    taut_cells_number(&g->cells, "%.0f", taut_report_number(one, "example"));
    taut_cells_add(&g->cells, "%s", class_of(label, one, "label"));
    taut_cells_add(&g->cells, "%s", class_of(word, one, "became"));
    taut_cells_number(&g->cells, "%.4g", far);
    taut_cells_number(&g->cells, "%.6g", sure);
}

void taut_report_gallery(taut_page *p, const cJSON *list, const char *run)
{
    static const char *const head[] = { "example", "it is", "it became", "moved by", "certified up to (l2)" };
    gallery g = { .count = 0 };
    char name[96];
    const cJSON *one;
    const int size = cJSON_GetArraySize(list), all = size < MOST ? size : MOST;
    if (all < 1) return;
    cJSON_ArrayForEach(one, list) if (g.count < all) take(&g, one, all);
    snprintf(name, sizeof name, "%.60s-gallery", run);
    p->text.failed |= g.cells.failed;
    if (g.broken)
        taut_page_say(p, "The attacks' gallery in attack.json is damaged.");
    else if (!p->text.failed)
        taut_page_tiles(
            p, name, "What an attack does",
            "Images whose answer an attack changed, with what the model says of them: as they were, as the attack "
            "left them, and the change made visible (red: brighter, blue: darker) with its size.",
            &(taut_tiles){ KINDS, all, kind, NULL, g.tile },
            &(taut_table){ all, 5, head, (const char *const *)g.cells.word });
    for (int i = 0; i < KINDS * all; i++) taut_markup_free(&g.address[i]);
    taut_cells_free(&g.cells);
}
