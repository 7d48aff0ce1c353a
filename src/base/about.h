/* What a proved constant is about, in words: no constant is shown without the inputs that it holds for and what it leaves out. */
#ifndef TAUT_BASE_ABOUT_H
#define TAUT_BASE_ABOUT_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    enum { TAUT_ABOUT_TOKENS, TAUT_ABOUT_PIXELS, TAUT_ABOUT_ROWS } reads; /* a text, an image, a series */
    int64_t tokens;
    double room;   /* every embedding, the image or every row is moved by at most this */
    double reach;  /* of a text: tokens are no longer than this, wherever they come from */
    double rows;   /* of a series: no row is longer before it is moved; +inf: any may come */
    double defect; /* what stopping at a tolerance adds to the distance of two outputs; 0: nothing does */
} taut_about;

enum { TAUT_ABOUT_ROOM = 384 };
/* "for ..., moved by at most ...", and the defect; without a full stop.  Numbers that are assumed are rounded down, the defect
 * is rounded up.  Returns text. */
const char *taut_about_text(char text[TAUT_ABOUT_ROOM], const taut_about *);
/* The norm and the units of a constant: "norm tokens, RMS units". */
const char *taut_about_measure(bool flat, bool rms);
#endif
