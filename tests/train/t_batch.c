/* Examples are a pure function of (seed, number): the same for any batch size; an encoder's masks too; from which on images
 * are plain. */
#include "train/batch.h"

#include "data/text.h"
#include "small.h"

enum { CONTEXT = 12, COUNT = 24, LENGTH = 4000 };

typedef struct {
    taut_text *text; /* belongs to the source */
    taut_source *source;
} set;

/* mask_rate 0: next tokens. */
static void open_set(set *s, double mask_rate)
{
    must(taut_text_open(&s->text, "brackets", "chars", 0.1, NULL, LENGTH, 7));
    must(taut_source_text(&s->source, s->text, CONTEXT, mask_rate));
}

static void close_set(set *s) { taut_source_free(s->source); }

/* Examples 0 .. COUNT-1 in batches of `size`; x and y have room for all of them. */
static int64_t collect(const set *s, uint64_t seed, int64_t size, int32_t *x, int32_t *y)
{
    taut_batch b;
    int64_t targets = 0;
    must(taut_batch_create(&b, s->source, seed, size));
    for (int64_t first = 0; first < COUNT; first += size) {
        const int64_t count = COUNT - first < size ? COUNT - first : size;
        targets += taut_batch_train(&b, first, count);
        memcpy(x + first * CONTEXT, b.x, (size_t)(count * CONTEXT) * sizeof *x);
        memcpy(y + first * CONTEXT, b.y, (size_t)(count * CONTEXT) * sizeof *y);
    }
    taut_batch_free(&b);
    return targets;
}

static bool any_batch_size(const set *s, uint64_t seed)
{
    static const int64_t sizes[] = { 1, 5, 8, 24, 100 };
    int32_t x[COUNT * CONTEXT], y[COUNT * CONTEXT], x2[COUNT * CONTEXT], y2[COUNT * CONTEXT];
    bool same = true;
    const int64_t targets = collect(s, seed, COUNT, x, y);
    for (int i = 0; i < 5; i++) {
        const int64_t again = collect(s, seed, sizes[i], x2, y2);
        same = same && again == targets && memcmp(x, x2, sizeof x) == 0 && memcmp(y, y2, sizeof y) == 0;
    }
    collect(s, seed + 1, COUNT, x2, y2);
    CHECK(memcmp(x, x2, sizeof x) != 0, "another seed, other examples");
    return same;
}

/* Where in the training split row x (which a mask may have changed where y says so) comes from; -1: nowhere.
 */
static int64_t place_of(const set *s, const int32_t *x, const int32_t *y, bool masked)
{
    for (int64_t start = 0; start + CONTEXT < s->text->train_len; start++) {
        int64_t i = 0;
        while (i < CONTEXT && s->text->ids[start + i] == (masked && y[i] >= 0 ? y[i] : x[i])) i++;
        if (i == CONTEXT) return start;
    }
    return -1;
}

static void gpt(void)
{
    set s;
    int32_t x[COUNT * CONTEXT], y[COUNT * CONTEXT];
    open_set(&s, 0);
    CHECK(s.source->task.tokens == taut_vocab_size(s.text->vocab), "a gpt needs no mask");
    CHECK(any_batch_size(&s, 3), "gpt: the same examples for any batch size");
    CHECK(collect(&s, 3, COUNT, x, y) == COUNT * CONTEXT, "every token has a target");
    for (int i = 0; i < COUNT; i++) {
        const int32_t *from = x + i * CONTEXT, *to = y + i * CONTEXT;
        CHECK(memcmp(from + 1, to, (CONTEXT - 1) * sizeof *to) == 0, "targets are the next tokens");
        CHECK(place_of(&s, from, to, false) >= 0, "an example is a piece of the training split");
    }
    close_set(&s);
}

/* What happens to a token: not chosen, mask, same, other. */
static void count_fates(const set *s, const int32_t *x, const int32_t *y, int64_t len, int64_t fate[4])
{
    const int32_t vocab = taut_vocab_size(s->text->vocab);
    for (int64_t i = 0; i < len; i++) {
        CHECK(x[i] >= 0 && x[i] <= vocab && y[i] >= -1 && y[i] < vocab, "ids in range");
        fate[y[i] < 0 ? 0 : x[i] == vocab ? 1 : x[i] == y[i] ? 2 : 3]++;
        if (y[i] < 0) CHECK(x[i] < vocab, "only what is asked for is hidden");
    }
}

static void encoder(void)
{
    set s;
    int32_t x[COUNT * CONTEXT], y[COUNT * CONTEXT];
    int64_t fate[4] = { 0 }, targets = 0, total = 0;
    open_set(&s, 0.15);
    CHECK(s.source->task.tokens == taut_vocab_size(s.text->vocab) + 1, "one more for the mask");
    CHECK(any_batch_size(&s, 3), "encoder: the same examples and masks for any batch size");
    for (uint64_t seed_ = 0; seed_ < 40; seed_++) {
        targets += collect(&s, seed_, COUNT, x, y);
        total += COUNT * CONTEXT;
        count_fates(&s, x, y, COUNT * CONTEXT, fate);
        if (seed_ == 0)
            for (int i = 0; i < COUNT; i++)
                CHECK(place_of(&s, x + i * CONTEXT, y + i * CONTEXT, true) >= 0, "the answers restore the text");
    }
    CHECK(targets == total - fate[0], "it counts its targets");
    /* 11520 tokens: five standard deviations are 1.7 % of all, and 6 % of the chosen */
    CHECK_NEAR((double)targets / (double)total, 0.15, 0.017, "15 % are asked for");
    CHECK_NEAR((double)fate[1] / (double)targets, 0.8, 0.06, "80 % of them are hidden");
    CHECK_NEAR((double)fate[3] / (double)targets, 0.1, 0.05, "10 % are another token");
    close_set(&s);
    open_set(&s, 1);
    CHECK(collect(&s, 1, COUNT, x, y) == COUNT * CONTEXT, "rate 1 asks for all");
    close_set(&s);
    open_set(&s, 1e-6);
    CHECK(collect(&s, 1, COUNT, x, y) == 0, "a tiny rate may ask for none");
    close_set(&s);
}

