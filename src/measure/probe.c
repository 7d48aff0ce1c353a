#include "measure/probe.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static void stand(taut_probe *p, const double *x)
{
    p->run.k->put(p->at.x.data, x, taut_len(p->in));
    taut_forward(p->module, &p->run, p->y, p->at);
}

void taut_probe_move(taut_probe *p, const double *x) { stand(p, x); }

taut_status taut_probe_create(taut_probe *p, const taut_module *m, const taut_kernels *k, const double *x,
                              taut_shape in)
{
    const taut_plan plan = taut_plan_of(m, in);
    const int64_t nx = taut_len(in), ny = taut_len(plan.out),
                  all = nx + ny + plan.trace + plan.scratch + taut_sums_len(1);
    *p = (taut_probe){ .module = m, .in = in, .out = plan.out };
    const taut_status before = k->read(NULL, NULL, 0); /* a device that failed made NaN of x */
    if (before) return before;
    for (int64_t i = 0; i < nx; i++)
        if (!isfinite(x[i])) return taut_fail(TAUT_BAD_DATA, "the activations hold a NaN or an infinite number");
    p->run.k = k;
    p->memory = taut_reals(k, all);
    p->host = taut_malloc((size_t)plan.host * sizeof *p->host);
    if (!p->memory || !p->host) {
        taut_probe_free(p);
        return taut_no_memory("an input to measure at");
    }
    taut_span rest = { p->memory, all, k->elem };
    p->at.x = taut_take_tensor(&rest, in);
    p->y = taut_take_tensor(&rest, plan.out);
    p->at.trace = taut_take_span(&rest, plan.trace);
    p->sum = taut_take_sums(&rest, 1);
    p->run = (taut_run){ .k = k, .scratch = rest, .host = { (taut_real *)p->host, plan.host, sizeof(double) } };
    stand(p, x);
    if (isfinite(taut_dot(k, p->sum, p->y.data, p->y.data, ny))) return TAUT_OK;
    const taut_status s = k->read(NULL, NULL, 0); /* a device that failed */
    taut_probe_free(p);
    return s ? s : taut_fail(TAUT_BAD_DATA, "the output at this input is not finite");
}

void taut_probe_free(taut_probe *p)
{
    if (p->memory) p->run.k->release(p->memory);
    free(p->host);
    *p = (taut_probe){ 0 };
}
