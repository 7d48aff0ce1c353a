/* Radii by what holds around an example, looked at with suspicion: the largest that taut check accepts at all is attacked, by
 * steps down every margin and by chance; and what claims more is refused: a radius above it or above the room, the input of
 * another example, more room, a norm layer whose norm or constant is lower or missing. */
#include "certify/local.h"
#include "check/kinds.h"
#include "check/verdict.h"

enum { MOST = 64, CLASSES = 16 };
static int tried, larger, steps;
static double smallest = INFINITY; /* margin found, over the one at the example */

static bool holds(const cJSON *cert)
{
    const taut_checked r = verdict(cert);
    return r.holds && r.unknown == 0;
}

static void must_refuse(const cJSON *cert, const char *what)
{
    tried++;
    CHECK(!holds(cert), what);
}

static cJSON *in(cJSON *o, const char *key) { return cJSON_GetObjectItemCaseSensitive(o, key); }

static void scale_to(double *v, int64_t rows, int64_t d, double r, taut_norm n)
{
    const double all = norm(v, rows * d);
    for (int64_t t = 0; t < rows; t++) {
        const double row = n == TAUT_NORM_FLAT ? all : norm(v + t * d, d);
        for (int64_t i = 0; i < d; i++) v[t * d + i] *= row > 0 ? r / row : 0;
    }
}

/* How far the prediction is ahead of j at centre + by. */
static double ahead(taut_pass *p, const double *centre, const double *by, int64_t predicted, int64_t j)
{
    const taut_shape s = p->x.shape;
    for (int64_t i = 0; i < taut_len(s); i++) ((double *)p->x.data)[i] = centre[i] + by[i];
    taut_pass_run(p);
    const double *last = (const double *)p->logits.data + (taut_rows(p->logits.shape) - 1) * p->logits.shape.d;
    steps++;
    return last[predicted] - last[j];
}

/* margin: at the example, to see how much of it is left; 0: nobody asks */
static void push(taut_pass *p, const double *centre, int64_t predicted, double r, double margin, taut_norm n)
{
    const int64_t classes = p->logits.shape.d, out = taut_rows(p->logits.shape) * classes;
    const int64_t rows = taut_rows(p->x.shape), d = p->x.shape.d;
    for (int64_t j = 0; j < classes; j++)
        for (int i = 0; i < effort(12) && j != predicted; i++) {
            double by[MOST] = { 0 }, y[8 * CLASSES] = { 0 };
            for (int64_t k = 0; k < rows * d && i % 4 > 0; k++) by[k] = rng_pm();
            scale_to(by, rows, d, i % 4 == 3 ? r * (1 - 1e-9) : r * rng_unit(), n);
            y[out - classes + predicted] = -1, y[out - classes + j] = 1;
            for (int k = 0; k < 5; k++) {
                const double left = ahead(p, centre, by, predicted, j);
                CHECK(left > 0, "the prediction stands inside the largest radius that is accepted");
                if (margin > 0) smallest = fmin(smallest, left / margin);
                taut_vjp(p->m->root, &p->run, (taut_tensor){ (taut_real *)by, p->x.shape },
                         (taut_tensor){ (taut_real *)y, p->logits.shape }, (taut_point){ p->x, p->trace });
                scale_to(by, rows, d, r * (1 - 1e-9), n);
            }
        }
}

/* The largest radius of the example that is accepted, from one that is. */
static double largest(const cJSON *cert, cJSON *one, double room)
{
    cJSON *radius = in(one, "radius");
    const double was = radius->valuedouble;
    double lo = was, hi = room;
    for (int i = 0; i < 24 && lo > 0 && hi > lo * 1.002; i++) {
        radius->valuedouble = i == 0 ? fmin(hi, 1.05 * lo) : sqrt(lo) * sqrt(hi);
        *(holds(cert) ? &lo : &hi) = radius->valuedouble;
    }
    radius->valuedouble = was;
    return lo;
}

/* The last node with this number. */
static cJSON *last_with(cJSON *node, const char *rule, const char *key)
{
    cJSON *found = strcmp(in(node, "rule")->valuestring, rule) == 0 && in(node, key) ? node : NULL, *part;
    cJSON_ArrayForEach(part, in(node, "of"))
    {
        cJSON *inside = last_with(part, rule, key);
        if (inside) found = inside;
    }
    return found;
}

static void bend_number(const cJSON *cert, cJSON *j, double to, const char *what)
{
    const double was = j->valuedouble;
    j->valuedouble = to;
    must_refuse(cert, what);
    j->valuedouble = was;
}

static void bend_layer(const cJSON *cert, cJSON *layer, const char *key, bool relied)
{
    bend_number(cert, in(layer, key), in(layer, key)->valuedouble * (1 - 1e-6), "a lower norm");
    if (cJSON_IsNumber(in(layer, "lip")))
        bend_number(cert, in(layer, "lip"), in(layer, "lip")->valuedouble * (1 - 1e-6), "a lower constant");
    cJSON *norm = cJSON_DetachItemFromObject(layer, key);
    if (relied) must_refuse(cert, "no norm");
    cJSON_AddItemToObject(layer, key, norm);
}

