#include "bound/shared.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "bound/norm.h"

typedef struct {
    char hash[65];
    double norm;
} found;

static struct {
    enum { ALONE, SCOUTING, KNOWING } phase;
    int rank, count;
    found *list;
    int64_t length, room;
} all;

void taut_norms_forget(void)
{
    free(all.list);
    all.phase = ALONE, all.list = NULL, all.length = all.room = 0;
}

void taut_norms_scout(const taut_ranks *r)
{
    taut_norms_forget();
    all.phase = r->count > 1 ? SCOUTING : ALONE;
    all.rank = r->rank, all.count = r->count;
}

static void name(char hash[65], const double *w, int64_t rows, int64_t cols)
{
    taut_sha256 h;
    const int64_t shape[2] = { rows, cols };
    taut_sha256_begin(&h);
    taut_sha256_add(&h, shape, sizeof shape);
    taut_sha256_add(&h, w, (size_t)(rows * cols) * sizeof *w);
    taut_sha256_end(&h, hash);
}

/* Which rank proves it: a matter of its numbers alone, so that threads may come in any order. */
static int owner(const char hash[65])
{
    unsigned number = 0;
    for (int i = 0; i < 8; i++) number = number * 31 + (unsigned char)hash[i];
    return (int)(number % (unsigned)all.count);
}

static bool look(const char hash[65], double *norm)
{
    for (int64_t i = 0; i < all.length; i++)
        if (strcmp(all.list[i].hash, hash) == 0) {
            *norm = all.list[i].norm;
            return true;
        }
    return false;
}

/* Without memory it is proved again later. */
static void keep(const char hash[65], double norm)
{
    if (all.length == all.room) {
        const int64_t room = all.room ? 2 * all.room : 64;
        found *more = realloc(all.list, (size_t)room * sizeof *more);
        if (!more) return;
        all.list = more, all.room = room;
    }
    memcpy(all.list[all.length].hash, hash, 65);
    all.list[all.length++].norm = norm;
}

taut_up up_norm_shared(const double *w, int64_t rows, int64_t cols, taut_up (*prove)(const double *, int64_t, int64_t))
{
    char hash[65];
    taut_up norm = UP_NONE;
    bool known = false;
    if (all.phase == ALONE) return prove(w, rows, cols);
    name(hash, w, rows, cols);
#pragma omp critical(taut_norms)
    known = look(hash, &norm.v);
    if (known) return norm;
    if (all.phase == SCOUTING && owner(hash) != all.rank) return up_norm_frobenius(w, rows * cols);
    norm = prove(w, rows, cols);
#pragma omp critical(taut_norms)
    if (all.phase == SCOUTING && !look(hash, &norm.v)) keep(hash, norm.v);
    return norm;
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
            for (int64_t j = 0; i != r->rank && j < lengths[i]; j++)
                keep(lists[i * most + j].hash, lists[i * most + j].norm);
    }
    all.phase = KNOWING;
    free(lists);
    free(lengths);
    return s;
}
