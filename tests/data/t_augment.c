/* Training images changed at random: what each change may do to an image, on images whose answer is known. */
#include "data/augment.h"
#include "harness.h"

enum { H = 9, W = 12, C = 3, LEN = H * W * C };
static const taut_frame frame = { H, W, C };
static uint8_t image[LEN];
static double out[LEN];

static double *made(taut_augment a, uint64_t key)
{
    taut_augment_image(out, image, frame, &a, key);
    return out;
}

static double at(int64_t y, int64_t x, int64_t c) { return out[(y * W + x) * C + c]; }

static void random_image(void)
{
    for (int i = 0; i < LEN; i++) image[i] = (uint8_t)rng_int(0, 255);
}

/* By hand: -1 becomes 1, -2 becomes 2; len becomes len - 2. */
static int64_t mirrored(int64_t i, int64_t len) { return i < 0 ? -i : i >= len ? 2 * len - 2 - i : i; }

static bool is_moved(int64_t down, int64_t right, bool flip, bool reflect)
{
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++) {
            const int64_t fy = y + down, fx = flip ? W - 1 - (x + right) : x + right;
            const bool in = fy >= 0 && fy < H && fx >= 0 && fx < W;
            const uint8_t *from = image + (mirrored(fy, H) * W + mirrored(fx, W)) * C;
            for (int64_t c = 0; c < C; c++)
                if (at(y, x, c) != (in || reflect ? from[c] / 255.0 : 0)) return false;
        }
    return true;
}

static void borders(void)
{
    int seen[5][5][2] = { 0 }, all = 0;
    for (case_no = 0; case_no < 600; case_no++) {
        const bool reflect = case_no % 2;
        int found = 0;
        if (case_no % 50 == 0) random_image();
        made((taut_augment){ .flip = true, .crop = 2, .reflect = reflect }, (uint64_t)case_no);
        for (int down = -2; down <= 2; down++)
            for (int right = -2; right <= 2; right++)
                for (int flip = 0; flip < 2; flip++)
                    if (is_moved(down, right, flip, reflect)) found++, seen[down + 2][right + 2][flip] = 1;
        CHECK(found == 1, "moved by whole pixels, one way");
    }
    for (int i = 0; i < 50; i++) all += ((int *)seen)[i];
    CHECK(all == 50, "every way comes up");
}

/* A plane keeps its slope when it is turned, and has it over the zoom when that changes. */
static void planes(void)
{
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++)
            for (int64_t c = 0; c < C; c++) image[(y * W + x) * C + c] = (uint8_t)(20 + 8 * y + 6 * x + 10 * c);
    double least = 10, most = 0;
    for (case_no = 0; case_no < 400; case_no++) {
        const bool zooms = case_no % 2;
        made((taut_augment){ .turn = 30, .zoom = zooms ? 0.25 : 0, .reflect = true }, (uint64_t)case_no);
        const double down = (at(5, 5, 1) - at(3, 5, 1)) / 2 * 255, right = (at(4, 7, 1) - at(4, 4, 1)) / 3 * 255;
        const double slope = hypot(down, right), angle = atan2(down, right) - atan2(8, 6);
        CHECK_LE(fabs(angle), 30.001 * 3.14159265358979 / 180, "turned by at most the degrees asked for");
        if (!zooms) CHECK_NEAR(slope, 10, 1e-9, "a turn keeps slopes");
        CHECK_LE(slope, 12.5 + 1e-9, "zoomed by at most what was asked for");
        CHECK_LE(8 - 1e-9, slope, "zoomed by at least its inverse");
        CHECK_NEAR((at(4, 5, 2) + at(4, 6, 2)) / 2 * 255, 20 + 32 + 33 + 20, 1e-9, "the centre stays");
        if (zooms) least = fmin(least, slope), most = fmax(most, slope);
    }
    CHECK(least < 8.3 && most > 12, "zooms go both ways");
    memset(image, 200, LEN);
    made((taut_augment){ .turn = 45, .zoom = 1, .crop = 3, .reflect = true }, 7);
    for (int i = 0; i < LEN; i++) CHECK_NEAR(out[i], 200 / 255.0, 1e-12, "one colour stays one colour");
    made((taut_augment){ .turn = 45, .zoom = 1, .crop = 3 }, 7);
    int zeros = 0;
    for (int i = 0; i < LEN; i++) zeros += out[i] == 0;
    CHECK(zeros > 0, "without a reflection zeros come in");
}

