/* Built-in images, and images as a source: pure functions of their numbers, every image once an epoch. */
#include "data/images.h"

#include "base/rng.h"
#include "data/augment.h"
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

/* A part of the training images validates: each is in one of the two splits, and those that validated are in neither. */
static void held_out(void)
{
    enum { ALL = 120, TRAIN = 90, HELD = 18 };
    taut_images *all = NULL, *cut = NULL;
    CHECK(!taut_images_open(&all, &(taut_images_spec){ "shapes", ALL, 0.25, seed, 0, 0 }) &&
              !taut_images_open(&cut, &(taut_images_spec){ "shapes", ALL, 0.25, seed, 0, 0.2 }),
          taut_last_error());
    CHECK(cut->count[TAUT_TRAIN] == TRAIN - HELD && cut->count[TAUT_VALID] == HELD, "how many");
    int found = 0;
    for (int64_t i = 0; i < TRAIN; i++)
        for (int split = 0; split < 2; split++)
            for (int64_t j = 0; j < cut->count[split]; j++)
                found += memcmp(all->pixels[TAUT_TRAIN] + i * LEN, cut->pixels[split] + j * LEN, LEN) == 0 &&
                         all->label[TAUT_TRAIN][i] == cut->label[split][j];
    CHECK(found == TRAIN, "each once, with its class");
    taut_images_free(all), taut_images_free(cut);
    CHECK(taut_images_open(&cut, &(taut_images_spec){ "shapes", 8, 0.5, seed, 0, 0.1 }) == TAUT_BAD_DATA &&
              strstr(taut_last_error(), "data.hold_out"),
          "nothing held out");
}

static void source(void)
{
    enum { ALL = 70, TRAIN = 63 };
    taut_images *images = NULL;
    taut_source *s = NULL;
    CHECK(taut_images_open(&images, &(taut_images_spec){ "shapes", ALL, 0.1, seed, 0, 0 }) == TAUT_OK &&
              images->count[1] == ALL - TRAIN,
          "opened");
    const taut_images keep = *images;
    CHECK(taut_source_images(&s, images, &(taut_augment){ 0 }) == TAUT_OK, taut_last_error());
    CHECK(s->task.tokens == 0 && s->task.t == 1 && s->task.d == LEN && s->task.asked == 1, "its task");
    CHECK(s->task.answers == TAUT_SHAPES_CLASSES && !s->vocab, "classes, no words");
    static double x[LEN], y[LEN];
    int32_t label;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int times[TRAIN] = { 0 };
        for (int64_t i = 0; i < TRAIN; i++) {
            s->ops->draw(s, (taut_slot){ .reals = x, .target = &label }, 5, epoch * TRAIN + i);
            for (int64_t j = 0; j < TRAIN; j++) {
                int32_t other;
                s->ops->get(s, (taut_slot){ .reals = y, .target = &other }, TAUT_TRAIN, j);
                if (memcmp(x, y, sizeof x) == 0) times[j] += other == label;
            }
        }
        for (int64_t j = 0; j < TRAIN; j++) CHECK(times[j] == 1, "every image once an epoch, with its class");
    }
    s->ops->get(s, (taut_slot){ .reals = x, .target = &label }, TAUT_VALID, 2);
    CHECK(label == keep.label[1][2] && x[7] == keep.pixels[1][2 * LEN + 7] / 255.0, "bytes become numbers in [0, 1]");
    taut_source_free(s);
    CHECK(taut_images_open(&images, &(taut_images_spec){ "shapes", 1, 0, 1, 0, 0 }) == TAUT_BAD_DATA,
          "no image validates");
    CHECK(!taut_images_open(&images, &(taut_images_spec){ "shapes", 1, 0.1, 1, 0, 0 }) && images->count[0] == 0 &&
              images->count[1] == 1,
          "none is to train on: whoever trains refuses that");
    taut_images_free(images);
    CHECK(taut_images_open(&images, &(taut_images_spec){ "brackets", 10, 0.1, 1, 0, 0 }) == TAUT_BAD_DATA,
          "no images of that name");
}

/* From its number on, images of the stream are drawn as if they were only flipped and moved; before it, as without it.  Those
 * that are blended with another one, too, which comes from a third of an epoch further on. */
static void plain_at_the_end(double mixup)
{
    const taut_augment moves = { .flip = true, .crop = 2, .mixup = mixup };
    taut_augment all = moves, until = moves;
    taut_source *s[3];
    static double x[3][LEN];
    all.turn = until.turn = 20, all.colour = until.colour = 0.3, until.plain_from = 90;
    const taut_augment *const how[] = { &moves, &all, &until };
    for (int i = 0; i < 3; i++) {
        taut_images *images = NULL;
        CHECK(taut_images_open(&images, &(taut_images_spec){ "shapes", 70, 0.1, seed, 0, 0 }) == TAUT_OK &&
                  taut_source_images(&s[i], images, how[i]) == TAUT_OK,
              "opened");
    }
    for (int64_t number = 80; number < 100; number++) {
        int32_t label[3];
        double share[3][16];
        for (int i = 0; i < 3; i++)
            s[i]->ops->draw(s[i], (taut_slot){ .reals = x[i], .target = &label[i], .share = share[i] }, 5, number);
        CHECK(label[0] == label[2] && memcmp(x[0], x[1], sizeof x[0]) != 0, "the same image, turned in one of them");
        CHECK(memcmp(x[2], x[number < 90], sizeof x[0]) == 0, "turned before its number and plain from it on");
    }
    for (int i = 0; i < 3; i++) taut_source_free(s[i]);
}

