#include "verdict/swaps.h"

#include <stdlib.h>

#include "base/alloc.h"

taut_lo taut_swaps_reach(const taut_certificate *c, taut_lo radius, int64_t k)
{
    return c->norm == TAUT_NORM_FLAT ? lo_div(radius, up_sqrt(up_int(k))) : radius;
}

/* e_k(x_1 .. x_t), the sum of all products of k of them, by e_k(.., x) = e_k(..) + x e_(k-1)(..); without x: the number of
 * ways to choose k of t. */
static double products(const double *x, int64_t t, int64_t k)
{
    double e[TAUT_SWAPS_MOST + 1] = { 1 };
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = k; j > 0; j--) e[j] += e[j - 1] * (x ? x[i] : 1);
    return e[k];
}

/* Counts the covered swaps at each place; x (t) becomes their share there, for k at once. */
static void count(taut_swapped *s, double *x, const taut_certificate *c, const int32_t *ids, int64_t k)
{
    const taut_param *table = &c->model->embed;
    const taut_lo reach = taut_swaps_reach(c, s->radius, k);
    for (int64_t i = 0; i < c->tokens; i++) {
        int64_t good = 0;
        for (int32_t to = 0; to < table->rows; to++) {
            if (to == ids[i]) continue;
            const double apart = up_row_distance(table, ids[i], to).v;
            good += apart < reach.v;
            if (k == 1 && !(apart < reach.v) && !(s->nearest.place >= 0 && s->nearest.distance <= apart))
                s->nearest = (taut_swap){ i, ids[i], to, apart };
        }
        s->safe[k - 1] += good;
        x[i] = table->rows > 1 ? (double)good / (double)(table->rows - 1) : 0;
    }
}

/* All terms of the sums are positive: their relative error is that of the few roundings on the way of each. */
static void cover(taut_swapped *s, double *x, const taut_certificate *c, const int32_t *ids, int64_t most)
{
    const double rounding = 1 - 8 * (double)(c->tokens + 8) * 0x1p-53;
    s->nearest.place = -1;
    for (int64_t k = 1; k <= most; k++) {
        count(s, x, c, ids, k);
        s->share[k - 1] = products(x, c->tokens, k) / products(NULL, c->tokens, k) * rounding;
    }
}

static taut_status one(taut_swapped *s, const taut_certificate *c, taut_pass *pass, double *room, const taut_one *text,
                       const taut_swaps_way *way)
{
    double *logits = room, *x = room + c->model->classes;
    const taut_example e = taut_example_certify(c, pass, text->x, text->target, logits);
    if (e.predicted >= 0) s->radius = taut_margin_region(c, logits, c->model->classes, e.predicted);
    cover(s, x, c, text->x.ids, way->most);
    return e.predicted >= 0 ? taut_swaps_search(s, c, pass, text->x.ids, e.predicted, way) : TAUT_OK;
}

static taut_status check(const taut_certificate *c, const taut_swaps_way *way)
{
    if (c->model->embed.rows == 0) return taut_fail(TAUT_BAD_CONFIG, "swaps are of tokens: this model reads no text");
    if (c->model->spec.headless)
        return taut_fail(TAUT_BAD_CONFIG,
                         "swaps are held against an answer: this model has no head, and gives features");
    if (way->most < 1 || way->most > TAUT_SWAPS_MOST || way->most > c->tokens)
        return taut_fail(TAUT_BAD_CALL, "%lld swaps at once: from 1 to %d, and no more than the %lld tokens of a text",
                         (long long)way->most, TAUT_SWAPS_MOST, (long long)c->tokens);
    return TAUT_OK;
}

taut_status taut_swaps_make(taut_swaps *out, const taut_certificate *c, const taut_examples *from,
                            const taut_swaps_way *way)
{
    taut_reader *reader = NULL;
    taut_pass *pass = NULL;
    *out = (taut_swaps){ .most = way->most };
    taut_status s = check(c, way);
    if (s) return s;
    double *room = taut_malloc((size_t)(c->model->classes + c->tokens) * sizeof *room);
    out->of = taut_calloc((size_t)from->n, sizeof *out->of);
    out->all = c->tokens * (c->model->embed.rows - 1);
    s = room && out->of ? taut_reader_open(&reader, from) : taut_no_memory("swaps");
    if (!s) s = taut_pass_create(&pass, c->model, 1, c->tokens, true);
    for (int64_t i = 0; !s && i < from->n; i++) {
        const taut_one text = taut_reader_get(reader, i);
        s = one(&out->of[out->count++], c, pass, room, &text, way);
        if (!s && way->told && way->told((double)(i + 1) / (double)from->n, way->arg))
            s = taut_fail(TAUT_BAD_CALL, "stopped");
    }
    taut_pass_free(pass);
    taut_reader_free(reader);
    free(room);
    if (s) taut_swaps_free(out);
    return s;
}

void taut_swaps_free(taut_swaps *s)
{
    free(s->of);
    *s = (taut_swaps){ 0 };
}

int64_t taut_swaps_beaten(const taut_swaps *s)
{
    int64_t beaten = 0;
    for (int64_t i = 0; i < s->count; i++) beaten += s->of[i].beaten;
    return beaten;
}
