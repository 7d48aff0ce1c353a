/* Predictions: the forward pass in double with a proved error, and from its margins the radius.
 *
 * Tokens are rows, each within err of what real arithmetic would make of the node's computed input.  ck_forward answers
 * rho >= that distance for the node's output: of the largest token (norm tokens), or over all tokens (flat: at most
 * sqrt(T) times that).  Along a sequence rho_{i+1} <= lip_i rho_i + own: the confirmed lip holds, as real and computed
 * tokens are in the node's region (computed ones are looked at; else inf).
 * Of all that a move of the input within the radius makes of a node's tokens, none is further than `moved` from the computed
 * ones: moved_{i+1} <= lip_i moved_i + own; nor is a single one further than its shape says (shape.c).  There norm layers,
 * softmax attention and perceptrons are less steep than everywhere, by ck_slope_near, ck_attention_near and ck_mlp_near, and so
 * is the body.
 * Then with B = that lip of the body and E = its rho, or both of the last token by its shape, w_j the rows of the head and z the
 * last token:  (f_p - f_j)(x') / logit_scale >= (w_p - w_j).z + b_p - b_j - |w_p - w_j| (E + B |x' - x|).  Of logits that are off
 * by a tolerance, twice that is left.  Ties, NaN, infinity: never certified. */
#include <fenv.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "check/examples/examples.h"

void ck_not_run(ck *c, const ck_node *n, ck_mat *x)
{
    (void)x;
    ck_give_up(c, n, "the checker runs no example through it");
}

/* A constant around x of a module without parts, and what becomes of the shape. */
static double around(ck *c, const ck_node *n, ck_mat x, double moved, ck_shape *s)
{
    const double *m = ck_shape_moved(c, s, moved);
    double *each = ck_room(c, x.rows, sizeof *each), lip = n->lip;
    for (int64_t t = 0; t < x.rows; t++) each[t] = n->lip;
    if (ck_is(n, "attention") || ck_is(n, "window")) return fmin(lip, ck_attention_near(c, n, x, m, s));
    if (ck_is(n, "layernorm")) lip = ck_slope_near(c, n, x, m, each);
    if (ck_is(n, "mlp") && s->r < INFINITY) lip = ck_mlp_near(c, n, x, m, each);
    ck_shape_pass(c, n, s, each);
    return fmin(lip, n->lip);
}

ck_step ck_forward(ck *c, const ck_node *n, ck_mat *x, double moved, ck_shape *s)
{
    const bool inside = ck_longest(*x) <= n->in, mixed = ck_is(n, "mix");
    if (ck_is(n, "parts") || ck_is(n, "ask")) ck_not_run(c, n, x);
    const double keep = fabs(n->k[0]), mix = fabs(n->k[1]);
    const ck_mat in = mixed ? ck_stack(c, x, (const double[]){ 1 }, 1) : *x,
                 shape = mixed ? ck_stack(c, &s->n, (const double[]){ 1 }, 1) : s->n;
    x->err = 0;
    double rho = 0, lip = n->rule->run ? around(c, n, *x, moved, s) : 1;
    int64_t tokens = n->tokens, width = n->width;
    if (n->rule->run) n->rule->run(c, n, x);
    if (n->rule->run && n->rule->shape) n->rule->shape(n, &tokens, &width);
    if (n->rule->run && x->rows != tokens) ck_give_up(c, n, "the checker's forward pass lost count of its tokens");
    for (const ck_node *k = n + 1; k < n->end && !n->rule->run; k = k->end) {
        const ck_step step = ck_forward(c, k, x, moved, s);
        rho = rho == 0 ? step.off : step.lip * rho + step.off;
        moved = step.lip * moved + step.off;
        lip *= step.lip;
        x->err = 0;
    }
    if (mixed) {
        x->err = ck_gamma(4) * (keep * ck_longest(in) + mix * ck_longest(*x));
        for (int64_t i = 0; i < x->rows * x->ld; i++) x->v[i] = n->k[0] * in.v[i] + n->k[1] * x->v[i];
        rho = mix * rho;
        if (!n[1].mixed) { /* else a perceptron has answered for the whole */
            lip = keep + mix * lip;
            ck_shape_mix(c, s, shape, keep, mix);
        }
    }
    const double all = c->out->flat ? sqrt((double)x->rows) : 1,
                 off = inside ? rho + (x->err + 1e-280) * all : INFINITY; /* + underflow */
    for (int64_t t = 0; t < x->rows && (n->rule->run || mixed); t++) s->n.v[t * s->n.ld + s->n.cols - 1] += off;
    return (ck_step){ off, fmin(lip, n->lip) };
}

