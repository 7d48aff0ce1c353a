/* What config.c (reading), config_ask.c (asking) and config_record.c (comparing) share; nobody else includes it. */
#ifndef TAUT_BASE_CONFIG_IMPL_H
#define TAUT_BASE_CONFIG_IMPL_H
#include "base/config_list.h"

typedef enum { TAUT_GIVEN_TEXT, TAUT_GIVEN_SET, TAUT_GIVEN_DATA } taut_config_giver; /* who gave a key its value */

typedef struct {
    char *key, *value;
    taut_config_giver by;
    bool used;
} taut_config_given;

typedef struct {
    char *key, *def, *value; /* as text; NULL: there is none */
    taut_config_want want;
} taut_config_asked;

struct taut_config {
    char *name;
    taut_config_given *given;
    taut_config_asked *asked;
    int givens, askeds;
    bool listing; /* every key counts as given */
    taut_config_elsewhere *elsewhere;
    taut_status status;
    char problem[768];
};

/* Remembers the first problem only: the later ones often follow from it. */
void taut_config_note(taut_config *cfg, taut_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void taut_config_note_memory(taut_config *cfg);

bool taut_config_key_legal(const char *key);
/* Would the value survive being printed as a line and read again? */
bool taut_config_value_legal(const char *key, const char *value);
taut_config_given *taut_config_find(const taut_config *cfg, const char *key);
#endif
