/* The tree in a model file, as the checker reads it: whatever is written there, behind a right hash and a certificate that
 * claims nothing and so fits every tree, the checker comes back, with and without an example to run.  Half of the inputs
 * are the bytes as they are, the others a true tree in which the bytes choose what to change. */
#include "fuzz.h"

#include "check/tree.h"

#define LINEAR(name) "{\"name\":\"" name "\",\"rule\":\"linear\",\"tied\":0}"
static const char tree_text[] =
    "{\"version\":2,\"tokens\":3,\"width\":4,\"unit\":0,\"root\":{\"rule\":\"sequence\",\"of\":[{\"rule\":\"sequence\","
    "\"of\":[{\"name\":\"pos\",\"rule\":\"position\"},{\"rule\":\"mix\",\"keep\":1,\"mix\":0.5,\"of\":[{\"name\":\"t\","
    "\"rule\":\"cosattention\",\"heads\":2,\"scale\":1,\"out\":1,\"causal\":1,\"alibi\":0,\"rope\":0,\"eps\":0.5,"
    "\"values\":0}]},{\"rule\":\"mix\",\"keep\":1,\"mix\":1,\"of\":[{\"name\":\"m\",\"rule\":\"mlp\",\"curve\":"
    "\"gelu\","
    "\"factor\":1}]},{\"name\":\"p\",\"rule\":\"posattention\",\"heads\":2,\"causal\":0,\"far\":1},{\"name\":\"l\","
    "\"rule\":"
    "\"l2attention\",\"heads\":2,\"tied\":1},{\"name\":\"x\",\"rule\":\"attlip\",\"heads\":2,\"eta\":0.5,\"tol\":0.5,"
    "\"reflected\":1,\"steps\":0,\"near\":1,\"rope\":10},{\"name\":\"z\","
    "\"rule\":\"maxmin\",\"group\":2},{\"name\":\"n\",\"rule\":\"layernorm\",\"eps\":0.5,\"centred\":1}]}," LINEAR(
        "head") ",{\"name\":\"s\",\"rule\":\"scale\",\"factor\":2}]}}";
static const tree_tensor tensors[] = {
    { "embed.weight", 6, 4 }, { "pos.weight", 3, 4 }, { "t.q.weight", 4, 4 },        { "t.k.weight", 4, 4 },
    { "t.v.weight", 4, 4 },   { "t.o.weight", 4, 4 }, { "m.in.weight", 6, 4 },       { "m.out.weight", 4, 6 },
    { "p.v.weight", 4, 4 },   { "p.o.weight", 4, 4 }, { "p.distance.weight", 2, 5 }, { "n.weight", 0, 4 },
    { "head.weight", 6, 4 },  { "l.q.weight", 4, 4 }, { "l.v.weight", 4, 4 },        { "l.o.weight", 4, 4 },
    { "x.weight", 6, 4 },
};
static char *cert_name, *model_name;

/* The tree in a file, and its certificate that claims nothing. */
static taut_checked verdict(const char *tree)
{
    enum { TENSORS = sizeof tensors / sizeof *tensors };
    taut_checked r = { 0 };
    tree_tensor list[TENSORS];
    size_t len;
    int count = 0;
    for (int i = 0; i < TENSORS; i++) { /* those that the tree names: one too many would be refused at once */
        char quoted[32];
        snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)strcspn(tensors[i].name, "."), tensors[i].name);
        if (i == 0 || strstr(tree, quoted)) list[count++] = tensors[i];
    }
    cJSON *json = cJSON_Parse(tree);
    char *file = tree_file(tree, list, count, &len);
    temp_put("model.safetensors", file, len);
    for (int example = 0; example < 2; example++) {
        cJSON *cert = tree_certificate(json, file, len, example);
        char *text = cJSON_PrintUnformatted(cert);
        temp_put("cert.json", text, strlen(text));
        if (taut_check_files(&r, cert_name, model_name)) r.holds = false;
        free(text);
        cJSON_Delete(cert);
    }
    free(file);
    cJSON_Delete(json);
    return r;
}

static void fuzz_begin(void)
{
    cert_name = strdup(temp_path("cert.json")), model_name = strdup(temp_path("model.safetensors"));
    fuzz_seed_text(tree_text);
    const taut_checked r = verdict(tree_text);
    CHECK(r.holds || strstr(r.why, "is ahead of"), r.why);
}

static cJSON *nth(cJSON *j, int *n)
{
    for (; j; j = j->next) {
        if ((*n)-- == 0) return j;
        cJSON *found = nth(j->child, n);
        if (found) return found;
    }
    return NULL;
}

/* One field or part of the tree becomes another one, goes, or becomes something strange. */
static void change(cJSON *tree, int which, int how)
{
    static const char *const strange[] = { "0",     "-1", "3.5",        "1e9",   "5", "\"gelu\"", "\"\"",
                                           "[]",    "{}", "null",       "1e300", "7", "\"mix\"",  "\"abs\"",
                                           "\"m\"", "1",  "\"linear\"", "[{}]",  "2", "4" };
    cJSON *at = nth(tree->child, &which);
    if (!at) return;
    cJSON *now = cJSON_Parse(strange[(size_t)how % (sizeof strange / sizeof *strange)]);
    cJSON *other = how % 3 == 0 ? nth(tree->child, &(int){ how / 3 }) : NULL;
    char *text = other && other != at ? cJSON_PrintUnformatted(other) : NULL; /* no cycles: by way of its text */
    if (text) cJSON_Delete(now), now = cJSON_Parse(text);
    free(text);
    cJSON *up = tree; /* the parent: the one of whose children it is */
    for (int n = 0; up; up = nth(tree->child, &(int){ n++ })) {
        const cJSON *k = up->child;
        while (k && k != at) k = k->next;
        if (k) break;
    }
    char *key = at->string ? strdup(at->string) : NULL;
    if (how % 4 == 1) {
        cJSON_Delete(cJSON_DetachItemViaPointer(up, at));
        cJSON_Delete(now);
    } else if (!key)
        cJSON_ReplaceItemViaPointer(up, at, now);
    else
        cJSON_ReplaceItemInObjectCaseSensitive(up, key, now);
    free(key);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    if (len && data[0] == '{') {
        char *tree = strndup((const char *)data, len);
        verdict(tree);
        free(tree);
    }
    cJSON *json = cJSON_Parse(tree_text);
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < len; i++) sum = (sum ^ data[i]) * 1099511628211u;
    for (int i = 0; i < 1 + (int)(sum >> 60) % 3; i++)
        change(json, (int)(sum >> (8 + 9 * i)) & 127, (int)(sum >> (30 + 7 * i)) & 255);
    char *text = cJSON_PrintUnformatted(json);
    verdict(text);
    free(text);
    cJSON_Delete(json);
}
