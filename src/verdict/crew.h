/* Examples shared out over threads.  Each thread has a pass of its own and goes through one example at a time as if it were
 * alone, so what is found about an example does not depend on how many there are. */
#ifndef TAUT_VERDICT_CREW_H
#define TAUT_VERDICT_CREW_H
#include "certify/certify.h"
#include "verdict/examples.h"

/* What one thread holds. */
typedef struct {
    taut_pass *pass;
    double *logits;      /* (classes) */
    taut_reader *reader; /* NULL: nobody asked for one */
} taut_hand;

/* From the caller's thread, from time to time and at the end; not 0 ends the work with TAUT_BAD_CALL. */
typedef int (*taut_told)(double done, void *arg);

/* Examples that other processes share (base/join.h), `batch` at a time: what is found about some of them, as JSON, and back. */
typedef struct {
    char *folder, *key;
    int64_t batch;
    cJSON *(*tell)(int64_t first, int64_t count, void *arg);
    bool (*hear)(const cJSON *, int64_t first, int64_t count, void *arg); /* false: it is damaged */
} taut_crew_shared;
void taut_crew_shared_free(taut_crew_shared *);

/* Bytes as hexadecimal text, and back: numbers that JSON does not have. */
cJSON *taut_crew_bytes(const void *, size_t);
bool taut_crew_read(void *, size_t, const cJSON *);

typedef struct {
    const taut_certificate *c;
    const taut_examples *from; /* NULL: `each` reads them itself */
    int64_t n;
    taut_status (*each)(taut_hand *, int64_t index, void *arg); /* on any thread, in any order */
    void *arg;
    taut_told told; /* may be NULL */
    void *told_arg;
    const taut_crew_shared *shared; /* `arg` is for its functions too; NULL: this process does all */
} taut_crew;

/* As many threads as there are, fewer where their passes would take more than half of the memory that is left, one (which then
 * shares out its products) where there are fewer examples.  What went wrong with the earliest of the examples is the answer;
 * none behind it is begun any more. */
taut_status taut_crew_work(const taut_crew *) TAUT_MUST_USE;
#endif
