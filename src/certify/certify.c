/* Opens and hashes a model's file, proves its constant on the region, and makes the certificate of the proof. */
#include "certify/certify.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float32.h"
#include "base/sha256.h"
#include "bound/arithmetic.h"

/* Which inputs the constant is about.  Images: p + e, every number of p in the box and |e|_2 <= room.  Others: no token
 * is longer than reach.  Of a forecaster `rows` says how long a row is at most before it is moved by up to room. */
static cJSON *region(const taut_certificate *c)
{
    cJSON *o = cJSON_CreateObject();
    if (taut_model_sees(c->model)) cJSON_AddItemToObject(o, "box", cJSON_CreateIntArray((const int[]){ 0, 1 }, 2));
    if (c->model->spec.ahead) cJSON_AddItemToObject(o, "rows", up_json(c->rows));
    cJSON_AddItemToObject(o, "room", up_json(c->room));
    if (!taut_model_sees(c->model)) cJSON_AddItemToObject(o, "reach", up_json(c->reach));
    return o;
}

/* The certificate, which owns `proof` from here on. */
static cJSON *describe(const taut_certificate *c, cJSON *proof)
{
    cJSON *o = cJSON_CreateObject(), *model = cJSON_AddObjectToObject(o, "model");
    cJSON_AddStringToObject(o, "format", "taut-certificate");
    cJSON_AddNumberToObject(o, "version", 3);
    cJSON_AddStringToObject(o, "tool", "taut " TAUT_VERSION);
    cJSON_AddNumberToObject(model, "bytes", (double)c->bytes);
    cJSON_AddStringToObject(model, "sha256", c->sha);
    cJSON_AddStringToObject(o, "norm", c->norm == TAUT_NORM_FLAT ? "flat" : "tokens");
    cJSON_AddNumberToObject(o, "tokens", (double)c->tokens);
    cJSON_AddItemToObject(o, "region", region(c));
    cJSON_AddItemToObject(o, "lip", up_json(c->lip));
    if (c->defect.v > 0 && isfinite(c->lip.v)) cJSON_AddItemToObject(o, "defect", up_json(c->defect));
    cJSON_AddItemToObject(o, "proof", proof);
    return o;
}

static taut_status prove(taut_certificate *c)
{
    taut_model_proof p;
    taut_ledger *l = ledger_create();
    if (!l) return taut_no_memory("the proof");
    taut_ask in = taut_model_region(c->model, c->norm, c->room);
    if (c->model->spec.ahead) in.size = up_raise(up_add(c->rows, c->room)); /* no weight limits a row */
    c->reach = in.size;
    in.ledger = l;
    taut_status s = taut_model_prove(&p, c->model, in);
    cJSON *written = s ? NULL : ledger_take(l);
    ledger_free(l);
    if (!s && !written) s = taut_no_memory("the proof");
    if (s) return s;
    c->lip = p.whole.lip;
    c->body = p.body;
    c->round = p.whole.round;
    c->defect = up_raise(p.whole.defect);
    cJSON_Delete(c->json); /* of a proof that was coarser */
    c->json = describe(c, written);
    return TAUT_OK;
}

typedef struct {
    taut_certificate *c;
    const char *path;
    taut_status status;
} hashing;

static void *hash(void *of)
{
    hashing *h = of;
    h->status = taut_sha256_file(h->c->sha, &h->c->bytes, h->path);
    return NULL;
}

/* The file is hashed while the model is made of it, where there are threads. */
static taut_status read_both(taut_certificate *c, const char *path)
{
    hashing h = { c, path, TAUT_OK };
    pthread_t thread;
    const bool beside = omp_get_max_threads() > 1 && pthread_create(&thread, NULL, hash, &h) == 0;
    taut_status s = taut_model_open(&c->model, path, taut_kernels_find("ref"), false);
    if (beside) (void)pthread_join(thread, NULL);
    if (s) return s;
    if (!beside || h.status) s = taut_sha256_file(c->sha, &c->bytes, path); /* this thread then knows why it fails */
    if (s) taut_model_free(c->model), c->model = NULL;
    return s;
}

