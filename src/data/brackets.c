/* line  = group newline
 * group = open word item... word close         the same word, the same kind of bracket
 * item  = group | digit+digit=sum              groups at most three deep in one another
 *
 * Every draw can be read back from the text, so the entropy is known: 0.628 nats a character, and no model
 * does better.  Counting the contexts of 0, 1, 2 and 6 characters gives 3.40, 1.96, 1.21 and 0.96; the rest
 * of the way is sums (2 digits), words that come back, and the stack of brackets. */
#include "data/brackets.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

enum { DEEPEST = 3, WORDS = 32 };

static const char *const words[WORDS] = {
    "bear", "bird",  "camel", "cat",   "crab",  "deer",  "dog",  "eagle", "fish",  "frog",  "gnat",
    "goat", "hare",  "hen",   "heron", "horse", "koala", "lion", "mole",  "moth",  "otter", "owl",
    "ram",  "robin", "rook",  "seal",  "snail", "stork", "swan", "tiger", "whale", "wolf",
};

typedef struct {
    char *text;
    size_t used, len;
    uint64_t key, counter; /* of this line */
} pen;

const char *taut_brackets_alphabet(void) { return "\n ()+0123456789<=>[]abcdefghiklmnorstw{}"; }

static uint64_t draw(pen *p, uint64_t n) { return taut_rng_below(p->key, p->counter++, n); }

static void put(pen *p, const char *s)
{
    for (; *s && p->used < p->len; s++) p->text[p->used++] = *s;
}

static void put_char(pen *p, char c)
{
    if (p->used < p->len) p->text[p->used++] = c;
}

static void put_sum(pen *p)
{
    const int a = (int)draw(p, 10), b = (int)draw(p, 10);
    char sum[16];
    snprintf(sum, sizeof sum, "%d+%d=%d", a, b, a + b);
    put(p, sum);
}

static void put_group(pen *p, int depth)
{
    const size_t kind = draw(p, 4);
    const char *word = words[draw(p, WORDS)];
    const int items = 1 + (int)draw(p, depth < DEEPEST ? 3 : 2);
    put_char(p, "([{<"[kind]);
    put(p, word);
    for (int i = 0; i < items; i++) {
        put_char(p, ' ');
        if (depth < DEEPEST && draw(p, 3) == 0)
            put_group(p, depth + 1);
        else
            put_sum(p);
    }
    put_char(p, ' ');
    put(p, word);
    put_char(p, ")]}>"[kind]);
}

void taut_brackets_fill(char *text, size_t len, uint64_t seed)
{
    pen p = { .text = text, .len = len };
    for (uint64_t line = 0; p.used < len; line++) {
        p.key = taut_rng_key(seed, TAUT_RNG_DATA, line);
        p.counter = 0;
        put_group(&p, 0);
        put_char(&p, '\n');
    }
}
