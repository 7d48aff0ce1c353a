/* Attention maps of a model at one input, for people and as JSON; taut report draws them. */
#include <math.h>
#include <stdio.h>

#include "measure.h"
#include "measure/maps.h"
#include "train/batch.h"

/* One example of the validation split through the model; of a text its first tokens. */
static taut_status run_input(taut_pass **pass, const cli_args *a, taut_net *m, const taut_source *data)
{
    const int64_t all = taut_source_count(data, TAUT_VALID), longest = m->model->in.t;
    const int64_t tokens = cli_int(a, "--tokens", longest < 32 ? longest : 32, 1, longest);
    const int64_t from = cli_int(a, "--from", 0, 0, all > 1 ? all - 1 : 0);
    taut_batch b = { 0 };
    if (all < 1) return taut_fail(TAUT_BAD_DATA, "the validation split has no example");
    if (!data->task.tokens && cli_flag(a, "--tokens"))
        return taut_fail(TAUT_BAD_CONFIG, "--tokens is for texts: all inputs of %s have one length", a->operand[0]);
    taut_status s = taut_pass_create(pass, m->model, 1, longest, false);
    if (!s) s = taut_batch_create(&b, data, 0, 1);
    if (!s) {
        (void)taut_batch_windows(&b, TAUT_VALID, &from, 1);
        if (b.x)
            taut_pass_forward(*pass, b.x, 1, tokens);
        else
            taut_pass_forward_real(*pass, b.reals, 1);
    }
    taut_batch_free(&b);
    return s;
}

static cJSON *maps_json(const taut_maps *m)
{
    cJSON *list = cJSON_CreateArray();
    const int64_t n = m->tokens * m->tokens;
    for (int l = 0; l < m->layers; l++) {
        cJSON *layer = cJSON_CreateArray();
        for (int64_t h = 0; h < m->heads; h++) {
            cJSON *map = cJSON_CreateArray();
            for (int64_t i = 0; i < n; i++)
                cJSON_AddItemToArray(
                    map, cJSON_CreateNumber(round(1e4 * m->weight[((int64_t)l * m->heads + h) * n + i]) / 1e4));
            cJSON_AddItemToArray(layer, map);
        }
        cJSON_AddItemToArray(list, layer);
    }
    return list;
}

/* One letter a weight, from nothing to everything. */
static void print(const taut_maps *m)
{
    static const char ink[] = " .:-=+*#%@";
    for (int l = 0; l < m->layers; l++)
        for (int64_t h = 0; h < m->heads; h++) {
            printf("layer %d, head %lld: a row for each token that asks, a letter for each it listens to\n", l,
                   (long long)h);
            for (int64_t i = 0; i < m->tokens * m->tokens; i++) {
                const double w = m->weight[((int64_t)l * m->heads + h) * m->tokens * m->tokens + i];
                putchar(ink[(int)fmin(9, 10 * w)]);
                if (i % m->tokens == m->tokens - 1) putchar('\n');
            }
        }
}

int measure_maps(const cli_args *a, taut_net *m)
{
    taut_source *data = NULL;
    taut_pass *pass = NULL;
    taut_maps maps = { 0 };
    taut_status s = taut_net_source(&data, m, cli_text(a, "--data", NULL));
    if (!s) s = run_input(&pass, a, m, data);
    if (!s) s = taut_maps_read(&maps, pass);
    if (!s && maps.layers == 0)
        s = taut_fail(TAUT_BAD_CONFIG, "%s has no attention with a map: softmax or by position", a->operand[0]);
    int code = EXIT_DONE;
    if (s)
        code = cli_fail(a);
    else if (cli_flag(a, "--json")) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "model", a->operand[0]);
        cJSON_AddStringToObject(o, "text", cli_text(a, "--data", m->data.source));
        cJSON_AddNumberToObject(o, "tokens", (double)maps.tokens);
        cJSON_AddItemToObject(o, "maps", maps_json(&maps));
        code = cli_json(o);
    } else
        print(&maps);
    taut_maps_free(&maps);
    taut_pass_free(pass);
    taut_source_free(data);
    return code;
}
