/* AttLip attention:  y = prox(x) = argmin_y f(y) + |y - x|^2 / (2 eta)   for every example, or 2 prox(x) - x;
 *     f(y) = 1/2 sum over heads and tokens i of ln sum_j exp( |v_i + v_j|^2 / sqrt(dh) - b_h |i - j| ),
 *     v_i = R_i W_h y_i, R_i a rotation that depends on the position (rope) or I, b_h = near 2^(-h/2) for head h = 0, 1, ...
 *
 * jvp    tp = (I + eta H)^-1 tx, H the second derivative of f at prox(x), by conjugate gradients; symmetric
 * vjp    u = (I + eta H)^-1 gp, gx = u,  gW_h += -eta (G_h^T u + (H_h[u W_h^T])^T p),  geta += u.(p - x)/eta,
 *        p = prox(x), G_h the gradient in V_h = p W_h^T.  Memory does not grow with the solver's steps.
 *        With K steps, unrolled: module/attlip_steps.c.
 * Bound  1 in norm flat (firmly non-expansive), sqrt(tokens) in norm tokens; its round carries the defect 2 eta tol of
 *        a solution that is only near; K steps: +inf.  docs/modules/attlip.md has the proofs.
 * Trace  p, what prox.h keeps, and the path of unrolled steps.
 * NaN      reaches its whole example.
 * PROVE    on the ref kernels: the residual is proved (bound/attlip.c), and an example above tol becomes NaN. */
#include <math.h>

#include "base/float32.h"
#include "bound/rounding.h"
#include "module/attlip.h"

static double root_of(const attlip *s, const taut_kernels *k)
{
    double root = 0;
    if (s->spec.learned) k->get(&root, s->root.value, 1);
    return root;
}

static double eta_of(const attlip *s, const taut_kernels *k)
{
    return s->spec.learned ? root_of(s, k) * root_of(s, k) : s->spec.eta;
}

static bool plain(const attlip *s) { return s->spec.steps > 0 || s->spec.solver >= TAUT_PROX_DESCENT; }

/* K steps come in K equal parts of the training: 1, then 2, ... */
static int steps_of(const attlip *s, const taut_phase *now)
{
    const int all = s->spec.steps;
    if (now->kind != TAUT_PHASE_TRAIN || now->steps == 0) return all;
    const int some = 1 + (int)(now->step * all / now->steps);
    return some < all ? some : all;
}

