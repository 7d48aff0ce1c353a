/* Built-in images, and images as a source: pure functions of their numbers, every image once an epoch. */
#include "data/images.h"

#include "base/rng.h"
#include "data/shapes.h"
#include "harness.h"

enum { LEN = TAUT_SHAPES_SIDE * TAUT_SHAPES_SIDE * TAUT_SHAPES_CHANNELS };

static void shapes(void)
{
    static uint8_t a[LEN], b[LEN];
    int seen[TAUT_SHAPES_CLASSES] = { 0 };
    for (int64_t i = 0; i < 1200; i++) {
        const int kind = taut_shapes_draw(a, seed, i);
        CHECK(kind >= 0 && kind < TAUT_SHAPES_CLASSES, "a class");
        seen[kind]++;
        CHECK(taut_shapes_draw(b, seed, i) == kind && memcmp(a, b, LEN) == 0, "a pure function of its number");
        int lo = 255, hi = 0;
        for (int j = 0; j < LEN; j++) lo = a[j] < lo ? a[j] : lo, hi = a[j] > hi ? a[j] : hi;
        CHECK(hi - lo > 40, "something is to be seen");
    }
    for (int k = 0; k < TAUT_SHAPES_CLASSES; k++) CHECK(seen[k] > 140 && seen[k] < 260, "classes are even");
    taut_shapes_draw(a, seed, 0), taut_shapes_draw(b, seed + 1, 0);
    CHECK(memcmp(a, b, LEN) != 0, "another seed, another image");
}

static void source(void)
{
    enum { ALL = 70, TRAIN = 63 };
    taut_images *images = NULL;
    taut_source *s = NULL;
    CHECK(taut_images_open(&images, "shapes", ALL, 0.1, seed) == TAUT_OK && images->count[1] == ALL - TRAIN, "opened");
    const taut_images keep = *images;
    CHECK(taut_source_images(&s, images) == TAUT_OK, taut_last_error());
    CHECK(s->task.tokens == 0 && s->task.t == 1 && s->task.d == LEN && s->task.asked == 1, "its task");
    CHECK(s->task.answers == TAUT_SHAPES_CLASSES && !s->vocab, "classes, no words");
    static double x[LEN], y[LEN];
    int32_t label;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int times[TRAIN] = { 0 };
        for (int64_t i = 0; i < TRAIN; i++) {
            s->ops->draw(s, (taut_slot){ NULL, x, &label }, 5, epoch * TRAIN + i);
            for (int64_t j = 0; j < TRAIN; j++) {
                int32_t other;
                s->ops->get(s, (taut_slot){ NULL, y, &other }, TAUT_TRAIN, j);
                if (memcmp(x, y, sizeof x) == 0) times[j] += other == label;
            }
        }
        for (int64_t j = 0; j < TRAIN; j++) CHECK(times[j] == 1, "every image once an epoch, with its class");
    }
    s->ops->get(s, (taut_slot){ NULL, x, &label }, TAUT_VALID, 2);
    CHECK(label == keep.label[1][2] && x[7] == keep.pixels[1][2 * LEN + 7] / 255.0, "bytes become numbers in [0, 1]");
    taut_source_free(s);
    CHECK(taut_images_open(&images, "shapes", 1, 0.1, 1) == TAUT_BAD_DATA, "a split without images");
    CHECK(taut_images_open(&images, "brackets", 10, 0.1, 1) == TAUT_BAD_DATA, "no images of that name");
}

static void places(void)
{
    for (uint64_t n = 1; n < 300; n += 1 + n / 9) {
        static char taken[400];
        memset(taken, 0, sizeof taken);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t at = taut_rng_place(seed, i, n);
            CHECK(at < n && !taken[at], "a shuffling");
            taken[at] = 1;
        }
    }
}

int main(void)
{
    test_begin();
    places();
    shapes();
    source();
    return test_end("images", "shapes and their stream");
}
