#include "model/pass.h"

#include <stdlib.h>

#include "base/alloc.h"

static taut_shape batch_shape(const taut_model *m, int64_t n, int64_t t) { return (taut_shape){ n, t, m->in.d }; }

int64_t taut_pass_len(const taut_model *m, int64_t n, int64_t t, bool backward)
{
    const taut_shape in = batch_shape(m, n, t);
    const taut_plan p = taut_plan_of(m->root, in);
    return taut_len(in) * (backward ? 2 : 1) + taut_len(p.out) + p.trace + p.scratch + taut_indices_len(n * t) +
           taut_indices_len(taut_rows(p.out)) + taut_sums_len(TAUT_PASS_SUMS);
}

taut_status taut_pass_create(taut_pass **out, taut_model *m, int64_t n, int64_t t, bool backward)
{
    taut_pass *p = taut_calloc(1, sizeof *p);
    const int64_t host = taut_plan_of(m->root, batch_shape(m, n, t)).host;
    taut_real *memory = p ? taut_reals(m->k, taut_pass_len(m, n, t, backward)) : NULL;
    double *numbers = memory ? taut_malloc((size_t)host * sizeof *numbers) : NULL;
    if (!numbers) {
        if (memory) m->k->release(memory);
        free(p);
        return taut_no_memory("activations of a batch");
    }
    *p = (taut_pass){ .m = m, .largest = n * t, .backward = backward, .memory = memory, .host = numbers };
    taut_span sums = { memory, taut_pass_len(m, n, t, backward), m->k->elem };
    taut_take(&sums, sums.len - taut_sums_len(TAUT_PASS_SUMS));
    p->sums = taut_take_sums(&sums, TAUT_PASS_SUMS);
    *out = p;
    return TAUT_OK;
}

void taut_pass_free(taut_pass *p)
{
    if (!p) return;
    p->m->k->release(p->memory);
    free(p->host);
    free(p);
}

/* Carve the memory for a batch of this shape; a smaller batch needs no more than the one planned for. */
static void lay_out(taut_pass *p, taut_shape in)
{
    const taut_model *m = p->m;
    const taut_plan plan = taut_plan_of(m->root, in);
    taut_span rest = { p->memory, taut_pass_len(m, in.n, in.t, p->backward), m->k->elem };
    p->in = in;
    p->x = taut_take_tensor(&rest, in);
    p->logits = taut_take_tensor(&rest, plan.out);
    p->gx = p->backward ? taut_take(&rest, taut_len(in)) : NULL;
    p->trace = taut_take_span(&rest, plan.trace);
    p->run.k = m->k;
    p->run.scratch = taut_take_span(&rest, plan.scratch);
    p->run.host = (taut_span){ (taut_real *)p->host, plan.host, sizeof(double) };
    p->ids = taut_take_indices(&rest, taut_rows(in));
    p->targets = taut_take_indices(&rest, taut_rows(plan.out));
}

void taut_pass_shape(taut_pass *p, int64_t n, int64_t t)
{
    const taut_model *m = p->m;
    TAUT_CHECK(n * t <= p->largest && t <= m->in.t, "pass: a batch larger than it was made for");
    lay_out(p, batch_shape(m, n, t));
}

void taut_pass_run(taut_pass *p) { taut_forward(p->m->root, &p->run, p->logits, (taut_point){ p->x, p->trace }); }

void taut_pass_embed(taut_pass *p, const int32_t *ids, int64_t n, int64_t t)
{
    taut_pass_shape(p, n, t);
    p->m->k->put_index(p->ids, ids, n * t);
    p->m->k->gather(p->x.data, p->m->embed.value, p->ids, n * t, p->in.d);
}

void taut_pass_forward(taut_pass *p, const int32_t *ids, int64_t n, int64_t t)
{
    taut_pass_embed(p, ids, n, t);
    taut_pass_run(p);
}

void taut_pass_forward_real(taut_pass *p, const double *reals, int64_t n)
{
    taut_pass_shape(p, n, p->m->in.t);
    p->m->k->put(p->x.data, reals, taut_len(p->in));
    taut_pass_run(p);
}

void taut_pass_read(taut_pass *p, taut_input x, int64_t n)
{
    if (x.ids)
        taut_pass_forward(p, x.ids, n, p->m->in.t);
    else
        taut_pass_forward_real(p, x.reals, n);
}

void taut_pass_loss(taut_pass *p, const int32_t *targets, double weight, bool backward)
{
    const taut_kernels *k = p->m->k;
    const taut_shape s = p->logits.shape;
    k->put_index(p->targets, targets, taut_rows(s));
    k->cross_entropy(backward ? p->logits.data : NULL, p->sums, p->logits.data, p->targets, taut_rows(s), s.d, weight);
}

void taut_pass_loss_shared(taut_pass *p, const double *shares, double weight)
{
    const taut_kernels *k = p->m->k;
    const taut_shape s = p->logits.shape;
    TAUT_CHECK(p->backward && taut_len(s) <= taut_len(p->in), "pass: no room for shares");
    k->put(p->gx, shares, taut_len(s)); /* nobody needs gx before the way back */
    k->shared_cross_entropy(p->logits.data, p->sums, p->logits.data, p->gx, taut_rows(s), s.d, weight);
}

/* What is wanted lies where the gradient of the input will be, or where the input was: both are larger, and free now. */
void taut_pass_error(taut_pass *p, const double *wanted, double weight, bool backward)
{
    const int64_t len = taut_len(p->logits.shape);
    taut_real *y = p->gx ? p->gx : p->x.data;
    TAUT_CHECK(len <= taut_len(p->in), "pass: a forecast longer than what it is made from");
    p->m->k->put(y, wanted, len);
    p->m->k->squared_error(backward ? p->logits.data : NULL, p->sums, p->logits.data, y, len, weight);
}

void taut_pass_clear(taut_pass *p) { p->m->k->put_sum(p->sums, NULL, TAUT_PASS_SUMS); }

taut_status taut_pass_sums(taut_pass *p, double sums[TAUT_PASS_SUMS])
{
    return p->m->k->read(sums, p->sums, TAUT_PASS_SUMS);
}

static void backward(taut_pass *p, bool param_grads)
{
    TAUT_CHECK(p->backward, "pass: made for forward only");
    p->run.param_grads = param_grads;
    taut_vjp(p->m->root, &p->run, (taut_tensor){ p->gx, p->in }, p->logits, (taut_point){ p->x, p->trace });
}

void taut_pass_backward(taut_pass *p)
{
    backward(p, true);
    if (p->m->embed.rows)
        p->m->k->scatter(p->m->embed.grad, p->m->embed.rows, p->gx, p->ids, taut_rows(p->in), p->in.d);
}

void taut_pass_input_grad(taut_pass *p) { backward(p, false); }
