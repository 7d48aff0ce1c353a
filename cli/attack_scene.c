/* Opens what taut attack needs, and certifies its examples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attack.h"
#include "base/alloc.h"
#include "base/sha256.h"
#include "bound/up.h"

static taut_status read_examples(attack_scene *s)
{
    const taut_task *k = &s->data->task;
    const bool text = k->tokens > 0;
    const int64_t dim = s->target.dim, classes = s->target.classes, all = taut_source_count(s->data, TAUT_VALID) - text;
    if (all < 1)
        return taut_fail(TAUT_BAD_DATA, "the validation split has no example"); /* a last window may be partial */
    if (s->n > all) s->n = all;
    const size_t n = (size_t)s->n;
    int32_t *asked = taut_malloc((size_t)(k->asked + k->t) * sizeof *asked), *ids = asked ? asked + k->asked : NULL;
    s->x = taut_malloc(n * (size_t)dim * sizeof *s->x);
    s->z = taut_malloc(n * (size_t)classes * sizeof *s->z);
    s->label = taut_malloc(n * sizeof *s->label);
    if (!asked || !s->x || !s->z || !s->label) {
        free(asked);
        return taut_no_memory("examples");
    }
    for (int64_t e = 0; e < s->n; e++) {
        double *x = s->x + e * dim;
        s->data->ops->get(s->data, (taut_slot){ .ids = text ? ids : NULL, .reals = text ? NULL : x, .target = asked },
                          TAUT_VALID, e);
        if (text) taut_network_input(&s->target, x, (taut_input){ ids, NULL });
        s->label[e] = asked[k->asked - 1];
    }
    free(asked);
    s->text = text;
    taut_target_logits(&s->target, s->z, s->x, NULL, NULL, s->n);
    return TAUT_OK;
}

taut_status attack_open(attack_scene *s)
{
    uint64_t bytes;
    const cli_args *a = s->args;
    s->path = cli_model_path(a->operand[0]);
    taut_status status = s->path ? cli_model_open(&s->m, a->operand[0], cli_kernels(a), 0) : taut_no_memory("a path");
    if (!status) status = taut_sha256_file(s->sha, &bytes, s->path);
    if (!status && s->m.model->embed.rows > 0 && s->m.model->spec.arch != TAUT_ARCH_GPT)
        status = taut_fail(TAUT_BAD_CONFIG, "%s is an encoder: attacked are classes of images and next tokens",
                           s->path);
    if (!status && s->m.model->spec.arch == TAUT_ARCH_FORECASTER)
        status = taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: attacked are classes of images and next tokens",
                           s->path);
    if (!status) status = taut_network_open(&s->target, s->m.model);
    if (!status) status = cli_model_source(&s->data, &s->m, cli_text(a, "--data", NULL));
    if (!status && s->data->task.answers > s->target.classes)
        status = taut_fail(TAUT_BAD_DATA, "the data has %lld classes, the model %lld", (long long)s->data->task.answers,
                           (long long)s->target.classes);
    if (!status) status = read_examples(s);
    return status;
}

taut_status attack_certify(attack_scene *s, double room)
{
    taut_pass *pass = NULL;
    taut_status status = taut_certify(&s->cert, s->path, TAUT_NORM_FLAT, room);
    if (status) return status;
    if (!isfinite(s->cert.lip.v)) {
        s->why =
            "no finite Lipschitz constant is proved for this model, so nothing is certified (taut certify says where)";
        return TAUT_OK;
    }
    double *logits = taut_malloc((size_t)s->target.classes * sizeof *logits);
    s->radius = taut_malloc((size_t)s->n * sizeof *s->radius);
    s->predicted = taut_malloc((size_t)s->n * sizeof *s->predicted);
    status = logits && s->radius && s->predicted ? taut_pass_create(&pass, s->cert.model, 1, s->cert.tokens, false)
                                                 : taut_no_memory("certificates of the examples");
    for (int64_t e = 0; !status && e < s->n; e++) {
        const taut_input x = { NULL,
                               s->x + e * s->target.dim }; /* embeddings are floats, so they are the same in double */
        const taut_example found = taut_example_certify(&s->cert, pass, x, s->label[e], logits);
        s->radius[e] = found.radius.v;
        s->predicted[e] = found.predicted;
        cli_bar((double)(e + 1) / (double)s->n, "certifying examples");
    }
    cli_bar_end();
    if (!status) status = taut_network_open(&s->ref, s->cert.model);
    taut_pass_free(pass);
    free(logits);
    return status;
}

void attack_close(attack_scene *s)
{
    taut_campaign_close(&s->c);
    taut_network_close(&s->ref);
    taut_certificate_free(&s->cert);
    taut_network_close(&s->target);
    taut_source_free(s->data);
    cli_model_close(&s->m);
    cJSON_Delete(s->gallery);
    void *all[] = { s->path, s->x, s->z, s->label, s->radius, s->predicted };
    for (int i = 0; i < 6; i++) free(all[i]);
}

/* |d|_2 <= |d|_1 and |d|_2 <= sqrt(dim) |d|_inf. */
double attack_l2(const attack_scene *s, int eps)
{
    const taut_up e = up_exact(s->c.eps.value[eps]);
    return s->c.kind == TAUT_BALL_LINF ? up_mul(up_sqrt(up_int(s->target.dim)), e).v : e.v;
}

double attack_slack(const attack_scene *s) { return up_mul((taut_up){ 2 }, s->cert.round).v; }

int64_t attack_certified(const attack_scene *s, int eps)
{
    int64_t good = 0;
    for (int64_t e = 0; e < s->n; e++) good += s->predicted[e] == s->label[e] && s->radius[e] > attack_l2(s, eps);
    return good;
}
