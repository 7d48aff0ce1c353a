/* model.attention = attlip: its keys, and a layer of it. */
#include <math.h>

#include "module/kind.h"

typedef struct {
    int64_t head_width, steps;
    double eta, tol, loose, slope_tol, near;
    int solver;
    bool learned, unrolled, reflected, turn;
} attlip_own;

static double default_width(const taut_site *s) { return s->width < s->heads ? 1 : (double)(s->width / s->heads); }

#define AT(member) offsetof(attlip_own, member)
static const taut_key attlip_keys[] = {
    { "attlip_head_width", TAUT_KEY_INT, AT(head_width), 0, 1, 1 << 16, .def_at = default_width,
      .help = "features of a head; heads times it may be less than the width" },
    { "attlip_eta", TAUT_KEY_REAL, AT(eta), 1, 1e-9, 1e9, .help = "eta, the strength of the step" },
    { "attlip_learned", TAUT_KEY_BOOL, AT(learned), .help = "eta is learned, from there on" },
    { "attlip_tol", TAUT_KEY_REAL, AT(tol), 1e-5, 1e-12, 1e3, .help = "residual that an answer may have" },
    { "attlip_loose", TAUT_KEY_REAL, AT(loose), 1e-3, 0, 1,
      .help = "residual while training, relative to the input; 0: attlip_tol" },
    { "attlip_slope_tol", TAUT_KEY_REAL, AT(slope_tol), 1e-3, 0, 0.5,
      .help = "residual of the derivatives' linear system, relative" },
    { "attlip_solver", TAUT_KEY_CHOICE, AT(solver), .words = "lbfgs|newton|descent|barzilai",
      .help = "what finds the prox" },
    { "attlip_steps", TAUT_KEY_INT, AT(steps), 0, 0, 1000, .help = "the paper's K steps; 0: to the tolerance" },
    { "attlip_unrolled", TAUT_KEY_BOOL, AT(unrolled), .help = "derivatives of those steps themselves" },
    { "attlip_reflected", TAUT_KEY_BOOL, AT(reflected), .help = "2 prox(x) - x in the place of prox(x)" },
    { "attlip_near", TAUT_KEY_REAL, AT(near), 0, 0, 1e6, .help = "what a token of distance takes from a logit" },
    { "attlip_turn", TAUT_KEY_BOOL, AT(turn), .help = "an orthogonal map behind every layer" },
};

static taut_status attlip_check(taut_attention_choice *c, const taut_site *s)
{
    attlip_own *own = (void *)c->own.bytes;
    if (own->steps > 0) own->solver = TAUT_PROX_DESCENT;
    c->turn = own->turn;
    c->steps = (int)own->steps;
    if (own->unrolled && own->steps == 0)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attlip_unrolled wants model.attlip_solver = descent and model.attlip_steps above 0");
    if (s->heads * own->head_width > 1 << 20)
        return taut_fail(TAUT_BAD_CONFIG, "model.attlip_head_width = %lld is too much", (long long)own->head_width);
    return TAUT_OK;
}

static taut_module *attlip_build(const taut_attention_choice *c, const taut_site *s)
{
    const attlip_own *own = (const void *)c->own.bytes;
    return taut_attlip(
        &(taut_attlip_spec){ .width = s->width,
                             .heads = s->heads,
                             .head_width = own->head_width,
                             .eta = own->eta,
                             .learned = own->learned,
                             .tol = own->tol,
                             .loose = own->loose,
                             .slope_tol = own->slope_tol,
                             .solver = (taut_prox_solver)own->solver,
                             .steps = (int)own->steps,
                             .unrolled = own->unrolled,
                             .reflected = own->reflected,
                             .near = own->near,
                             .rope_base = s->rope ? s->rope_base : 0,
                             .init = s->init,
                             .gain = s->init == TAUT_INIT_NORMAL ? 1 / sqrt((double)s->width) : s->gain });
}

const taut_attention_kind taut_kind_attlip = {
    .name = "attlip",
    .page = "attlip",
    .can = TAUT_CAN_ROPE | TAUT_IS_RESIDUAL | TAUT_OWN_WIDTH,
    .not_causal = "its gradient at a token sums over all that attend to it, the future too",
    .not_placed = "model.attlip_near in the place of alibi",
    .keys = attlip_keys,
    .count = sizeof attlip_keys / sizeof *attlip_keys,
    .check = attlip_check,
    .build = attlip_build,
};
