#include "verdict/noise.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "certify/certify.h"

taut_status taut_rows_longest(taut_up *most, const taut_source *data, taut_split from, taut_split to)
{
    const taut_task *k = &data->task;
    double *x = taut_malloc((size_t)(k->t * k->d + k->asked * k->reals) * sizeof *x);
    if (!x) return taut_no_memory("a window");
    *most = UP_ZERO;
    for (int split = (int)from; split <= (int)to; split++)
        for (int64_t i = 0; i < taut_source_count(data, (taut_split)split); i++) {
            data->ops->get(data, (taut_slot){ .reals = x, .wanted = x + k->t * k->d }, (taut_split)split, i);
            for (int64_t t = 0; t < k->t; t++) *most = up_max(*most, up_norm_frobenius(x + t * k->d, k->d));
        }
    free(x);
    return TAUT_OK;
}

bool taut_noise_beaten(const taut_noise *n) { return n->found > up_add(n->moves, n->slack).v; }

taut_status taut_noise_prove(taut_noise *n, const char *model, const taut_source *data, taut_split split)
{
    taut_certificate c;
    taut_up reach = UP_NONE; /* of rows before they are moved; c.reach is of rows after */
    taut_status s = taut_rows_longest(&reach, data, split, split);
    if (!s) s = taut_certify_rows(&c, model, TAUT_NORM_TOKENS, n->noise, reach.v);
    if (s) return s;
    n->about = taut_certificate_about(&c);
    memcpy(n->model, c.sha, sizeof n->model);
    n->moves = up_mul(c.lip, c.room);
    /* 2 round + lip 2^-53 reach.  Each of the two forecasts is computed to within `round`; and adding noise to a row
     * rounds each number by at most 2^-53 of itself, which moves the row by at most 2^-53 of its length. */
    n->slack = up_add(up_ldexp(c.round, 1), up_mul(c.lip, up_mul((taut_up){ 0x1p-53 }, c.reach)));
    taut_certificate_free(&c);
    return taut_noise_find(n, model, data, split);
}
