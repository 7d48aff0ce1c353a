/* The built-in text: its grammar, its sums, its alphabet, and that it is a pure function of the seed. */
#include "data/brackets.h"

#include <ctype.h>

#include "harness.h"

enum { LEN = 1000000 };
static char text[LEN], other[LEN];

/* Reads one group behind p; NULL if it breaks a rule.  *deepest grows with the nesting. */
static const char *group(const char *p, int depth, int *deepest)
{
    static const char opens[] = "([{<", closes[] = ")]}>";
    const char *kind = *p ? strchr(opens, *p) : NULL;
    if (!kind) return NULL;
    if (depth > *deepest) *deepest = depth;
    const char *word = ++p;
    while (isalpha((unsigned char)*p)) p++;
    const size_t len = (size_t)(p - word);
    int items = 0;
    for (; len >= 3 && *p == ' '; items++) {
        p++;
        if (isalpha((unsigned char)*p)) break;
        int a, b, c, used = 0;
        if (!isdigit((unsigned char)*p))
            p = group(p, depth + 1, deepest);
        else if (sscanf(p, "%1d+%1d=%d%n", &a, &b, &c, &used) != 3 || a + b != c)
            p = NULL;
        if (!p) return NULL;
        p += used;
    }
    if (items == 0 || strncmp(p, word, len) != 0 || p[len] != closes[kind - opens]) return NULL;
    return p + len + 1;
}

int main(void)
{
    test_begin();
    taut_brackets_fill(text, LEN, seed);
    int lines = 0, deepest = 0, kinds[256] = { 0 }, distinct = 0;
    size_t longest = 0;
    for (char *p = text, *end; (end = memchr(p, '\n', (size_t)(text + LEN - p))); p = end + 1, lines++) {
        *end = 0; /* the grammar reads strings */
        CHECK(group(p, 0, &deepest) == end, p);
        *end = '\n';
        if ((size_t)(end - p) > longest) longest = (size_t)(end - p);
    }
    CHECK(lines > LEN / 100 && deepest == 3 && longest < 500, "many short lines, nested");
    for (int i = 0; i < LEN; i++) distinct += !kinds[(unsigned char)text[i]]++;
    const char *alphabet = taut_brackets_alphabet();
    CHECK(distinct == (int)strlen(alphabet), "the alphabet is what occurs");
    for (int i = 0; alphabet[i]; i++) {
        CHECK(kinds[(unsigned char)alphabet[i]], "each character of it occurs");
        CHECK(i == 0 || alphabet[i] > alphabet[i - 1], "in order");
    }
    taut_brackets_fill(other, 777, seed);
    CHECK(memcmp(text, other, 777) == 0 && other[777] == 0, "a shorter text is the beginning, and no more is written");
    taut_brackets_fill(other, LEN, seed + 1);
    CHECK(memcmp(text, other, 1000) != 0, "another seed, another text");
    taut_brackets_fill(other, 0, seed);
    return test_end("brackets", "%d lines, %d characters", lines, distinct);
}
