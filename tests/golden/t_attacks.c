/* Attacks against an oracle in Python that shares only the random numbers: tools/dump_attacks.py wrote the file.  The same
 * examples are broken, and the first adversarial input found is the same, which takes every step before it to be the same:
 * signs, projections, momentum, checkpoints, halvings, planes and windows. */
#include "attack/targets.h"
#include "golden.h"

enum { DIM = 27, HIDDEN = 10, CLASSES = 5, N = 8, RADII = 6 };
static double worst;
static int compared, held;

static void one(field *f, const taut_safetensors *st, const char *norm, const char *name)
{
    char key[64];
    taut_ball_kind kind;
    taut_profile p;
    if (!taut_ball_parse(&kind, norm)) abort();
    must(taut_profile_find(&p, name, kind, (taut_profile_options){ .queries = 300 }));
    snprintf(key, sizeof key, "%s.eps", norm);
    double *eps = golden_read(st, "", key, RADII);
    snprintf(key, sizeof key, "%s.%s.broken", norm, name);
    double *broken = golden_read(st, "", key, RADII * N), count = 0;
    for (int i = 0; i < RADII * N; i++) count += broken[i];
    snprintf(key, sizeof key, "%s.%s.adv", norm, name);
    double *adv = golden_read(st, "", key, (int64_t)count * DIM), *next = adv;
    for (int r = 0; r < RADII; r++) {
        f->h.ball = (taut_ball){ kind, eps[r], 0, 1 };
        field_attack(f, &p);
        for (int e = 0; e < N; e++) {
            CHECK(f->h.broken[e] == (broken[r * N + e] != 0), key);
            held += broken[r * N + e] == 0;
            if (broken[r * N + e] == 0) continue;
            const double error = f->h.broken[e] ? golden_distance(f->h.adv + e * DIM, next, DIM, 1) : 0;
            CHECK_LE(error, 1e-9, key); /* a hundred steps of rounding at 1e-16, times what the network magnifies */
            worst = fmax(worst, error), compared++, next += DIM;
        }
    }
    free(eps), free(broken), free(adv);
}

int main(void)
{
    static const char *const names[] = { "fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square" },
                             *const norms[] = { "Linf", "L2", "L1" };
    taut_safetensors *st = NULL;
    test_begin();
    golden_must(taut_safetensors_open(&st, "tests/golden/attacks.safetensors"));
    net m = { DIM,
              HIDDEN,
              CLASSES,
              golden_read(st, "", "w", HIDDEN * DIM),
              golden_read(st, "", "b", HIDDEN),
              golden_read(st, "", "v", CLASSES * HIDDEN),
              golden_read(st, "", "c", CLASSES),
              doubles(NET_LANES * NET_BATCH * HIDDEN),
              0 };
    taut_target t = net_target(&m, true, NET_BATCH);
    t.channels = t.height = t.width = 3;
    field f;
    field_open(&f, &t, N);
    double *x = golden_read(st, "", "x", N * DIM);
    memcpy(f.x, x, N * DIM * sizeof *x);
    field_label(&f);
    int32_t *label = golden_ids(st, "label", N);
    for (int e = 0; e < N; e++) CHECK(label[e] == f.label[e], "labels");
    f.h.seed = 11;
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < 8; a++) one(&f, st, norms[k], names[a]);
    CHECK(compared > 100 && held > 100, "some are broken and some are not");
    free(x), free(label);
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
    taut_safetensors_close(st);
    return test_end("attacks", "against Python: %d broken inputs within %.1e, %d held in both", compared, worst, held);
}
