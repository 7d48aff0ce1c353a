/* The same recursion over modules as the certificate's, in a region around the traced example.  For every r a constant
 * B(r) up to the last features holds on the ball of radius r, so the prediction stands on the ball of radius
 *     min( r, min_j (f_p - f_j - 2 round(r)) / (|scale| |w_p - w_j| B(r)) ).
 * r runs through room, room/2, room/4, ...: B grows with r, and once the first term is the smaller one a smaller r cannot
 * give more. */
#include "certify/local.h"

#include <math.h>

enum { STEPS = 10 };

/* lip of the whole in *lip; the constant up to the last features and the rounding of a logit in a copy of c. */
static taut_certificate near(const taut_certificate *c, const taut_pass *pass, double r, taut_up *lip)
{
    taut_certificate at = *c;
    taut_model_proof p;
    *lip = c->lip;
    if (!isfinite(c->body.v + c->round.v)) return at;
    taut_region in = taut_model_region(c->model, c->norm, (taut_up){ r });
    in.radius = (taut_up){ r };
    if (taut_model_prove(&p, c->model, taut_region_at(in, (taut_point){ pass->x, pass->trace }))) return at;
    *lip = up_min(c->lip, p.whole.lip);
    at.body = up_min(c->body, p.body);
    at.round = up_min(c->round, p.whole.out.round);
    at.room = (taut_up){ r };
    return at;
}

taut_local taut_local_certify(const taut_certificate *c, taut_pass *pass, const taut_example *e, const double *logits)
{
    taut_up lip;
    taut_local r = { c->lip, e->radius };
    double far = c->room.v;
    for (int i = 0; i < STEPS && (i == 0 || far > r.radius.v); i++, far /= 2) {
        const taut_certificate at = near(c, pass, far, &lip);
        if (i == 0) r.lip = lip;
        if (c->model->classes < 2 || !(e->margin > 0)) break;
        const taut_lo held = taut_margin_radius(&at, logits, c->model->classes, e->predicted);
        if (held.v > r.radius.v) r.radius = held;
        if (held.v >= far) break;
    }
    return r;
}
