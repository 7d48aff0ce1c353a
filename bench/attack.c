/* attack, and on a device gpu-attack: a small ViT (32 x 32 x 3, patches of 8, width 48, 3 blocks, 3 heads) under attack
 * beside the same in PyTorch, where python3 has it, in turns in the same run and with the same threads: PGD with 40
 * steps, and AutoAttack standard, both Linf.
 *
 * The radius is too small for a success, so that every step of every attack is made by both; the figures are images a
 * second.  (Where attacks succeed, taut drops the example at once and is faster by another factor.) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack/campaign.h"
#include "attack/network.h"
#include "base/alloc.h"
#include "base/config.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/peer.h"
#include "bench/timing.h"

static const char recipe[] = "[model]\narch = vit\nimage_height = 32\nimage_width = 32\nimage_channels = 3\npatch = "
                             "8\nclasses = 10\nwidth = 48\n"
                             "depth = 3\nheads = 3\nmlp = 96\npool = mean\npixel_mean = 0.5\npixel_std = 0.25\n";

enum { ROUNDS = 5, AA_ROUNDS = 1 };

/* Where, and how many images. */
typedef struct {
    const char *table, *torch; /* torch: threads, or its device; NULL: as many threads as we have */
    int64_t pgd, aa;
} place;

typedef struct {
    taut_model *m;
    taut_target t;
    double *x, *z;
    int32_t *label;
    char path[64];
} scene;

static taut_status make(scene *s, const char *table, int64_t images)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    char *printed = NULL;
    const taut_kernels *k = taut_kernels_find(table);
    if (!k) return TAUT_DEVICE;
    taut_status status = taut_config_parse(&cfg, recipe, "bench");
    if (!status) status = taut_model_spec_read(&spec, cfg);
    if (!status && !(printed = taut_config_print(cfg))) status = taut_no_memory("the recipe");
    if (!status) status = taut_model_create(&s->m, &spec, 0, printed, "", k);
    if (!status) status = taut_model_bind(s->m, false);
    if (!status) status = taut_model_init(s->m, 1);
    if (!status) status = taut_model_save(s->m, s->path);
    if (!status) status = taut_network_open(&s->t, s->m);
    free(printed);
    taut_config_free(cfg);
    if (status) return status;
    s->x = taut_malloc((size_t)(images * s->t.dim) * sizeof *s->x);
    s->z = taut_malloc((size_t)(images * s->t.classes) * sizeof *s->z);
    s->label = taut_malloc((size_t)images * sizeof *s->label);
    if (!s->x || !s->z || !s->label) return taut_no_memory("images");
    for (int64_t i = 0; i < images * s->t.dim; i++) s->x[i] = taut_rng_unit(1, (uint64_t)i);
    taut_target_logits(&s->t, s->z, s->x, NULL, NULL, images);
    for (int64_t e = 0; e < images; e++) s->label[e] = taut_argmax(s->z + e * s->t.classes, s->t.classes);
    return TAUT_OK;
}

static double ours(scene *s, const char *attack, int64_t images)
{
    taut_campaign c;
    const double start = bench_now();
    if (taut_campaign_open(&c, attack, TAUT_BALL_LINF, "1e-7", true, (taut_profile_options){ 0 }, 1, images))
        return NAN;
    const taut_status status = taut_campaign_run(&c, &s->t, s->x, s->z, s->label, images, NULL, NULL);
    const bool all = !status &&
                     taut_campaign_worst(&c, 0) == images; /* else steps were saved, and it is no comparison */
    taut_campaign_close(&c);
    return all ? bench_now() - start : NAN;
}

static void compare(cJSON *o, scene *s, bench_peer *p, const char *name, const char *attack, const char *ask,
                    int rounds, int64_t images)
{
    double us[ROUNDS], them[ROUNDS];
    char key[48], line[32];
    snprintf(line, sizeof line, "%s %lld", ask, (long long)images);
    for (int i = 0; i < rounds; i++) {
        us[i] = ours(s, attack, images);
        them[i] = p ? bench_peer_ask(p, line) : NAN;
    }
    const double mine = bench_median(us, rounds), other = bench_median(them, rounds);
    snprintf(key, sizeof key, "%s_images_per_s", name);
    cJSON_AddNumberToObject(o, key, (double)images / mine);
    if (!p) return;
    snprintf(key, sizeof key, "%s_torch_images_per_s", name);
    cJSON_AddNumberToObject(o, key, (double)images / other);
    snprintf(key, sizeof key, "%s_ratio", name);
    cJSON_AddNumberToObject(o, key, other / mine);
}

static cJSON *race(const place *at)
{
    scene s = { .path = "" };
    bench_peer p = { 0 };
    cJSON *o = NULL;
    char folder[] = "/tmp/taut_bench_XXXXXX";
    if (!mkdtemp(folder)) {
        taut_fail(TAUT_BAD_FILE, "no temporary folder could be made");
        return NULL;
    }
    snprintf(s.path, sizeof s.path, "%s/model.safetensors", folder);
    if (!make(&s, at->table, at->pgd)) {
        char threads[16], line[32];
        snprintf(threads, sizeof threads, "%d", taut_threads());
        snprintf(line, sizeof line, "pgd %lld", (long long)at->pgd);
        const bool torch = bench_peer_start(&p, "bench/attack_torch.py",
                                            (const char *const[]){ at->torch ? at->torch : threads, s.path, NULL });
        o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "threads", taut_threads());
        cJSON_AddNumberToObject(o, "weights", (double)taut_model_size(s.m));
        ours(&s, "pgd", at->pgd); /* warm up */
        if (torch) bench_peer_ask(&p, line);
        compare(o, &s, torch ? &p : NULL, "pgd40", "pgd", "pgd", ROUNDS, at->pgd);
        compare(o, &s, torch ? &p : NULL, "autoattack", "aa-standard", "aa", AA_ROUNDS, at->aa);
    }
    bench_peer_stop(&p);
    taut_network_close(&s.t);
    taut_model_free(s.m);
    free(s.x), free(s.z), free(s.label);
    remove(s.path), remove(folder);
    return o;
}

cJSON *bench_attack(void) { return race(&(place){ "cpu", NULL, 64, 32 }); }

cJSON *bench_gpu_attack(void) { return race(&(place){ "cuda", "cuda", 64, 32 }); }
