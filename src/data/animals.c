/* The built-in labelled texts: sentences of animals, to be told by which kind of animal is named most.
 *
 *     a robin and two trout near the owl by a crow     birds
 *
 * Three to seven names of the class, and of each other class fewer by two or more; small words between them.  Words are all there
 * is to learn: which kind each animal is, and to count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/labelled.h"

enum { KINDS = 4, NAMES = 8, SMALL = 8, LONGEST = 7 };

static const char *const kinds[KINDS] = { "birds", "fish", "insects", "mammals" };
static const char *const names[KINDS][NAMES] = {
    { "crow", "duck", "eagle", "hen", "heron", "owl", "robin", "swan" },
    { "carp", "cod", "eel", "herring", "perch", "pike", "salmon", "trout" },
    { "ant", "bee", "beetle", "cricket", "fly", "gnat", "moth", "wasp" },
    { "bear", "cat", "deer", "dog", "goat", "hare", "horse", "wolf" },
};
static const char *const small[SMALL] = { "a", "the", "two", "and", "by", "near", "of", "with" };

/* The kinds of the animals of text number i in a drawn order; returns how many. */
static int draw_kinds(int order[], int class, uint64_t key)
{
    int count = 0;
    const int most = 3 + (int)taut_rng_below(key, 0, LONGEST - 2);
    for (int k = 0; k < KINDS; k++) {
        const int times = k == class ? most : (int)taut_rng_below(key, 1 + (uint64_t)k, (uint64_t)most - 1);
        for (int i = 0; i < times; i++) order[count++] = k;
    }
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)taut_rng_below(key, 100 + (uint64_t)i, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    return count;
}

static void write_text(char *to, const int order[], int count, uint64_t key)
{
    for (int i = 0; i < count; i++) {
        const uint64_t at = 1000 + 3 * (uint64_t)i;
        to += sprintf(to, "%s%s", i ? " " : "", names[order[i]][taut_rng_below(key, at, NAMES)]);
        if (taut_rng_below(key, at + 1, 2) && i + 1 < count)
            to += sprintf(to, " %s", small[taut_rng_below(key, at + 2, SMALL)]);
    }
}

taut_status taut_animals_make(taut_text_rows *out, int64_t length, uint64_t seed)
{
    enum { ROOM = KINDS * LONGEST * 16 };
    *out = (taut_text_rows){ .row = taut_calloc((size_t)length + 1, sizeof *out->row) };
    if (!out->row) return taut_no_memory("animals");
    for (int64_t i = 0; i < length; i++) {
        int order[KINDS * LONGEST];
        const uint64_t key = taut_rng_key(seed, TAUT_RNG_DATA, (uint64_t)i + 1);
        const int class = (int)taut_rng_below(key, 50, KINDS), count = draw_kinds(order, class, key);
        taut_text_row *row = &out->row[out->count++];
        *row = (taut_text_row){ taut_malloc(ROOM), taut_strdup(kinds[class]), i + 1 };
        if (!row->text || !row->label) return taut_no_memory("animals");
        write_text(row->text, order, count, key);
    }
    return TAUT_OK;
}
