/* Certificates of stored models. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/data.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/join.h"
#include "base/json.h"
#include "base/program.h"
#include "base/ranks.h"
#include "bound/far.h"
#include "bound/ledger.h"
#include "bound/shared.h"
#include "kernels/library.h"
#include "report/waterfall.h"
#include "verdict/account.h"
#include "verdict/noise.h"
#include "verdict/swaps.h"

struct taut_cert {
    taut_certificate proof;
    taut_predictions predictions;
    taut_swaps swaps; /* none: not asked for */
    taut_fall *fall;  /* the waterfall: `falls` lines, in the order of the network */
    int falls;
};

/* An encoder's windows come as they are: which token is asked for is decided where they are read. */
static void net_hides_nothing(taut_net *net)
{
    if (net && net->model->spec.arch == TAUT_ARCH_ENCODER) net->data.mask_rate = 0;
}

/* Refuses options that do not fit the model.  *rows becomes the largest length of a row of a forecaster's inputs, +inf
 * for all other models.  *data is opened only where examples or *rows come from it. */
static taut_status prepare(taut_data **data, double *rows, const char *model, const taut_model_spec *m,
                           const taut_certify_options *o)
{
    const bool series = m->arch == TAUT_ARCH_FORECASTER, asked = o->examples || o->inputs;
    taut_net *net = NULL;
    taut_up longest = UP_NONE;
    *rows = o->rows > 0 ? o->rows : INFINITY;
    if (!series && o->rows > 0) return taut_fail(TAUT_BAD_CONFIG, "rows is for forecasters");
    if (asked && series)
        return taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: certified are predictions of classes and next tokens",
                         model);
    if (o->inputs && m->headless)
        return taut_fail(TAUT_BAD_CONFIG, "%s gives features: own inputs have labels, and it predicts none", model);
    const bool needed = (asked && !o->inputs) || (series && !(o->rows > 0));
    taut_status s = needed ? taut_net_open(&net, model, NULL) : TAUT_OK;
    if (!s) net_hides_nothing(net);
    if (!s && needed) s = taut_data_open(data, net, o->data);
    taut_net_free(net);
    if (!s && series && needed) s = taut_rows_longest(&longest, (*data)->source, TAUT_TRAIN, TAUT_TEST);
    if (!s && series && needed) *rows = longest.v;
    return s;
}

static bool is_far(const taut_certify_options *o) { return o->kernels && strcmp(o->kernels, "cuda64") == 0; }

/* Where a device fails the host makes what is left of a proof, and that is as true; but who asked for the device is told. */
static taut_status device_lasted(const taut_certify_options *o)
{
    const taut_kernels *k = is_far(o) ? taut_kernels_find("cuda64") : NULL;
    return k ? k->read(NULL, NULL, 0) : TAUT_OK;
}

/* Certifies the caller's own inputs, or examples spread over the validation split. */
static taut_status predict(taut_cert *c, const char *path, const taut_data *data, const taut_certify_options *o)
{
    taut_ahead ahead = { .logits = NULL };
    taut_examples from = { .data = data ? data->source : NULL, .n = o->examples };
    if (o->inputs) {
        const taut_inputs *x = o->inputs;
        from = (taut_examples){ .ids = x->ids, .reals = x->reals, .labels = o->labels, .n = x->n, .t = x->t };
    }
    taut_status s = taut_examples_settle(&from, c->proof.model);
    if (!s && is_far(o) && !o->local) s = taut_ahead_make(&ahead, &c->proof, path, o->kernels, &from);
    const taut_predictions_way how = { o->local != 0, o->join, &ahead };
    if (!s) s = taut_predictions_make(&c->predictions, &c->proof, &from, &how, o->progress, o->arg);
    taut_ahead_free(&ahead);
    const taut_swaps_way way = { o->swaps, o->tries ? o->tries : 64, o->progress, o->arg };
    if (!s && o->swaps) s = taut_swaps_make(&c->swaps, &c->proof, &from, &way);
    return s ? s : device_lasted(o);
}

