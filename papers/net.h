/* Image networks for figures: trained once into a folder, opened with some test images, attacked, measured. */
#ifndef TAUT_PAPERS_NET_H
#define TAUT_PAPERS_NET_H
#include "api/net.h"
#include "attack/campaign.h"
#include "attack/network.h"
#include "cli/cli.h"
#include "papers/paper.h"
#include "train/train.h"

typedef struct {
    taut_net *m;
    taut_source *data;
    taut_target target;
    int64_t n;
    double *x, *z; /* (n, pixels), (n, classes) */
    int32_t *label;
} paper_net;

/* Trains recipe (its text, or the name of one that ends in .ini) and overrides ("section.key=value") into run, unless a run with
 * the very same settings is finished there; one that was interrupted goes on.  One with others, of another scale say, is
 * refused. */
taut_status paper_net_train(const paper_options *, const char *run, const char *recipe, const char *const *overrides,
                            int count) TAUT_MUST_USE;
/* A network that is to be trained; and what its recipe says with the overrides and at the scale. */
typedef struct {
    const paper_options *o;
    const char *run, *recipe;
    const char *const *overrides;
    int count;
    const taut_kernels *k;
} paper_plan;
taut_status paper_configure(taut_config **, const paper_plan *) TAUT_MUST_USE;
/* Refuses to begin what takes long, and says how long. */
taut_status paper_ask_first(const paper_plan *) TAUT_MUST_USE;
/* Says once, on stderr, how long the first network of a figure takes. */
void paper_tell_first(const taut_progress *);
/* The first n test images. */
taut_status paper_net_open(paper_net *, const paper_options *, const char *run, int64_t n) TAUT_MUST_USE;
void paper_net_close(paper_net *); /* fine after a failed open */

double paper_net_clean(const paper_net *); /* accuracy on its images */
/* The share that stands against each profile of a list ("fgsm,pgd") at one radius. */
taut_status paper_net_attack(double *left, paper_net *, const char *attacks, taut_ball_kind, const char *eps,
                             taut_profile_options) TAUT_MUST_USE;
/* JaSMin's protocol, Linf, in per cent: clean, FGSM at 2/255 and 4/255, PGD with 4 steps at both, ta-10 at 2/255 (brief: Square
 * has 100 queries). */
taut_status paper_net_protocol(double v[6], paper_net *, bool brief) TAUT_MUST_USE;
/* The largest singular value of the derivative, pixels to logits, at the first `count` images: attained, by Lanczos. */
taut_status paper_net_slopes(double *slope, paper_net *, int64_t count) TAUT_MUST_USE;
/* A number of a finished run's summary; NaN: not finished, or it has none of that name. */
double paper_summary(const char *run, const char *key);
/* Its proved constant in RMS units; +inf: none. */
taut_status paper_net_bound(double *bound, const char *run, taut_norm) TAUT_MUST_USE;
#endif
