/* Products in tiles: every kind of processor makes the bits of a plain sum in order, whatever the sizes, the steps between rows
 * and the number of threads, and writes nothing beside its matrix. */
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/tile.h"

enum { EDGE = 3 }; /* numbers beside a row of C that nobody may touch */

static int kinds_met;

static void product(taut_steps s)
{
    const bool turned = s.right != 1;
    double *a = doubles(s.m * s.a), *b = doubles(turned ? s.n * s.right : s.k * s.down);
    double *want = doubles(s.m * s.c), *got = doubles(s.m * s.c);
    const size_t bytes = (size_t)(s.m * s.c) * sizeof *got;
    fill(a, s.m * s.a), fill(b, turned ? s.n * s.right : s.k * s.down), fill(want, s.m * s.c);
    memcpy(got, want, bytes);
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
            volatile double sum = 0, term; /* no fused product, no other order */
            for (int64_t l = 0; l < s.k; l++) {
                term = a[i * s.a + l] * b[l * s.down + j * s.right];
                sum = sum + term;
            }
            want[i * s.c + j] = sum;
        }
    taut_tiles(got, a, b, s);
    CHECK(memcmp(got, want, bytes) == 0, "the bits of a sum in order, and nothing else");
    for (int kind = 0; kind < 8; kind++) {
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j < s.n; j++) got[i * s.c + j] = NAN;
        if (!taut_tiles_by(kind, got, a, b, s)) continue;
        CHECK(memcmp(got, want, bytes) == 0, "the same bits of every kind");
        kinds_met |= 1 << kind;
    }
    free(a), free(b), free(want), free(got);
}

int main(void)
{
    static const int64_t sizes[] = { 1, 2, 7, 8, 9, 16, 17, 33, 70 }, depths[] = { 0, 1, 5, 255, 256, 257, 600 };
    test_begin();
    for (int threads = 1; threads <= 3; threads++) {
        taut_threads_set(threads);
        for (int i = 0; i < 9 * 9 * 7; i++, case_no++) {
            const int64_t m = sizes[i % 9], n = sizes[i / 9 % 9], k = depths[i / 81];
            product((taut_steps){ m, n, k, n + EDGE, k + 1, 1, k + 2 });
            product((taut_steps){ m, n, k, n, k, n + EDGE, 1 });
        }
    }
    CHECK(kinds_met & 1, "the kind of every processor");
    double one = 1;
    CHECK(!taut_tiles_by(-1, &one, &one, &one, (taut_steps){ 1, 1, 1, 1, 1, 1, 1 }), "no such kind");
    return test_end("tile", "%d products, kinds %#x of instructions: the bits of a plain sum", case_no, kinds_met);
}
