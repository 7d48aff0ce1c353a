/* A few of the images that an attack turned, for the report: as they were, as they are now, and the difference.  A byte a
 * number as hex: of images v * 255, of differences 128 + 127 d / scale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/images.h"
#include "verdict/siege.h"

/* v * factor + shift, rounded, as two digits each. */
static cJSON *hex(const double *v, const double *minus, int64_t len, double factor, double shift)
{
    static const char digit[] = "0123456789abcdef";
    char *text = taut_malloc(2 * (size_t)len + 1);
    if (!text) return NULL;
    for (int64_t i = 0; i < len; i++) {
        const int byte = (int)lrint(fmin(255, fmax(0, (v[i] - (minus ? minus[i] : 0)) * factor + shift)));
        text[2 * i] = digit[byte >> 4];
        text[2 * i + 1] = digit[byte & 15];
    }
    text[2 * len] = '\0';
    cJSON *o = cJSON_CreateString(text);
    free(text);
    return o;
}

static double largest(const double *a, const double *b, int64_t len)
{
    double most = 1e-300;
    for (int64_t i = 0; i < len; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static int answer(taut_siege *s, const double *x)
{
    double z[4096];
    int best = 0;
    if (s->target.classes > 4096) return -1;
    taut_target_logits(&s->target, z, x, NULL, NULL, 1);
    for (int c = 1; c < (int)s->target.classes; c++)
        if (z[c] > z[best]) best = c;
    return best;
}

/* Its name where the model's classes have names, else its number. */
static cJSON *class_json(const taut_siege *s, int class)
{
    const char *name = class >= 0 ? s->names : NULL;
    for (int i = 0; name && i < class; i++) name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL;
    char word[256];
    if (!name) return cJSON_CreateNumber(class);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, ","), name);
    return cJSON_CreateString(word);
}

static cJSON *one(taut_siege *s, const taut_campaign_part *p, int64_t i)
{
    const taut_pixels_spec *f = &s->model->spec.image;
    const int64_t e = p->first + i, dim = s->target.dim;
    const double *x = p->x + i * dim, *adv = p->adv + i * dim, scale = largest(adv, x, dim);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "example", (double)e);
    cJSON_AddStringToObject(o, "eps", s->c.eps.text[p->eps]);
    cJSON_AddItemToObject(o, "label", class_json(s, s->label[e]));
    cJSON_AddItemToObject(o, "became", class_json(s, answer(s, adv)));
    cJSON_AddNumberToObject(o, "distance", taut_ball_distance(s->c.kind, adv, x, dim));
    if (s->radius) cJSON_AddNumberToObject(o, "certified", s->radius[e]);
    cJSON_AddNumberToObject(o, "height", (double)f->height);
    cJSON_AddNumberToObject(o, "width", (double)f->width);
    cJSON_AddNumberToObject(o, "channels", (double)f->channels);
    cJSON_AddItemToObject(o, "clean", hex(x, NULL, dim, 255, 0));
    cJSON_AddItemToObject(o, "attacked", hex(adv, NULL, dim, 255, 0));
    cJSON_AddNumberToObject(o, "scale", scale);
    cJSON_AddItemToObject(o, "difference", hex(adv, x, dim, 127 / scale, 128));
    return o;
}

void taut_gallery_see(taut_siege *s, const taut_campaign_part *p)
{
    const int64_t each = (s->shown + s->c.eps.count - 1) / s->c.eps.count; /* of a radius */
    int64_t here = 0;
    const cJSON *old;
    for (int64_t i = 0; i < p->count && s->shown && cJSON_GetArraySize(s->gallery) < s->shown; i++) {
        bool known = false;
        cJSON_ArrayForEach(old, s->gallery)
            known |= cJSON_GetNumberValue(cJSON_GetObjectItem(old, "example")) == (double)(p->first + i);
        if (!p->broken[i] || known || here == each) continue;
        cJSON_AddItemToArray(s->gallery, one(s, p, i));
        here++;
    }
}
