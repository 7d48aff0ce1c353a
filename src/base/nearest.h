/* The word somebody probably meant. */
#ifndef TAUT_BASE_NEAREST_H
#define TAUT_BASE_NEAREST_H

/* The entry of list with the fewest insertions, deletions, replacements and swaps of neighbours, case
 * ignored; the first of equals; NULL if none is near (more than a third of the letters differ). */
const char *taut_nearest(const char *word, const char *const *list, int count);
#endif
