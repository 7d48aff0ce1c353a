/* The same bits for any batch size, order of the examples, thread count, and whether the others were done before: an
 * example's result is its own. */
#include "targets.h"
#include "taut.h"

enum { N = 23, DIM = 48 };
static int compared, mixed;

typedef struct {
    double adv[N][DIM];
    bool broken[N];
} outcome;

/* Examples order[0..count-1] of the whole set, attacked together. */
static void run(outcome *out, net *m, const taut_profile *p, taut_ball_kind kind, const double *x, const int *order,
                int count, int64_t batch, int threads)
{
    taut_target t = net_target(m, true, batch);
    field f;
    t.channels = 3, t.height = t.width = 4;
    taut_threads_set(threads);
    field_open(&f, &t, count);
    for (int i = 0; i < count; i++) {
        memcpy(f.x + i * DIM, x + order[i] * DIM, DIM * sizeof *x);
        f.id[i] = (uint64_t)order[i];
    }
    field_label(&f);
    f.h.ball = (taut_ball){ kind, kind == TAUT_BALL_LINF ? 0.03 : kind == TAUT_BALL_L2 ? 0.15 : 0.4, 0, 1 };
    field_attack(&f, p);
    for (int i = 0; i < count; i++) {
        out->broken[order[i]] = f.h.broken[i];
        memcpy(out->adv[order[i]], f.h.adv + i * DIM, sizeof out->adv[0]);
    }
    field_close(&f);
    taut_target_done(&t);
}

static void same(const outcome *a, const outcome *b, const char *what)
{
    for (int i = 0; i < N; i++) {
        CHECK(a->broken[i] == b->broken[i], what);
        if (a->broken[i]) CHECK(memcmp(a->adv[i], b->adv[i], sizeof a->adv[0]) == 0, what);
        compared += a->broken[i];
    }
}

static void profile(net *m, const char *name, taut_ball_kind kind)
{
    static outcome whole, other;
    double x[N * DIM];
    int order[N], broken = 0;
    taut_profile p;
    must(taut_profile_find(&p, name, kind, (taut_profile_options){ .steps = 12, .queries = 40 }));
    for (int i = 0; i < N * DIM; i++) x[i] = rng_unit();
    for (int i = 0; i < N; i++) order[i] = i;
    run(&whole, m, &p, kind, x, order, N, NET_BATCH, 2);
    for (int i = 0; i < N; i++) broken += whole.broken[i];
    mixed += broken > 0 && broken < N;
    run(&other, m, &p, kind, x, order, N, 1, 1);
    same(&whole, &other, "one at a time");
    run(&other, m, &p, kind, x, order, N, 5, 3);
    same(&whole, &other, "batches of five");
    for (int i = 0; i < N; i++) {
        const int k = (int)rng_int(i, N - 1), keep = order[i];
        order[i] = order[k], order[k] = keep;
    }
    for (int first = 0; first < N; first += 6)
        run(&other, m, &p, kind, x, order + first, first + 6 < N ? 6 : N - first, NET_BATCH, 2);
    same(&whole, &other, "shuffled, six at a time");
}

int main(void)
{
    test_begin();
    net m = net_make(DIM, 24, 5);
    static const char *const names[] = { "fgsm", "pgd", "aa-standard", "aa-plus", "ta-10", "square" };
    for (case_no = 0; case_no < 18; case_no++) profile(&m, names[case_no / 3], (taut_ball_kind)(case_no % 3));
    net_free(&m);
    CHECK(mixed >= 8, "mostly some are broken and some are not");
    return test_end("same", "%d broken inputs compared bit by bit", compared);
}
