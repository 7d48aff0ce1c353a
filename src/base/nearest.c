/* The word of a list with the fewest insertions, deletions, replacements and swaps of neighbours, case ignored; the first of
 * equals; none if more than a third of the letters differ.  Optimal string alignment, in three rows. */
#include "taut.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 }; /* nobody mistypes a longer word; it only bounds the rows */

static int min2(int a, int b) { return a < b ? a : b; }

static int same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

static int distance(const char *a, int n, const char *b, int m)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++) last[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            row[j] = min2(min2(last[j], row[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = min2(row[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *taut_nearest(const char *word, const char *const *list, int count)
{
    if (!word || !list) return NULL;
    const size_t n = strlen(word);
    const char *best = NULL;
    int fewest = LONGEST;
    for (int i = 0; i < count && n <= LONGEST; i++) {
        const size_t m = list[i] ? strlen(list[i]) : LONGEST + 1;
        if (m > LONGEST) continue;
        const int d = distance(word, (int)n, list[i], (int)m), limit = (int)(m > n ? m : n) / 3;
        if (d < fewest && d <= (limit ? limit : 1) && d < (int)(m > n ? m : n)) {
            fewest = d;
            best = list[i];
        }
    }
    return best;
}
