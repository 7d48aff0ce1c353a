/* THE FIVE ANSWERS.  A module is a function with parameters that can say
 *     forward  y = f(x), filling a trace
 *     vjp      gx = J^T gy at that trace, adding into parameter gradients when asked
 *     jvp      ty = J tx at that trace
 *     bound    a proved Lipschitz constant and how large f(x) can be, asked about a region of inputs
 *     params   its named weights
 * and plan(), the sizes of all this.  A composition of modules is a module.
 *
 * Running a module never changes it, so one tree serves many points and threads.  at.x must outlive the
 * trace: a leaf keeps no copy of its input.  forward, jvp and vjp overwrite their output; vjp adds into
 * parameter gradients.  Outputs never alias inputs. */
#ifndef TAUT_MODULE_H
#define TAUT_MODULE_H
#include "bound/ledger.h"
#include "bound/up.h"
#include "kernels/promise.h"
#include "module/constant.h"

typedef struct taut_module taut_module;
typedef struct taut_answer taut_answer;

typedef struct {
    taut_shape out;
    int64_t trace, scratch; /* elements */
    int64_t host;           /* doubles on the host, beside the scratch: what solvers know of each example */
} taut_plan;
typedef struct {
    taut_tensor x;
    taut_span trace;
} taut_point; /* where jvp and vjp are taken */

/* What a run is for.  USE: the network as its users see it.  TRAIN: dropout tosses coins, and a module that changes in
 * the course of training is as far as `step` of `steps`.  PROVE: solvers prove their residuals (on ref); an example
 * that misses its tolerance abstains: its output is NaN. */
typedef struct {
    enum { TAUT_PHASE_USE, TAUT_PHASE_TRAIN, TAUT_PHASE_PROVE } kind;
    uint64_t key;        /* TRAIN: names this step's coins; 0: none are tossed */
    int64_t step, steps; /* TRAIN: the number of this step, from 0, and how many there are */
} taut_phase;

/* What solvers took, summed over examples. */
typedef struct {
    int64_t solves, gradients, values, products, abstained; /* abstained: did not reach the tolerance */
    double residual; /* the largest among the examples that reached it; proved when the phase is PROVE */
    const char *why; /* reason of the first example that abstained */
} taut_solves;

/* Who watches a run: penalties and statistics.  Modules show what they have and know no watcher by name.  NULL: it
 * does not look. */
typedef struct {
    /* vjp of softmax attention calls it: q and k as they enter the logits; gq and gk are their gradients, to add to */
    void (*rows)(void *arg, const taut_kernels *, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                 const taut_attn *);
    void (*solved)(void *arg, const taut_solves *); /* what the solver of a module took in one call */
    void *arg;
} taut_watcher;

typedef struct {
    const taut_kernels *k;     /* the only way a module touches numbers */
    taut_span scratch, host;   /* stacks: save a copy, take, restore the copy; host: of doubles, on the host */
    bool param_grads;          /* off for measure and attack */
    taut_phase phase;          /* zeros: USE */
    taut_products products;    /* how k has been told to multiply */
    const taut_watcher *watch; /* or NULL */
} taut_run;

static inline void taut_solves_add(void *total, const taut_solves *s) /* as a watcher's `solved` */
{
    taut_solves *t = (taut_solves *)total;
    t->solves += s->solves, t->gradients += s->gradients, t->values += s->values, t->products += s->products;
    t->abstained += s->abstained;
    if (s->residual > t->residual) t->residual = s->residual;
    if (!t->why) t->why = s->why;
}

/* A QUESTION: for which inputs, and in which norm, a bound is wanted.  The region is every x that satisfies
 *     |x_t|_2 <= size              for every token t,
 *     |x - centre| <= radius       in `norm`, where there is a centre: x and trace of a forward pass,
 *     x = p + e, as in taut_box    where the box is known.
 * A module may ignore the centre and the box: what it then proves is about a larger region.  TOKENS measures a change
 * by its largest token, FLAT by the l2 norm over everything. */
