/* The same recursion over modules as the certificate's, in a region around the traced example.  For every r a constant
 * B(r) up to the last features holds on the ball of radius r, so the prediction stands on the ball of radius
 *     min( r, min_j (f_p - f_j - 2 round(r)) / (|scale| |w_p - w_j| B(r)) ).
 * r runs through room, room/2, room/4, ...: B grows with r, and once the first term is the smaller one a smaller r cannot
 * give more. */
#include "certify/local.h"

#include <math.h>

enum { STEPS = 10 };

/* *at becomes c with what holds within r of the example: lip, the constant up to the last features, the rounding of a logit. */
static taut_status near(taut_certificate *at, const taut_certificate *c, const taut_pass *pass, double r)
{
    taut_model_proof p;
    *at = *c;
    if (!isfinite(c->body.v + c->round.v)) return TAUT_OK;
    taut_ask in = taut_model_region(c->model, c->norm, (taut_up){ r });
    in.radius = (taut_up){ r };
    const taut_status s = taut_model_prove(&p, c->model, taut_ask_at(in, (taut_point){ pass->x, pass->trace }));
    if (s) return s;
    at->lip = up_min(c->lip, p.whole.lip);
    at->body = up_min(c->body, p.body);
    at->round = up_min(c->round, p.whole.round);
    at->room = (taut_up){ r };
    return TAUT_OK;
}

taut_status taut_local_certify(taut_local *out, const taut_certificate *c, taut_pass *pass, const taut_example *e,
                               const double *logits)
{
    taut_certificate at;
    *out = (taut_local){ c->lip, e->radius };
    double far = c->room.v;
    for (int i = 0; i < STEPS && (i == 0 || far > out->radius.v); i++, far /= 2) {
        const taut_status s = near(&at, c, pass, far);
        if (s) return s;
        if (i == 0) out->lip = at.lip;
        if (c->model->classes < 2 || !(e->margin > 0)) break;
        const taut_lo held = taut_margin_radius(&at, logits, c->model->classes, e->predicted);
        if (held.v > out->radius.v) out->radius = held;
        if (held.v >= far) break;
    }
    return TAUT_OK;
}
