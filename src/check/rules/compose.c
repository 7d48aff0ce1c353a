/* Rules that have parts.
 *   sequence   constants multiply, and the out of a part is the X of the next one.  mix: the triangle inequality.
 *              parts: two modules, each on tokens of its own.  ask: x + f(x) in the first tokens */
#include "check/rules/rules.h"

/* sequence: its parts one after the other.  parts: side by side, each reads tokens of its own. */
static ck_bound sequence(ck_fields *f, ck_node *n, double x)
{
    int64_t parts;
    const cJSON *json = ck_list(f, "of", &parts);
    const bool apart = ck_is(n, "parts");
    ck_bound all = { apart ? 0 : 1, apart ? 0 : x };
    for (ck_node *k = n + 1; k < n->end; k = k->end, json = json->next) {
        if (!json) ck_fail(f->c, "%s (%s): its part %s is missing", n->path, f->part, k->path);
        ck_confirm(f->c, k, json, apart ? x : all.out);
        n->defect = apart ? ck_hypot(n->defect, k->defect) : (n->defect > 0 ? k->lip * n->defect : 0) + k->defect;
        all = apart ? (ck_bound){ fmax(all.lip, k->lip), fmax(all.out, k->out) }
                    : (ck_bound){ all.lip * k->lip, k->out };
    }
    if (json) ck_fail(f->c, "%s (%s): it has more parts than the model", n->path, f->part);
    return all;
}

/* keep x + mix f(x), with keep = mix = 1 for ask.  A part of scope mix has answered for the whole already. */
static ck_bound mix(ck_fields *f, ck_node *n, double x)
{
    const bool asks = ck_is(n, "ask");
    const double keep = asks ? 1 : fabs(n->k[0]), by = asks ? 1 : fabs(n->k[1]);
    const ck_bound b = sequence(f, n, x);
    n->defect *= by;
    return n[1].mixed ? b : (ck_bound){ keep + by * b.lip, keep * x + by * b.out };
}

static void need(ck *c, const ck_node *n, bool fits)
{
    if (!fits) ck_fail(c, "%s: its parts do not fit the rule %s", n->path, n->rule->name);
}

static int64_t in_turn(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    need(c, n, part != NULL);
    for (; part; part = part->next) d = ck_build(c, part, n, d);
    return d;
}

static int64_t join_mix(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    d = in_turn(c, part, n, d);
    need(c, n, d == n->width && c->tokens == n->tokens);
    return d;
}

/* One of the first tokens, one of the others. */
static int64_t join_parts(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    const int64_t first = (int64_t)n->k[0];
    need(c, n, first < n->tokens && part && part->next && !part->next->next);
    c->tokens = first;
    const int64_t wide = ck_build(c, part, n, d), before = c->tokens;
    c->tokens = n->tokens - first;
    need(c, n, ck_build(c, part->next, n, d) == wide);
    c->tokens += before;
    return wide;
}

/* One, which makes the first tokens of all. */
static int64_t join_ask(ck *c, const cJSON *part, ck_node *n, int64_t d)
{
    need(c, n, n->k[0] <= (double)n->tokens && part && !part->next);
    d = in_turn(c, part, n, d);
    need(c, n, c->tokens == (int64_t)n->k[0] && d == n->width);
    c->tokens = n->tokens;
    return d;
}

const ck_rule ck_rule_sequence = { .name = "sequence", .prove = sequence, .join = in_turn };
const ck_rule ck_rule_mix = { .name = "mix", .prove = mix, .join = join_mix, .constants = { "keep", "mix" } };
const ck_rule ck_rule_parts = { .name = "parts", .prove = sequence, .join = join_parts, .constants = { "#first" } };
const ck_rule ck_rule_ask = { .name = "ask", .prove = mix, .join = join_ask, .constants = { "#first" } };
