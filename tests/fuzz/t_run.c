/* A run's folder as others left it: whatever its summary and its certificate hold, the answer is a status or one JSON object. */
#include "fuzz.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>

#include "taut.h"

static char folder[1024], summary[1100], certificate[1100];

static void put(const char *path, const uint8_t *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f)) abort();
}

static void fuzz_begin(void)
{
    snprintf(folder, sizeof folder, "%s", temp_path("run"));
    snprintf(summary, sizeof summary, "%s/summary.json", folder);
    snprintf(certificate, sizeof certificate, "%s/certificate.json", folder);
    if (mkdir(folder, 0777)) abort();
    fuzz_seed_text("{\"steps\":6,\"val_loss\":2.5,\"bound\":\"inf\",\"about\":\"for 16 tokens\",\"stopped\":false}");
    fuzz_seed_text("{\"norm\":\"tokens\",\"lip\":2.5,\"model\":{\"sha256\":\"00\",\"bytes\":12},\"tokens\":16,"
                   "\"region\":{\"room\":0,\"reach\":1.5},\"proof\":{\"rule\":\"sequence\",\"of\":[]}}");
    fuzz_seed_text("{\"lip\":\"inf\",\"region\":{\"box\":[0,1],\"room\":1}}");
    fuzz_seed_text("{\"finished\":null}");
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    char *json = NULL;
    put(summary, data, len);
    put(certificate, data, len);
    if (taut_run_json(&json, folder)) {
        CHECK(!json && *taut_last_error(), "a status, a line and no text");
        return;
    }
    cJSON *o = cJSON_Parse(json);
    CHECK(cJSON_IsObject(o) && cJSON_IsBool(cJSON_GetObjectItem(o, "finished")), "one object");
    cJSON_Delete(o);
    taut_string_free(json);
}