/* Flips and moves against a loop of our own over the four ways a flip and a move can be told apart. */
static void moved(void)
{
    const taut_frame f = { 3, 4, 2 };
    const taut_augment a = { .flip = true, .crop = 1 };
    uint8_t p[24];
    double x[24];
    int seen[2][3][3] = { 0 };
    for (int i = 0; i < 24; i++) p[i] = (uint8_t)(1 + i);
    for (uint64_t key = 0; key < 400; key++) {
        taut_augment_image(x, p, f, &a, taut_rng_key(seed, 1, key));
        int ways = 0;
        for (int way = 0; way < 18; way++) {
            const int flip = way / 9, down = way / 3 % 3 - 1, right = way % 3 - 1;
            bool same = true;
            for (int i = 0; i < 24 && same; i++) {
                const int row = i / 8 + down, col = i / 2 % 4 + right, from = flip ? 3 - col : col;
                const bool in = row >= 0 && row < 3 && from >= 0 && from < 4;
                same = x[i] == (in ? p[(row * 4 + from) * 2 + i % 2] / 255.0 : 0);
            }
            if (same) ways++, seen[flip][down + 1][right + 1]++;
        }
        CHECK(ways == 1, "one of the eighteen ways");
    }
    for (int way = 0; way < 18; way++) CHECK(seen[way / 9][way / 3 % 3][way % 3] > 4, "all of them happen");
}

static void mixed(void)
{
    const taut_frame f = { 8, 6, 1 };
    double mean = 0;
    for (uint64_t i = 0; i < 600; i++) {
        const uint64_t key = taut_rng_key(seed, 2, i);
        double a[48], b[48];
        for (int j = 0; j < 48; j++) a[j] = 1, b[j] = 0;
        const taut_augment up = { .mixup = 0.5 + (double)(i % 3) }, cut = { .cutmix = 1 },
                           both = { .mixup = 1, .cutmix = 1 };
        const double share = taut_augment_mix(a, b, f, &up, key);
        for (int j = 0; j < 48; j++) CHECK_NEAR(a[j], share, 1e-15, "MixUp: the share of the first, everywhere");
        mean += share / 600;
        for (int j = 0; j < 48; j++) a[j] = 1;
        const double left = taut_augment_mix(a, b, f, i % 2 ? &cut : &both, key);
        double sum = 0;
        for (int j = 0; j < 48; j++) sum += a[j];
        CHECK_NEAR(sum / 48, left, 1e-12, "CutMix: what is left of the first");
        CHECK(left >= 0 && left <= 1 && share >= 0 && share <= 1, "shares");
    }
    CHECK_NEAR(mean, 0.5, 0.06, "Beta(alpha, alpha) is even");
}

/* The drawn example and its shares, the same for any way of cutting the stream. */
static void shared(void)
{
    taut_images *images = NULL;
    taut_source *s = NULL;
    static double x[LEN], y[LEN];
    double q[TAUT_SHAPES_CLASSES], r[TAUT_SHAPES_CLASSES];
    int32_t a, b;
    CHECK(!taut_images_open(&images, &(taut_images_spec){ "shapes", 60, 0.1, seed, 0, 0 }) &&
              !taut_source_images(&s, images, &(taut_augment){ .flip = true, .mixup = 1, .cutmix = 1 }),
          taut_last_error());
    CHECK(s->task.shared, "shares are drawn");
    for (int64_t i = 0; i < 100; i++) {
        double sum = 0;
        s->ops->draw(s, (taut_slot){ .reals = x, .target = &a, .share = q }, 3, i);
        s->ops->draw(s, (taut_slot){ .reals = y, .target = &b, .share = r }, 3, i);
        CHECK(a == b && memcmp(x, y, sizeof x) == 0 && memcmp(q, r, sizeof q) == 0, "a pure function of its number");
        for (int c = 0; c < TAUT_SHAPES_CLASSES; c++) {
            sum += q[c];
            CHECK(q[c] <= q[a], "the target has the largest share");
        }
        CHECK_NEAR(sum, 1, 1e-12, "shares sum to 1");
    }
    taut_source_free(s);
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
    held_out();
    plain_at_the_end(0);
    plain_at_the_end(1);
    moved();
    mixed();
    shared();
    return test_end("images", "shapes, their stream, augmentation");
}
