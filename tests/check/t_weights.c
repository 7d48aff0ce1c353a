/* The checker against changed files.  A bit of a weight is flipped and the certificate gets the new hash: it must be
 * refused whenever a number has become false, which make.h tells by making the true certificate of the changed file.
 * Also: NaN and infinity in every weight, zero matrices, width 1, eps = 0, scribbles in the model's header. */
#include "base/alloc.h"
#include "check/case.h"

static int flips, refused;

/* Does a number of `old` lie below the same number of the true one by more than rounding?  Lists of choices apart.  Every
 * number is stated 1e-9 above its value, and a lip or an out is made of fewer than 100 of those. */
static bool fell_below(const cJSON *old, const cJSON *now)
{
    const char *key = old->string ? old->string : "";
    const double room = strcmp(key, "lip") == 0 || strcmp(key, "out") == 0 ? 1e-7 : 1e-9 + 1e-12;
    if (strcmp(key, "weights") == 0 || strcmp(key, "shares") == 0 || strcmp(key, "units") == 0) return false;
    if (cJSON_IsRaw(old) && now->valuestring[0] == '"') return old->valuestring[0] != '"';
    if (cJSON_IsRaw(old) && old->valuestring[0] != '"')
        return strtod(old->valuestring, NULL) < strtod(now->valuestring, NULL) * (1 - room);
    const cJSON *b = now->child;
    for (const cJSON *a = old->child; a; a = a->next, b = b->next)
        if (!b || fell_below(a, b)) return true;
    return b != NULL;
}

/* The same choices (families, units, scopes) again: the same random numbers. */
static cJSON *certificate_again(const taut_model *m, bool flat, uint64_t state)
{
    rng_state = state;
    cJSON *cert = certificate(m, flat, 0);
    cJSON_DeleteItemFromObject(cert, "examples");
    return cert;
}

static void new_hash(cJSON *cert)
{
    cJSON_DeleteItemFromObject(cert, "model");
    add_hash(cert);
}

/* A float32 number with one of its 32 bits flipped. */
static double flip(double x, int bit)
{
    float f = x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    bits ^= 1u << bit;
    memcpy(&f, &bits, 4);
    return f;
}

static void flip_bits(taut_model *m, cJSON *cert, bool flat, uint64_t state)
{
    double *values = (double *)m->values;
    const uint64_t next = rng_next();
    for (int i = 0; i < m->weights; i++) {
        const int64_t at = m->weight[i].offset +
                           (int64_t)((next + (uint64_t)i * 7) % (uint64_t)taut_weight_len(&m->weight[i]));
        const double before = values[at], flipped = flip(before, (int)((next / 64 + (uint64_t)i * 5) % 32));
        if (!isfinite(flipped)) continue;
        values[at] = flipped;
        if (taut_model_save(m, model_path)) abort();
        must(2, cert, "old hash", m->weight[i].path);
        cJSON *now = certificate_again(m, flat, state);
        new_hash(cert);
        flips++;
        if (fell_below(cJSON_GetObjectItem(cert, "proof"), cJSON_GetObjectItem(now, "proof")) ||
            fell_below(cJSON_GetObjectItem(cert, "region"), cJSON_GetObjectItem(now, "region")))
            must(2, cert, "flipped", m->weight[i].path), refused++;
        must(0, now, "true of the flipped", m->weight[i].path);
        cJSON_Delete(now);
        values[at] = before;
    }
    if (taut_model_save(m, model_path)) abort();
    new_hash(cert);
    must(0, cert, "restored", "");
}

static void not_finite(taut_model *m, cJSON *cert)
{
    double *values = (double *)m->values;
    for (int i = 0; i < m->weights; i++) {
        const int64_t at = m->weight[i].offset + rng_int(0, taut_weight_len(&m->weight[i]) - 1);
        const double before = values[at];
        values[at] = rng_int(0, 1) ? NAN : rng_int(0, 1) ? INFINITY : -INFINITY;
        if (taut_model_save(m, model_path)) abort();
        new_hash(cert);
        const bool steps = m->spec.attention.steps > 0; /* they have no constant either */
        if ((attends(&m->spec, "l2_free") && strstr(m->weight[i].path, ".attn.")) ||
            (steps && strstr(m->weight[i].path, ".attn.weight")))
            must(0, cert, "inf whatever the weight", m->weight[i].path);
        else
            must(2, cert, "not finite", m->weight[i].path);
        values[at] = before;
    }
    if (taut_model_save(m, model_path)) abort();
    new_hash(cert);
}

