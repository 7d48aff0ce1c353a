/* Pictures in class folders: read right in every form, cut into splits, resized, described for a recipe; all else is one line. */
#include "data/picture.h"
#include "pictures.h"

#include <sys/stat.h>

#include "data/image_files.h"
#include "temp.h"
#include "train/recipe.h"

enum { H = 6, W = 4 };
static made m;

static void put_in(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    temp_put(path, m.bytes, m.len);
}
static void folder(const char *name)
{
    if (mkdir(temp_path(name), 0755)) abort();
}

/* Every form that a PNG has comes back as its pixels; a JPEG within what it loses. */
static void forms(void)
{
    uint8_t rgba[H * W * 4], seen[H * W * 3];
    taut_frame f;
    for (int i = 0; i < H * W * 4; i++) rgba[i] = (uint8_t)(i % 4 == 3 ? 255 : 37 * i);
    make_png(&m, rgba, W, H, PNG_FORMAT_RGBA);
    CHECK(!taut_picture_frame(&f, m.bytes, m.len, "a") && f.height == H && f.width == W && f.channels == 3,
          "its frame");
    CHECK(!taut_picture_decode(seen, f, m.bytes, m.len, "a"), "decoded");
    for (int i = 0; i < H * W * 3; i++) CHECK(seen[i] == rgba[i / 3 * 4 + i % 3], "opaque pixels as they are");
    for (int i = 3; i < H * W * 4; i += 4) rgba[i] = 0;
    make_png(&m, rgba, W, H, PNG_FORMAT_RGBA);
    CHECK(!taut_picture_decode(seen, f, m.bytes, m.len, "a"), "decoded");
    for (int i = 0; i < H * W * 3; i++) CHECK(seen[i] == 0, "what is transparent is black");
    make_png(&m, rgba, W, H, PNG_FORMAT_GRAY);
    CHECK(!taut_picture_frame(&f, m.bytes, m.len, "a") && f.channels == 1, "grey");
    CHECK(!taut_picture_decode(seen, f, m.bytes, m.len, "a") && memcmp(seen, rgba, H * W) == 0, "grey pixels");
    f.channels = 3;
    CHECK(!taut_picture_decode(seen, f, m.bytes, m.len, "a") && seen[3] == seen[4] && seen[5] == rgba[1],
          "grey as colour");
    uint8_t smooth[H * W];
    for (int i = 0; i < H * W; i++) smooth[i] = (uint8_t)(100 + i);
    make_jpeg(&m, smooth, W, H, TJPF_GRAY);
    CHECK(!taut_picture_frame(&f, m.bytes, m.len, "a") && f.height == H && f.width == W && f.channels == 1, "a JPEG");
    CHECK(!taut_picture_decode(seen, f, m.bytes, m.len, "a"), "decoded");
    for (int i = 0; i < H * W; i++) CHECK_NEAR((double)seen[i], (double)smooth[i], 3, "a JPEG's pixel");
}

static void resizing(void)
{
    const uint8_t from[] = { 0, 100, 200, 40, 60, 80, 10, 20, 30, 110, 120, 130 }; /* 2 x 6 */
    uint8_t to[24];
    taut_picture_resize(to, (taut_frame){ 1, 3, 1 }, from, (taut_frame){ 2, 6, 1 });
    CHECK(to[0] == 32 && to[1] == (200 + 40 + 30 + 110) / 4 && to[2] == 98, "means of blocks");
    taut_picture_resize(to, (taut_frame){ 2, 6, 1 }, from, (taut_frame){ 2, 6, 1 });
    CHECK(memcmp(to, from, 12) == 0, "the same size changes nothing");
    taut_picture_resize(to, (taut_frame){ 4, 6, 1 }, from, (taut_frame){ 2, 6, 1 });
    CHECK(memcmp(to, to + 6, 6) == 0 && memcmp(to + 6, from, 6) == 0 && memcmp(to + 18, from + 6, 6) == 0, "larger");
    taut_picture_resize(to, (taut_frame){ 1, 4, 1 }, from, (taut_frame){ 1, 6, 1 });
    CHECK(to[0] == 33 && to[1] == 167, "parts of pixels count as parts"); /* (0 + 50) / 1.5, (50 + 200) / 1.5 */
}