static taut_status read_falls(taut_cert *c)
{
    const cJSON *proof = cJSON_GetObjectItem(c->proof.json, "proof");
    c->falls = taut_waterfall(NULL, 0, proof);
    c->fall = taut_calloc((size_t)c->falls + 1, sizeof *c->fall);
    if (!c->fall) return taut_no_memory("the layers of a certificate");
    taut_waterfall(c->fall, c->falls, proof);
    return TAUT_OK;
}

static taut_status check_options(const taut_certify_options *o)
{
    if (o->metric != TAUT_OWN && o->metric != TAUT_TOKENS && o->metric != TAUT_FLAT)
        return taut_fail(TAUT_BAD_CALL, "metric %d is neither TAUT_OWN, TAUT_TOKENS nor TAUT_FLAT", (int)o->metric);
    if (!(o->room >= 0 && o->room <= 1e300) || !(o->rows >= 0))
        return taut_fail(TAUT_BAD_CALL, "room %g, rows %g", o->room, o->rows);
    if (!(o->tolerance >= 0 && o->tolerance <= 1e300))
        return taut_fail(TAUT_BAD_CALL, "tolerance %g is not a number from 0 to 1e300", o->tolerance);
    if (o->tolerance > 0 && !o->examples && !o->inputs)
        return taut_fail(TAUT_BAD_CALL, "tolerance is about examples, and there are none");
    if (o->runs_on && (o->tolerance > 0 || (!o->examples && !o->inputs)))
        return taut_fail(TAUT_BAD_CALL, "runs_on is about examples%s",
                         o->tolerance > 0 ? ", and makes a tolerance of its own" : ", and there are none");
    if (o->examples < 0) return taut_fail(TAUT_BAD_CALL, "%lld examples", (long long)o->examples);
    if (o->local && !o->examples && !o->inputs)
        return taut_fail(TAUT_BAD_CALL, "local is about examples, and there are none");
    if (o->swaps < 0 || o->swaps > TAUT_SWAPS_MOST || o->tries < 0 || o->tries > 1000000000)
        return taut_fail(TAUT_BAD_CALL, "%lld swaps (at most %d), %lld tries", (long long)o->swaps, TAUT_SWAPS_MOST,
                         (long long)o->tries);
    if (o->swaps && !o->examples && !o->inputs)
        return taut_fail(TAUT_BAD_CALL, "swaps are about examples, and there are none");
    if (o->join && (o->swaps || (!o->examples && !o->inputs)))
        return taut_fail(TAUT_BAD_CALL, "join shares examples%s", o->swaps ? ", and no swaps" : ": there are none");
    if (o->kernels && strcmp(o->kernels, "cuda") == 0)
        return taut_fail(TAUT_BAD_CALL, "proofs are made in double: on a device, by the kernels cuda64");
    if (o->kernels && !is_far(o) && !taut_kernels_find(o->kernels)) return TAUT_BAD_CALL;
    if (o->join && is_far(o)) return taut_fail(TAUT_BAD_CALL, "join shares examples among processes that use ref");
    return o->join ? taut_join_check(o->join) : TAUT_OK;
}

/* The device, tried; without one asked for, the host alone. */
static taut_status use_device(const taut_certify_options *o)
{
    const taut_far *far = is_far(o) ? taut_library_far() : NULL;
    const taut_status s = is_far(o) && !far ? TAUT_DEVICE : taut_far_use(far);
    const taut_kernels *k = s && far ? taut_kernels_find("cuda64") : NULL;
    return k && k->read(NULL, NULL, 0) ? TAUT_DEVICE : s; /* one that failed on trial says so itself */
}

typedef struct {
    const taut_certify_options *o;
    taut_status status;
} trial;

static void *try_device(void *arg)
{
    trial *t = arg;
    t->status = use_device(t->o);
    return NULL;
}

