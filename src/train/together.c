#include "train/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/program.h"
#include "base/sha256.h"

static void add_text(taut_sha256 *h, const char *text) { taut_sha256_add(h, text, strlen(text) + 1); }

/* What makes the numbers: kernels are chosen by the processor, so two kinds of machines may round differently. */
static taut_status hash_program(const taut_trainer *t, char hex[65])
{
    taut_sha256 h;
    const taut_status s = taut_program_hash(hex);
    if (s) return s;
    taut_sha256_begin(&h);
    add_text(&h, hex);
    add_text(&h, taut_kernels_build(t->k));
    add_text(&h, taut_blas_version());
    taut_sha256_end(&h, hex);
    return TAUT_OK;
}

static void hash_recipe(const taut_trainer *t, char hex[65])
{
    taut_sha256 h;
    taut_sha256_begin(&h);
    add_text(&h, t->printed);
    taut_sha256_end(&h, hex);
}

/* Data are compared against mistakes, and there may be gigabytes of them: 64 bits, at the speed of memory. */
static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
    const char *at = data;
    for (size_t take; bytes > 0; at += take, bytes -= take) {
        uint64_t word = 0;
        take = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, at, take);
        h = (h ^ word) * 0x9e3779b97f4a7c15;
        h ^= h >> 32;
    }
    return h;
}

/* Example i of a split, all that a slot has of it. */
static uint64_t add_example(uint64_t h, const taut_trainer *t, taut_split split, int64_t i)
{
    const taut_batch *b = &t->batch;
    const taut_task *k = &t->source->task;
    const size_t in = (size_t)(k->t * (k->tokens ? 1 : k->d)), asked = (size_t)k->asked;
    const taut_slot slot = { b->x, b->reals, b->y, NULL, b->wanted };
    t->source->ops->get(t->source, slot, split, i);
    if (b->x) h = mix(h, b->x, in * sizeof *b->x);
    if (b->reals) h = mix(h, b->reals, in * sizeof *b->reals);
    if (b->y) h = mix(h, b->y, asked * sizeof *b->y);
    return b->wanted ? mix(h, b->wanted, asked * (size_t)k->reals * sizeof *b->wanted) : h;
}

/* Two texts may have the same ids of other words. */
static void hash_data(const taut_trainer *t, char hex[65])
{
    taut_sha256 h;
    char *vocab = t->source->vocab ? taut_vocab_print(t->source->vocab) : NULL;
    taut_sha256_begin(&h);
    add_text(&h, vocab ? vocab : "");
    free(vocab);
    for (int split = TAUT_TRAIN; split <= TAUT_VALID; split++) {
        const int64_t count = taut_source_count(t->source, (taut_split)split);
        uint64_t mixed = (uint64_t)count;
        for (int64_t i = 0; i < count; i++) mixed = add_example(mixed, t, (taut_split)split, i);
        taut_sha256_add(&h, &mixed, sizeof mixed);
    }
    taut_sha256_end(&h, hex);
}

taut_status taut_together_check(const taut_ranks *r, const taut_trainer *t)
{
    char hex[65];
    if (r->count == 1) return TAUT_OK;
    taut_status s = taut_ranks_agree(r, hash_program(t, hex));
    if (!s) s = taut_ranks_same(r, "program, kernels or processor", hex);
    hash_recipe(t, hex);
    if (!s) s = taut_ranks_same(r, "recipe", hex);
    hash_data(t, hex);
    return s ? s : taut_ranks_same(r, "data", hex);
}

/* Rank 0 leaves a word there that nobody can know. */
taut_status taut_together_folder(const taut_ranks *r, const char *folder)
{
    char path[4200], word[65] = "", *text = NULL;
    size_t len;
    taut_status s = TAUT_OK;
    if (r->count == 1) return TAUT_OK;
    snprintf(path, sizeof path, "%s/ranks.word", folder);
    if (r->rank == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        snprintf(word, sizeof word, "%ld %lld %ld", (long)getpid(), (long long)t.tv_sec, t.tv_nsec);
        s = taut_file_write(path, word, strlen(word));
    }
    s = taut_ranks_agree(r, s);
    if (!s && r->rank > 0 && !taut_file_read(&text, &len, path)) snprintf(word, sizeof word, "%.64s", text);
    free(text);
    if (!s) s = taut_ranks_same(r, "folder (--out must be one that all ranks share)", word);
    if (r->rank == 0) (void)unlink(path);
    return s;
}

taut_status taut_together_weights(const taut_ranks *r, const taut_model *m)
{
    enum { PIECE = 4096 };
    double numbers[PIECE];
    char hex[65];
    taut_sha256 h;
    if (r->count == 1) return TAUT_OK;
    taut_sha256_begin(&h);
    for (int64_t i = 0; i < m->slab; i += PIECE) {
        const int64_t count = m->slab - i < PIECE ? m->slab - i : PIECE;
        m->k->get(numbers, taut_at(m->k, m->values, i), count);
        taut_sha256_add(&h, numbers, (size_t)count * sizeof *numbers);
    }
    taut_sha256_end(&h, hex);
    return taut_ranks_same(r, "weights", hex);
}