/* Is token p proved to stay ahead of all others within the radius?  With no radius, and of the margin, nothing is proved: they
 * must be what a double forward pass gives, to 1e-8 of all that it adds up in the two logits, and to what solvers leave. */
static void margins(ck *c, const double *z, ck_step at, int64_t p, double radius, double margin)
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
        const double off = gamma * size + apart * at.off, least = -(off - gap), defect = apart * body->defect / 2;
        const double off_by = c->tolerance > 0 ? 2 * ck_over(c->tolerance, scale) : 0;
        const double needs = apart * radius * at.lip + defect + off_by, ahead = gap + 1e-8 * added + defect;
        const bool holds = radius > 0 ? least > off_by && needs <= least : ahead >= 0;
        const long long example = c->out->examples, first = p, other = j;
        if (j == p) continue;
        if (!isfinite(gap) || (radius > 0 && !isfinite(at.off))) { /* nothing is known of this forward pass */
            c->unsure = true;
            continue;
        }
        if (!(ahead >= 0))
            ck_fail(c, "example %lld: %lld is predicted, but %lld is ahead of it", example, first, other);
        if (!(margin <= scale * ahead))
            ck_fail(c, "example %lld: its margin is stated as %.17g, but %lld is ahead of %lld by %.9g only", example,
                    margin, first, other, scale * gap);
        if (!holds && needs <= gap + off && gap + off < INFINITY)
            c->unsure = true; /* within the rounding of this forward pass */
        else if (!holds)
            ck_fail(c,
                    "example %lld: its radius is stated as %.17g; by the constant %.9g that holds so far around it, "
                    "%lld is proved to stay ahead of %lld within %.9g only",
                    example, radius, at.lip, first, other, fmax((least - defect - off_by) / (apart * at.lip), 0));
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

/* The constant from inputs to logits for all that is within the room of x. */
static void confirm_lip(ck *c, ck_mat x, double stated)
{
    const ck_node *body = c->nodes + 1;
    ck_mat z = ck_stack(c, &x, (const double[]){ 1 }, 1);
    ck_shape s = ck_shape_of(c, x.rows, c->out->room);
    double lip = *c->bad ? INFINITY : ck_forward(c, body, &z, c->out->room, &s).lip;
    if (!*c->bad) lip = fmin(lip, ck_shape_whole(c, s.n));
    for (const ck_node *n = body->end; n < c->nodes->end; n = n->end) lip *= n->lip;
    if (!(stated >= lip))
        ck_fail(c, "example %lld: lip is stated as %.17g, proved around it is %.17g", (long long)c->out->examples,
                stated, lip);
}

