/* Rules that take tokens, add one, or make one of them all.  T tokens of size X enter:
 *   prefix         one more token, which does not move.  tokens: some of the tokens
 *   neighbours     every token comes three times
 *   halve          the largest of at most three tokens, entry by entry; each token is in at most two windows
 *   pool           one token; or the mean of T, of length at most 1/sqrt(T) times that of all T together
 *   l2pool         of every feature the length over T tokens, and | |a| - |b| | <= |a - b|
 *   concat         T tokens as one, as long as all T together */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

static ck_bound prefix(ck_fields *f, ck_node *n, double x)
{
    return (ck_bound){ 1, fmax(x, ck_claim(f, "longest", ck_length(n->w[0]))) };
}

static ck_bound some(ck_fields *f, ck_node *n, double x)
{
    (void)f, (void)n;
    return (ck_bound){ 1, x };
}

static ck_bound neighbours(ck_fields *f, ck_node *n, double x)
{
    (void)f, (void)n;
    return (ck_bound){ sqrt(3), sqrt(3) * x };
}

static ck_bound halve(ck_fields *f, ck_node *n, double x)
{
    const double most = sqrt(fmin(3, (double)n->tokens));
    return (ck_bound){ !f->c->out->flat ? most : n->tokens < 3 ? 1 : sqrt(2), most * x };
}

static ck_bound pool(ck_fields *f, ck_node *n, double x)
{
    const bool mean = n->k[0] != 0 && f->c->out->flat;
    return (ck_bound){ mean ? ck_over(1, ck_below(sqrt((double)n->tokens))) : 1, x };
}

static ck_bound together(ck_fields *f, ck_node *n, double x)
{
    const double root = sqrt((double)n->tokens);
    return (ck_bound){ f->c->out->flat ? 1 : root, root * x };
}

static void run_prefix(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, x->rows + 1, x->cols);
    for (int64_t i = 0; i < y.rows * y.ld; i++) y.v[i] = i < y.ld ? n->w[0].v[i] : x->v[i - y.ld];
    *x = y;
}

static void run_pool(ck *c, const ck_node *n, ck_mat *x)
{
    const int64_t rows = n->k[0] != 0 ? x->rows : 1;
    ck_mat y = ck_new(c, 1, x->cols);
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < rows; t++) y.v[i] += x->v[t * x->ld + i];
        y.v[i] /= (double)rows;
    }
    y.err = ck_gamma((double)rows + 2) * ck_longest(*x);
    *x = y;
}

/* Of every feature a sum of squares, each rounded x->rows times at most, and a root.  Squares that
 * underflow lose less than 2^-1074 each, a root then less than 2^-537 sqrt(T), and all roots together less than 2^-480. */
static void run_l2pool(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, x->cols);
    (void)n;
    for (int64_t i = 0; i < y.cols; i++) {
        for (int64_t t = 0; t < x->rows; t++) y.v[i] += x->v[t * x->ld + i] * x->v[t * x->ld + i];
        y.v[i] = sqrt(y.v[i]);
    }
    y.err = ck_gamma((double)x->rows + 2) * sqrt((double)x->rows) * ck_longest(*x) + 0x1p-480;
    *x = y;
}

static void run_concat(ck *c, const ck_node *n, ck_mat *x)
{
    ck_mat y = ck_new(c, 1, n->tokens * n->width);
    for (int64_t i = 0; i < y.cols; i++) y.v[i] = x->v[i / x->cols * x->ld + i % x->cols];
    *x = y;
}

static bool near_fits(const ck_node *n) { return n->k[0] <= (double)n->width; }
static bool some_fit(const ck_node *n) { return n->k[0] < (double)n->tokens && n->k[0] + n->k[1] <= (double)n->tokens; }

static void shape(const ck_node *n, int64_t *tokens, int64_t *width)
{
    if (ck_is(n, "prefix")) ++*tokens;
    if (ck_is(n, "tokens")) *tokens = n->k[1] > 0 ? (int64_t)n->k[1] : *tokens - (int64_t)n->k[0];
    if (ck_is(n, "neighbours")) *width += 2 * (int64_t)n->k[0];
    if (ck_is(n, "halve")) *tokens = (*tokens + 1) / 2;
    if (ck_is(n, "concat")) *width *= *tokens;
    if (ck_is(n, "pool") || ck_is(n, "l2pool") || ck_is(n, "concat")) *tokens = 1;
}

const ck_rule ck_rule_tokens = { .name = "tokens",
                                 .prove = some,
                                 .run = ck_not_run,
                                 .fits = some_fit,
                                 .shape = shape,
                                 .constants = { "+first", "+count" } };
const ck_rule ck_rule_neighbours = { .name = "neighbours",
                                     .prove = neighbours,
                                     .run = ck_not_run,
                                     .fits = near_fits,
                                     .shape = shape,
                                     .constants = { "#cols" } };
const ck_rule ck_rule_halve = { .name = "halve", .prove = halve, .run = ck_not_run, .shape = shape };
const ck_rule ck_rule_prefix = {
    .name = "prefix", .prove = prefix, .run = run_prefix, .shape = shape, .tensors = { { "weight", "d" } }
};
const ck_rule ck_rule_pool = {
    .name = "pool", .prove = pool, .run = run_pool, .shape = shape, .constants = { "?mean" }
};
const ck_rule ck_rule_l2pool = { .name = "l2pool", .prove = together, .run = run_l2pool, .shape = shape };
const ck_rule ck_rule_concat = { .name = "concat", .prove = together, .run = run_concat, .shape = shape };
