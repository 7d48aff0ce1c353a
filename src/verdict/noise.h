/* How far a forecast can move when the rows it is made from do. */
#ifndef TAUT_VERDICT_NOISE_H
#define TAUT_VERDICT_NOISE_H
#include "base/about.h"
#include "bound/up.h"
#include "data/source.h"

typedef struct {
    double noise;     /* how far each row may move, l2 over its numbers; 0: nobody asked */
    taut_about about; /* windows whose rows are no longer than the split's longest, each row moved by at most `noise` */
    taut_up moves;    /* proved for those: no row of a forecast moves further, l2; +inf: nothing is known */
    double found;     /* the farthest that the search saw a row of a forecast move, as computed */
    taut_up slack;    /* how much of `found` may be rounding */
    char model[65];   /* SHA-256 of the file that this is about */
} taut_noise;

/* The l2 norm of the longest row of an input, over all windows of the splits `from` to `to`. */
taut_status taut_rows_longest(taut_up *, const taut_source *, taut_split from, taut_split to) TAUT_MUST_USE;
/* Given n->noise, fills the rest.  `moves` comes from a certificate for rows as long as the split's longest (taut
 * certify --rows), so that it holds for every window of the split; `found` comes from a search over some of them. */
taut_status taut_noise_prove(taut_noise *, const char *model, const taut_source *, taut_split) TAUT_MUST_USE;
/* What was found contradicts what was proved. */
bool taut_noise_beaten(const taut_noise *);
/* noise_search.c: searches some windows of the split for noise that moves a forecast far. */
taut_status taut_noise_find(taut_noise *, const char *model, const taut_source *, taut_split) TAUT_MUST_USE;
#endif
