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
#include "kernels/kernels.h"
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

/* What a run is for.  USE: the network as its users see it.  TRAIN: coins are tossed, and what grows while a run trains is as
 * far as this step.  PROVE: an example whose solver misses its tolerance, proved on ref, becomes NaN: it abstains. */
typedef struct {
    enum { TAUT_PHASE_USE, TAUT_PHASE_TRAIN, TAUT_PHASE_PROVE } kind;
    uint64_t key;        /* TRAIN: names this step's coins; 0: none are tossed */
    int64_t step, steps; /* TRAIN: this one, from 0, of so many */
} taut_phase;

/* What solvers took, summed over examples. */
typedef struct {
    int64_t solves, gradients, values, products, abstained; /* abstained: did not reach the tolerance */
    double residual; /* the largest that was left, of those that reached it: proved when the phase is PROVE */
    const char *why; /* reason of the first example that abstained */
} taut_solves;

/* Who watches a run: penalties and statistics.  Modules show what they have and know nobody by name; NULL: not looked at. */
typedef struct {
    /* in vjp, softmax attention's queries and keys as its logits are made of them, and their gradients, to add to */
    void (*rows)(void *arg, const taut_kernels *, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                 const taut_attn *);
    void (*solved)(void *arg, const taut_solves *); /* what one call of a module with a solver took */
    void *arg;
} taut_watcher;

typedef struct {
    const taut_kernels *k;     /* the only way a module touches numbers */
    taut_span scratch, host;   /* stacks: save a copy, take, restore the copy; host: of doubles, on the host */
    bool param_grads;          /* off for measure and attack */
    taut_phase phase;          /* zeros: USE */
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

/* A QUESTION: for which inputs, and in which norm, a bound is wanted.  The inputs are always a ball per token:
 * every token's l2 norm is at most `size`; and where there is a centre (a point that forward has been through, x and trace),
 * no further than `radius` from it in `norm`.  size holds by itself, so a module that knows nothing sharper about a centre
 * need not look at it.  TOKENS measures a change by its largest token, FLAT by the l2 norm over everything; `tokens` is how
 * many tokens an example has. */
typedef enum { TAUT_NORM_TOKENS, TAUT_NORM_FLAT } taut_norm;
typedef struct {
    bool known;    /* of images: x = p + e with every entry of p in [0, 1] */
    taut_up moved; /* and |e|_2 at most this */
} taut_box;
typedef struct {
    taut_norm norm;
    int64_t tokens;
    taut_up size;
    taut_box box;
    taut_point centre;   /* x.data NULL: the origin, and radius says nothing */
    taut_up radius;      /* of real inputs around the computed centre */
    taut_ledger *ledger; /* who writes the proof down; NULL: nobody */
    void (*hear)(const taut_module *, const taut_answer *, void *hearer); /* what every module answers; or NULL */
    void *hearer;
} taut_ask;

/* AN ANSWER: what follows for f, if the inputs are exact.  Who composes modules composes their answers (bound.c). */
struct taut_answer {
    taut_up lip;
    taut_up size; /* no token of f(x) is longer, as real numbers or as the ref kernels compute it */
    taut_up
        move; /* how far f(x) is from f(centre) at most; a module that leaves it 0 knows no more than lip * radius */
    taut_up round;  /* in the norm asked about: how far what the ref kernels compute is from f(x) */
    taut_up defect; /* share of `round` due to solver tolerance, summed over both points of a pair */
    int64_t tokens;
};

/* What a weight is for: matrices are what Muon and spectral caps act on; tables hold one row a token; no Lipschitz
 * constant in the norm tokens depends on logits. */
typedef enum { TAUT_MATRIX, TAUT_VECTOR, TAUT_TABLE, TAUT_LOGITS } taut_role;
typedef enum {
    TAUT_INIT_ZERO,
    TAUT_INIT_ONE,
    TAUT_INIT_NORMAL,
    TAUT_INIT_ORTHOGONAL,
    TAUT_INIT_SPECTRAL, /* normal, then divided by its largest singular value */
    TAUT_INIT_CONSTANT,
    TAUT_INIT_NEAR, /* row h has a peak where a query looks taut_offset(h) back; gain: the column of distance 0 */
    TAUT_INIT_FAR,
    TAUT_INIT_TORUS, /* row h has a peak at the head's own token or a neighbour of it; gain: tokens in a row of the torus */
} taut_init;
typedef struct taut_param {
    const char *name;
    int64_t rows, cols; /* a matrix maps cols features to rows features: y = W x */
    taut_role role;
    taut_init init;
    double gain;     /* standard deviation, every singular value, the largest one, or the constant */
    bool orthogonal; /* a square matrix that training keeps so */
    int64_t parts;   /* a matrix that is so many beside each other, equal blocks of rows (heads); 0: one */
    taut_real *value, *grad;
    const struct taut_param *above; /* a number that training keeps at or above ||above||^2; or NULL */
} taut_param;

typedef struct taut_visitor {
    void (*see)(taut_param *, const char *path, void *arg); /* NULL: weights are passed by */
    void (*constant)(taut_constant *, void *arg);           /* NULL: constants are passed by */
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
    bool inlined;     /* in a mix, its parts stand in the ledger as the mix's own */
    taut_plan (*plan)(const taut_module *, taut_shape in);
    void (*forward)(const taut_module *, taut_run *, taut_tensor y, taut_point at);
    void (*jvp)(const taut_module *, taut_run *, taut_tensor ty, taut_tensor tx, taut_point at);
    void (*vjp)(const taut_module *, taut_run *, taut_tensor gx, taut_tensor gy, taut_point at);
    taut_answer (*bound)(const taut_module *, taut_ask); /* on a ref model: weights are doubles */
    /* (optional) of keep x + mix f(x), where the module knows better than the triangle inequality */
    taut_answer (*bound_mixed)(const taut_module *, taut_ask, double keep, double mix);
    void (*params)(taut_module *, taut_visitor *);
    /* (combinators only) each child, at the point where it stands once forward has filled the trace */
    void (*parts)(const taut_module *, taut_point at, taut_tour *);
    void (*describe)(const taut_module *, taut_ledger *); /* (optional) the constants that make f, and its parts */
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

/* An error of at most `token` in every token, in the norm asked about. */
static inline taut_up taut_round_of(taut_ask in, taut_up token)
{
    return in.norm == TAUT_NORM_FLAT ? up_mul(up_sqrt(up_int(in.tokens)), token) : token;
}

/* bound.c: what a module answers, with its node in the ledger; `name` is what its parent calls it.  lip and size are as
 * stated, and move is filled in. */
taut_answer taut_bound_of(const taut_module *, taut_ask);
taut_answer taut_bound_named(const taut_module *, const char *name, taut_ask);
taut_ask taut_ask_at(taut_ask, taut_point centre);          /* no token is longer than the centre's and the radius */
taut_ask taut_ask_behind(taut_ask, taut_answer);            /* about what stands behind a module that answered so */
taut_answer taut_answer_then(taut_answer f, taut_answer g); /* of g(f(x)); nothing sharper about its move */
/* Of keep x + mix f(x): what f knows of it, else Lip <= |keep| + |mix| Lip(f), |y| <= |keep| |x| + |mix|
 * |f(x)|. */
taut_answer taut_bound_mixed(const taut_module *, const char *name, taut_ask, double keep, double mix);
taut_answer taut_bound_triangle(taut_answer f, taut_ask, double keep, double mix);

/* describe.c: a node that says which function this is, but for its weights.  What only matters in training is left out. */
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