static void check_one(ck *c, const cJSON *json)
{
    const struct ck_block *mark = c->blocks;
    if (c->nodes[1].end == c->nodes->end) ck_fail(c, "an example of a model without a head, which predicts nothing");
    const double answers = (double)c->nodes[1].end->w[0].rows;
    ck_fields f = { c, "example", "certified or unknown", json, 0 };
    ck_mat x = read_input(&f);
    const double radius = ck_stated(&f, "radius"), margin = ck_stated(&f, "margin");
    const double predicted = ck_stated(&f, "predicted"), lip = ck_get(json, "lip") ? ck_stated(&f, "lip") : INFINITY;
    if (c->version == 2) ck_stated(&f, "target"); /* what the data said: nothing that a model could show */
    if (!c->unit && (c->out->series || (c->tokens > 1 && answers != (double)c->embed.rows)))
        ck_fail(c, "the model's tree is neither one of next-token predictions nor one of classes");
    if (!(predicted < answers && predicted == floor(predicted) && radius <= c->out->room &&
          strcmp(ck_word(&f, "verdict"), radius > 0 ? "certified" : "unknown") == 0))
        ck_fail(c, "example %lld: its class, radius, room or verdict do not fit", (long long)c->out->examples);
    ck_close(&f);
    if (lip < INFINITY) confirm_lip(c, x, lip);
    c->unsure = c->jumped = false;
    ck_shape s = ck_shape_of(c, x.rows, radius > 0 ? radius : INFINITY);
    ck_step at = ck_forward(c, c->nodes + 1, &x, s.r, &s);
    const int64_t last = s.n.rows - 1;
    at.lip = fmin(at.lip, ck_shape_row(s.n, last));
    at.off = fmin(at.off, s.n.v[last * s.n.ld + s.n.cols - 1]);
    if ((c->jumped || *c->bad) && radius > 0)
        ck_fail(c, "example %lld: a radius, but %s", (long long)c->out->examples,
                c->jumped ? "the network jumps" : "a weight is not finite");
    if (!c->unsure && !c->jumped && !*c->bad)
        margins(c, x.v + (x.rows - 1) * x.ld, at, (int64_t)predicted, radius, margin);
    c->out->examples++;
    c->out->certified += radius > 0 && !c->unsure;
    c->out->unknown += radius > 0 && c->unsure;
    ck_give_back(c, mark);
}

/* One example by a check of its own, so that a failure ends that alone; true: it did not fail. */
static bool alone(ck *c, const cJSON *json)
{
    if (setjmp(c->end)) return false;
    check_one(c, json);
    return true;
}

/* How many threads beside each other leave half of the memory: the first example has shown what one takes. */
static int hands_for(double taken, int64_t count)
{
    const double room = taut_memory_available() / 2 / fmax(taken, 1);
    const int64_t most = omp_get_max_threads() < count ? omp_get_max_threads() : count;
    return room < (double)most ? (int)fmax(room, 1) : (int)most;
}

/* What ended the check of the earliest example that failed; the line of a status belongs to its thread. */
typedef struct {
    int64_t index;
    taut_checked out;
    taut_status status;
    char line[512];
} failure;

static void note(failure *first, const ck *c, int64_t index)
{
#pragma omp critical(ck_failure)
    if (index < first->index) {
#pragma omp atomic write
        first->index = index;
        first->out = *c->out;
        first->status = c->status;
        snprintf(first->line, sizeof first->line, "%s", taut_last_error());
    }
}

static void share_out(ck *c, const cJSON *const *example, int64_t count, int hands, failure *first)
{
    int64_t certified = 0, unknown = 0;
#pragma omp parallel num_threads(hands) reduction(+ : certified, unknown)
    {
        taut_checked out = *c->out;
        ck mine = *c;
        mine.out = &out;
        mine.blocks = NULL;
        out.certified = out.unknown = 0;
        fesetround(FE_UPWARD);
#pragma omp for schedule(dynamic)
        for (int64_t i = 1; i < count; i++) {
            int64_t last; /* none behind a failure is looked at any more */
#pragma omp atomic read
            last = first->index;
            out.examples = i;
            if (i > last || alone(&mine, example[i])) continue;
            note(first, &mine, i);
            ck_give_back(&mine, NULL);
        }
        fesetround(FE_TONEAREST); /* a thread may go on to other work */
        certified += out.certified;
        unknown += out.unknown;
    }
    fesetround(FE_UPWARD);
    c->out->certified += certified;
    c->out->unknown += unknown;
}

void ck_examples(ck *c, const cJSON *first, int64_t count)
{
    failure worst = { .index = INT64_MAX };
    if (count < 1) return;
    const cJSON **example = ck_room(c, count, sizeof *example);
    for (int64_t i = 0; i < count; i++, first = first->next) example[i] = first;
    const double before = c->taken;
    check_one(c, example[0]);
    if (count > 1) share_out(c, example, count, hands_for(c->taken - before, count - 1), &worst);
    c->out->examples = count;
    if (worst.index == INT64_MAX) return;
    *c->out = worst.out;
    if (worst.status) c->status = taut_fail(worst.status, "%s", worst.line);
    longjmp(c->end, 1);
}
