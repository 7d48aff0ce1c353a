/* What the tests of the checker share: a random model in a file, its true certificate, and a verdict. */
#ifndef CASE_H
#define CASE_H
#include "base/float32.h"
#include "check/check.h"
#include "check/make.h"
#include "model/pass.h"

enum { TOKENS = 11 };
static const char *model_path, *cert_path;
static int checks;

/* 0 holds, 1 unreadable, 2 refused, 3 an example is unknown */
static inline int check_text(const char *text, taut_checked *r)
{
    temp_put("cert.json", text, strlen(text));
    checks++;
    if (taut_check_files(r, cert_path, model_path)) return 1;
    return !r->holds ? 2 : r->unknown ? 3 : 0;
}
static inline int check_json(const cJSON *cert)
{
    taut_checked r;
    char *text = cJSON_PrintUnformatted(cert);
    const int code = check_text(text, &r);
    free(text);
    return code;
}
static inline void must(int want, const cJSON *cert, const char *what, const char *detail)
{
    taut_checked r;
    char *text = cJSON_PrintUnformatted(cert);
    const int code = check_text(text, &r);
    if (code != want && fails++ < 20)
        fprintf(stderr, "FAIL case %d, %s %s: %d, not %d: %s\n", case_no, what, detail, code, want,
                code == 2   ? r.why
                : code == 1 ? taut_last_error()
                : code == 3 ? "an example is unknown"
                            : "it holds");
    free(text);
}

static inline void add_hash(cJSON *cert)
{
    char hex[65];
    uint64_t bytes;
    if (taut_sha256_file(hex, &bytes, model_path)) abort();
    cJSON *m = cJSON_AddObjectToObject(cert, "model");
    put_exact(m, "bytes", (double)bytes);
    cJSON_AddStringToObject(m, "sha256", hex);
}

static inline const char *one_of(const char *words) /* of "a|b|c" */
{
    static char picked[16][24];
    static int next;
    int64_t count = 1;
    for (const char *p = words; *p; p++) count += *p == '|';
    for (int64_t k = rng_int(0, count - 1); k > 0; k--) words = strchr(words, '|') + 1;
    char *to = picked[next++ % 16];
    snprintf(to, sizeof picked[0], "%.*s", (int)strcspn(words, "|"), words);
    return to;
}

static inline void add_attlip(char *to, size_t room)
{
    snprintf(to, room,
             "attention = attlip\nattlip_eta = %s\nattlip_tol = 1e-9\nattlip_loose = 0\nattlip_head_width = %s\n"
             "attlip_learned = %s\nattlip_reflected = %s\nattlip_turn = %s\nattlip_steps = %s\nattlip_near = %s\n",
             one_of("1|0.01|3"), one_of("1|3"), one_of("true|false"), one_of("true|false"), one_of("true|false"),
             one_of("0|0|0|0|0|0|2"), one_of("0|0.3|2"));
}

/* A model of a random kind with random weights of that size, saved; the caller frees. */
static inline taut_model *random_model(double size, const char *more)
{
    char text[2000];
    const char *norm = one_of("layernorm|rmsnorm|centernorm|none");
    const int layer = rng_int(0, 2) == 0 ? (int)rng_int(1, 2) : 0, kind = (int)rng_int(0, 7);
    const bool cosine = kind == 0, position = kind == 1, l2 = kind == 2, attlip = kind == 3, own = kind < 4;
    const bool bare = strcmp(norm, "none") == 0, eps = !bare && strcmp(norm, "centernorm") != 0;
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    snprintf(text, sizeof text,
             "[model]\narch = %s\nwidth = 8\ndepth = %d\nheads = %s\ncontext = 5\nmlp = 6\nnorm = %s\nnorm_place = %s\n"
             "norm_eps = %s\nembed_norm = %s\npositions = %s\nbias = %s\ntied = %s\nhead_bias = %s\nactivation = %s\n",
             one_of(l2 || attlip ? "encoder" : "gpt|encoder"), (int)rng_int(1, 2), one_of("1|2|4"), norm,
             layer || attlip ? "post" : one_of("pre|post"), eps ? one_of("0.01|1e-5") : "1e-5",
             bare ? "false" : one_of("true|false"),
             one_of(attlip           ? "learned|rope|none"
                    : own && !cosine ? "learned|none"
                                     : "learned|rope|alibi|none"),
             one_of("true|false"), one_of("true|false"), one_of("true|false"),
             one_of(layer ? "gelu|relu|tanh" : "gelu|gelu_tanh|relu|silu|tanh|abs|maxmin"));
    const char *mix = one_of("plain|convex|channel");
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "activation_factor = %s\nresidual = %s\nresidual_alpha = %s\ndropout = %s\nattention_factor = %s\n"
             "attention_scale = %s\nattention_out = %s\nlogit_scale = %s\n%s",
             layer ? "1" : one_of("1|0.8858"), mix, strcmp(mix, "plain") == 0 ? "0" : one_of("0|0.3"), one_of("0|0.1"),
             own ? "1" : one_of("1|0.5"), one_of(own ? "inv_sqrt_head" : "inv_sqrt_head|inv_head|inv_width"),
             own ? "1" : one_of("1|0.3333"), one_of("1|0.25"), more);
    if (layer) strcat(text, layer == 1 ? "mlp_block = potential\n" : "mlp_block = sll\n");
    if (rng_int(0, 1)) strcat(text, "droppath = 0.1\n");
    if (position) strcat(text, "attention = position\n");
    if (cosine)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "attention = cosine\ncosine_tau = %s\ncosine_eps = %s\ncosine_nu = 0.5\ncosine_values = %s\n",
                 one_of("1|12"), one_of("0.01|0.5"), one_of("true|false"));
    if (l2) strcat(text, rng_int(0, 4) ? "attention = l2\n" : "attention = l2_free\n");
    if (attlip) add_attlip(text + strlen(text), sizeof text - strlen(text));
    taut_status s = taut_config_parse(&cfg, text, "test");
    if (!s) s = taut_model_spec_read(&spec, cfg);
    char *printed = taut_config_print(cfg);
    if (!s) s = taut_model_create(&m, &spec, TOKENS, printed, "bytes", taut_kernels_find("ref"));
    if (!s) s = taut_model_bind(m, false);
    for (int64_t i = 0; !s && i < m->slab; i++) ((double *)m->values)[i] = taut_float32(size * rng_pm());
    for (int i = 0; !s && i < m->weights; i++) /* mostly a layer that could have been trained */
        if (strstr(m->weight[i].path, "mlp.scale") && rng_int(0, 3))
            ((double *)m->values)[m->weight[i].offset] = taut_float32(2 + rng_unit());
    if (!s) s = taut_model_save(m, model_path);
    if (s) fprintf(stderr, "%s\n", taut_last_error()), abort();
    free(printed);
    taut_config_free(cfg);
    return m;
}

