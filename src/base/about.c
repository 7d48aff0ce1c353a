#include "base/about.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"

/* ", moved by at most R"; nothing where nothing moves. */
static const char *moved(char text[64], double room, const char *how)
{
    char number[32];
    text[0] = '\0';
    if (room > 0) snprintf(text, 64, "%s at most %s", how, taut_number_down(number, room));
    return text;
}

const char *taut_about_text(char text[TAUT_ABOUT_ROOM], const taut_about *a)
{
    char far[64], number[32], defect[32];
    int len = 0;
    switch (a->reads) {
    case TAUT_ABOUT_TOKENS:
        len = snprintf(text, TAUT_ABOUT_ROOM,
                       "for %lld tokens, each an embedding of the model%s, or anything within %s of the origin",
                       (long long)a->tokens, moved(far, a->room, " moved by"), taut_number_down(number, a->reach));
        break;
    case TAUT_ABOUT_PIXELS:
        len = snprintf(text, TAUT_ABOUT_ROOM, "for images whose pixels are in [0, 1]%s%s",
                       moved(far, a->room, ", moved by"), a->room > 0 ? " (l2)" : "");
        break;
    case TAUT_ABOUT_ROWS:
        if (isfinite(a->rows))
            len = snprintf(text, TAUT_ABOUT_ROOM,
                           "for windows whose rows (values and time features, standardised) are at most %s long%s",
                           taut_number_down(number, a->rows), moved(far, a->room, ", each moved by"));
        else
            len = snprintf(text, TAUT_ABOUT_ROOM, "for windows of any rows");
        break;
    }
    if (a->defect > 0)
        snprintf(text + len, (size_t)(TAUT_ABOUT_ROOM - len),
                 "; of the exact network: proximal steps that stop at their tolerance add up to %s to the distance of "
                 "two outputs",
                 taut_number_up(defect, a->defect));
    return text;
}

const char *taut_about_measure(bool flat, bool rms)
{
    if (flat) return rms ? "norm flat, RMS units" : "norm flat, l2";
    return rms ? "norm tokens, RMS units" : "norm tokens, l2";
}
