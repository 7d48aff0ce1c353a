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

/* What solving for a proximal step took, summed over examples and layers; an abstention is an example that did not
 * reach its tolerance, with the last one's reason. */
typedef struct {
    int64_t solves, gradients, values, products, abstained;
    double residual; /* the largest that was left, of those that reached it: proved on ref when strict */
    const char *why; /* the first of them that abstained did */
} taut_prox_log;

typedef struct {
    const taut_kernels *k;     /* the only way a module touches numbers */
    taut_span scratch, host;   /* stacks: save a copy, take, restore the copy; host: of doubles, on the host */
    bool param_grads;          /* off for measure and attack */
    uint64_t dropout_key;      /* names this step's coins; 0: no dropout */
    bool strict;               /* a proximal step that misses its tolerance gives NaN: the example abstains */
    int prox_steps;            /* of a K-step proximal layer; 0: as many as it was built with */
    taut_prox_log *prox;       /* who counts; NULL: nobody */
    const taut_jasmin *jasmin; /* what every softmax attention's vjp adds the gradient of; NULL: nothing */
    int settle; /* n > 0: every PLASH puts its prototypes on its keys first, by k-center and n - 1 steps of Lloyd */
    taut_sum *jasmin_sum; /* collects weight times its value */
} taut_run;

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

/* Constructors.  NULL when memory is out.  A combinator owns its children from the call on, even if it
 * fails, and a NULL child makes a NULL parent: a nested build needs one check, at the end. */
taut_module *taut_linear(int64_t out, int64_t in, bool bias, taut_init init, double gain);
taut_module *taut_linear_turn(int64_t width); /* square, without bias, orthogonal from the start and while it trains */
taut_module *taut_linear_tied(taut_param *table, bool bias); /* y = table x: shares, does not own */
const taut_param *taut_linear_weight(const taut_module *);   /* W of a linear module */
taut_module *taut_pointwise(taut_curve, double factor);      /* y = factor * f(x) */
taut_module *taut_scale(double factor);
taut_module *taut_layernorm(int64_t d, double eps);
taut_module *taut_rmsnorm(int64_t d, double eps);
taut_module *taut_centernorm(int64_t d);
taut_module *taut_position(int64_t tokens, int64_t d, double gain); /* y_t = x_t + p_t, learned */
taut_module *taut_prefix(int64_t d, double gain);                   /* a learned token in front of all others */
taut_module *taut_dropout(double p, uint64_t id);
taut_module *taut_droppath(double p, uint64_t id);
taut_module *taut_channel(int64_t d, double first); /* y_c = a_c x_c, learned, a = first at the start */
taut_module *taut_maxmin(int64_t group);            /* groups of features sorted; 2: MaxMin, 0: the whole token */
typedef struct {
    int64_t height, width, channels, patch; /* patch 0: the whole image is one token */
    double mean[4], std[4];                 /* of each channel */
} taut_pixels_spec;
taut_module *taut_pixels_module(const taut_pixels_spec *); /* an image to normalised patches */
taut_module *taut_pool_mean(void);
taut_module *taut_pool_first(void);
taut_module *taut_concat(void);                         /* all tokens side by side as one */
taut_module *taut_tokens(int64_t first, int64_t count); /* those tokens alone */
taut_module *
taut_neighbours(int64_t cols); /* the first cols features of the token before, its own, those after; then the rest */
taut_module *taut_halve(void); /* every other token, the largest of it and its neighbours */
taut_module *taut_sinusoid(int64_t tokens,
                           int64_t d); /* y_t = x_t + sines and cosines of t, for at most so many tokens */
taut_module *taut_mix(taut_module *f, double keep, double mix);         /* keep x + mix f(x) */
taut_module *taut_parts(int64_t first, taut_module *f, taut_module *g); /* f of the first tokens, g of the others */
taut_module *taut_askers(int64_t first,
                         taut_module *f); /* the first tokens plus f of all of them; the others as they are */
taut_module *taut_sequence(int count, const char *const *names, taut_module *const *children);
taut_module *taut_heads(int count, taut_module *const *children); /* same input, outputs side by side */
taut_module *taut_borrow(const taut_module *); /* the module itself, which somebody else owns; no weights to visit */