/* An example whose radius is all that its margins allow, less 1e-6 of it for rounding. */
static inline void add_example(const maker *g, cJSON *cert, double body_lip, double defect, double room)
{
    const int64_t vocab = TOKENS, d = g->s->width;
    taut_model *net = NULL;
    taut_pass *pass = NULL;
    int32_t ids[8];
    double logits[8 * 16], *last = logits + (g->t - 1) * vocab, radius = room, margin = INFINITY;
    cJSON *e = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(e, "ids");
    cJSON_AddItemToArray(cJSON_GetObjectItem(cert, "examples"), e);
    for (int64_t t = 0; t < g->t; t++) cJSON_AddItemToArray(list, exact(ids[t] = (int32_t)rng_int(0, vocab - 1)));
    if (taut_model_open(&net, model_path, taut_kernels_find("ref"), false)) abort();
    if (taut_pass_create(&pass, net, 1, g->t, false)) abort();
    taut_pass_forward(pass, ids, 1, g->t);
    net->k->get(logits, pass->logits.data, g->t * vocab);
    taut_pass_free(pass);
    taut_model_free(net);
    int64_t p = 0;
    for (int64_t j = 1; j < vocab; j++) p = last[j] > last[p] ? j : p;
    const double *w = g->s->tied ? weight_of(g, "embed", "weight") : weight_of(g, "head", "weight");
    for (int64_t j = 0; j < vocab; j++) {
        double apart = 0;
        for (int64_t i = 0; i < d; i++) apart += pow(w[p * d + i] - w[j * d + i], 2);
        if (j != p) margin = fmin(margin, last[p] - last[j]);
        const double moves = taut_float32(g->s->logit_scale) * sqrt(apart); /* half the defect here, half where x' is */
        if (j != p) radius = fmin(radius, (last[p] - last[j] - moves * defect) / (moves * body_lip));
    }
    radius = radius > 1e-5 ? radius * (1 - 1e-6) : 0;
    put_exact(e, "predicted", (double)p);
    put_exact(e, "radius", radius);
    put_exact(e, "margin", margin * (1 - 1e-9));
    cJSON_AddStringToObject(e, "verdict", radius > 0 ? "certified" : "unknown");
}

static inline cJSON *certificate(const taut_model *m, bool flat, double room)
{
    const taut_model_spec *s = &m->spec;
    const double a = taut_spec_alpha(s);
    maker g = { m,
                s,
                flat,
                s->context,
                s->convex ? taut_float32(1 - a) : 1,
                s->convex ? taut_float32(a) : 1,
                taut_float32(s->attention_scale) };
    cJSON *cert = cJSON_CreateObject();
    cJSON_AddStringToObject(cert, "format", "taut-certificate");
    put_exact(cert, "version", 3);
    cJSON_AddStringToObject(cert, "tool", "test");
    add_hash(cert);
    cJSON_AddStringToObject(cert, "norm", flat ? "flat" : "tokens");
    put_exact(cert, "tokens", (double)g.t);
    cJSON *region = cJSON_AddObjectToObject(cert, "region");
    put_exact(region, "room", room);
    double x = 0, chain = 1, root = 1, lip = 1;
    for (int64_t i = 0; i < TOKENS; i++) x = fmax(x, norm(weight_of(&g, "embed", "weight") + i * s->width, s->width));
    x = put(region, "reach", x + room);
    cJSON *proof = node(NULL, "sequence", ""), *parts = cJSON_AddArrayToObject(proof, "of");
    const double defect = make_defect(&g, make_body(&g, parts, &x, &chain));
    const double body = chain;
    const double *w = weight_of(&g, s->tied ? "embed" : "head", "weight");
    make_linear(&g, parts, "head", "head", w, TOKENS, s->width, &x, &chain);
    const double c = taut_float32(s->logit_scale);
    if (s->logit_scale != 1) finish(node(parts, "scale", "logits"), c, c * x, &x, &chain);
    finish(proof, chain, x, &x, &root);
    put(cert, "lip", lip * root);
    const double all = make_defect(&g, proof);
    if (all > 0 && isfinite(root)) put(cert, "defect", all);
    cJSON_AddItemToObject(cert, "proof", proof);
    cJSON_AddArrayToObject(cert, "examples");
    for (int i = 0; i < 2; i++) add_example(&g, cert, body, defect, room);
    return cert;
}

static inline void case_begin(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
}
static inline void case_end(void) { free((char *)model_path), free((char *)cert_path); }
#endif
