/* Numbers through a model: logits, products with the Jacobian and its transpose, the gradient of a loss.
 *
 * Inputs are checked before anything runs, and a pass is made for the call. */
#include <math.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "model/pass.h"

static taut_status check_ids(const taut_model *m, const int32_t *ids, int64_t count)
{
    if (m->embed.rows == 0) return taut_fail(TAUT_BAD_DATA, "this model reads reals, not ids");
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= m->embed.rows)
            return taut_fail(TAUT_BAD_DATA, "id %d is not in 0 .. %lld", ids[i], (long long)m->embed.rows - 1);
    return TAUT_OK;
}

static taut_status check_inputs(const taut_net *net, const taut_inputs *x)
{
    const taut_model *m = net->model;
    /* the constant of a classifier is about texts of its length: the mean of fewer tokens moves further */
    const bool any_length = m->embed.rows > 0 && m->spec.arch != TAUT_ARCH_CLASSIFIER;
    if (!x->ids == !x->reals) return taut_fail(TAUT_BAD_CALL, "inputs are ids or reals: one of them is NULL");
    if (x->n < 1 || x->n > INT32_MAX) return taut_fail(TAUT_BAD_CALL, "%lld inputs", (long long)x->n);
    if (x->t < 1 || x->t > m->in.t || (!any_length && x->t != m->in.t))
        return taut_fail(TAUT_BAD_CALL, "inputs of %lld tokens: this model reads %s%lld", (long long)x->t,
                         any_length ? "1 to " : "", (long long)m->in.t);
    if (x->ids) return check_ids(m, x->ids, x->n * x->t);
    for (int64_t i = 0; i < x->n * x->t * m->in.d; i++)
        if (!isfinite(x->reals[i]))
            return taut_fail(TAUT_BAD_DATA, "number %lld of the inputs is %f", (long long)i, x->reals[i]);
    return TAUT_OK;
}

/* A pass that the inputs have gone through. */
static taut_status forward(taut_pass **pass, taut_net *net, const taut_inputs *x, bool backward)
{
    taut_status s = check_inputs(net, x);
    if (!s) s = taut_pass_create(pass, net->model, x->n, x->t, backward);
    if (s) return s;
    if (x->ids) {
        taut_pass_forward(*pass, x->ids, x->n, x->t);
    } else {
        taut_pass_shape(*pass, x->n, x->t);
        net->model->k->put((*pass)->x.data, x->reals, taut_len((*pass)->in));
        taut_pass_run(*pass);
    }
    return TAUT_OK;
}

/* Hands `len` numbers to the caller, once the kernels say that they are good. */
static taut_status fetch(double *y, const taut_real *from, int64_t len, taut_pass *pass)
{
    const taut_kernels *k = pass->m->k;
    k->get(y, from, len);
    const taut_status s = k->read(NULL, NULL, 0);
    taut_pass_free(pass);
    return s;
}

taut_status taut_net_logits(taut_net *net, double *y, const taut_inputs *x)
{
    taut_pass *pass = NULL;
    NEED(net);
    NEED(y);
    NEED(x);
    const taut_status s = forward(&pass, net, x, false);
    return s ? s : fetch(y, pass->logits.data, taut_len(pass->logits.shape), pass);
}

taut_status taut_net_vjp(taut_net *net, double *gx, const double *gy, const taut_inputs *x)
{
    taut_pass *pass = NULL;
    NEED(net);
    NEED(gx);
    NEED(gy);
    NEED(x);
    const taut_status s = forward(&pass, net, x, true);
    if (s) return s;
    net->model->k->put(pass->logits.data, gy, taut_len(pass->logits.shape));
    taut_pass_input_grad(pass);
    return fetch(gx, pass->gx, taut_len(pass->in), pass);
}

taut_status taut_net_jvp(taut_net *net, double *ty, const double *tx, const taut_inputs *x)
{
    taut_pass *pass = NULL;
    NEED(net);
    NEED(ty);
    NEED(tx);
    NEED(x);
    const taut_status s = forward(&pass, net, x, true);
    if (s) return s;
    net->model->k->put(pass->gx, tx, taut_len(pass->in)); /* nobody needs the gradient's place here */
    taut_jvp(net->model->root, &pass->run, pass->logits, (taut_tensor){ pass->gx, pass->in },
             (taut_point){ pass->x, pass->trace });
    return fetch(ty, pass->logits.data, taut_len(pass->logits.shape), pass);
}

taut_status taut_net_grad(taut_net *net, double *gx, double *loss, const int32_t *labels, const taut_inputs *x)
{
    taut_pass *pass = NULL;
    NEED(net);
    NEED(gx);
    NEED(labels);
    NEED(x);
    if (net->model->spec.arch == TAUT_ARCH_FORECASTER)
        return taut_fail(TAUT_BAD_DATA, "a forecaster has no classes: taut_net_vjp takes any cotangent");
    taut_status s = taut_net_predicts(net);
    if (!s) s = forward(&pass, net, x, true);
    if (s) return s;
    const taut_shape out = pass->logits.shape;
    int64_t asked = 0;
    for (int64_t i = 0; i < taut_rows(out); i++) {
        asked += labels[i] >= 0;
        if (labels[i] < out.d) continue;
        taut_pass_free(pass);
        return taut_fail(TAUT_BAD_DATA, "label %d is not below %lld", labels[i], (long long)out.d);
    }
    const double weight = asked ? 1 / (double)asked : 0;
    double sums[TAUT_PASS_SUMS];
    taut_pass_loss(pass, labels, weight, true);
    taut_pass_input_grad(pass);
    s = taut_pass_sums(pass, sums);
    if (s) {
        taut_pass_free(pass);
        return s;
    }
    if (loss) *loss = weight * sums[TAUT_PASS_LOSS];
    return fetch(gx, pass->gx, taut_len(pass->in), pass);
}

taut_status taut_net_embed(taut_net *net, double *reals, const taut_inputs *x)
{
    NEED(net);
    NEED(reals);
    NEED(x);
    NEED(x->ids);
    taut_status s = check_inputs(net, x);
    taut_pass *pass = NULL;
    if (!s) s = taut_pass_create(&pass, net->model, x->n, x->t, false);
    if (s) return s;
    taut_pass_embed(pass, x->ids, x->n, x->t);
    return fetch(reals, pass->x.data, taut_len(pass->in), pass);
}
