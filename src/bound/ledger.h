/* The written proof of a bound: a tree of nodes, each with the rule that was used and the numbers it used.
 *
 * The ledger writes and decides nothing: a proof has the same numbers with a ledger and without (NULL). */
#ifndef TAUT_BOUND_LEDGER_H
#define TAUT_BOUND_LEDGER_H
#include <cjson/cJSON.h>

#include "bound/up.h"

typedef struct taut_ledger taut_ledger;

taut_ledger *ledger_create(void); /* NULL: no memory */
void ledger_free(taut_ledger *);

void ledger_name(taut_ledger *, const char *name); /* of the node that is opened next */
void ledger_open(taut_ledger *, const char *rule); /* a child of the node that is open */
void ledger_close(taut_ledger *);

/* A number that the proof states: raised (up.h), unless it is 0 or 1, and written.  The proof goes on with what is returned. */
taut_up up_state(taut_ledger *, const char *key, taut_up number);
void ledger_exact(taut_ledger *, const char *key, double number);                   /* a choice, not a bound */
void ledger_list(taut_ledger *, const char *key, const double *numbers, int count); /* choices */
void ledger_word(taut_ledger *, const char *key, const char *word);

/* The outermost node, for the caller to keep; NULL when memory ran out on the way. */
cJSON *ledger_take(taut_ledger *);

/* +inf is the string "inf": JSON has no infinity. */
cJSON *up_json(taut_up);
#endif
