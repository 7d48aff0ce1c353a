/* What a stored classifier says of somebody's own images or texts, and how far each may move before that can change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "bound/ledger.h"
#include "certify/example.h"
#include "data/labelled.h"
#include "data/unlabelled.h"
#include "verdict/account.h"

/* What one input is turned into. */
typedef struct {
    taut_certificate *c;
    const taut_net *net;
    taut_pass *pass;
    int32_t *ids;
    double *reals, *logits;
    int64_t all; /* tokens of a text before it is cut */
} desk;

static taut_status check_model(const taut_net *net)
{
    const taut_arch arch = net->model->spec.arch;
    const taut_status s = taut_net_predicts(net);
    if (s) return s;
    if (net->model->spec.ahead) return taut_fail(TAUT_BAD_DATA, "a forecaster has no classes (taut forecast)");
    if (!taut_arch_reads_images(arch) && arch != TAUT_ARCH_CLASSIFIER)
        return taut_fail(TAUT_BAD_DATA, "classes are predicted by image models and classifiers of texts, not by a %s",
                         taut_arch_name(arch));
    return TAUT_OK;
}

static taut_status read_files(taut_unlabelled *u, const taut_net *net, const taut_predict_options *o)
{
    const taut_pixels_spec *i = &net->model->spec.image;
    const bool images = taut_arch_reads_images(net->model->spec.arch);
    taut_status s = TAUT_OK;
    bool tables = false;
    for (int k = 0; k < o->files; k++) tables = tables || taut_text_table(o->file[k]);
    if (images && o->text) return taut_fail(TAUT_BAD_CALL, "columns of text are for classifiers of texts");
    if (!tables && o->text) return taut_fail(TAUT_BAD_CALL, "%s: columns are those of .csv and .tsv files", o->file[0]);
    if (!images && o->resize) return taut_fail(TAUT_BAD_CALL, "resize is for image models");
    for (int k = 0; !s && k < o->files; k++)
        s = images ? taut_unlabelled_images(u, o->file[k], (taut_frame){ i->height, i->width, i->channels },
                                            o->resize || net->data.side)
                   : taut_unlabelled_texts(u, o->file[k], o->text ? o->text : net->data.text);
    return s;
}

static taut_status lay_out(desk *d, taut_input *x, const taut_unlabelled_one *one)
{
    const taut_model *m = d->c->model;
    *x = (taut_input){ one->text ? d->ids : NULL, one->text ? NULL : d->reals };
    if (one->text) return taut_labelled_encode(d->ids, m->in.t, &d->all, d->net->vocab, one->text);
    for (int64_t i = 0; i < m->in.t * m->in.d; i++) d->reals[i] = one->pixels[i] / 255.0;
    return TAUT_OK;
}

/* Softmax of what the certified pass computed; nothing is proved of these numbers. */
static cJSON *probabilities(const double *logits, int64_t classes, int32_t top)
{
    double sum = 0;
    for (int64_t i = 0; i < classes; i++) sum += exp(logits[i] - logits[top]);
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = 0; i < classes; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(exp(logits[i] - logits[top]) / sum));
    return list;
}

static cJSON *describe(const desk *d, const taut_unlabelled_one *one, const taut_example *e, const cJSON *names)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", one->file);
    if (one->place >= 0) cJSON_AddNumberToObject(o, one->text ? "line" : "index", (double)one->place);
    const bool answers = isfinite(e->margin);
    if (answers) {
        cJSON *p = probabilities(d->logits, d->c->model->classes, e->predicted);
        cJSON_AddStringToObject(o, "class", cJSON_GetStringValue(cJSON_GetArrayItem(names, e->predicted)));
        cJSON_AddNumberToObject(o, "predicted", e->predicted);
        cJSON_AddNumberToObject(o, "probability", cJSON_GetNumberValue(cJSON_GetArrayItem(p, e->predicted)));
        cJSON_AddItemToObject(o, "probabilities", p);
    }
    cJSON_AddNumberToObject(o, "radius", answers ? e->radius.v : 0);
    cJSON_AddStringToObject(o, "verdict", !answers ? "no answer" : e->radius.v > 0 ? "certified" : "unknown");
    if (one->text) cJSON_AddBoolToObject(o, "cut", d->all > d->c->model->in.t);
    return o;
}

static taut_status judge(cJSON *answer, desk *d, const taut_unlabelled *u, const cJSON *names,
                         const taut_predict_options *o)
{
    cJSON *list = cJSON_AddArrayToObject(answer, "predictions");
    taut_input x;
    for (int64_t i = 0; i < u->count; i++) {
        const taut_unlabelled_one *one = &u->of[i];
        const taut_status s = lay_out(d, &x, one);
        if (s) return taut_fail(s, "%s:%lld: %s", one->file, (long long)one->place, taut_last_error());
        const taut_example e = taut_example_certify(d->c, d->pass, x, -1, d->logits);
        cJSON_AddItemToArray(list, describe(d, one, &e, names));
        if (o->progress && o->progress((double)(i + 1) / (double)u->count, o->arg))
            return taut_fail(TAUT_BAD_CALL, "stopped");
    }
    return TAUT_OK;
}

