/* Which tokens of a text can be swapped for which others, and the answer provably stays.
 *
 * A swap moves the embedding of one token from row a to row b of the table, by |e_a - e_b|, and nothing else.  Both ends
 * are embeddings, so all that lies between them is in the region of the proof, whatever its room.  With the radius r of
 * taut_margin_region (the answer stays where embeddings are moved by less, in the norm of the certificate):
 *     one swap is covered if   |e_a - e_b| < r
 *     k swaps at once are, if each is below   r               (norm tokens: the largest token counts)
 *                                             r / sqrt(k)     (norm flat: at most sqrt(k) times the largest)
 * Distances are rounded up, radii down.  The search tries swaps by forward passes in double, those that the gradient likes
 * best first: covered ones, none of which may turn the answer, and uncovered ones, up to k at once. */
#ifndef TAUT_VERDICT_SWAPS_H
#define TAUT_VERDICT_SWAPS_H
#include "verdict/predictions.h"

enum { TAUT_SWAPS_MOST = 16 };

typedef struct {
    int64_t place;    /* of a token; -1: there is no such swap */
    int32_t from, to; /* ids */
    double distance;  /* of their rows, rounded up */
} taut_swap;

/* Of one text. */
typedef struct {
    taut_lo radius;                /* 0: nothing is proved */
    int64_t safe[TAUT_SWAPS_MOST]; /* swaps that may be made together with up to i others of them, at other places */
    double share[TAUT_SWAPS_MOST]; /* of all ways to swap i + 1 tokens, at least so much is covered */
    taut_swap nearest;             /* of those that are not covered */
    int64_t tried, held;           /* forward passes of the search; those with covered swaps */
    int64_t turned;                /* swaps at once that turned the answer; 0: none found */
    taut_swap by[TAUT_SWAPS_MOST]; /* which */
    int64_t beaten;                /* covered swaps that turned it: contradictions */
} taut_swapped;

typedef struct {
    taut_swapped *of;         /* one per text */
    int64_t count, all, most; /* texts; swaps of one token that each has; at once, at most */
} taut_swaps;

/* Of examples of a text model; tries: forward passes per text for covered swaps, and as many for others.  Refused: a model
 * that reads no ids. */
typedef struct {
    int64_t most, tries;
    taut_told told;
    void *arg;
} taut_swaps_way;
taut_status taut_swaps_make(taut_swaps *, const taut_certificate *, const taut_examples *,
                            const taut_swaps_way *) TAUT_MUST_USE;
void taut_swaps_free(taut_swaps *);
int64_t taut_swaps_beaten(const taut_swaps *); /* contradictions in all texts */
/* Below which distance each of k swaps at once is covered. */
taut_lo taut_swaps_reach(const taut_certificate *, taut_lo radius, int64_t k);

/* swaps_search.c: tries swaps of a text whose radius is known; pass: with the way back, of c's model. */
taut_status taut_swaps_search(taut_swapped *, const taut_certificate *, taut_pass *, const int32_t *ids,
                              int32_t predicted, const taut_swaps_way *) TAUT_MUST_USE;
/* swaps_json.c: all of it. */
cJSON *taut_swaps_json(const taut_swaps *, const taut_certificate *);
#endif