typedef enum { TAUT_NORM_TOKENS, TAUT_NORM_FLAT } taut_norm;
typedef struct {
    bool known;    /* x is an image: x = p + e, every entry of p in [0, 1] */
    taut_up moved; /* |e|_2 <= moved */
} taut_box;
typedef struct {
    taut_norm norm;
    int64_t tokens; /* per example */
    taut_up size;
    taut_up whole; /* |x|_2 <= whole, all tokens together; 0: nothing better than sqrt(tokens) size is known */
    taut_box box;
    taut_point centre;         /* x.data NULL: no centre, and radius says nothing */
    taut_up radius;            /* how far a real input can be from the centre, which is a computed one */
    const taut_promise *table; /* whose arithmetic an answer's `round` is about; NULL: the ref kernels' */
    taut_ledger *ledger;       /* who writes the proof down; NULL: nobody */
    void (*hear)(const taut_module *, const taut_answer *, void *hearer); /* is told every answer; or NULL */
    void *hearer;
} taut_ask;

/* AN ANSWER: what holds for f on the region, if its input carries no error.  Whoever composes modules composes their
 * answers (bound.c), errors included.  Distances are in the question's norm. */
struct taut_answer {
    taut_up lip;
    taut_up size;  /* no token of f(x) is longer, as real numbers or as the kernels compute it */
    taut_up whole; /* nor are all tokens together; 0: unknown.  No constant is made of it, only rounding */
    taut_up move; /* f(x) is no further from the computed f(centre); from ops->bound: from the real one, 0 if unknown */
    taut_up round;  /* f(x) is no further from what the kernels compute */
    taut_up defect; /* the part of `round` that comes from solvers' tolerances, for both inputs of a pair together */
    int64_t tokens; /* per example, of f(x) */
};

/* What a weight is for.  MATRIX: Muon and spectral caps act on it.  TABLE: it has one row per token.  LOGITS: no
 * constant in the norm tokens depends on it. */
typedef enum { TAUT_MATRIX, TAUT_VECTOR, TAUT_TABLE, TAUT_LOGITS } taut_role;
typedef enum {
    TAUT_INIT_ZERO,
    TAUT_INIT_ONE,
    TAUT_INIT_NORMAL,
    TAUT_INIT_ORTHOGONAL,
    TAUT_INIT_SPECTRAL, /* normal, then divided by its largest singular value */
    TAUT_INIT_CONSTANT,
    TAUT_INIT_NEAR,  /* row h has a peak at the offset taut_offset(h); gain: the column of offset 0 */
    TAUT_INIT_FAR,   /* the same with the far offsets of taut_offset */
    TAUT_INIT_TORUS, /* row h has a peak at its own token or a neighbour; gain: tokens per row of the torus */
} taut_init;
typedef struct taut_param {
    const char *name;
    int64_t rows, cols; /* a matrix maps cols features to rows features: y = W x */
    taut_role role;
    taut_init init;
    double gain;     /* what init needs: standard deviation, every or the largest singular value, constant, column */
    bool orthogonal; /* training keeps this square matrix orthogonal */
    bool unit_rows;  /* training keeps every row at length 1, with AdamW's steps along the sphere */
    int64_t parts;   /* the rows are this many equal blocks (heads), each a matrix by itself; 0: one block */
    taut_real *value, *grad;
    const struct taut_param *above; /* training keeps this number at or above ||above||^2; or NULL */
} taut_param;

typedef struct taut_visitor {
    void (*see)(taut_param *, const char *path, void *arg); /* NULL: weights are skipped */
    void (*constant)(taut_constant *, void *arg);           /* NULL: constants are skipped */
    void *arg;
    char path[256]; /* where we are: "block.0.attn." */
} taut_visitor;

/* A walk through a tree that forward has run: every module, parents first, in the order of the computation. */
typedef struct taut_tour {
    void (*see)(const taut_module *, const char *name, int depth, taut_point at, void *arg);
    void *arg;
    int depth; /* of the root: 0 */
} taut_tour;

