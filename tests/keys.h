/* What a recipe says of a model's attention: its kind, and the keys of that kind. */
#ifndef TAUT_TESTS_KEYS_H
#define TAUT_TESTS_KEYS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec.h"

static inline bool attends(const taut_model_spec *s, const char *kind)
{
    return strcmp(s->attention.kind->name, kind) == 0;
}

/* A number, a choice or a truth value of the kind that the model has. */
static inline double key_of(const taut_model_spec *s, const char *name)
{
    const taut_attention_kind *kind = s->attention.kind;
    for (const taut_key *k = kind->keys; k < kind->keys + kind->count; k++) {
        const void *at = s->attention.own.bytes + k->at;
        if (strcmp(k->name, name) != 0) continue;
        if (k->type == TAUT_KEY_INT) return (double)*(const int64_t *)at;
        if (k->type == TAUT_KEY_REAL) return *(const double *)at;
        if (k->type == TAUT_KEY_BOOL) return *(const bool *)at;
        if (k->type == TAUT_KEY_CHOICE) return *(const int *)at;
    }
    fprintf(stderr, "FAIL model.attention = %s has no key %s\n", kind->name, name);
    exit(1);
}
#endif