/* The problem at a trace, its scratch taken from run->scratch. */
static prox prox_of(const attlip *s, taut_run *run, taut_point at, attlip_kept *kept, taut_solves *log)
{
    const taut_attlip_spec *a = &s->spec;
    prox p = { .k = run->k,
               .shape = at.x.shape,
               .heads = a->heads,
               .dh = a->head_width,
               .scale = taut_float32(1 / sqrt((double)a->head_width)),
               .eta = eta_of(s, run->k),
               .near = a->near,
               .rope_base = a->rope_base,
               .x = at.x.data,
               .weight = s->weight.value,
               .host = run->host,
               .log = log };
    kept->p = taut_take(&at.trace, taut_len(at.x.shape));
    prox_lay_out(&p, &at.trace, &run->scratch);
    kept->steps = steps_of(s, &run->phase);
    kept->path = a->unrolled ? taut_take(&at.trace, kept->steps * taut_len(at.x.shape)) : NULL;
    kept->rates = a->unrolled ? taut_take(&at.trace, kept->steps * at.x.shape.n) : NULL;
    p.plain = plain(s);
    p.shift = p.plain ? 0 : 4 * p.scale;
    return p;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* forward: how every lane ended, its size, and the solver's numbers or the proof's.  Back: which lanes are stiff, their
 * tolerances and what those are made of. */
static int64_t host_len(const attlip *s, const prox *p)
{
    const int64_t n = p->shape.n, steps = s->spec.unrolled ? attlip_steps_host(s->spec.steps, n) : 0;
    const int64_t solver = p->plain ? prox_descent_host(p) + steps : prox_lbfgs_host(p);
    const int64_t forward = taut_host_len(n, sizeof(prox_lane_end)) + n + larger(solver, prox_proved_host(p));
    return larger(larger(forward, steps), taut_host_len(n, sizeof(bool)) + 4 * n + prox_cg_host(n));
}

static taut_plan attlip_plan(const taut_module *m, taut_shape in)
{
    const attlip *s = (const attlip *)m;
    const taut_attlip_spec *a = &s->spec;
    TAUT_CHECK(in.d == a->width, "attlip: width of the input");
    const prox p = { .shape = in, .heads = a->heads, .dh = a->head_width, .plain = plain(s) };
    const prox stiff = { .shape = in, .heads = a->heads, .dh = a->head_width, .plain = true };
    const int64_t len = taut_len(in), inner = in.n * prox_inner(&p), all = in.n * prox_lane(&p);
    const int64_t path = a->unrolled ? a->steps * (len + in.n) : 0;
    const int64_t back = larger(attlip_respond_used(&p), attlip_respond_used(&stiff));
    const int64_t forward = all + (p.plain ? 0 : inner + prox_ready_used(&p)) + prox_solve_used(&p);
    return (taut_plan){ in, len + prox_kept(in, a->heads, a->head_width) + path,
                        prox_used(in, a->heads, a->head_width) + larger(forward, back), host_len(s, &p) };
}

static void solve(const attlip *s, prox *p, attlip_kept *kept, prox_lane_end *end, taut_span scratch)
{
    const int64_t len = taut_len(p->shape), all = p->shape.n * prox_lane(p), inner = p->heads * p->dh;
    const taut_kernels *k = p->k;
    if (p->plain) {
        k->axpby(p->centre, 1 / p->eta, p->x, 0, len);
        k->axpby(kept->p, 1, p->x, 0, len);
        if (s->spec.solver == TAUT_PROX_BARZILAI)
            prox_barzilai(p, kept->p, end, scratch);
        else
            attlip_descend(p, kept, end, s->spec.most, scratch);
        return;
    }
    taut_real *a = taut_take(&scratch, all);
    prox_precondition(p, scratch);
    k->gemm(p->v, p->x, p->weight, taut_rows(p->shape), inner, p->shape.d, false, true, 1, 0);
    prox_begin(p, p->centre, p->v);
    k->axpby(a, 0, NULL, 0, all);
    if (s->spec.solver == TAUT_PROX_LBFGS) prox_lbfgs(p, a, end, scratch);
    if (s->spec.solver == TAUT_PROX_NEWTON) prox_newton(p, a, end, prox_together(p), scratch);
    prox_return(p, kept->p, a, p->x, scratch);
}

/* What is left over is proved, in plain coordinates, at the very numbers that go out. */
static void prove(const attlip *s, prox *p, attlip_kept *kept, prox_lane_end *end, taut_span scratch)
{
    prox at = *p; /* v, G and the rows become those of the very numbers */
    at.plain = true;
    at.shift = 0;
    at.k->axpby(at.centre, 1 / at.eta, at.x, 0, taut_len(at.shape));
    for (int64_t e = 0; e < at.shape.n; e++) {
        const double proved = prox_proved(&at, kept->p, e, scratch).v;
        end[e].done = proved <= s->spec.tol;
        if (!end[e].done && isfinite(proved) && end[e].at <= end[e].tol)
            end[e].why = "the tolerance is below the rounding of double";
        end[e].at = proved;
    }
}

static void note(taut_solves *log, const prox_lane_end *end)
{
    log->solves++;
    if (end->done && end->at > log->residual) log->residual = end->at;
    if (end->done) return;
    log->abstained++;
    if (!log->why) log->why = end->why; /* those behind it have NaN for an input */
}

static void show(const taut_run *run, const taut_solves *log)
{
    if (run->watch && run->watch->solved) run->watch->solved(run->watch->arg, log);
}

/* Where training multiplies in bf16 or TF32, solvers must not: with factors of 8 or 11 bits conjugate gradients come to a
 * stand above their tolerance.  FP32 is refused by no table. */
static void begin_exact(const taut_run *run)
{
    if (run->products != TAUT_PRODUCTS_FP32) (void)run->k->products(TAUT_PRODUCTS_FP32);
}
static void end_exact(const taut_run *run)
{
    if (run->products != TAUT_PRODUCTS_FP32) (void)run->k->products(run->products);
}

static void attlip_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const attlip *s = (const attlip *)m;
    const taut_span mark = run->scratch;
    const int64_t n = at.x.shape.n, len = taut_len(at.x.shape), lane = n > 0 ? len / n : 0;
    const bool strict = run->phase.kind == TAUT_PHASE_PROVE;
    attlip_kept kept;
    taut_solves log = { 0 };
    begin_exact(run);
    prox p = prox_of(s, run, at, &kept, &log);
    prox_lane_end *end = taut_take_host(&p.host, n, sizeof *end);
    TAUT_CHECK(!strict || run->k->rigorous, "attlip: a residual is proved in double");
    double *square = taut_take_host(&p.host, n, sizeof *square);
    run->k->dot(p.sums, at.x.data, lane, at.x.data, lane, n, lane);
    (void)run->k->read(square, p.sums, n);
    for (int64_t e = 0; e < n; e++) {
        const double enough = s->spec.loose * sqrt(square[e]) / p.eta;
        end[e].tol = strict ? 0.5 * s->spec.tol : fmax(s->spec.tol, enough);
    }
    solve(s, &p, &kept, end, run->scratch);
    if (strict) prove(s, &p, &kept, end, run->scratch);
    run->k->axpby(y.data, s->spec.reflected ? 2 : 1, kept.p, 0, len);
    if (s->spec.reflected) run->k->axpby(y.data, -1, at.x.data, 1, len);
    for (int64_t e = 0; e < n; e++) {
        note(&log, &end[e]);
        taut_real *out = taut_at(run->k, y.data, e * lane);
        if (strict && !end[e].done) run->k->axpby(out, NAN, out, 0, lane);
    }
    show(run, &log);
    end_exact(run);
    run->scratch = mark;
}

