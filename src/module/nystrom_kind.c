/* model.attention = nystrom: its keys, and a layer of it. */
#include "module/core.h"

typedef struct {
    int64_t landmarks, steps;
} nystrom_own;

static const taut_key nystrom_keys[] = {
    { "nystrom_landmarks", TAUT_KEY_INT, offsetof(nystrom_own, landmarks), 32, 1, 1 << 12,
      .help = "landmarks a head, at most one a token" },
    { "nystrom_steps", TAUT_KEY_INT, offsetof(nystrom_own, steps), 8, 0, 24, .help = "steps towards the inverse" },
};

static taut_module *nystrom_build(const taut_attention_choice *c, const taut_site *s)
{
    const nystrom_own *own = (const void *)c->own.bytes;
    const taut_around around = around_of(s);
    return taut_nystrom(&around, own->landmarks < s->tokens ? own->landmarks : s->tokens, (int)own->steps);
}

const taut_attention_kind taut_kind_nystrom = {
    .name = "nystrom",
    .page = "nystrom",
    .can = TAUT_CAN_CROSS | TAUT_CAN_SCALE,
    .not_causal = "a landmark is a mean over tokens on both sides",
    .keys = nystrom_keys,
    .count = sizeof nystrom_keys / sizeof *nystrom_keys,
    .build = nystrom_build,
};