taut_status taut_certificate_open(taut_certificate *c, const char *path, taut_norm norm, double room)
{
    *c = (taut_certificate){ .norm = norm, .room = { room }, .rows = UP_NONE };
    if (!(room >= 0)) return taut_fail(TAUT_BAD_CONFIG, "room must be a number from 0 up");
    taut_status s = taut_arithmetic_test();
    if (!s) s = read_both(c, path);
    if (!s) c->tokens = c->model->in.t;
    return s;
}

taut_status taut_certificate_prove(taut_certificate *c, double rows)
{
    taut_status s = TAUT_OK;
    c->rows = (taut_up){ rows };
    if (!(rows >= 0)) s = taut_fail(TAUT_BAD_CONFIG, "rows must be a number from 0 up");
    if (!s && isfinite(rows) && !c->model->spec.ahead)
        s = taut_fail(TAUT_BAD_CONFIG, "rows are for forecasters: other inputs are as long as they are");
    if (!s) s = prove(c);
    if (s) taut_certificate_free(c);
    return s;
}

taut_status taut_certificate_tolerate(taut_certificate *c, double tolerance)
{
    if (!(tolerance >= 0 && tolerance <= 1e300))
        return taut_fail(TAUT_BAD_CONFIG, "tolerance must be a number from 0 to 1e300");
    if (tolerance > 0 && !cJSON_AddNumberToObject(c->json, "tolerance", tolerance)) return taut_no_memory("the proof");
    c->tolerance = tolerance;
    return TAUT_OK;
}

static bool all_floats(const taut_model *m)
{
    for (int64_t i = 0; i < m->slab; i++)
        if (((const double *)m->values)[i] != taut_float32(((const double *)m->values)[i])) return false;
    return true;
}

/* An input that is moved by up to room is rounded when it becomes floats, and may then lie a little outside. */
taut_status taut_certificate_strays(taut_up *wrong, const taut_certificate *c, const char *table, taut_up room)
{
    const taut_promise *promise = taut_promise_find(table);
    taut_model_proof p;
    *wrong = c->round;
    if (!promise && strcmp(table, "ref") == 0) return TAUT_OK;
    if (!promise) return taut_fail(TAUT_BAD_CALL, "no kernels are called \"%s\" (cpu, wide, ref, cuda, cuda64)", table);
    if (promise->unit > 0x1p-30 && taut_model_finite(c->model) && !all_floats(c->model))
        return taut_fail(
            TAUT_BAD_CONFIG,
            "the kernels %s round weights to float32, and some of these are other numbers: store them as float32 first",
            table);
    const taut_up all = up_mul(up_sqrt(up_int(c->tokens)), c->reach), moved = up_mul((taut_up){ promise->unit }, all);
    taut_ask in = taut_model_region(c->model, c->norm, up_add(room, moved));
    if (c->model->spec.ahead) in.size = up_add(c->reach, moved);
    in.table = promise;
    const taut_status s = taut_model_prove(&p, c->model, in);
    if (!s) *wrong = p.whole.round;
    return s;
}

taut_status taut_certificate_run_on(taut_certificate *c, const char *table)
{
    taut_up wrong;
    const taut_status s = taut_certificate_strays(&wrong, c, table, c->room);
    if (s) return s;
    /* comes first: who asks for it need not read the proof */
    cJSON *word = cJSON_AddStringToObject(c->json, "for", table);
    if (!word || !cJSON_InsertItemInArray(c->json, 0, cJSON_DetachItemViaPointer(c->json, word)))
        return taut_no_memory("the proof");
    return taut_certificate_tolerate(c, wrong.v <= 1e299 ? up_raise(up_add(wrong, (taut_up){ 1e-300 })).v : 1e300);
}

taut_status taut_certify(taut_certificate *c, const char *path, taut_norm norm, double room)
{
    return taut_certify_rows(c, path, norm, room, INFINITY);
}

taut_status taut_certify_rows(taut_certificate *c, const char *path, taut_norm norm, double room, double rows)
{
    const taut_status s = taut_certificate_open(c, path, norm, room);
    return s ? s : taut_certificate_prove(c, rows);
}

taut_about taut_certificate_about(const taut_certificate *c)
{
    return taut_model_about(c->model, c->room, c->reach, c->rows, isfinite(c->lip.v) ? c->defect : UP_ZERO);
}

void taut_certificate_free(taut_certificate *c)
{
    taut_model_free(c->model);
    cJSON_Delete(c->json);
    *c = (taut_certificate){ 0 };
}