/* A device takes half a second to open, in which the file is read; one that fails is tried again, for this thread to know why. */
static taut_status open_both(taut_certificate *c, const char *path, const taut_certify_options *o)
{
    const taut_norm norm = o->metric == TAUT_FLAT ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
    trial t = { o, TAUT_DEVICE };
    pthread_t thread;
    const bool beside = is_far(o) && pthread_create(&thread, NULL, try_device, &t) == 0;
    const taut_status s = taut_certificate_open(c, path, norm, o->room);
    if (beside) (void)pthread_join(thread, NULL);
    if (beside && !t.status) return s;
    const taut_status device = use_device(o);
    if (device) return device;
    return beside ? taut_fail(t.status, "kernels cuda64: the device failed, and not when it was tried again") : s;
}

static taut_status prove(taut_certificate *c, const char *path, double rows, const taut_certify_options *o)
{
    const taut_status s = o->metric == TAUT_OWN ? taut_certificate_prove_own(c, path, rows)
                                                : taut_certificate_prove(c, rows);
    return s ? s : device_lasted(o);
}

/* Of several ranks each proves some of the norms, of the same file; the rest of the proof every one of them does. */
static taut_status share_norms(taut_status s, taut_certificate *c, const char *path, double rows,
                               const taut_certify_options *o)
{
    taut_ranks r;
    char asked[65] = "", program[65] = "";
    const taut_status opened = taut_ranks_open(&r);
    if (opened || r.count == 1) return s ? s : opened;
    snprintf(asked, sizeof asked, "%d %a %a", (int)o->metric, o->room, rows);
    s = taut_ranks_agree(&r, s ? s : taut_program_hash(program));
    if (!s) s = taut_ranks_same(&r, "program", program);
    if (!s) s = taut_ranks_same(&r, "options", asked);
    if (!s) s = taut_ranks_same(&r, "model", c->sha);
    if (!s) s = taut_norms_scout(&r);
    if (!s) s = taut_ranks_agree(&r, prove(c, path, rows, o));
    if (!s) s = taut_norms_tell(&r);
    taut_ranks_close(&r);
    return s;
}

taut_status taut_certify_file(taut_cert **out, const char *model, const taut_certify_options *options)
{
    taut_certify_options o;
    taut_data *data = NULL;
    double rows = 0;
    NEED(out);
    *out = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&o);
    if (s) return s;
    taut_cert *c = taut_calloc(1, sizeof *c);
    char *path = taut_model_path(model);
    s = c && path ? open_both(&c->proof, path, &o) : taut_no_memory("a certificate");
    if (!s) s = prepare(&data, &rows, model, &c->proof.model->spec, &o);
    if (!o.join) s = share_norms(s, c ? &c->proof : NULL, path, rows, &o);
    if (!s) s = prove(&c->proof, path, rows, &o);
    if (!s)
        s = o.runs_on ? taut_certificate_run_on(&c->proof, o.runs_on)
                      : taut_certificate_tolerate(&c->proof, o.tolerance);
    taut_norms_forget();
    if (!s && (o.examples || o.inputs)) s = predict(c, path, data, &o);
    if (!s) s = read_falls(c);
    taut_data_free(data);
    free(path);
    if (s)
        taut_cert_free(c);
    else
        *out = c;
    return s;
}

void taut_cert_free(taut_cert *c)
{
    if (!c) return;
    taut_predictions_free(&c->predictions);
    taut_swaps_free(&c->swaps);
    taut_certificate_free(&c->proof);
    free(c->fall);
    free(c);
}

taut_status taut_cert_look(const taut_cert *c, taut_cert_facts *out)
{
    NEED(c);
    NEED(out);
    const taut_certificate *p = &c->proof;
    *out = (taut_cert_facts){ p->lip.v,
                              p->body.v,
                              p->room.v,
                              taut_model_sees(p->model) ? NAN : p->reach.v,
                              p->rows.v,
                              p->defect.v,
                              p->round.v,
                              p->tokens,
                              c->predictions.count,
                              c->falls,
                              { 0 },
                              p->norm == TAUT_NORM_FLAT ? TAUT_FLAT : TAUT_TOKENS };
    memcpy(out->sha256, p->sha, sizeof out->sha256);
    return TAUT_OK;
}

