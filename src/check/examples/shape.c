/* Token by token: N of docs/certificate.md, "Examples", through every module but attention (around.c).
 *   one token by itself   row t times a constant that holds where the token goes
 *   prefix                a token that does not move.  pool: the mean of the rows, or the first
 *   l2pool, concat        as long as all tokens together: |N a| <= sum_c a_c |column c|
 *   pixels                the first module of an image, whose parts are as long together as it is
 *   all others            no bound
 * An identity to begin with in norm flat, where the tokens' lengths are as long together as the whole; in norm tokens a column of
 * ones, a being the largest of them.  The last column, of rounding, is carried in the same way, and added to. */
#include <string.h>

#include "check/examples/examples.h"

enum { MOST = 1024 }; /* tokens that have a column each */

ck_mat ck_shape_none(ck *c, int64_t tokens)
{
    ck_mat n = ck_new(c, tokens, 2);
    for (int64_t t = 0; t < tokens; t++) n.v[t * n.ld] = n.v[t * n.ld + 1] = INFINITY;
    return n;
}

static ck_mat columns(ck *c, int64_t tokens, bool each, double by)
{
    if (each && tokens > MOST) return ck_shape_none(c, tokens);
    ck_mat n = ck_new(c, tokens, each ? tokens + 1 : 2);
    for (int64_t t = 0; t < tokens; t++) n.v[t * n.ld + (each ? t : 0)] = by;
    return n;
}

ck_shape ck_shape_of(ck *c, int64_t tokens, double r) { return (ck_shape){ r, columns(c, tokens, c->out->flat, 1) }; }

static double length(const double *v, int64_t count, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += v[i * step] * v[i * step];
    return sqrt(sum);
}

double ck_shape_row(ck_mat n, int64_t t) { return length(n.v + t * n.ld, n.cols - 1, 1); }

double ck_shape_whole(const ck *c, ck_mat n)
{
    double most = 0, sum = 0;
    for (int64_t t = 0; t < n.rows; t++) {
        const double row = ck_shape_row(n, t);
        most = isnan(row) ? INFINITY : fmax(most, row), sum += row * row;
    }
    return c->out->flat ? sqrt(sum) : most;
}

double *ck_shape_moved(ck *c, const ck_shape *s, double moved)
{
    double *m = ck_room(c, s->n.rows, sizeof *m);
    for (int64_t t = 0; t < s->n.rows; t++)
        m[t] = fmin(moved, s->r * ck_shape_row(s->n, t) + s->n.v[t * s->n.ld + s->n.cols - 1]);
    return m;
}

void ck_shape_mix(ck *c, ck_shape *s, ck_mat in, double keep, double mix)
{
    if (in.cols != s->n.cols) s->n = ck_shape_none(c, s->n.rows); /* as one of the two is */
    for (int64_t i = 0; i < s->n.rows && in.cols == s->n.cols; i++)
        for (int64_t j = 0; j < in.cols; j++) {
            double *to = s->n.v + i * s->n.ld + j;
            *to = fabs(keep) * in.v[i * in.ld + j] + fabs(mix) * *to;
        }
}

/* Rules that make every token of itself alone. */
static bool apart(const ck_node *n)
{
    static const char *const all[] = { "linear",    "position", "sinusoid",  "scale",      "pointwise",
                                       "channel",   "maxmin",   "layernorm", "centernorm", "mlp",
                                       "potential", "sll",      "sketch" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ck_is(n, all[i])) return true;
    return false;
}

/* One row of all. */
static ck_mat together(ck *c, const ck_node *n, ck_mat in)
{
    ck_mat one = ck_new(c, 1, in.cols);
    for (int64_t j = 0; j < in.cols; j++) {
        double sum = 0;
        for (int64_t t = 0; t < in.rows; t++) sum += in.v[t * in.ld + j];
        one.v[j] = !ck_is(n, "pool") ? length(in.v + j, in.rows, in.ld)
                   : n->k[0] != 0    ? sum / (double)in.rows
                                     : in.v[j];
    }
    return one;
}

void ck_shape_pass(ck *c, const ck_node *n, ck_shape *s, const double *each)
{
    const ck_mat in = s->n;
    int64_t tokens = n->tokens, width = n->width;
    if (n->rule->shape) n->rule->shape(n, &tokens, &width);
    if (apart(n)) {
        for (int64_t t = 0; t < in.rows; t++)
            for (int64_t j = 0; j < in.cols; j++) in.v[t * in.ld + j] *= each[t];
    } else if (ck_is(n, "pool") || ck_is(n, "l2pool") || ck_is(n, "concat"))
        s->n = together(c, n, in);
    else if (ck_is(n, "prefix")) {
        s->n = ck_new(c, tokens, in.cols);
        memcpy(s->n.v + s->n.ld, in.v, (size_t)(in.rows * in.ld) * sizeof *in.v);
    } else if (ck_is(n, "pixels") && n == c->nodes + 2 && ck_is(c->nodes + 1, "sequence"))
        s->n = columns(c, tokens, true, each[0]);
    else
        s->n = ck_shape_none(c, tokens);
}
