#include "attack/eps.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

taut_status taut_eps_parse(taut_eps *e, const char *list, taut_ball_kind kind, bool boxed)
{
    *e = (taut_eps){ .count = 0 };
    for (const char *at = list;;) {
        const size_t len = strcspn(at, ",");
        if (e->count == TAUT_EPS_MOST) return taut_fail(TAUT_BAD_CONFIG, "eps: more than %d values", TAUT_EPS_MOST);
        char *text = e->text[e->count];
        double *v = &e->value[e->count];
        if (len >= sizeof e->text[0]) return taut_fail(TAUT_BAD_CONFIG, "eps %.40s is no number", at);
        memcpy(text, at, len);
        if (!taut_number_real(v, text)) return taut_fail(TAUT_BAD_CONFIG, "eps %s is no number (0.03, 8/255)", text);
        if (!(*v > 0)) return taut_fail(TAUT_BAD_CONFIG, "eps %s is not above 0", text);
        if (boxed && kind == TAUT_BALL_LINF && *v > 1)
            return taut_fail(TAUT_BAD_CONFIG, "eps %s is larger than the pixels' range 0 to 1%s%s%s", text,
                             *v <= 255 ? " (" : "", *v <= 255 ? text : "", *v <= 255 ? "/255?)" : "");
        e->count++;
        if (!at[len]) return TAUT_OK;
        at += len + 1;
    }
}