static void colours(void)
{
    double least = 1, most = 0;
    random_image();
    for (case_no = 0; case_no < 200; case_no++) {
        made((taut_augment){ .colour = 0.5 }, (uint64_t)case_no);
        for (int i = 0; i < LEN; i++) CHECK(out[i] >= 0 && out[i] <= 1, "a number in [0, 1]");
    }
    for (int i = 0; i < LEN; i++) image[i] = (uint8_t)(40 + 2 * (i / C % W)); /* grey */
    for (case_no = 0; case_no < 200; case_no++) {
        made((taut_augment){ .colour = 0.5 }, (uint64_t)case_no);
        double mean = 0;
        for (int i = 0; i < LEN; i++) {
            CHECK_NEAR(out[i], out[i / C * C], 1e-12, "grey stays grey");
            mean += out[i] / LEN * 255 / 51; /* of the image: 51 */
        }
        least = fmin(least, mean), most = fmax(most, mean);
    }
    CHECK_LE(0.5 - 1e-9, least, "darker by at most what was asked for");
    CHECK_LE(most, 1.5 + 1e-9, "and brighter");
    CHECK(least < 0.55 && most > 1.45, "both come up");
}

static void boxes(void)
{
    static double before[LEN];
    double mean[C] = { 0 };
    random_image();
    memcpy(before, made((taut_augment){ 0 }, 1), sizeof before);
    for (int i = 0; i < LEN; i++) mean[i % C] += before[i] / (H * W);
    int whole = 0;
    for (case_no = 0; case_no < 200; case_no++) {
        int64_t top = H, bottom = -1, left = W, right = -1, changed = 0;
        made((taut_augment){ .erase = 4 }, (uint64_t)case_no);
        for (int64_t i = 0; i < H * W; i++) {
            if (memcmp(out + i * C, before + i * C, C * sizeof *out) == 0) continue;
            for (int64_t c = 0; c < C; c++) CHECK_NEAR(out[i * C + c], mean[c], 1e-12, "erased: the mean colour");
            const int64_t y = i / W, x = i % W;
            top = y < top ? y : top, bottom = y > bottom ? y : bottom;
            left = x < left ? x : left, right = x > right ? x : right;
            changed++;
        }
        CHECK(changed == (bottom - top + 1) * (right - left + 1) && changed >= 4 && changed <= 16, "a box");
        whole += changed == 16;
    }
    CHECK(whole > 50, "mostly whole");
}

/* Every image is moved; half are nothing else. */
static void spared(void)
{
    taut_augment a = { .flip = true, .crop = 2, .turn = 30, .zoom = 0.2, .colour = 0.5, .erase = 4 };
    const taut_augment moves = { .flip = true, .crop = 2 };
    static double moved[LEN], changed[LEN];
    int same = 0;
    random_image();
    for (case_no = 0; case_no < 400; case_no++) {
        a.spared = 0;
        memcpy(moved, made(moves, (uint64_t)case_no), sizeof moved);
        memcpy(changed, made(a, (uint64_t)case_no), sizeof changed);
        a.spared = 0.5;
        const bool is_moved_only = memcmp(made(a, (uint64_t)case_no), moved, sizeof moved) == 0;
        CHECK(is_moved_only || memcmp(out, changed, sizeof changed) == 0, "spared, or changed as without spared ones");
        same += is_moved_only;
    }
    CHECK(same > 150 && same < 250, "half of them are spared");
    a.spared = 1;
    memcpy(moved, made(moves, 7), sizeof moved);
    CHECK(memcmp(made(a, 7), moved, sizeof moved) == 0, "all of them are");
}

int main(void)
{
    test_begin();
    borders();
    planes();
    colours();
    boxes();
    spared();
    return test_end("augment", "moved, turned, zoomed, coloured, erased, spared");
}