/* As many as the model has: names of the recipe, with commas between them, and numbers where those end. */
static cJSON *class_names(const char *names, int64_t classes)
{
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = 0; i < classes; i++) {
        char number[32], *name = NULL;
        const size_t len = names ? strcspn(names, ",") : 0;
        if (names && (name = taut_malloc(len + 1))) memcpy(name, names, len), name[len] = 0;
        cJSON_AddItemToArray(list, cJSON_CreateString(name ? name : taut_number_print(number, (double)i)));
        free(name);
        if (names) names = names[len] ? names + len + 1 : NULL;
    }
    return list;
}

static cJSON *head(const taut_certificate *c, const char *names)
{
    char text[TAUT_ABOUT_ROOM], why[TAUT_WHY_ROOM];
    const taut_about about = taut_certificate_about(c);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", c->sha);
    cJSON_AddStringToObject(o, "norm", c->norm == TAUT_NORM_FLAT ? "flat" : "tokens");
    cJSON_AddStringToObject(o, "reads", c->model->embed.rows ? "embeddings" : "pixels");
    cJSON_AddNumberToObject(o, "room", c->room.v);
    cJSON_AddItemToObject(o, "lip", up_json(c->lip));
    cJSON_AddStringToObject(o, "about", taut_about_text(text, &about));
    if (!isfinite(c->lip.v)) cJSON_AddStringToObject(o, "no_constant", taut_why_not(why, c));
    cJSON_AddItemToObject(o, "classes", class_names(names, c->model->classes));
    return o;
}

static taut_status answer_all(cJSON **answer, taut_certificate *c, const taut_net *net, const taut_unlabelled *u,
                              const taut_predict_options *o)
{
    const taut_model *m = c->model;
    desk d = { .c = c, .net = net, .logits = taut_malloc((size_t)m->classes * sizeof *d.logits) };
    if (m->embed.rows) d.ids = taut_malloc((size_t)m->in.t * sizeof *d.ids);
    if (!m->embed.rows) d.reals = taut_malloc((size_t)(m->in.t * m->in.d) * sizeof *d.reals);
    taut_status s = d.logits && (d.ids || d.reals) ? taut_pass_create(&d.pass, c->model, 1, m->in.t, false)
                                                   : taut_no_memory("an input");
    *answer = s ? NULL : head(c, net->data.class_names);
    if (!s) s = judge(*answer, &d, u, cJSON_GetObjectItem(*answer, "classes"), o);
    if (s) cJSON_Delete(*answer);
    taut_pass_free(d.pass);
    free(d.ids);
    free(d.reals);
    free(d.logits);
    return s;
}

static taut_status check_options(const taut_predict_options *o)
{
    bool whole = o->files > 0 && o->file;
    for (int i = 0; whole && i < o->files; i++) whole = o->file[i];
    if (!whole) return taut_fail(TAUT_BAD_CALL, "%d files to predict, or a NULL among them", o->files);
    if (o->metric != TAUT_OWN && o->metric != TAUT_TOKENS && o->metric != TAUT_FLAT)
        return taut_fail(TAUT_BAD_CALL, "metric %d is neither TAUT_OWN, TAUT_TOKENS nor TAUT_FLAT", (int)o->metric);
    if (!(o->room >= 0 && o->room <= 1e300)) return taut_fail(TAUT_BAD_CALL, "room %g", o->room);
    return TAUT_OK;
}

taut_status taut_predict_file(char **json, const char *model, const taut_predict_options *options)
{
    taut_predict_options o;
    taut_net *net = NULL;
    taut_unlabelled u = { 0 };
    taut_certificate c = { 0 };
    cJSON *answer = NULL;
    NEED(json);
    *json = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&o);
    if (s) return s;
    char *path = taut_model_path(model);
    const double room = o.room > 0 ? o.room : 1;
    s = path ? taut_certificate_open(&c, path, o.metric == TAUT_FLAT ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, room)
             : taut_no_memory("a path");
    if (!s) s = taut_net_open(&net, path, NULL);
    if (!s) s = check_model(net);
    if (!s) s = read_files(&u, net, &o);
    if (!s)
        s = o.metric == TAUT_OWN ? taut_certificate_prove_own(&c, path, INFINITY)
                                 : taut_certificate_prove(&c, INFINITY);
    if (!s) s = answer_all(&answer, &c, net, &u, &o);
    taut_unlabelled_free(&u);
    taut_certificate_free(&c);
    taut_net_free(net);
    free(path);
    return taut_json_out(json, answer, s);
}
