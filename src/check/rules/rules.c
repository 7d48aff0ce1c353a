/* The list of all rules. */
#include "check/rules/rules.h"

#include <string.h>

static const ck_rule *const all[] = {
    &ck_rule_sequence,  &ck_rule_mix,          &ck_rule_parts,       &ck_rule_ask,          &ck_rule_linear,
    &ck_rule_channel,   &ck_rule_scale,        &ck_rule_centernorm,  &ck_rule_layernorm,    &ck_rule_position,
    &ck_rule_sinusoid,  &ck_rule_maxmin,       &ck_rule_pointwise,   &ck_rule_tokens,       &ck_rule_neighbours,
    &ck_rule_halve,     &ck_rule_prefix,       &ck_rule_pool,        &ck_rule_l2pool,       &ck_rule_concat,
    &ck_rule_pixels,    &ck_rule_mlp,          &ck_rule_potential,   &ck_rule_sll,          &ck_rule_attention,
    &ck_rule_window,    &ck_rule_cosattention, &ck_rule_l2attention, &ck_rule_posattention, &ck_rule_attlip,
    &ck_rule_cosformer, &ck_rule_performer,    &ck_rule_nystrom,     &ck_rule_clustered,    &ck_rule_probsparse,
    &ck_rule_plash,     &ck_rule_sketch,
};

const ck_rule *ck_rule_of(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