taut_status taut_cert_example(const taut_cert *c, int64_t index, taut_prediction *out)
{
    NEED(c);
    NEED(out);
    const taut_predictions *p = &c->predictions;
    if (index < 0 || index >= p->count)
        return taut_fail(TAUT_BAD_CALL, "example %lld: this certificate has %lld", (long long)index,
                         (long long)p->count);
    const taut_example *e = &p->example[index];
    *out = (taut_prediction){ e->target,
                              e->predicted,
                              e->margin,
                              e->radius.v,
                              p->local ? p->local[index].lip.v : NAN,
                              p->local ? p->local[index].radius.v : NAN };
    return TAUT_OK;
}

taut_status taut_cert_swaps(const taut_cert *c, int64_t index, taut_swap_facts *out)
{
    NEED(c);
    NEED(out);
    const taut_swaps *s = &c->swaps;
    if (index < 0 || index >= s->count)
        return taut_fail(TAUT_BAD_CALL, "swaps of example %lld: this certificate has those of %lld", (long long)index,
                         (long long)s->count);
    const taut_swapped *x = &s->of[index];
    *out = (taut_swap_facts){ x->radius.v,
                              s->all,
                              x->safe[0],
                              x->safe[s->most - 1],
                              x->nearest.distance,
                              x->nearest.place,
                              x->nearest.from,
                              x->nearest.to,
                              x->tried,
                              x->turned,
                              x->beaten };
    return TAUT_OK;
}

taut_status taut_cert_layer(const taut_cert *c, int index, taut_layer_facts *out)
{
    NEED(c);
    NEED(out);
    if (index < 0 || index >= c->falls)
        return taut_fail(TAUT_BAD_CALL, "layer %d: this certificate has %d", index, c->falls);
    *out = (taut_layer_facts){ c->fall[index].path, c->fall[index].rule, c->fall[index].lip, c->fall[index].out };
    return TAUT_OK;
}

taut_status taut_cert_json(const taut_cert *c, char **json)
{
    NEED(c);
    NEED(json);
    *json = taut_json_text(c->proof.json, true);
    return *json ? TAUT_OK : taut_no_memory("the certificate");
}

taut_status taut_cert_report(const taut_cert *c, char **json)
{
    NEED(c);
    NEED(json);
    taut_up product = { 1 };
    cJSON *o = taut_account(&c->proof, &c->predictions), *list = cJSON_AddArrayToObject(o, "waterfall");
    if (c->swaps.count) cJSON_AddItemToObject(o, "swaps", taut_swaps_json(&c->swaps, &c->proof));
    for (int i = 0; i < c->falls; i++) {
        cJSON *row = cJSON_CreateObject();
        product = up_mul(product, (taut_up){ c->fall[i].lip });
        cJSON_AddStringToObject(row, "layer", c->fall[i].path);
        cJSON_AddStringToObject(row, "rule", c->fall[i].rule);
        cJSON_AddItemToObject(row, "times", up_json((taut_up){ c->fall[i].lip }));
        cJSON_AddItemToObject(row, "so_far", up_json(product));
        cJSON_AddItemToObject(row, "within", up_json((taut_up){ c->fall[i].out }));
        cJSON_AddItemToArray(list, row);
    }
    return taut_json_out(json, o, TAUT_OK);
}

taut_status taut_cert_save(const taut_cert *c, const char *path)
{
    char *text = NULL;
    NEED(path);
    taut_status s = taut_cert_json(c, &text);
    if (!s) s = taut_file_write(path, text, strlen(text));
    free(text);
    return s;
}