static void attlip_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const attlip *s = (const attlip *)m;
    const taut_span mark = run->scratch;
    const int64_t len = taut_len(ty.shape);
    attlip_kept kept;
    taut_solves log = { 0 };
    begin_exact(run);
    prox p = prox_of(s, run, at, &kept, &log);
    taut_real *h = taut_take(&run->scratch, p.shape.n * prox_inner(&p));
    if (s->spec.unrolled)
        attlip_unrolled_jvp(&p, &kept, ty.data, tx.data, run->scratch);
    else
        attlip_respond(s, &p, ty.data, tx.data, h, run->scratch);
    if (s->spec.reflected) run->k->axpby(ty.data, -1, tx.data, 2, len);
    show(run, &log);
    end_exact(run);
    run->scratch = mark;
}

void attlip_eta_grad(const attlip *s, const taut_kernels *k, double slope)
{
    double grad;
    if (!s->spec.learned) return;
    k->get(&grad, s->root.grad, 1);
    grad += 2 * root_of(s, k) * slope;
    k->put(s->root.grad, &grad, 1);
}

void attlip_weight_grad(const attlip *s, const prox *p, const taut_real *u, const taut_real *y, const taut_real *h,
                        double by)
{
    const int64_t inner = p->heads * p->dh, rows = taut_rows(p->shape), d = p->shape.d;
    p->k->gemm(s->weight.grad, h, y, inner, d, rows, true, false, by, 1);
    p->k->gemm(s->weight.grad, p->g, u, inner, d, rows, true, false, by, 1);
}

static void attlip_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const attlip *s = (const attlip *)m;
    const taut_span mark = run->scratch;
    const taut_kernels *k = run->k;
    const int64_t len = taut_len(gy.shape);
    const double twice = s->spec.reflected ? 2 : 1;
    attlip_kept kept;
    taut_solves log = { 0 };
    begin_exact(run);
    prox p = prox_of(s, run, at, &kept, &log);
    if (s->spec.unrolled) {
        attlip_unrolled_vjp(s, run, &p, &kept, gx.data, gy.data, twice);
    } else {
        taut_real *h = taut_take(&run->scratch, p.shape.n * prox_inner(&p));
        attlip_respond(s, &p, gx.data, gy.data, h, run->scratch);
        if (run->param_grads) {
            attlip_weight_grad(s, &p, gx.data, kept.p, h, -p.eta * twice);
            const double pull = taut_dot(k, p.sums, gx.data, kept.p, len) -
                                taut_dot(k, p.sums, gx.data, at.x.data, len);
            attlip_eta_grad(s, k, twice * pull / p.eta);
        }
        k->axpby(gx.data, 0, NULL, twice, len);
    }
    if (s->spec.reflected) k->axpby(gx.data, -1, gy.data, 1, len);
    show(run, &log);
    end_exact(run);
    run->scratch = mark;
}