typedef struct {
    int64_t width, hidden, out;
    taut_curve curve;
    double factor; /* times the activation */
    bool bias;
    taut_init init;
    double gain, out_gain; /* of the two matrices; 0: starts at zero */
} taut_mlp_spec;
taut_module *taut_mlp(const taut_mlp_spec *);

typedef struct {
    int64_t width, hidden;
    taut_curve curve;
    bool bias;
    taut_init init;
    double gain;
} taut_potential_spec;
taut_module *taut_potential(const taut_potential_spec *); /* x - (2/s) W^T f(W x + b), s a weight */
taut_module *taut_sll(const taut_potential_spec *);       /* x - 2 W^T T^-1 f(W x + b), T from W */

enum { TAUT_SKETCH_DEGREES = 4 };
typedef struct {
    int64_t in, out;
    int degrees; /* how many of the following count */
    int degree[TAUT_SKETCH_DEGREES];
    int64_t size[TAUT_SKETCH_DEGREES]; /* powers of two */
    double floor, tau;                 /* sketched is x / (max(|x|, floor) tau) */
    uint64_t seed;                     /* names the hash functions */
    bool fixed;                        /* entry i into bucket i instead of hashing: every size >= in */
    taut_init init;
    double gain;
} taut_sketch_spec;
taut_module *taut_sketch(const taut_sketch_spec *); /* sum over degrees of beta W TensorSketch */

typedef struct {
    int64_t width, heads; /* features of a token; heads of width/heads each */
    int64_t queries;      /* 0: self-attention; m: the first m tokens ask, the others are read */
    double scale, out;    /* logits times scale; output times out */
    bool causal, alibi, rope, bias;
    double rope_base;
    double gain, out_gain; /* initial standard deviation or singular value of q, k, v and of o */
    taut_init init;
} taut_attention_spec;
taut_module *taut_attention(const taut_attention_spec *);
/* A look into an attention module: its sizes and the weights of q, k, v, o; biases only where the spec has them. */
typedef struct {
    const taut_attention_spec *spec;
    const taut_param *weight[4], *bias[4];
} taut_attention_view;
bool taut_is_attention(const taut_module *); /* made by taut_attention */
taut_attention_view taut_attention_look(const taut_module *);
/* Heads first .. first+count-1 of a bound attention module without W_O, side by side: shares, does not own. */
taut_module *taut_attention_bare(const taut_kernels *, const taut_module *whole, int64_t first, int64_t count);

/* Which two of q, k and v PLASH compresses: the first is routed and compared, the second read, the third asks. */
typedef enum { TAUT_PLASH_KV, TAUT_PLASH_QV, TAUT_PLASH_QK } taut_plash_pair;
typedef struct {
    int64_t width, heads;
    int64_t queries;      /* as in taut_attention_spec */
    taut_plash_pair pair; /* other than KV only without `queries`: all three then have as many tokens */
    int64_t groups;       /* M: representatives, and prototypes a head */
    double tau;           /* temperature of the routing */
    int64_t features;     /* psi: a linear map to so many features and a GELU; 0: the identity */
    int degrees;          /* of the sketch, as in taut_sketch_spec */
    int degree[TAUT_SKETCH_DEGREES];
    int64_t size[TAUT_SKETCH_DEGREES];
    double floor, sketch_tau;
    uint64_t seed;
    bool fixed;          /* the deterministic reference in the place of the sketch */
    int mixers;          /* layers of the post-norm encoder over the representatives */
    int64_t mixer_heads; /* 0: as many as heads */
    int64_t hidden;      /* of its perceptrons */
    double norm_eps;
    double scale, out; /* logits of the readout times scale; output times out */
    bool bias;
    taut_init init;
    double gain, out_gain;
} taut_plash_spec;
taut_module *taut_plash(const taut_plash_spec *);
taut_module *taut_plash_middle(const taut_plash_spec *); /* its second stage alone, (M, 2 width) to (M, width) */
/* Its three stages alone, o from q, k and v; `trace` and scratch as planned for the shape of q. */
taut_plan taut_plash_core_plan(const taut_module *, taut_shape q);
void taut_plash_core(const taut_module *, taut_run *, taut_tensor o, taut_tensor q, taut_tensor k, taut_tensor v,
                     taut_span trace);