typedef struct {
    const char *kind;
    bool trains_only; /* the identity when the network is used */
    bool hands_on;    /* vjp is the identity, and its gx may be gy */
    bool inlined;     /* where it is the f of a mix, the ledger has its parts as the mix's own, and no node for it */
    taut_plan (*plan)(const taut_module *, taut_shape in);
    void (*forward)(const taut_module *, taut_run *, taut_tensor y, taut_point at);
    void (*jvp)(const taut_module *, taut_run *, taut_tensor ty, taut_tensor tx, taut_point at);
    void (*vjp)(const taut_module *, taut_run *, taut_tensor gx, taut_tensor gy, taut_point at);
    taut_answer (*bound)(const taut_module *, taut_ask); /* on a ref model: weights are doubles */
    /* (optional) the answer for keep x + mix f(x), where the module knows a better one than the triangle inequality */
    taut_answer (*bound_mixed)(const taut_module *, taut_ask, double keep, double mix);
    /* (optional) the `round` of ask.table, where there is one, given the answer for ref, of keep x + mix f(x) where a mix
     * asks (strays.h).  NULL: nobody knows, +inf */
    taut_up (*strays)(const taut_module *, taut_ask, const taut_answer *);
    bool composes; /* bound makes its round of its parts', whatever the table */
    void (*params)(taut_module *, taut_visitor *);
    /* (combinators only) each child, at the point where it stands once forward has filled the trace */
    void (*parts)(const taut_module *, taut_point at, taut_tour *);
    void (*describe)(const taut_module *, taut_ledger *); /* (optional) writes f's constants and its parts */
    void (*free)(taut_module *);
} taut_module_ops;

struct taut_module {
    const taut_module_ops *ops;
};

static inline taut_plan taut_plan_of(const taut_module *m, taut_shape in) { return m->ops->plan(m, in); }
static inline void taut_forward(const taut_module *m, taut_run *r, taut_tensor y, taut_point at)
{
    m->ops->forward(m, r, y, at);
}
static inline void taut_jvp(const taut_module *m, taut_run *r, taut_tensor ty, taut_tensor tx, taut_point at)
{
    m->ops->jvp(m, r, ty, tx, at);
}
static inline void taut_vjp(const taut_module *m, taut_run *r, taut_tensor gx, taut_tensor gy, taut_point at)
{
    m->ops->vjp(m, r, gx, gy, at);
}
static inline void taut_module_free(taut_module *m)
{
    if (m) m->ops->free(m);
}

static inline taut_up taut_whole(taut_ask in) /* |x|_2, all tokens together */
{
    const taut_up each = up_mul(up_sqrt(up_int(in.tokens)), in.size);
    return in.whole.v > 0 ? up_min(in.whole, each) : each;
}

/* How long one token is, for what rounding needs: mixing layers multiply `size`, but not `whole`. */
static inline taut_up taut_longest(taut_ask in) { return up_min(in.size, taut_whole(in)); }

/* The length, in the norm asked about, of an error that is at most `token` in every token. */
static inline taut_up taut_round_of(taut_ask in, taut_up token)
{
    return in.norm == TAUT_NORM_FLAT ? up_mul(up_sqrt(up_int(in.tokens)), token) : token;
}

/* bound.c: asks a module and writes its node into the ledger; `name` is what its parent calls it.  The answer's lip and
 * size are the stated ones, and its move is filled in. */
taut_answer taut_bound_of(const taut_module *, taut_ask);
taut_answer taut_bound_named(const taut_module *, const char *name, taut_ask);
taut_ask taut_ask_at(taut_ask, taut_point centre);          /* around this centre: size <= its longest token + radius */
taut_ask taut_ask_behind(taut_ask, taut_answer);            /* the question to the module that reads f(x) */
taut_answer taut_answer_then(taut_answer f, taut_answer g); /* the answer for g(f(x)); its move is unknown, 0 */
/* The answer for y = keep x + mix f(x): f's own (bound_mixed), else the triangle inequality's,
 *     Lip(y) <= |keep| + |mix| Lip(f),   |y| <= |keep| |x| + |mix| |f(x)|. */
taut_answer taut_bound_mixed(const taut_module *, const char *name, taut_ask, double keep, double mix);
taut_answer taut_bound_triangle(taut_answer f, taut_ask, double keep, double mix);

/* describe.c: writes a node that says which function this is, without weights and without what only training uses. */
void taut_describe(const taut_module *, const char *name, taut_ledger *);

/* params.c */
void taut_tour_parts(const taut_module *root, taut_point at,
                     void (*see)(const taut_module *, const char *name, int depth, taut_point at, void *arg),
                     void *arg);
void taut_tour_child(taut_tour *, const char *name, const taut_module *child, taut_point at);
void taut_params(taut_module *, void (*see)(taut_param *, const char *path, void *arg), void *arg);
void taut_visit_param(taut_visitor *, taut_param *);
void taut_visit_child(taut_visitor *, const char *name, taut_module *child);
static inline const double *taut_ref_values(const taut_param *p) { return (const double *)p->value; }
#endif
