/* Work that any number of processes share through a folder, on any machines.  It lies in numbered pieces, and the result of a
 * piece is a file that is the same bytes whoever makes it, under a hash of them, of the work and of its number: so nobody needs a
 * lock, and a piece that was done twice does no harm.  A process takes a piece by making N.taken, which one of many can (O_EXCL).
 * When all are taken it waits for those without a result, about as long as its own pieces took, and then does them again, one by
 * one: whoever took them may be dead. */
#ifndef TAUT_BASE_JOIN_H
#define TAUT_BASE_JOIN_H
#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    char *folder, key[65]; /* key: of the work and the program */
    int64_t pieces, next;  /* all before `next` are taken */
    int64_t piece;         /* the one that this process is doing; -1: none */
    double began, longest; /* seconds: when; the longest of its own */
} taut_join;

/* Can this be a folder to share work in?  One that holds a run cannot. */
taut_status taut_join_check(const char *folder) TAUT_MUST_USE;
/* `key` says what the work is: a folder of other work is refused. */
taut_status taut_join_open(taut_join *, const char *folder, const char *key, int64_t pieces) TAUT_MUST_USE;
void taut_join_close(taut_join *);

/* The next piece to do; -1: all have results.  tell(arg, done) hears the share that is done while one waits; not 0: stop. */
taut_status taut_join_take(taut_join *, int64_t *piece, int (*tell)(double done, void *arg), void *arg) TAUT_MUST_USE;
/* The result of the piece that was taken, which this consumes; and that of any. */
taut_status taut_join_put(taut_join *, cJSON *) TAUT_MUST_USE;
taut_status taut_join_get(const taut_join *, int64_t piece, cJSON **) TAUT_MUST_USE;
taut_status taut_join_damaged(const taut_join *, int64_t piece) TAUT_MUST_USE; /* fails: a result says nothing of use */
#endif
