/* Greedy k-center is within a factor 2 of the best radius (Gonzalez 1985); Lloyd's iteration never raises the sum of
 * squares.  A centre that no point is nearest to stays where it is. */
#include "bound/centres.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static double square(const double *x, const double *y, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

/* far: n numbers of room */
static void farthest_first(double *centre, double *far, const double *x, int64_t n, int64_t d, int64_t m)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) far[i] = INFINITY;
    for (int64_t j = 0; j < m; j++) {
        memcpy(centre + j * d, x + at * d, (size_t)d * sizeof *x);
        double most = -1;
        for (int64_t i = 0; i < n; i++) {
            far[i] = fmin(far[i], square(x + i * d, centre + j * d, d));
            if (far[i] > most) most = far[i], at = i;
        }
        if (most == 0) at = (j + 1) % n;
    }
}

/* sum: (m, d + 1) numbers of room */
static void lloyd(double *centre, double *sum, const double *x, int64_t n, int64_t d, int64_t m)
{
    memset(sum, 0, (size_t)(m * (d + 1)) * sizeof *sum);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        double best = INFINITY;
        for (int64_t j = 0; j < m; j++) {
            const double far = square(x + i * d, centre + j * d, d);
            if (far < best) best = far, at = j;
        }
        for (int64_t c = 0; c < d; c++) sum[at * (d + 1) + c] += x[i * d + c];
        sum[at * (d + 1) + d]++;
    }
    for (int64_t j = 0; j < m; j++)
        for (int64_t c = 0; c < d && sum[j * (d + 1) + d] > 0; c++)
            centre[j * d + c] = sum[j * (d + 1) + c] / sum[j * (d + 1) + d];
}

taut_status est_centres(double *centre, const double *x, int64_t n, int64_t d, int64_t m, int steps)
{
    double *room = taut_malloc((size_t)(n + m * (d + 1) + 1) * sizeof *room);
    if (!room) return taut_no_memory("centres");
    if (n > 0) {
        farthest_first(centre, room, x, n, d, m);
        for (int i = 0; i < steps; i++) lloyd(centre, room, x, n, d, m);
    }
    free(room);
    return TAUT_OK;
}
