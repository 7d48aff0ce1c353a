/* Every module there is: its constructor, and what may be seen of it from outside.
 *
 * NULL when memory is out.  A combinator owns its children from the call on, even if it fails, and a NULL child makes a
 * NULL parent: a nested build needs one check, at the end. */
#ifndef TAUT_MODULE_MODULES_H
#define TAUT_MODULE_MODULES_H
#include "module/module.h"

taut_module *taut_linear(int64_t out, int64_t in, bool bias, taut_init init, double gain);
taut_module *taut_linear_turn(int64_t width); /* square, without bias, orthogonal from the start and while it trains */
taut_module *taut_linear_unit(int64_t out, int64_t in,
                              bool bias);                    /* orthogonal; its rows have length 1 while it trains */
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
taut_module *taut_pool_mean_any(void); /* the same, with a bound for every number of tokens up to that of the region */
taut_module *taut_pool_first(void);
taut_module *taut_l2pool(void);                         /* feature by feature the l2 norm over all tokens */
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
const taut_param *taut_plash_prototypes(const taut_module *); /* (groups, width); NULL: it is no PLASH */
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

/* What the following kinds share, as in taut_attention_spec. */
typedef struct {
    int64_t width, heads, queries;
    double scale, out;
    bool causal, bias;
    taut_init init;
    double gain, out_gain;
} taut_around;
taut_module *taut_window(const taut_around *, int64_t size, int64_t global);  /* neighbourhoods, and global tokens */
taut_module *taut_cosformer(const taut_around *, int64_t tokens, double eps); /* at most so many tokens; has no scale */
taut_module *taut_performer(const taut_around *, int64_t features, uint64_t seed); /* FAVOR+, orthogonal features */
taut_module *taut_nystrom(const taut_around *, int64_t landmarks, int steps); /* Nystromformer; no Lipschitz constant */
/* Any of them without its projections, o from q, k and v; `trace` and scratch as planned for the shape of q. */
taut_plan taut_core_plan(const taut_module *, taut_shape q);
void taut_core_run(const taut_module *, taut_run *, taut_tensor o, taut_tensor q, taut_tensor k, taut_tensor v,
                   taut_span trace);

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
    int most;         /* steps of descent on its way to the tolerance; 0: 2000 */
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
    double fade; /* g_h = (1 + so many tokens)^-fade */
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
