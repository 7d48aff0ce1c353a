#include "attack/attack.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"

double *taut_chase_work(const taut_chase *c) { return c->work + omp_get_thread_num() * 3 * c->h->target->dim; }

const uint64_t *taut_chase_keys(taut_chase *c, int64_t step, int64_t draw)
{
    for (int64_t i = 0; i < c->lives; i++) {
        const int64_t e = c->live[i];
        c->pass_key[e] = taut_rng_key(c->key[e], (uint64_t)step, (uint64_t)draw);
    }
    return c->pass_key;
}

void taut_chase_settle(taut_chase *c, const double *y)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim, classes = h->target->classes;
    int64_t left = 0;
    for (int64_t i = 0; i < c->lives; i++) {
        const int64_t e = c->live[i];
        if (taut_argmax(c->z + e * classes, classes) == h->label[e]) {
            c->live[left++] = e;
            continue;
        }
        memcpy(h->adv + e * dim, y + e * dim, (size_t)dim * sizeof *y);
        h->distance[e] = taut_ball_distance(h->ball.kind, h->x + e * dim, y + e * dim, dim);
        h->broken[e] = true;
    }
    c->lives = left;
}

/* From the rank-th wrong class of each example's clean logits to the next, the most likely first; equal logits by index.
 * rank 0: the first, whatever was in wrong. */
static void next_wrong(int32_t *wrong, const taut_hunt *h, int64_t rank)
{
    const int64_t classes = h->target->classes;
    for (int64_t e = 0; e < h->n; e++) {
        const double *z = h->z + e * classes;
        const int32_t last = rank ? wrong[e] : 0;
        int32_t best = -1;
        for (int32_t c = 0; c < classes; c++) {
            const bool below = rank == 0 || z[c] < z[last] || (c > last && z[c] == z[last]);
            if (c != h->label[e] && below && (best < 0 || z[c] > z[best])) best = c;
        }
        wrong[e] = best < 0 ? last : best; /* logits that are NaN have no order */
    }
}

static void one_run(taut_chase *c, int64_t target)
{
    static void (*const run[])(taut_chase *) = { taut_fgsm, taut_pgd, taut_apgd, taut_fab, taut_square };
    const taut_hunt *h = c->h;
    const uint64_t which = (uint64_t)c->a->kind * 8 + (uint64_t)c->a->loss,
                   number = (uint64_t)(c->restart * 4096 + target);
    c->lives = 0;
    for (int64_t e = 0; e < h->n; e++) {
        if (h->broken[e]) continue;
        c->live[c->lives++] = e;
        c->key[e] = taut_rng_key(taut_rng_key(h->seed, TAUT_RNG_ATTACK, h->id[e]), which, number);
    }
    if (c->lives) run[c->a->kind](c);
}

static taut_status make_room(taut_chase *c, char **memory)
{
    const taut_hunt *h = c->h;
    const size_t n = (size_t)h->n, dim = (size_t)h->target->dim, classes = (size_t)h->target->classes;
    const size_t work = 3 * dim * (size_t)omp_get_max_threads();
    double *d = taut_malloc((n * (TAUT_CHASE_ARRAYS * dim + classes + 5 + TAUT_CHASE_STATE / 8) + work) * sizeof *d);
    if (!d) return taut_no_memory("an attack");
    *memory = (char *)d;
    for (int i = 0; i < TAUT_CHASE_ARRAYS; i++) c->array[i] = d + (size_t)i * n * dim;
    c->z = d + TAUT_CHASE_ARRAYS * n * dim;
    c->loss = c->z + n * classes;
    c->live = (void *)(c->loss + n);
    c->key = (uint64_t *)(c->live + n);
    c->pass_key = c->key + n;
    c->state = c->pass_key + 2 * n; /* one n of them: the classes pulled to, as int32 */
    c->work = (void *)((char *)c->state + n * TAUT_CHASE_STATE);
    return TAUT_OK;
}

taut_status taut_attack_run(taut_hunt *h, const taut_attack *spec)
{
    taut_attack a = *spec;
    taut_chase c = { .h = h, .a = &a };
    char *memory = NULL;
    const int64_t others = h->target->classes - 1;
    a.loss = taut_loss_for(a.loss, h->target->classes);
    if (a.targets > others) a.targets = others;
    const taut_status s = make_room(&c, &memory);
    if (s) return s;
    int32_t *wrong = (int32_t *)(c.pass_key + h->n);
    for (c.restart = 0; c.restart < a.restarts; c.restart++)
        for (int64_t target = 0; target < (a.targets ? a.targets : 1); target++) {
            if (a.targets) next_wrong(wrong, h, target);
            c.wrong = a.targets ? wrong : NULL;
            one_run(&c, target);
        }
    free(memory);
    return taut_target_status(h->target); /* what a failure left is not robust */
}