/* Ten pictures of two classes, one of them in colour; the pixel tells the class. */
static void one_folder(void)
{
    taut_images *s = NULL;
    folder("pets"), folder("pets/cat"), folder("pets/a dog"), folder("pets/.hidden");
    for (int i = 0; i < 10; i++) {
        uint8_t p[H * W * 3];
        char name[32];
        memset(p, i < 5 ? 10 : 200, sizeof p);
        make_png(&m, p, W, H, i == 7 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY);
        if (i == 3) make_jpeg(&m, p, W, H, TJPF_GRAY);
        snprintf(name, sizeof name, i == 3 ? "%d.JPG" : "%d.png", i);
        put_in(i < 5 ? "pets/cat" : "pets/a dog", name);
    }
    temp_put("pets/cat/notes.txt", "no picture", 10);
    temp_put("pets/readme.txt", "no class", 8);
    taut_images_spec spec = { .source = temp_path("pets"), .val_fraction = 0.3, .seed = 5 };
    CHECK(!taut_images_open(&s, &spec), taut_last_error());
    CHECK(s->count[0] == 7 && s->count[1] == 3 && s->classes == 2 && strcmp(s->names, "a dog,cat") == 0, "counted");
    CHECK(s->frame.height == H && s->frame.width == W && s->frame.channels == 3, "colour, since one has it");
    int cats = 0;
    for (int split = 0; split < 2; split++)
        for (int64_t i = 0; i < s->count[split]; i++) {
            const uint8_t *p = s->pixels[split] + i * taut_frame_len(s->frame);
            CHECK(s->label[split][i] == (p[0] < 100) && p[0] == p[1], "pixels belong to the class");
            cats += s->label[split][i];
        }
    CHECK(cats == 5, "each once");
    uint8_t first[7];
    memcpy(first, s->label[0], 7);
    taut_images_free(s);
    CHECK(!taut_images_open(&s, &spec) && memcmp(first, s->label[0], 7) == 0, "the same cut again");
    taut_images_free(s);
    spec.side = 8;
    CHECK(!taut_images_open(&s, &spec) && s->frame.height == 8 && s->frame.width == 8, "resized");
    taut_images_free(s);
    spec.val_fraction = 1;
    CHECK(!taut_images_open(&s, &spec) && s->count[0] == 0 && s->count[1] == 10, "whoever only looks trains on none");
    taut_images_free(s);
}

/* A model's numbers for the classes that it knows by name. */
static void by_name(void)
{
    taut_images *s = NULL;
    const taut_images_spec spec = { .source = temp_path("pets"), .val_fraction = 1, .seed = 5 };
    CHECK(!taut_images_open(&s, &spec) && !taut_images_match(s, "bird,cat,a dog,fish"), taut_last_error());
    for (int64_t i = 0; i < s->count[1]; i++)
        CHECK(s->label[1][i] == (s->pixels[1][i * taut_frame_len(s->frame)] < 100 ? 1 : 2), "matched by name");
    CHECK(s->classes == 4, "as many as the model has");
    taut_images_free(s);
    CHECK(!taut_images_open(&s, &spec) && !taut_images_match(s, "x,y") && s->classes == 2, "no name: in their order");
    CHECK(taut_images_match(s, "bird,cat") == TAUT_BAD_DATA && strstr(taut_last_error(), "'a dog' is none of"),
          "one of two is unknown");
    taut_images_free(s);
}

static void recipe(void)
{
    taut_config *cfg = NULL;
    char line[600];
    snprintf(line, sizeof line, "[model]\narch = mlp\n[data]\nval_fraction = 1\nsource = %s\n", temp_path("pets"));
    CHECK(!taut_config_parse(&cfg, line, "test"), taut_last_error());
    CHECK(taut_recipe_defaults(cfg) == TAUT_BAD_DATA && strstr(taut_last_error(), "nothing is left to train on"),
          taut_last_error());
    taut_config_free(cfg);
    snprintf(line, sizeof line, "[model]\narch = mlp\n[data]\nsource = %s\n", temp_path("pets"));
    CHECK(!taut_config_parse(&cfg, line, "test"), taut_last_error());
    CHECK(!taut_recipe_defaults(cfg), taut_last_error());
    CHECK(taut_config_int(cfg, "model.image_height", 0, 0, 99) == H &&
              taut_config_int(cfg, "model.image_width", 0, 0, 99) == W,
          "size");
    CHECK(taut_config_int(cfg, "model.image_channels", 0, 0, 9) == 3 &&
              taut_config_int(cfg, "model.classes", 0, 0, 99) == 2,
          "classes");
    CHECK(strcmp(taut_config_text(cfg, "data.class_names", ""), "a dog,cat") == 0, "names");
    const double mean = atof(taut_config_text(cfg, "model.pixel_mean", "")),
                 std = atof(taut_config_text(cfg, "model.pixel_std", ""));
    CHECK(mean > 10 / 255.0 && mean < 200 / 255.0 && std > 0.2 && std < 0.5, "moments");
    taut_config_free(cfg);
}

