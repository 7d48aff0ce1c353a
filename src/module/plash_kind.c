/* model.attention = plash: its keys, and a layer of it. */
#include <stdlib.h>

#include "base/number.h"
#include "module/kind.h"

typedef struct {
    int64_t groups, features, mixers, hidden, seed;
    double tau, tau_g, floor, norm_eps;
    int hash, pair, prototypes;
    const char *degree_list, *size_list; /* as written, until they are checked */
    int degrees, degree[TAUT_SKETCH_DEGREES];
    int64_t size[TAUT_SKETCH_DEGREES];
} plash_own;

static double default_groups(const taut_site *s) { return s->context < 64 ? (double)s->context : 64; }
static double default_hidden(const taut_site *s) { return 2 * (double)s->width; }

#define AT(member) offsetof(plash_own, member)
static const taut_key plash_keys[] = {
    { "plash_groups", TAUT_KEY_INT, AT(groups), 0, 1, 1 << 20, .def_at = default_groups,
      .help = "M: representatives, and prototypes per head" },
    { "plash_tau", TAUT_KEY_REAL, AT(tau), 1, 1e-9, 1e9, .help = "temperature of the routing" },
    { "plash_tau_g", TAUT_KEY_REAL, AT(tau_g), 1, 1e-9, 1e9, .help = "temperature of the sketch" },
    { "plash_floor", TAUT_KEY_REAL, AT(floor), 1e-6, 1e-30, 1e9, .help = "least length that the sketch divides by" },
    { "plash_features", TAUT_KEY_INT, AT(features), 0, 0, 1 << 20,
      .help = "psi: a linear map to so many features and a GELU; 0: the identity" },
    { "plash_mixers", TAUT_KEY_INT, AT(mixers), 1, 0, 64, .help = "layers of the mixer" },
    { "plash_hidden", TAUT_KEY_INT, AT(hidden), 0, 1, 1 << 24, .def_at = default_hidden,
      .help = "hidden features of its perceptrons" },
    { "plash_norm_eps", TAUT_KEY_REAL, AT(norm_eps), 1e-5, 1e-12, 1, .help = "epsilon of its LayerNorms" },
    { "plash_seed", TAUT_KEY_INT, AT(seed), 1, 0, 0x1p62, .help = "names the hash functions" },
    { "plash_hash", TAUT_KEY_CHOICE, AT(hash), .words = "seeded|fixed",
      .help = "fixed: the deterministic reference in the place of the sketch" },
    { "plash_pair", TAUT_KEY_CHOICE, AT(pair), .words = "kv|qv|qk", .help = "which two of q, k, v are compressed" },
    { "plash_prototypes", TAUT_KEY_CHOICE, AT(prototypes), .words = "random|kcenter|kmeans",
      .help = "drawn at random, or put on keys before training" },
    { "plash_degrees", TAUT_KEY_TEXT, AT(degree_list), .words = "1 2", .help = "degrees of the features" },
    { "plash_sizes", TAUT_KEY_TEXT, AT(size_list), .words = "128", .help = "buckets of each degree" },
};

static taut_status check_degrees(plash_own *p)
{
    double degree[TAUT_SKETCH_DEGREES];
    p->degrees = taut_number_list(degree, TAUT_SKETCH_DEGREES, p->degree_list);
    for (int i = 0; i < p->degrees; i++) {
        bool fresh = degree[i] >= 1 && degree[i] <= 16 && degree[i] == (double)(int)degree[i];
        for (int j = 0; j < i; j++) fresh = fresh && degree[j] != degree[i];
        if (!fresh)
            return taut_fail(TAUT_BAD_CONFIG, "model.plash_degrees = %s wants different degrees from 1 to 16",
                             p->degree_list);
        p->degree[i] = (int)degree[i];
    }
    if (p->degrees >= 1) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "model.plash_degrees = %s wants 1 to %d numbers", p->degree_list,
                     TAUT_SKETCH_DEGREES);
}

static taut_status check_sizes(plash_own *p, int64_t width)
{
    double size[TAUT_SKETCH_DEGREES];
    const int64_t least = p->features ? p->features : 2 * width; /* entries that the reference must keep apart */
    const int given = taut_number_list(size, TAUT_SKETCH_DEGREES, p->size_list);
    if (given != 1 && given != p->degrees)
        return taut_fail(TAUT_BAD_CONFIG, "model.plash_sizes = %s wants one number, or one for each of %d degrees",
                         p->size_list, p->degrees);
    for (int i = 0; i < p->degrees; i++) {
        const double one = size[given == 1 ? 0 : i];
        const int64_t n = one >= 2 && one <= 1 << 20 ? (int64_t)one : 0;
        if (n == 0 || (double)n != one || n & (n - 1))
            return taut_fail(TAUT_BAD_CONFIG, "model.plash_sizes = %s wants powers of two from 2 to 1048576",
                             p->size_list);
        if (p->hash && n < least)
            return taut_fail(TAUT_BAD_CONFIG,
                             "model.plash_sizes = %s wants at least %lld, or model.plash_hash = seeded", p->size_list,
                             (long long)least);
        p->size[i] = n;
    }
    return TAUT_OK;
}

static taut_status plash_check(taut_attention_choice *c, const taut_site *s)
{
    plash_own *p = (void *)c->own.bytes;
    taut_status status = check_degrees(p);
    if (!status) status = check_sizes(p, s->width);
    if (!status && p->groups > s->context)
        status = taut_fail(TAUT_BAD_CONFIG, "model.plash_groups = %lld is more than the %lld tokens there are",
                           (long long)p->groups, (long long)s->context);
    p->degree_list = p->size_list = NULL;
    c->settle = p->prototypes == 2 ? 9 : p->prototypes; /* k-center, then eight steps of Lloyd */
    return status;
}

/* Where tokens were halved and fewer are left than groups, each has its own.  Every block hashes in its own way. */
static taut_module *plash_build(const taut_attention_choice *c, const taut_site *s)
{
    const plash_own *p = (const void *)c->own.bytes;
    taut_plash_spec spec = { .width = s->width,
                             .heads = s->heads,
                             .queries = s->queries,
                             .pair = s->queries ? TAUT_PLASH_KV : (taut_plash_pair)p->pair,
                             .groups = p->groups < s->tokens ? p->groups : s->tokens,
                             .tau = p->tau,
                             .features = p->features,
                             .degrees = p->degrees,
                             .floor = p->floor,
                             .sketch_tau = p->tau_g,
                             .seed = (uint64_t)p->seed + s->index,
                             .fixed = p->hash == 1,
                             .mixers = (int)p->mixers,
                             .hidden = p->hidden,
                             .norm_eps = p->norm_eps,
                             .scale = s->scale,
                             .out = s->out,
                             .bias = s->bias,
                             .init = s->init,
                             .gain = s->gain,
                             .out_gain = s->out_gain == 0 ? 0 : s->gain };
    for (int i = 0; i < p->degrees; i++) spec.degree[i] = p->degree[i], spec.size[i] = p->size[i];
    return taut_plash(&spec);
}

_Static_assert(sizeof(plash_own) <= sizeof(((taut_attention_choice *)0)->own), "the largest struct of a kind");
const taut_attention_kind taut_kind_plash = {
    .name = "plash",
    .page = "plash",
    .can = TAUT_CAN_CROSS | TAUT_CAN_SCALE,
    .keys = plash_keys,
    .count = sizeof plash_keys / sizeof *plash_keys,
    .check = plash_check,
    .build = plash_build,
};
