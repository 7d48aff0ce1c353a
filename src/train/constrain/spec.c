#include "train/constrain/spec.h"

#include <stdio.h>
#include <string.h>

static const char methods[] =
    "none|spectral_decay|normalise|stiefel|hammer|softcap|hardcap|hardcap_table|clip|clipped_decay|bjorck|cayley|"
    "polar";

taut_status taut_constrain_spec_read(taut_constrain_spec *s, taut_config *cfg, bool muon)
{
    static const char *const roles[] = { "constrain.cap_qk", "constrain.cap_v",   "constrain.cap_o",
                                         "constrain.cap_in", "constrain.cap_out", "constrain.cap_head" };
    const double most = 1e9;
    s->target = taut_config_real(cfg, "constrain.target_lipschitz", 0, 0, 1e300);
    const taut_constraint usual = s->target == 0 ? TAUT_FREE : muon ? TAUT_SOFTCAP : TAUT_NORMALISE;
    s->method = (taut_constraint)taut_config_choice(cfg, "constrain.method", methods, (int)usual);
    s->cap = taut_config_real(cfg, "constrain.cap", s->method <= TAUT_SPECTRAL_DECAY ? 0 : 1, 0, most);
    for (int i = 0; i < TAUT_CAP_ROLES; i++) s->role[i] = taut_config_real(cfg, roles[i], 0, 0, most);
    s->lo = taut_config_real(cfg, "constrain.lo", 0, 0, most);
    s->lambda = taut_config_real(cfg, "constrain.lambda", 0.1, 0, 1);
    s->embed = taut_config_real(cfg, "constrain.embed", 0, 0, most);
    s->position = taut_config_real(cfg, "constrain.position", 0, 0, most);
    s->every = taut_config_int(cfg, "constrain.every", 1, 1, 1000000000);
    s->iterations = taut_config_int(cfg, "constrain.iterations", 16, 1, 10000);
    s->flat = taut_config_choice(cfg, "constrain.norm", "tokens|flat", 0);
    s->l2 = taut_config_choice(cfg, "constrain.units", "rms|l2", 0);
    s->fill = taut_config_has(cfg, "constrain.fill") ? taut_config_int(cfg, "constrain.fill", 0, 0, 1000000000) : 0;
    if (s->fill && s->target == 0)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.fill needs constrain.target_lipschitz: what should be filled?");
    if (s->method == TAUT_CLIP && s->cap > 0 && s->lo > s->cap)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.lo = %g is above constrain.cap = %g", s->lo, s->cap);
    bool capped = s->cap != 1;
    for (int i = 0; i < TAUT_CAP_ROLES; i++) capped |= s->role[i] != 0;
    if (s->method == TAUT_POLAR && capped)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.method = polar keeps every singular value at 1: it has no caps");
    return TAUT_OK;
}

double taut_cap_of(const taut_constrain_spec *s, const char *path)
{
    static const struct {
        const char *end;
        taut_cap_role role;
    } names[] = {
        { "attn.q.weight", TAUT_CAP_QK }, { "attn.k.weight", TAUT_CAP_QK }, { "attn.v.weight", TAUT_CAP_V },
        { "attn.o.weight", TAUT_CAP_O },  { "mlp.in.weight", TAUT_CAP_IN }, { "mlp.out.weight", TAUT_CAP_OUT },
        { "head.weight", TAUT_CAP_HEAD },
    };
    const size_t len = strlen(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t tail = strlen(names[i].end);
        const bool whole = len == tail || (len > tail && path[len - tail - 1] == '.');
        if (whole && strcmp(path + len - tail, names[i].end) == 0 && s->role[names[i].role] > 0)
            return s->role[names[i].role];
    }
    return s->cap;
}
