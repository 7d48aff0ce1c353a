/* Predictions: the forward pass in double with a proved error, and from its margins the radius.
 *
 * Tokens are rows, each within err of what real arithmetic would make of the node's computed input.  forward answers
 * rho >= that distance for the node's output: of the largest token (norm tokens), or over all tokens (flat: at most
 * sqrt(T) times that).  Along a sequence rho_{i+1} <= lip_i rho_i + own: the confirmed lip holds, as real and computed
 * tokens are in the node's region (computed ones are looked at; else inf).
 * Then with B = lip of the body, E = its rho, w_j the rows of the head and z the last token:  (f_p - f_j)(x') /
 * logit_scale >= (w_p - w_j).z + b_p - b_j - |w_p - w_j| (E + B |x' - x|).  Of logits that are off by a tolerance, twice that is
 * left.  Ties, NaN, infinity: never certified. */
#include <string.h>

#include "check/ck.h"

/* See the top; x becomes the output. */
static double forward(ck *c, const ck_node *n, ck_mat *x)
{
    const bool inside = ck_longest(*x) <= n->in, mixed = ck_is(n, "mix");
    if (ck_is(n, "parts") || ck_is(n, "ask")) ck_not_run(c, n, x);
    const double keep = fabs(n->k[0]), mix = fabs(n->k[1]);
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
    const double all = c->out->flat ? sqrt((double)x->rows) : 1;
    return inside ? rho + (x->err + 1e-280) * all : INFINITY; /* + underflow */
}

/* Is token p proved to stay ahead of all others within the radius?  With no radius, and of the margin, nothing is proved: they
 * must be what a double forward pass gives, to 1e-8 of all that it adds up in the two logits, and to what solvers leave. */
static void margins(ck *c, const double *z, double rho, int64_t p, double radius, double margin)
{
    const ck_node *body = c->nodes + 1, *head = body->end;
    const ck_mat w = head->w[0], b = head->w[1];
    const double scale = head->end < c->nodes->end ? head->end->k[0] : 1;
    const double gamma = ck_gamma((double)w.cols + 8);
    for (int64_t j = 0; j < w.rows; j++) {
        double gap = b.v ? b.v[p] - b.v[j] : 0, size = fabs(gap), apart = 0;
        double added = b.v ? fabs(b.v[p]) + fabs(b.v[j]) : 0;
        for (int64_t i = 0; i < w.cols; i++) {
            const double a = w.v[p * w.ld + i], o = w.v[j * w.ld + i], diff = a - o;
            gap += diff * z[i], size += fabs(diff * z[i]), apart += diff * diff;
            added += (fabs(a) + fabs(o)) * fabs(z[i]);
        }
        apart = sqrt(apart) * (1 + gamma);
        const double off = gamma * size + apart * rho, least = -(off - gap), defect = apart * body->defect / 2;
        const double off_by = c->tolerance > 0 ? 2 * ck_over(c->tolerance, scale) : 0;
        const double needs = apart * radius * body->lip + defect + off_by, ahead = gap + 1e-8 * added + defect;
        const bool holds = radius > 0 ? least > off_by && needs <= least : ahead >= 0;
        if (j != p && !holds && radius > 0 && needs <= gap + off && gap + off < INFINITY)
            c->unsure = true; /* within the rounding of this forward pass */
        else if (j != p && (!holds || margin * (1 - 1e-9) > scale * ahead))
            ck_fail(c, "example %lld: radius %.17g, but token %lld is ahead of %lld by %.9g only, which allows %.9g",
                    (long long)c->out->examples, radius, (long long)p, (long long)j, least,
                    (least - off_by) / (apart * body->lip));
    }
}

/* An embedding for every id; or the pixels themselves. */
static ck_mat read_input(ck_fields *f)
{
    ck *c = f->c;
    int64_t count;
    const cJSON *j = ck_list(f, c->unit ? "pixels" : "ids", &count);
    const int64_t tokens = c->out->tokens;
    bool sound = c->unit ? tokens == 1 && count == c->width : tokens == count;
    const ck_mat x = ck_new(c, sound ? tokens : 0, c->width);
    for (int64_t i = 0; i < count && sound; i++, j = j->next) {
        const double v = cJSON_GetNumberValue(j);
        sound = v >= 0 && (c->unit ? v <= 1 : v < (double)c->embed.rows && v == floor(v));
        if (c->unit && sound) x.v[i] = v;
        for (int64_t k = 0; k < x.cols && sound && !c->unit; k++)
            x.v[i * x.ld + k] = c->embed.v[(int64_t)v * c->embed.ld + k];
    }
    if (!sound) ck_fail(c, "example %lld: its input does not fit the model", (long long)c->out->examples);
    return x;
}

void ck_example(ck *c, const cJSON *json)
{
    const struct ck_block *mark = c->blocks;
    if (c->nodes[1].end == c->nodes->end) ck_fail(c, "an example of a model without a head, which predicts nothing");
    const double answers = (double)c->nodes[1].end->w[0].rows;
    ck_fields f = { c, "example", "certified or unknown", json, 0 };
    ck_mat x = read_input(&f);
    const double radius = ck_stated(&f, "radius"), margin = ck_stated(&f, "margin");
    const double predicted = ck_stated(&f, "predicted");
    if (c->version == 2) ck_stated(&f, "target"); /* what the data said: nothing that a model could show */
    if (!c->unit && (c->out->series || (c->tokens > 1 && answers != (double)c->embed.rows)))
        ck_fail(c, "the model's tree is neither one of next-token predictions nor one of classes");
    if (!(predicted < answers && predicted == floor(predicted) && radius <= c->out->room &&
          strcmp(ck_word(&f, "verdict"), radius > 0 ? "certified" : "unknown") == 0))
        ck_fail(c, "example %lld: its class, radius, room or verdict do not fit", (long long)c->out->examples);
    ck_close(&f);
    c->unsure = false;
    const double rho = forward(c, c->nodes + 1, &x);
    if (!c->unsure) margins(c, x.v + (x.rows - 1) * x.ld, rho, (int64_t)predicted, radius, margin);
    c->out->examples++;
    c->out->certified += radius > 0 && !c->unsure;
    c->out->unknown += radius > 0 && c->unsure;
    ck_give_back(c, mark);
}
