/* Predictions: the forward pass in double with a proved error, and from its margins the radius.
 *
 * Tokens are rows, each within err of what real arithmetic would make of the node's computed input.  forward answers
 * rho >= that distance for the node's output: of the largest token (norm tokens), or over all tokens (flat: at most
 * sqrt(T) times that).  Along a sequence rho_{i+1} <= lip_i rho_i + own: the confirmed lip holds, as real and computed
 * tokens are in the node's region (computed ones are looked at; else inf).
 * Then with B = lip of the body, E = its rho, w_j the rows of the head and z the last token:  (f_p - f_j)(x') /
 * logit_scale >= (w_p - w_j).z + b_p - b_j - |w_p - w_j| (E + B |x' - x|).  Ties, NaN, infinity: never certified. */
#include <string.h>

#include "check/ck.h"

/* See the top; x becomes the output. */
static double forward(ck *c, const ck_node *n, ck_mat *x)
{
    const bool inside = ck_longest(*x) <= n->in, mixed = ck_is(n, "mix");
    const double keep = fabs(n->k[0]), mix = fabs(n->k[1]);
    const double all = c->out->flat ? sqrt((double)x->rows) : 1;
    const ck_mat in = mixed ? ck_stack(c, x, (const double[]){ 1 }, 1) : *x;
    double rho = 0;
    x->err = 0;
    if (n->rule->run) n->rule->run(c, n, x);
    for (const ck_node *k = n + 1; k < n->end; k = k->end) {
        const double own = forward(c, k, x);
        rho = rho == 0 ? own : k->lip * rho + own;
        x->err = 0;
    }
    if (mixed) {
        x->err = ck_gamma(4) * (keep * ck_longest(in) + mix * ck_longest(*x));
        for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] = n->k[0] * in.v[i] + n->k[1] * x->v[i];
        rho = mix * rho;
    }
    return inside ? rho + (x->err + 1e-280) * all : INFINITY; /* + underflow */
}

/* Is token p proved to stay ahead of all others within the radius?  With no radius, and of the margin, nothing is proved:
 * they must be what a double forward pass gives, to 1e-8. */
static void margins(ck *c, const double *z, double rho, int64_t p, double radius, double margin)
{
    const ck_node *body = c->nodes + 1, *head = body->end;
    const ck_mat w = head->w[0], b = head->w[1];
    const double scale = head->end < c->nodes->end ? head->end->k[0] : 1;
    const double gamma = ck_gamma((double)w.cols + 8);
    for (int64_t j = 0; j < w.rows; j++) {
        double gap = b.v ? b.v[p] - b.v[j] : 0, size = fabs(gap), apart = 0;
        for (int64_t i = 0; i < w.cols; i++) {
            const double diff = w.v[p * w.ld + i] - w.v[j * w.ld + i];
            gap += diff * z[i], size += fabs(diff * z[i]), apart += diff * diff;
        }
        apart = sqrt(apart) * (1 + gamma);
        const double off = gamma * size + apart * rho, least = -(off - gap);
        const double needs = apart * radius * body->lip, ahead = gap + fmin(off, 1e-8 * size);
        const bool holds = radius > 0 ? least > 0 && needs <= least : ahead >= 0;
        if (j != p && (!holds || margin * (1 - 1e-9) > scale * ahead))
            ck_fail(c, "example %lld: radius %.17g, but token %lld is ahead of %lld by %.9g only, which allows %.9g",
                    (long long)c->out->examples, radius, (long long)p, (long long)j, least,
                    least / (apart * body->lip));
    }
}

void ck_example(ck *c, const cJSON *json)
{
    const struct ck_block *mark = c->blocks;
    const ck_node *head = c->nodes[1].end;
    if (c->unit || head->w[0].rows != c->embed.rows)
        ck_fail(c, "the model's tree is not one of next-token predictions");
    ck_fields f = { c, "example", "certified or unknown", json, 0 };
    const cJSON *ids = ck_take(&f, "ids"), *id = cJSON_IsArray(ids) ? ids->child : NULL;
    const double radius = ck_stated(&f, "radius"), margin = ck_stated(&f, "margin"), target = ck_stated(&f, "target");
    const double predicted = ck_stated(&f, "predicted"), vocab = (double)c->embed.rows;
    const int64_t tokens = cJSON_GetArraySize(ids);
    ck_mat x = ck_new(c, tokens, c->embed.cols);
    bool sound = tokens == c->out->tokens && target < vocab && target == floor(target) && predicted < vocab &&
                 predicted == floor(predicted) && radius <= c->out->room &&
                 strcmp(ck_word(&f, "verdict"), radius > 0 ? "certified" : "unknown") == 0;
    for (int64_t t = 0; t < x.rows && sound; t++, id = id->next) {
        const double token = cJSON_GetNumberValue(id);
        sound = token >= 0 && token < vocab && token == floor(token);
        for (int64_t i = 0; i < x.cols && sound; i++) x.v[t * x.ld + i] = c->embed.v[(int64_t)token * c->embed.ld + i];
    }
    if (!sound) ck_fail(c, "example %lld: its ids, radius, room or verdict do not fit", (long long)c->out->examples);
    ck_close(&f);
    const double rho = forward(c, c->nodes + 1, &x);
    margins(c, x.v + (x.rows - 1) * x.ld, rho, (int64_t)predicted, radius, margin);
    c->out->examples++;
    c->out->certified += radius > 0;
    ck_give_back(c, mark);
}
