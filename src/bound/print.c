#include "bound/print.h"

#include <stdio.h>
#include <stdlib.h>

/* printf rounds to nearest, so the decimal may lie just below b; then the next six-digit decimal above is
 * one of b (1 + 1e-6 k).  Reading back is exact enough to decide: strtod rounds to nearest, and a decimal whose
 * nearest double is at least b could still be below b by half an ulp, hence the comparison against the next
 * double. */
const char *up_text(char text[32], taut_up b)
{
    if (!isfinite(b.v)) {
        snprintf(text, 32, "inf");
        return text;
    }
    double v = b.v;
    for (int i = 0; i < 12; i++, v = b.v * (1 + 1e-6 * i)) {
        snprintf(text, 32, "%.6g", v);
        const double back = strtod(text, NULL);
        if (back > b.v || (back == b.v && fmod(b.v, 1) == 0 && b.v < 1e6)) return text;
    }
    snprintf(text, 32, "%.17g", nextafter(b.v, INFINITY));
    return text;
}
