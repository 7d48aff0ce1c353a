/* The one place where a double becomes the nearest float32 number and stays a double.
 *
 * A cast to float and back is what C asks for, and gcc 12 on x86-64 drops it: two such casts side by side are
 * made one vector operation that rounds nothing.  Constants of a recipe were then not the numbers that a proof
 * speaks of.  A float that lives in memory cannot be optimised away, so everybody rounds here; `make lint`
 * refuses a cast to float elsewhere outside the float kernels. */
#ifndef TAUT_BASE_FLOAT32_H
#define TAUT_BASE_FLOAT32_H

static inline double taut_float32(double x)
{
    const volatile float rounded = (float)x;
    return (double)rounded;
}
#endif
