#include "bound/shared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/norm.h"

/* 2^61 - 1, a prime */
#define P   ((uint64_t)0x1fffffffffffffff)
#define LOW ((uint64_t)0x0fffffffffffffff)

/* A matrix by its shape and its numbers. */
typedef struct {
    int64_t rows, cols;
    uint64_t value[2];
} name;

typedef struct {
    name of;
    double norm; /* below 0: nobody has told it yet */
} found;

static struct {
    enum { ALONE, SCOUTING, KNOWING } phase;
    int rank, count;
    uint64_t key[2];
    double *load; /* of each rank, while scouting: what its matrices cost */
    found *list;
    int64_t length, room;
} all;

void taut_norms_forget(void)
{
    free(all.list), free(all.load);
    all.phase = ALONE, all.list = NULL, all.load = NULL, all.length = all.room = 0;
}

/* The keys are the first rank's, and new ones each time: whoever made the model could not know them. */
taut_status taut_norms_scout(const taut_ranks *r)
{
    taut_norms_forget();
    if (r->count == 1) return TAUT_OK;
    uint64_t(*keys)[2] = taut_calloc((size_t)r->count, sizeof *keys);
    all.load = taut_calloc((size_t)r->count, sizeof *all.load);
    if (!keys || !all.load) abort(); /* which ends them all */
    const bool drawn = getrandom(keys[r->rank], sizeof *keys, 0) == (ssize_t)sizeof *keys;
    r->m->gather(keys, sizeof *keys);
    for (int i = 0; i < 2; i++) all.key[i] = keys[0][i] % P;
    free(keys);
    all.phase = SCOUTING;
    all.rank = r->rank, all.count = r->count;
    return taut_ranks_agree(r,
                            drawn ? TAUT_OK : taut_fail(TAUT_BAD_FILE, "there are no random numbers to be had here"));
}

static uint64_t step(uint64_t h, uint64_t key, uint64_t add)
{
    const taut_u128 x = (taut_u128)h * key + add;
    const uint64_t sum = (uint64_t)(x & P) + (uint64_t)(x >> 61);
    return sum >= P ? sum - P : sum;
}

/* Two polynomials mod P in the keys.  Their coefficients, all below P, are the low 60 bits of each of the matrix's words, and the
 * high four of fifteen words together. */
static name name_of(const double *w, int64_t rows, int64_t cols)
{
    name n = { .rows = rows, .cols = cols };
    uint64_t a = 0, b = 0, high = 0;
    for (int64_t i = 0; i < rows * cols; i++) {
        uint64_t word;
        memcpy(&word, w + i, sizeof word);
        a = step(a, all.key[0], word & LOW), b = step(b, all.key[1], word & LOW);
        high = high << 4 | word >> 60;
        if (i % 15 < 14 && i + 1 < rows * cols) continue;
        a = step(a, all.key[0], high), b = step(b, all.key[1], high);
        high = 0;
    }
    n.value[0] = a, n.value[1] = b;
    return n;
}

static found *look(const name *n)
{
    for (int64_t i = 0; i < all.length; i++)
        if (memcmp(&all.list[i].of, n, sizeof *n) == 0) return &all.list[i];
    return NULL;
}

/* Without memory it is proved again later. */
static void keep(const name *n, double norm)
{
    found *at = look(n);
    if (at) {
        at->norm = norm;
        return;
    }
    if (all.length == all.room) {
        const int64_t room = all.room ? 2 * all.room : 64;
        found *more = realloc(all.list, (size_t)room * sizeof *more);
        if (!more) return;
        all.list = more, all.room = room;
    }
    all.list[all.length++] = (found){ *n, norm };
}

/* Is a matrix that is met for the first time this rank's?  It is that of the rank with least to do; where threads come in
 * another order on another rank, one may be proved by nobody, and is then by everybody. */
static bool is_mine(const name *n)
{
    const double rows = (double)n->rows, cols = (double)n->cols;
    int least = 0;
    for (int i = 1; i < all.count; i++)
        if (all.load[i] < all.load[least]) least = i;
    all.load[least] += rows * cols * (rows < cols ? rows : cols);
    return least == all.rank;
}

taut_up up_norm_shared(const double *w, int64_t rows, int64_t cols, taut_up (*prove)(const double *, int64_t, int64_t))
{
    enum { SMALL = 4096 }; /* numbers: not worth a message */
    if (all.phase == ALONE || rows * cols < SMALL) return prove(w, rows, cols);
    const name n = name_of(w, rows, cols);
    bool mine = false;
    double norm = -1;
#pragma omp critical(taut_norms)
    {
        const found *at = look(&n);
        if (at) norm = at->norm;
        if (!at && all.phase == SCOUTING) {
            mine = is_mine(&n);
            keep(&n, -1);
        }
    }
    if (norm >= 0) return (taut_up){ norm };
    if (all.phase == SCOUTING && !mine) return up_norm_frobenius(w, rows * cols);
    const taut_up proved = prove(w, rows, cols);
#pragma omp critical(taut_norms)
    if (all.phase == SCOUTING) keep(&n, proved.v);
    return proved;
}

taut_status taut_norms_tell(const taut_ranks *r)
{
    if (r->count == 1) return TAUT_OK;
    int64_t *lengths = taut_calloc((size_t)r->count, sizeof *lengths), most = 0;
    if (!lengths) abort(); /* which ends them all */
    lengths[r->rank] = all.length;
    r->m->gather(lengths, sizeof *lengths);
    for (int i = 0; i < r->count; i++)
        if (lengths[i] > most) most = lengths[i];
    found *lists = taut_calloc((size_t)(r->count * most) + 1, sizeof *lists);
    const taut_status s = taut_ranks_agree(r, lists ? TAUT_OK : taut_no_memory("the norms of other ranks"));
    if (!s && most) {
        if (all.length) memcpy(lists + r->rank * most, all.list, (size_t)all.length * sizeof *lists);
        r->m->gather(lists, most * (int64_t)sizeof *lists);
        for (int i = 0; i < r->count; i++)
            for (const found *f = lists + i * most; f < lists + i * most + lengths[i]; f++)
                if (f->norm >= 0) keep(&f->of, f->norm);
    }
    all.phase = KNOWING;
    free(lists);
    free(lengths);
    return s;
}
