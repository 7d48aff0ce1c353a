/* The data of a model: examples by number. */
#include <stdlib.h>

#include "api/call.h"
#include "api/data.h"
#include "api/net.h"
#include "base/alloc.h"

taut_status taut_data_open(taut_data **out, const taut_net *net, const char *name)
{
    NEED(out);
    *out = NULL;
    NEED(net);
    taut_data *data = taut_calloc(1, sizeof *data);
    const taut_status s = data ? taut_net_source(&data->source, net, name) : taut_no_memory("data");
    if (s)
        free(data);
    else
        *out = data;
    return s;
}

void taut_data_free(taut_data *data)
{
    if (!data) return;
    taut_source_free(data->source);
    free(data);
}

taut_status taut_data_look(const taut_data *data, taut_data_facts *out)
{
    NEED(data);
    NEED(out);
    const taut_task *k = &data->source->task;
    *out = (taut_data_facts){ k->t, k->d, k->asked, k->reals, { 0 } };
    for (int split = TAUT_TRAIN; split <= (k->reals ? TAUT_TEST : TAUT_VALID); split++)
        out->count[split] = taut_source_count(data->source, (taut_split)split);
    return TAUT_OK;
}

/* A place for what the caller does not want, or the caller's own. */
static void *place(void *given, size_t bytes, void **own, int *owned)
{
    return given ? given : (own[(*owned)++] = taut_malloc(bytes + 1));
}

taut_status taut_data_get(const taut_data *data, taut_split split, int64_t index, const taut_sample *into)
{
    NEED(into);
    taut_data_facts f;
    taut_status s = taut_data_look(data, &f);
    if (s) return s;
    if ((int)split < TAUT_TRAIN || (int)split > TAUT_TEST || index < 0 || index >= f.count[split])
        return taut_fail(TAUT_BAD_CALL, "there is no example %lld in this split", (long long)index);
    const taut_task *k = &data->source->task;
    void *own[3] = { NULL };
    int owned = 0;
    taut_slot slot = { 0 };
    if (k->tokens) slot.ids = place(into->ids, (size_t)k->t * sizeof *slot.ids, own, &owned);
    if (!k->tokens) slot.reals = place(into->reals, (size_t)(k->t * k->d) * sizeof *slot.reals, own, &owned);
    slot.target = place(into->targets, (size_t)k->asked * sizeof *slot.target, own, &owned);
    if (k->reals) slot.wanted = place(into->wanted, (size_t)(k->asked * k->reals) * sizeof *slot.wanted, own, &owned);
    for (int i = 0; i < owned; i++)
        if (!own[i]) s = taut_no_memory("an example");
    if (!s) data->source->ops->get(data->source, slot, split, index);
    for (int i = 0; i < owned; i++) free(own[i]);
    return s;
}