/* Validation windows.  Of next tokens the last is partial: what is behind its end is never asked for, and no token sees it.
 * Of hidden tokens there are whole ones alone.  The seed does not matter. */
static void windows(double mask_rate)
{
    set s;
    taut_batch b, other;
    open_set(&s, mask_rate);
    const int64_t all = taut_source_count(s.source, TAUT_VALID), split = s.text->len - s.text->train_len;
    const int64_t index[3] = { 0, all / 2, all - 1 }, real = split - 1 - (all - 1) * CONTEXT;
    CHECK(mask_rate > 0 ? split / CONTEXT == all : real < CONTEXT, "this split ends in a partial window");
    must(taut_batch_create(&b, s.source, 1, 3));
    must(taut_batch_create(&other, s.source, 2, 1));
    int64_t targets = taut_batch_windows(&b, TAUT_VALID, index, 3), found = 0;
    for (int64_t i = 0; i < 3 * CONTEXT; i++) found += b.y[i] >= 0;
    CHECK(targets == found, "it counts its targets");
    for (int64_t i = real; mask_rate == 0 && i < CONTEXT; i++)
        CHECK(b.y[2 * CONTEXT + i] == -1 && b.x[2 * CONTEXT + i] == 0, "padding is left alone");
    for (int64_t i = 0; i < 3; i++) {
        taut_batch_windows(&other, TAUT_VALID, &index[i], 1);
        CHECK(memcmp(other.x, b.x + i * CONTEXT, CONTEXT * sizeof *b.x) == 0, "every model gets the same window");
        CHECK(memcmp(other.y, b.y + i * CONTEXT, CONTEXT * sizeof *b.y) == 0, "every model gets the same questions");
    }
    taut_batch_free(&b);
    taut_batch_free(&other);
    close_set(&s);
}

/* Windows at every token, no more of them than were asked for or than there are. */
static void sliding(void)
{
    set s;
    taut_batch b;
    open_set(&s, 0);
    CHECK(taut_source_slide(s.source, 5) && taut_source_count(s.source, TAUT_VALID) == 5, "five windows");
    must(taut_batch_create(&b, s.source, 0, 5));
    CHECK(taut_batch_windows(&b, TAUT_VALID, (const int64_t[]){ 0, 1, 2, 3, 4 }, 5) == 5 * CONTEXT, "all are whole");
    const int32_t *first = s.text->ids + s.text->train_len;
    for (int i = 0; i < 5 * CONTEXT; i++)
        CHECK(b.x[i] == first[i / CONTEXT + i % CONTEXT] && b.y[i] == first[i / CONTEXT + i % CONTEXT + 1], "a window");
    taut_batch_free(&b);
    CHECK(taut_source_slide(s.source, LENGTH), "many");
    CHECK(taut_source_count(s.source, TAUT_VALID) == s.text->len - s.text->train_len - CONTEXT, "as far as it goes");
    close_set(&s);
    open_set(&s, 0.5);
    CHECK(!taut_source_slide(s.source, 5), "hidden tokens are another question");
    close_set(&s);
}

/* The image with which the last steps begin, rounded to a whole step; shares that are no step or all steps are refused, and
 * what spares all or may end before. */
static void plain_steps(void)
{
    static const struct {
        const char *steps;
        int64_t from; /* 0: refused */
    } cases[] = { { "3\n[train]\nsteps = 10\nbatch = 3\naccumulate = 2\n", 42 },
                  { "57\n[train]\nsteps = 100\nbatch = 1\n", 43 },
                  { "04\n[train]\nsteps = 10\nbatch = 3\n", 0 },
                  { "99\n[train]\nsteps = 10\nbatch = 3\n", 0 },
                  { "3\nspared = 1\n[train]\nsteps = 10\nbatch = 3\n", 0 },
                  { "3\n[train]\nsteps = 10\nbatch = 3\npatience = 2\neval_every = 1\n", 0 },
                  { "5\n[train]\nsteps = 1000000000\naccumulate = 65536\nbatch = 1048576\n", (int64_t)1 << 62 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        taut_recipe r;
        snprintf(text, sizeof text, "[model]\narch = mlp\n[data]\nsource = shapes\nturn = 4\nplain = 0.%s",
                 cases[i].steps);
        taut_config *cfg = config_of(text);
        const taut_status s = taut_recipe_read(&r, cfg);
        CHECK(cases[i].from ? s == TAUT_OK && r.data.augment.plain_from == cases[i].from : s == TAUT_BAD_CONFIG, text);
        taut_config_free(cfg);
    }
}

int main(void)
{
    test_begin();
    plain_steps();
    sliding();
    gpt();
    encoder();
    windows(0);
    windows(0.5);
    return test_end("batch", "gpt and encoder, plain images");
}
