/* Heads that threads prove side by side: the same bound and the same ledger as from one thread, whichever heads are dead. */
#include "bound/attention.h"

#include <omp.h>

#include "base/alloc.h"
#include "bound/range.h"
#include "harness.h"

enum { WIDTH = 512, HEADS = 8, DH = 32, INNER = HEADS * DH, THREADS = 5 };

static double wq[INNER * WIDTH], wk[INNER * WIDTH], wv[INNER * WIDTH], wo[WIDTH * INNER], bq[INNER], bk[INNER];

static void make(taut_attention_weights *w, bool rope, unsigned dead)
{
    fill(wq, INNER * WIDTH), fill(wk, INNER * WIDTH), fill(wv, INNER * WIDTH), fill(wo, WIDTH * INNER);
    fill(bq, INNER), fill(bk, INNER);
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t i = 0; dead >> h & 1 && i < DH * WIDTH; i++) wv[h * DH * WIDTH + i] = 0;
    *w = (taut_attention_weights){ .width = WIDTH,
                                   .heads = HEADS,
                                   .dh = DH,
                                   .wq = wq,
                                   .wk = wk,
                                   .wv = wv,
                                   .wo = wo,
                                   .bq = bq,
                                   .bk = bk,
                                   .scale = 1 / sqrt((double)DH),
                                   .out = 1,
                                   .rope = rope,
                                   .alibi = !rope,
                                   .causal = true,
                                   .tq = 16,
                                   .tk = 16,
                                   .keys_min = 16 };
}

/* What is proved, and the ledger as text, by so many threads. */
static char *proved(taut_attention_bound *b, const taut_attention_weights *w, int threads)
{
    taut_ledger *l = ledger_create();
    omp_set_num_threads(threads);
    ledger_open(l, "attention");
    *b = up_attention(w, (taut_up){ 1 }, (taut_up){ 1 }, l);
    ledger_close(l);
    cJSON *tree = ledger_take(l);
    char *text = cJSON_Print(tree);
    cJSON_Delete(tree);
    ledger_free(l);
    return text;
}

static int nodes(const char *text)
{
    int count = 0;
    while ((text = strstr(text, "\"index\""))) count++, text++;
    return count;
}

static void compare(bool rope, unsigned dead)
{
    taut_attention_weights w;
    taut_attention_bound one, many;
    make(&w, rope, dead);
    char *alone = proved(&one, &w, 1), *together = proved(&many, &w, THREADS);
    CHECK(memcmp(&one, &many, sizeof one) == 0, "the same bound");
    CHECK(alone && together && strcmp(alone, together) == 0, "the same ledger");
    CHECK(alone && nodes(alone) == HEADS - __builtin_popcount(dead), "a node for every head that counts");
    CHECK(one.tokens.v < INFINITY && (dead == 0xff || one.tokens.v > 0), "a number");
    free(alone), free(together);
}

/* Memory that runs out anywhere leaks nothing and gives no less, but for where two sound ways to a norm differ: the tenth
 * digit. */
static void without_memory(void)
{
    taut_attention_weights w;
    taut_attention_bound whole;
    make(&w, case_no % 2, 0x12);
    omp_set_num_threads(THREADS);
    whole = up_attention(&w, (taut_up){ 1 }, (taut_up){ 1 }, NULL);
    for (long n = 1; n < 300; n += 1 + n / 4) {
        taut_alloc_fail_at(n);
        const taut_attention_bound b = up_attention(&w, (taut_up){ 1 }, (taut_up){ 1 }, NULL);
        taut_alloc_fail_at(0);
        const double part = 1 - 1e-9;
        CHECK_LE(part * whole.tokens.v, b.tokens.v, "tokens");
        CHECK_LE(part * whole.flat.v, b.flat.v, "flat");
        CHECK_LE(part * whole.growth.v, b.growth.v, "growth");
    }
}

int main(void)
{
    static const unsigned dead[] = { 0, 0x29, 0x92, 0x80, 0x7f, 0xff };
    _Static_assert(HEADS * DH * WIDTH >= RANGE_SHARED, "worth sharing");
    test_begin();
    for (case_no = 0; case_no < 12; case_no++) compare(case_no % 2, dead[case_no / 2]);
    for (case_no = 0; case_no < 2; case_no++) without_memory();
    return test_end("attention_heads", "one thread and %d: the same bytes; no memory: no less", THREADS);
}
