/* The same recursion over modules as the certificate's, in a region around the traced example.  For every r a constant
 * B(r) up to the last features holds on the ball of radius r, so the prediction stands on the ball of radius
 *     min( r, min_j (f_p - f_j - 2 round(r)) / (|scale| |w_p - w_j| B(r)) ).
 * B grows with r, so the largest such radius lies between any second term and an r at which the first is larger: what r gives
 * closes the gap from below or from above, and the next r is tried in the middle of the two, on a logarithmic scale. */
#include "certify/local.h"

#include <math.h>

enum { STEPS = 16 };
static const double CLOSE = 1.02, DOWN = 0x1p-10; /* near enough; a step where nothing is certain yet */

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

/* The next r to try, or 0: near enough.  held: what r gave; *best the largest that was held so far, *far where it is not. */
static double next(taut_lo held, double r, taut_lo *best, double *far)
{
    if (held.v > best->v) *best = held;
    if (!(held.v >= r)) *far = r;
    if (best->v * CLOSE >= *far) return 0;
    return best->v > 0 ? sqrt(best->v) * sqrt(*far) : *far * DOWN;
}

taut_status taut_local_certify(taut_local *out, const taut_certificate *c, taut_pass *pass, const taut_example *e,
                               const double *logits)
{
    const bool asked = c->model->classes >= 2 && e->margin > 0;
    taut_certificate at;
    taut_up round = c->round;
    *out = (taut_local){ c->lip, e->radius, e->radius, UP_NONE };
    taut_near_bound body;
    const taut_status known = taut_near_body(&body, c, pass, c->room.v);
    if (known) return known;
    out->told_lip = up_near_whole(c, body.all);
    double far = c->room.v, r = far; /* the radius is not beyond it */
    for (int i = 0; i < STEPS && r > 0; i++) {
        const taut_status s = near(&at, c, pass, r);
        if (s) return s;
        if (i == 0) out->lip = up_min(at.lip, out->told_lip);
        round = up_min(round, at.round);
        if (!asked) return TAUT_OK;
        r = next(taut_margin_radius(&at, logits, c->model->classes, e->predicted), r, &out->radius, &far);
    }
    far = r = c->room.v;
    at = *c;
    at.round = up_min(c->round, up_mul(round, (taut_up){ 64 })); /* a checker's forward pass is another */
    for (int i = 0; i < STEPS && r > 0; i++) {
        const taut_status s = taut_near_body(&body, c, pass, r);
        if (s) return s;
        at.body = body.last;
        at.room = (taut_up){ r };
        r = next(taut_margin_radius(&at, logits, c->model->classes, e->predicted), r, &out->told, &far);
    }
    if (!(out->told.v > 1.01 * e->radius.v)) out->told = e->radius; /* not for the rounding alone */
    if (out->told.v > out->radius.v) out->radius = out->told;
    return TAUT_OK;
}