/* A true certificate of a model some of whose weights are 0, with all its numbers. */
static void zeros(taut_model *m, bool flat)
{
    for (int i = 0; i < m->weights; i++)
        if (rng_int(0, 2) == 0)
            memset((double *)m->values + m->weight[i].offset, 0,
                   (size_t)taut_weight_len(&m->weight[i]) * sizeof(double));
    if (taut_model_save(m, model_path)) abort();
    cJSON *cert = certificate_again(m, flat, rng_next() | 1);
    must(0, cert, "zeros", m->recipe);
    cJSON_Delete(cert);
}

/* The header or the recipe is scribbled on behind a right hash: no crash, and nothing outside the file is read. */
static void scribble(cJSON *cert)
{
    static char before[1 << 16], bad[1 << 16];
    FILE *f = fopen(model_path, "rb");
    const size_t len = f ? fread(before, 1, sizeof before, f) : 0;
    if (!f || len == sizeof before) abort();
    fclose(f);
    for (int i = 0; i < 150; i++) {
        static const char swaps[] = "0123456789[]{},:\"9999";
        size_t size = i % 10 ? len : (size_t)rng_int(0, (int64_t)len);
        memcpy(bad, before, len);
        for (int64_t k = rng_int(1, 4); k > 0; k--) bad[rng_int(0, (int64_t)len / 2)] = swaps[rng_int(0, 20)];
        if (i % 7 == 0) bad[rng_int(0, 7)] = (char)rng_int(0, 255);
        temp_put("model.safetensors", bad, size);
        new_hash(cert);
        check_json(cert);
    }
    temp_put("model.safetensors", before, len);
    new_hash(cert);
    must(0, cert, "restored", "");
}

/* Each allocation fails once: a status and no leak, and never a verdict that is not true. */
static void no_memory(const cJSON *cert)
{
    taut_checked r;
    char *text = cJSON_PrintUnformatted(cert);
    temp_put("cert.json", text, strlen(text));
    free(text);
    for (long n = 1;; n += 1 + n / 16) {
        taut_alloc_fail_at(n);
        const taut_status s = taut_check_files(&r, cert_path, model_path);
        taut_alloc_fail_at(0);
        CHECK(s ? !r.holds : r.holds, "out of memory is no verdict");
        if (!s) break;
    }
}

static void small_cases(void)
{
    static const char *const more[] = {
        "width = 1\nheads = 1\nmlp = 1\ncontext = 1\npositions = none\nnorm = rmsnorm\n",
        "width = 1\nheads = 1\nmlp = 3\npositions = alibi\nnorm = layernorm\n",
        "mlp = 1\ncontext = 1\npositions = learned\n",
        "norm = layernorm\nnorm_eps = 0\n",
        "norm = rmsnorm\nnorm_eps = 0\n",
        "attention_factor = 0\n",
        "attention_out = 0\n",
        "residual = convex\nresidual_alpha = 1\n",
        "heads = 8\npositions = none\n"
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        taut_model *m = random_model(0.5, more[i]);
        const bool flat = i % 2;
        cJSON *cert = certificate_again(m, flat, rng_next() | 1);
        must(0, cert, "small", more[i]);
        no_memory(cert);
        cJSON_Delete(cert);
        zeros(m, flat);
        taut_model_free(m);
    }
}

int main(void)
{
    case_begin();
    small_cases();
    for (case_no = 0; case_no < effort(24); case_no++) {
        const bool flat = rng_int(0, 1);
        taut_model *m = random_model(0.5, "");
        const uint64_t state = rng_next() | 1;
        cJSON *cert = certificate_again(m, flat, state);
        must(0, cert, "true", m->recipe);
        if (case_no % 3 == 0) flip_bits(m, cert, flat, state);
        if (case_no % 3 == 1) not_finite(m, cert);
        if (case_no % 3 == 2) scribble(cert);
        zeros(m, flat);
        cJSON_Delete(cert);
        taut_model_free(m);
        rng_state = state * 3 + 1;
    }
    taut_checked r;
    CHECK(taut_check_files(&r, "/nonexistent", model_path) != TAUT_OK, "no certificate");
    CHECK(taut_check_files(&r, model_path, model_path) != TAUT_OK, "a model is no certificate");
    CHECK(taut_check_files(&r, cert_path, "/nonexistent") != TAUT_OK, "no model");
    case_end();
    return test_end("check", "%d bits flipped, %d made a number false; %d checks", flips, refused, checks);
}
