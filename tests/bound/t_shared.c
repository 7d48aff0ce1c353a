/* Norms that ranks share out: each matrix is proved once by one of them, all have the same norms afterwards, and a matrix is
 * taken for no other, however near.  The other of two ranks is silent here. */
#include "bound/shared.h"

#include <string.h>

#include "base/rng.h"
#include "harness.h"

enum { ROWS = 70, COLS = 60, ITEMS = 40 };
static double w[ITEMS][ROWS * COLS];
static int proved;

/* Not a norm, but a number that no two of them share. */
static taut_up prove(const double *x, int64_t rows, int64_t cols)
{
    uint64_t mixed = (uint64_t)rows, word;
    for (int64_t i = 0; i < rows * cols; i++) {
        memcpy(&word, x + i, sizeof word);
        mixed = (mixed ^ word) * 0x9e3779b97f4a7c15, mixed ^= mixed >> 29;
    }
    proved++;
    return (taut_up){ (double)(mixed >> 12) };
}

/* Rank 0 alone: of the other nothing comes but zeros. */
static void alone(void *blocks, int64_t bytes) { memset((char *)blocks + bytes, 0, (size_t)bytes); }

static double ask(int i, int64_t rows) { return up_norm_shared(w[i], rows, ROWS * COLS / rows, prove).v; }

static void make_all(void)
{
    for (int64_t j = 0; j < ROWS * COLS; j++) w[0][j] = rng_pm();
    for (int i = 1; i < ITEMS; i++) memcpy(w[i], w[0], sizeof w[0]);
    for (int i = 1; i < ITEMS - 4; i++) { /* one number moved by one bit of it, somewhere */
        double *at = &w[i][(size_t)(i * 97) % (ROWS * COLS)];
        uint64_t bits;
        memcpy(&bits, at, sizeof bits);
        bits ^= (uint64_t)1 << (i * 29 % 64);
        memcpy(at, &bits, sizeof bits);
    }
    const uint64_t most = 0x1fffffffffffffff, least = 0; /* the same modulo 2^61 - 1 */
    memcpy(&w[ITEMS - 4][5], &most, 8), memcpy(&w[ITEMS - 3][5], &least, 8);
    w[ITEMS - 2][0] = w[0][1], w[ITEMS - 2][1] = w[0][0]; /* two places changed */
    w[ITEMS - 1][ROWS * COLS - 1] = -w[0][ROWS * COLS - 1];
}

int main(void)
{
    const taut_messages m = { .rank = 0, .count = 2, .gather = alone };
    const taut_ranks r = { .rank = 0, .count = 2, .m = &m };
    make_all();
    CHECK(taut_norms_scout(&r) == TAUT_OK, "scouting");
    for (int i = 0; i < ITEMS; i++) (void)ask(i, ROWS), (void)ask(i, ROWS);
    CHECK(proved == ITEMS / 2, "this rank proves every other one, once");
    CHECK(taut_norms_tell(&r) == TAUT_OK, "telling");
    proved = 0;
    for (int i = 0; i < ITEMS; i++)
        CHECK(ask(i, ROWS) == prove(w[i], ROWS, COLS).v, "a matrix has the norm of another");
    CHECK(proved == ITEMS + ITEMS / 2, "what nobody told is proved again, what is known is not");
    CHECK(ask(0, COLS) == prove(w[0], COLS, ROWS).v, "another shape is another matrix");
    taut_norms_forget();
    proved = 0;
    (void)ask(0, ROWS), (void)ask(0, ROWS);
    CHECK(proved == 2, "alone, nothing is kept");
    return test_end("shared", "%d matrices", ITEMS);
}