static taut_answer attlip_bound(const taut_module *m, taut_ask in)
{
    const attlip *s = (const attlip *)m;
    const taut_attlip_spec *a = &s->spec;
    const taut_up root = a->learned ? up_exact(*taut_ref_values(&s->root)) : UP_ZERO;
    const taut_up e = up_state(in.ledger, "eta", a->learned ? up_mul(root, root) : up_exact(a->eta));
    const bool sound = a->steps == 0 && e.v > 0 && isfinite(e.v);
    const taut_up spread = up_sqrt(up_int(in.tokens)), all = up_mul(spread, in.size);
    const taut_up twice = up_mul((taut_up){ a->reflected ? 4 : 2 }, up_mul(e, up_exact(a->tol)));
    const taut_up defect = up_state(in.ledger, "defect", sound ? twice : UP_NONE);
    const taut_up sum = up_round_sum(up_mul((taut_up){ 2 }, all), all),
                  round = a->reflected ? up_add(defect, sum) : defect;
    const taut_up one = { 1 }, lip = in.norm == TAUT_NORM_FLAT ? one : spread;
    return (taut_answer){ .lip = sound ? lip : UP_NONE,
                          .size = sound ? up_add(all, round) : UP_NONE,
                          .round = round,
                          .defect = defect,
                          .tokens = in.tokens };
}

static void attlip_params(taut_module *m, taut_visitor *v)
{
    attlip *s = (attlip *)m;
    taut_visit_param(v, &s->weight);
    if (s->spec.learned) taut_visit_param(v, &s->root);
}

static void attlip_describe(const taut_module *m, taut_ledger *l)
{
    const taut_attlip_spec *a = &((const attlip *)m)->spec;
    ledger_exact(l, "heads", (double)a->heads);
    ledger_exact(l, "eta", a->learned ? 0 : a->eta);
    ledger_exact(l, "tol", a->tol);
    ledger_exact(l, "reflected", a->reflected);
    ledger_exact(l, "steps", a->steps);
    ledger_exact(l, "near", a->near);
    ledger_exact(l, "rope", a->rope_base);
}

static const taut_module_ops attlip_ops = {
    .kind = "attlip",
    .plan = attlip_plan,
    .forward = attlip_forward,
    .jvp = attlip_jvp,
    .vjp = attlip_vjp,
    .bound = attlip_bound,
    .params = attlip_params,
    .describe = attlip_describe,
    .free = leaf_free,
};

taut_module *taut_attlip(const taut_attlip_spec *spec)
{
    TAUT_CHECK(spec->heads > 0 && spec->head_width > 0, "attlip: heads and their width must be positive");
    TAUT_CHECK(spec->eta > 0 && spec->tol > 0, "attlip: eta and tol must be positive");
    TAUT_CHECK(spec->near >= 0 && spec->rope_base >= 0, "attlip: near and rope_base cannot be negative");
    TAUT_CHECK(!spec->unrolled || (spec->steps > 0 && spec->solver == TAUT_PROX_DESCENT),
               "attlip: only a fixed number of descent steps can be unrolled");
    attlip *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (attlip){ .base = { &attlip_ops }, .spec = *spec };
    s->spec.eta = taut_float32(spec->eta);
    s->spec.tol = taut_float32(spec->tol);
    s->spec.near = taut_float32(spec->near);
    s->weight = (taut_param){ .name = "weight",
                              .rows = spec->heads * spec->head_width,
                              .cols = spec->width,
                              .init = spec->init,
                              .gain = spec->gain };
    s->root = (taut_param){
        .name = "root", .rows = 1, .cols = 1, .role = TAUT_VECTOR, .init = TAUT_INIT_CONSTANT, .gain = sqrt(spec->eta)
    };
    return &s->base;
}
