/* Borrow:  y = f(x), f a module that somebody else owns, so that a tree can be built around a part of another tree.
 *
 * jvp, vjp, bound, trace: those of f.  It visits no weights, which are f's owner's, and freeing it leaves f alone;
 * f must outlive it.  Gradients, where a run asks for them, go into f's own. */
#include "module/leaf.h"

typedef struct {
    taut_module base;
    const taut_module *f;
} borrow;

static const taut_module *lent(const taut_module *m) { return ((const borrow *)m)->f; }

static taut_plan borrow_plan(const taut_module *m, taut_shape in) { return taut_plan_of(lent(m), in); }

static void borrow_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    taut_forward(lent(m), run, y, at);
}

static void borrow_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    taut_jvp(lent(m), run, ty, tx, at);
}

static void borrow_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    taut_vjp(lent(m), run, gx, gy, at);
}

static taut_answer borrow_bound(const taut_module *m, taut_ask in)
{
    taut_answer b = taut_bound_of(lent(m), in);
    b.move = UP_ZERO;
    return b;
}

static void borrow_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    taut_tour_child(tour, "", lent(m), at);
}

static const taut_module_ops borrow_ops = {
    .kind = "borrow",
    .composes = true,
    .plan = borrow_plan,
    .forward = borrow_forward,
    .jvp = borrow_jvp,
    .vjp = borrow_vjp,
    .bound = borrow_bound,
    .params = leaf_no_params,
    .parts = borrow_parts,
    .free = leaf_free,
};

taut_module *taut_borrow(const taut_module *f)
{
    borrow *s = f ? taut_malloc(sizeof *s) : NULL;
    if (s) *s = (borrow){ { &borrow_ops }, f };
    return s ? &s->base : NULL;
}