typedef struct {
    int64_t width, heads, queries;
    int64_t groups;    /* clusters a head */
    int steps;         /* of Lloyd's iteration that finds them */
    bool first;        /* to first order inside a cluster */
    double scale, out; /* as in taut_attention_spec */
    bool bias;
    taut_init init;
    double gain, out_gain;
} taut_clustered_spec;
taut_module *taut_clustered(const taut_clustered_spec *);
/* Either of them, where forward has been: heads side by side, before W_O.  False: it is something else. */
typedef struct {
    const taut_plash_spec *plash; /* NULL: clustered */
    int64_t heads, groups;
    double scale;
    bool first;
    const taut_real *cluster; /* (n, heads, keys) of clustered attention */
    taut_tensor q, k, v, o;
} taut_gathered;
bool taut_plash_look(taut_gathered *, const taut_module *, taut_point at);
bool taut_clustered_look(taut_gathered *, const taut_module *, taut_point at);

typedef struct {
    int64_t width, heads;
    int64_t factor;    /* of t tokens, factor ceil(ln t) look */
    double scale, out; /* as in taut_attention_spec */
    bool causal, bias;
    uint64_t seed; /* names the keys that are drawn */
    taut_init init;
    double gain, out_gain;
} taut_probsparse_spec;
taut_module *taut_probsparse(const taut_probsparse_spec *); /* Informer's, self-attention only; no Lipschitz constant */

typedef struct {
    int64_t width, heads;
    double tau, eps, out; /* logits tau n(q).n(k), n(z) = z / sqrt(|z|^2 + eps); output times out */
    bool values;          /* n(v) in the place of v */
    bool causal, alibi, rope, bias;
    double rope_base;
    double gain, out_gain;
    taut_init init;
} taut_cosattention_spec;
taut_module *taut_cosattention(const taut_cosattention_spec *);

typedef struct {
    int64_t width, heads;
    bool tied; /* values W_V A x, A = W_Q^T W_Q / sqrt(dh) of the head (Kim et al.); false: values W_V x, no bound */
    taut_init init;
    double gain, out_gain;
} taut_l2attention_spec;
taut_module *taut_l2attention(const taut_l2attention_spec *); /* logits -|W_Q x_i - W_Q x_j|^2 / sqrt(dh) */

typedef enum { TAUT_PROX_LBFGS, TAUT_PROX_NEWTON, TAUT_PROX_DESCENT, TAUT_PROX_BARZILAI } taut_prox_solver;
typedef struct {
    int64_t width, heads, head_width; /* heads * head_width may be less than width: the rest passes by untouched */
    double eta;                       /* strength of the step; where it starts when it is learned */
    bool learned;                     /* eta = root^2, root a weight */
    double tol;                       /* |residual| of an example that does not abstain */
    double loose;                     /* when not strict, |residual| <= loose |x| / eta is enough; 0: tol it is */
    double slope_tol;                 /* of the derivatives' linear system, relative */
    taut_prox_solver solver;
    int steps;        /* 0: to the tolerance; K: the paper's K steps, which are not Lipschitz: bound +inf */
    bool unrolled;    /* derivatives of those K steps themselves, not of the exact layer */
    bool reflected;   /* 2 prox(x) - x */
    double near;      /* what |i - j| tokens of distance take from a logit of head h: near 2^(-h/2) |i - j| */
    double rope_base; /* heads' vectors are turned by rotary positions of this base; 0: not */
    taut_init init;
    double gain;
} taut_attlip_spec;
taut_module *taut_attlip(const taut_attlip_spec *); /* prox of a convex potential of attention; never causal */

typedef struct {
    int64_t width, heads, context; /* at most so many tokens */
    bool causal, bias;
    bool far;    /* heads start looking 0, 2, 4, 8, ... tokens away instead of 0, 1, 2, 3, ... */
    int64_t row; /* > 0: the tokens, always `context` of them, lie on a torus in rows of so many; g_h = 1 */
    double gain, out_gain;
    taut_init init;
} taut_posattention_spec;
taut_module *taut_posattention(const taut_posattention_spec *);
typedef struct {
    const taut_posattention_spec *spec;
    const taut_param *table; /* logits by distance */
} taut_posattention_view;
bool taut_is_posattention(const taut_module *);
taut_posattention_view taut_posattention_look(const taut_module *);
int64_t taut_offset(int64_t head, bool far, int64_t context); /* how far away a head looks at the start */
#endif