static void two_folders(void)
{
    taut_images *s = NULL;
    const uint8_t p[H * W] = { 9 };
    make_png(&m, p, W, H, PNG_FORMAT_GRAY);
    folder("cut"), folder("cut/train"), folder("cut/valid"), folder("cut/train/a"), folder("cut/train/b"),
        folder("cut/valid/b");
    put_in("cut/train/a", "1.png"), put_in("cut/train/b", "1.png"), put_in("cut/valid/b", "1.png");
    const taut_images_spec spec = { .source = temp_path("cut"), .val_fraction = 0.3, .seed = 5 };
    CHECK(!taut_images_open(&s, &spec), taut_last_error());
    CHECK(s->count[0] == 2 && s->count[1] == 1 && s->label[1][0] == 1 && s->classes == 2, "as the folders say");
    taut_images_free(s);
    folder("cut/valid/c"), put_in("cut/valid/c", "1.png");
    CHECK(taut_images_open(&s, &spec) && strstr(taut_last_error(), "no training image"), taut_last_error());
}

static void refused(const char *why, const char *set)
{
    taut_images *s = NULL;
    CHECK(taut_images_open(&s, &(taut_images_spec){ temp_path(set), 0, 0.3, 5, 0, 0 }) == TAUT_BAD_DATA, why);
    CHECK(strstr(taut_last_error(), why) && !strchr(taut_last_error(), '\n'), taut_last_error());
}

static void bad(void)
{
    uint8_t p[H * W] = { 9 };
    folder("bad");
    refused("no images", "bad");
    folder("bad/a"), folder("bad/b");
    refused("no images", "bad");
    make_png(&m, p, W, H, PNG_FORMAT_GRAY);
    put_in("bad/a", "1.png");
    refused("1 of them without", "bad");
    put_in("bad/a", "2.png"), put_in("bad/b", "1.png");
    temp_put("bad/b/2.png", "text", 4);
    refused("neither PNG nor JPEG", "bad");
    temp_put("bad/b/2.png", m.bytes, m.len - 20);
    refused("damaged PNG", "bad");
    make_jpeg(&m, p, W, H, TJPF_GRAY);
    temp_put("bad/b/2.png", m.bytes, m.len / 2);
    refused("damaged JPEG", "bad");
    refused("images are a folder of class folders", "bad/b/1.png");
    make_png(&m, p, H, W, PNG_FORMAT_GRAY);
    put_in("bad/b", "2.png");
    refused("data.resize", "bad");
    make_png(&m, p, W, H, PNG_FORMAT_GRAY);
    m.bytes[16] = 0x00, m.bytes[17] = 0x01, m.bytes[18] = 0x86, m.bytes[19] = 0xa0; /* 100,000 pixels wide */
    const uint64_t crc = crc32(0, m.bytes + 12, 17);
    for (int i = 0; i < 4; i++) m.bytes[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    put_in("bad/b", "2.png");
    refused("100000", "bad");
    folder("one"), folder("one/a"), folder("one/b");
    make_png(&m, p, W, H, PNG_FORMAT_GRAY);
    put_in("one/a", "1.png"), put_in("one/b", "1.png");
    taut_images *s = NULL;
    CHECK(taut_images_open(&s, &(taut_images_spec){ temp_path("one"), 0, 1e-6, 5, 0, 0 }) == TAUT_OK,
          "one of two validates");
    taut_images_free(s);
    CHECK(taut_images_open(&s, &(taut_images_spec){ temp_path("one"), 0, 0, 5, 0, 0 }) == TAUT_BAD_DATA &&
              strstr(taut_last_error(), "none would validate"),
          "none validates");
}

int main(void)
{
    test_begin();
    temp_begin();
    forms();
    resizing();
    one_folder();
    by_name();
    recipe();
    two_folders();
    bad();
    return test_end("pictures", "PNG and JPEG in class folders");
}
