/* Pictures: a PNG is one (read back by another way through it), tiles, galleries and maps of sound and of broken numbers. */
#include <zlib.h>

#include "harness.h"

#include "base/alloc.h"
#include "report/png.h"
#include "report/run.h"

static int value_of(char c)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return c == '=' ? 0 : (int)(strchr(digit, c) - digit);
}

static size_t decode(uint8_t *out, const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p += 4) {
        const int v = value_of(p[0]) << 18 | value_of(p[1]) << 12 | value_of(p[2]) << 6 | value_of(p[3]);
        for (int i = 0; i < 3; i++) out[n++] = (uint8_t)(v >> (16 - 8 * i));
    }
    return n - (text[strlen(text) - 1] == '=') - (text[strlen(text) - 2] == '=');
}

static unsigned long get32(const uint8_t *p) { return (unsigned long)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }

static void png(void)
{
    static const char start[] = "data:image/png;base64,";
    static uint8_t rgba[40 * 30 * 4], file[8192], lines[30 * 161];
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int w = rng_int(1, 40), h = rng_int(1, 30);
        taut_markup t = { 0 };
        for (int i = 0; i < w * h * 4; i++) rgba[i] = (uint8_t)rng_int(0, 255);
        taut_png_address(&t, rgba, w, h);
        CHECK(t.data && strncmp(t.data, start, sizeof start - 1) == 0, "an address");
        const size_t len = decode(file, t.data + sizeof start - 1);
        CHECK(memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0, "signature");
        CHECK((int)get32(file + 16) == w && (int)get32(file + 20) == h, "sizes");
        uLongf out = sizeof lines;
        size_t at = 8;
        while (at + 12 <= len) {
            const unsigned long n = get32(file + at);
            CHECK(crc32(0, file + at + 4, (uInt)n + 4) == get32(file + at + 8 + n), "a chunk's CRC");
            if (memcmp(file + at + 4, "IDAT", 4) == 0)
                CHECK(uncompress(lines, &out, file + at + 8, n) == Z_OK, "the stream");
            at += 12 + n;
        }
        CHECK(at == len && (int)out == h * (4 * w + 1), "all of it");
        for (int y = 0; y < h; y++)
            CHECK(lines[y * (4 * w + 1)] == 0 &&
                      memcmp(lines + y * (4 * w + 1) + 1, rgba + y * 4 * w, 4 * (size_t)w) == 0,
                  "the pixels");
        taut_markup_free(&t);
    }
}

static char *page_of(void (*draw)(taut_page *, const cJSON *, const char *), const char *json)
{
    taut_page p;
    cJSON *o = cJSON_Parse(json);
    taut_page_begin(&p, "t", NULL);
    draw(&p, o, "run");
    cJSON_Delete(o);
    char *text = p.text.data;
    CHECK(!p.text.failed, "a page");
    return text;
}

static void broken(void)
{
    static const char *const galleries[] = {
        "[{}]",
        "[{\"height\":1,\"width\":1,\"channels\":1,\"clean\":\"zz\",\"attacked\":\"00\",\"difference\":\"00\"}]",
        "[{\"height\":9,\"width\":1,\"channels\":1,\"clean\":\"00\",\"attacked\":\"00\",\"difference\":\"00\"}]",
        "[{\"height\":1e9,\"width\":1e9,\"channels\":1,\"clean\":\"00\",\"attacked\":\"00\",\"difference\":\"00\"}]",
    };
    static const char *const maps[] = { "[[]]", "[[[1]],[[1,2]]]", "[[[1,2,3]]]", "[1]", "[[[1,0,0,1],[1]]]" };
    for (int i = 0; i < 4; i++) {
        char *t = page_of(taut_report_gallery, galleries[i]);
        CHECK(strstr(t, "damaged") && !strstr(t, "<figure"), galleries[i]);
        free(t);
    }
    for (int i = 0; i < 5; i++) {
        char *t = page_of(taut_report_maps, maps[i]);
        CHECK(strstr(t, "cannot be shown") && !strstr(t, "<figure"), maps[i]);
        free(t);
    }
    char *t = page_of(taut_report_maps, "[[[1,0,0.5,0.5],[0,1,null,-3]]]");
    CHECK(strstr(t, "<figure id=\"run-attention\"") && !strstr(t, "nan"), "maps");
    free(t);
    t = page_of(taut_report_gallery,
                "[{\"height\":1,\"width\":2,\"channels\":1,\"label\":\"<b>\",\"became\":3,\"clean\":\"00ff\","
                "\"attacked\":\"10ef\",\"difference\":\"ff01\"}]");
    CHECK(strstr(t, "&lt;b&gt;") && strstr(t, "class 3") && !strstr(t, "<b>"), "a gallery, escaped");
    free(t);
    t = page_of(taut_report_forecast,
                "{\"moves\":\"inf\",\"columns\":[{},{\"read\":[1,2],\"came\":[3],\"said\":[4,5,6]}]}");
    CHECK(strstr(t, "run-column-1") && !strstr(t, "band is proved"), "a forecast without a proof has no band");
    free(t);
    t = page_of(taut_report_forecast,
                "{\"moves\":0.5,\"noise\":0.1,\"columns\":[{\"read\":[1,2],\"came\":[3,4],\"said\":[4,5]}]}");
    CHECK(strstr(t, "class=\"band s2\""), "with one it has");
    free(t);
    t = page_of(taut_report_network, "{\"proved\":\"inf\",\"slopes\":[1,2,\"x\"]}");
    CHECK(strstr(t, "run-network"), "slopes under an infinite constant");
    free(t);
    t = page_of(taut_report_certificate, "{\"norm\":\"flat\",\"lip\":\"inf\"}");
    CHECK(strstr(t, "No finite") && !strstr(t, "Proved from"), "an infinite constant is not called proved");
    free(t);
}

static void certified(void)
{
    char *t = page_of(taut_report_certified, "{\"examples\":[{\"radius\":1,\"target\":1,\"predicted\":1},"
                                             "{\"radius\":2,\"target\":1,\"predicted\":1}]}");
    CHECK(strstr(t, "<td>1</td><td>100</td>") && strstr(t, "<td>1</td><td>50</td>"),
          "certified accuracy falls in steps");
    free(t);
    t = page_of(taut_report_certified,
                "{\"n_ex\":10,\"abstained\":1,\"examples\":[{\"radius\":1,\"target\":1,\"predicted\":1}"
                ",{\"radius\":1,\"target\":1,\"predicted\":1}"
                ",{\"radius\":0,\"target\":1,\"predicted\":2}]}");
    CHECK(strstr(t, "<td>20</td>") && !strstr(t, "<td>66.6667</td>"), "who has no answer is not right");
    free(t);
    t = page_of(taut_report_certified, "{\"n_ex\":3,\"abstained\":3,\"examples\":[]}");
    CHECK(strstr(t, "Of 3 examples no answer is certified"), "nobody has an answer");
    free(t);
    t = page_of(taut_report_certified, "{\"examples\":[{\"radius\":0,\"target\":1,\"predicted\":1}]}");
    CHECK(strstr(t, "no answer is certified"), "nothing certified is said");
    free(t);
}

int main(void)
{
    test_begin();
    png();
    broken();
    certified();
    return test_end("report pictures", "PNG, galleries, maps, forecasts");
}
