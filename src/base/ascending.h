/* Doubles from the smallest on, for qsort. */
#ifndef TAUT_BASE_ASCENDING_H
#define TAUT_BASE_ASCENDING_H
static inline int taut_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
#endif