/* Everything is true but for one thing.  relied: some radius needs what holds around the example. */
static void bend(taut_certificate *c, cJSON *list, const double *most, bool relied)
{
    cJSON *layer = last_with(in(c->json, "proof"), "layernorm", "norm"), *one,
          *room = in(in(c->json, "region"), "room");
    const char *input = c->model->embed.rows ? "ids" : "pixels";
    int i = 0;
    cJSON_ArrayForEach(one, list)
    {
        if (most[i] < 0.99 * c->room.v)
            bend_number(c->json, in(one, "radius"), most[i] * 1.01, "a radius above the largest");
        bend_number(c->json, in(one, "radius"), c->room.v * (1 + 1e-9), "a radius above the room");
        if (cJSON_IsNumber(in(one, "lip")))
            bend_number(c->json, in(one, "lip"), in(one, "lip")->valuedouble * 0.95, "a lower constant around it");
        i++;
    }
    bend_number(c->json, room, 2 * c->room.v, "more room");
    if (layer) bend_layer(c->json, layer, "norm", true);
    if (!layer && (layer = last_with(in(c->json, "proof"), "attention", "o_norm")))
        bend_layer(c->json, layer, "o_norm", relied);
    if (i == 2 && fmax(most[0], most[1]) > 1.1 * fmin(most[0], most[1])) {
        cJSON *a = cJSON_GetArrayItem(list, most[0] > most[1]), *b = cJSON_GetArrayItem(list, most[0] <= most[1]);
        const double r = in(a, "radius")->valuedouble; /* of a, whose own is the smaller one */
        bend_number(c->json, in(a, "radius"), fmax(most[0], most[1]), "the radius of another example");
        cJSON *x = cJSON_DetachItemFromObject(a, input), *y = cJSON_DetachItemFromObject(b, input);
        cJSON_AddItemToObject(a, input, y), cJSON_AddItemToObject(b, input, x);
        in(a, "radius")->valuedouble = in(b, "radius")->valuedouble = fmax(most[0], most[1]);
        must_refuse(c->json, "the input of another example");
        x = cJSON_DetachItemFromObject(a, input), y = cJSON_DetachItemFromObject(b, input);
        cJSON_AddItemToObject(a, input, y), cJSON_AddItemToObject(b, input, x);
        in(a, "radius")->valuedouble = r;
    }
    CHECK(holds(c->json), "as it was");
}

static void one_model(taut_certificate *c, taut_norm n)
{
    taut_pass *p;
    int32_t ids[8];
    double centre[2][MOST], logits[CLASSES], pixels[16], most[2] = { 0 }, radius[2] = { 0 };
    int64_t predicted[2];
    const bool images = c->model->embed.rows == 0;
    const int64_t count = images ? c->model->in.d : c->tokens;
    int found = 0;
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    must(taut_near_state(c));
    must(taut_pass_create(&p, c->model, 1, c->tokens, false));
    for (int e = 0; e < 40 && found < 2; e++) {
        for (int64_t i = 0; i < count && !images; i++) ids[i] = (int32_t)rng_int(0, 10);
        for (int64_t i = 0; i < count && images; i++) pixels[i] = rng_unit();
        const taut_input x = images ? (taut_input){ NULL, pixels } : (taut_input){ ids, NULL };
        taut_example one = taut_example_certify(c, p, x, 1, logits);
        taut_local near;
        memcpy(centre[found], p->x.data, (size_t)taut_len(p->x.shape) * sizeof(double));
        if (one.margin < 0.1) continue;
        must(taut_local_certify(&near, c, p, &one, logits));
        if (!(near.told.v > 0)) continue;
        radius[found] = one.radius.v;
        predicted[found++] = one.predicted;
        cJSON_AddItemToArray(list, taut_near_json(&one, &near, x, count));
    }
    CHECK(holds(c->json), "the true one");
    for (int i = 0; i < found; i++) {
        cJSON *one = cJSON_GetArrayItem(list, i);
        most[i] = largest(c->json, one, c->room.v);
        CHECK(in(one, "radius")->valuedouble >= 0.9 * most[i], "what is told is not far below what is accepted");
        larger += most[i] > 1.1 * radius[i];
        push(p, centre[i], predicted[i], most[i], most[i] > 1.1 * radius[i] ? in(one, "margin")->valuedouble : 0, n);
    }
    bend(c, list, most, (found > 0 && most[0] > 2 * radius[0]) || (found > 1 && most[1] > 2 * radius[1]));
    taut_pass_free(p);
}

/* Norm layers, or softmax attention in a window or not. */
static bool has_local(const char *text)
{
    return strstr(text, "layernorm") || strstr(text, "post") ||
           (!strstr(text, "arch = mlp") && (!strstr(text, "attention =") || strstr(text, "attention = window")));
}

/* Of that kind; still: its blocks add nothing, so that norm layers are all that is steep, and the radius nearly the truth. */
static void save(int kind, bool still)
{
    taut_model *m = blank_model(kinds[kind], is_image(kind) ? 0 : 11, false);
    for (int i = 0; i < m->weights; i++) {
        const bool last = strstr(m->weight[i].path, "attn.o.") || strstr(m->weight[i].path, "mlp.out.");
        double *v = (double *)m->values + m->weight[i].offset;
        for (int64_t k = 0; k < m->weight[i].param->rows * m->weight[i].param->cols; k++)
            v[k] = still && last ? 0 : taut_float32(0.6 * rng_pm());
    }
    must(taut_model_save(m, model_path));
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (case_no = 0; case_no < KINDS * (effort(4) < 4 ? 1 : 4); case_no++) {
        const int kind = case_no % KINDS;
        const taut_norm n = case_no / KINDS % 2 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
        taut_certificate c;
        if (is_series(kind) || strstr(kinds[kind], "encoder") || !has_local(kinds[kind])) continue;
        save(kind, case_no / KINDS > 1);
        must(taut_certify(&c, model_path, n, 2));
        one_model(&c, n);
        taut_certificate_free(&c);
    }
    free(model_path), free(cert_path);
    CHECK(larger >= 6, "what holds around examples is worth having");
    return test_end(
        "near",
        "%d radii above those of everywhere, %d steps inside, at best %.3f of a margin left; %d bent, all refused",
        larger, steps, smallest, tried);
}
