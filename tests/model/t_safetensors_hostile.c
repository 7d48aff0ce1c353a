/* safetensors: a hostile file for every rule, and byte flips and cuts of a good one. */
#include "model/safetensors.h"

#include <fcntl.h>

#include "harness.h"
#include "temp.h"

static size_t make(unsigned char *file, const char *header, size_t header_len, size_t data_len)
{
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(header_len >> 8 * i);
    memcpy(file + 8, header, header_len);
    for (size_t i = 0; i < data_len; i++) file[8 + header_len + i] = (unsigned char)i;
    return 8 + header_len + data_len;
}

/* Opens a file of these parts; the line of the error, or "" if it is taken. */
static const char *verdict(const char *header, size_t header_len, size_t data_len)
{
    static unsigned char file[1 << 16];
    taut_safetensors *st;
    const char *path = temp_put("t", file, make(file, header, header_len, data_len));
    const taut_status status = taut_safetensors_open(&st, path);
    CHECK(!status == !!st && (!status || status == TAUT_BAD_FILE), "status and handle agree");
    taut_safetensors_close(st);
    return status ? taut_last_error() + strlen(path) + 2 : "";
}

static void refused(const char *header, size_t data_len, const char *why)
{
    const char *got = verdict(header, strlen(header), data_len);
    if (!strstr(got, why) || strchr(got, '\n') || !*got) {
        if (fails++ < 20) fprintf(stderr, "FAIL %.100s\n     wanted: %s\n     got:    %s\n", header, why, got);
    }
}

static void taken(const char *header, size_t data_len)
{
    const char *got = verdict(header, strlen(header), data_len);
    if (*got && fails++ < 20) fprintf(stderr, "FAIL %.100s\n     refused: %s\n", header, got);
}

#define T(shape, offsets) "{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

static void good_files(void)
{
    taken("{}", 0);
    taken("{}   \n ", 0);
    taken("{\"__metadata__\":{}}", 0);
    taken("{\"__metadata__\":{\"a\":\"b\",\"c\":\"\"}}", 0);
    taken("{\"a\":" T("", "0,4") "}", 4);
    taken("{\"a\":" T("2,3", "0,24") "}", 24);
    taken("{\"a\":" T("0", "0,0") "}", 0);
    taken("{\"a\":" T("0,9223372036854775807", "0,0") "}", 0);
    taken("{\"b\":" T("1", "4,8") ",\"z\":" T("0", "4,4") ",\"a\":" T("1", "0,4") ",\"e\":" T("0", "8,8") "}", 8);
    taken("{ \"\" : { \"shape\" : [ 1 ] ,\t\"data_offsets\" : [ 0 , 4 ] , \"dtype\" : \"F32\" } }", 4);
    taken("{\"\\u00e9\\ud83d\\ude00\\n\\\"\":" T("1", "0,4") "}", 4);
    taken("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1);
    taken("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3);
    taken("{\"a\":" T("1,1,1,1,1,1,1,1", "0,4") "}", 4);
    static const char *const all[] = { "BOOL",        "U8",  "I8",  "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ",
                                       "F8_E5M2FNUZ", "I16", "U16", "F16",     "BF16",    "I32",     "U32",
                                       "F32",         "C64", "F64", "I64",     "U64" };
    for (int i = 0; i < 19; i++) {
        char header[200];
        const int size = i < 8 ? 1 : i < 12 ? 2 : i < 15 ? 4 : 8;
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", all[i],
                 3 * size);
        taken(header, (size_t)(3 * size));
    }
}

static void bad_json(void)
{
    refused("", 0, "start with {");
    refused(" {}", 0, "start with {");
    refused("[]", 0, "start with {");
    refused("{", 0, "no '\"'");
    refused("{}x", 0, "behind the closing }");
    refused("{}{}", 0, "behind the closing }");
    refused("{\"a\"}", 0, "no ':'");
    refused("{\"a\":" T("1", "0,4") ",}", 4, "no '\"'");
    refused("{\"a\":" T("1", "0,4"), 4, "no '}'");
    refused("{\"a\":" T("1,", "0,4") "}", 4, "no whole number");
    refused("{\"a\":1}", 0, "no '{'");
    refused("{\"a\":null}", 0, "no '{'");
    refused("{\"a", 0, "string without end");
    refused("{\"a\\", 0, "bad escape");
    refused("{\"a\\x\":1}", 0, "bad escape");
    refused("{\"a\\u12\":1}", 0, "bad \\u escape");
    refused("{\"a\\u1", 0, "cut escape");
    refused("{\"\\ud800\":1}", 0, "lone surrogate");
    refused("{\"\\ud800\\u0041\":1}", 0, "lone surrogate");
    refused("{\"\\udc00\":1}", 0, "lone surrogate");
    refused("{\"a\\u0000b\":1}", 0, "NUL in a string");
    refused("{\"a\nb\":1}", 0, "control character");
    refused("{\"\x80\":1}", 0, "not UTF-8");
    refused("{\"\xC0\x80\":1}", 0, "not UTF-8");
    refused("{\"\xED\xA0\x80\":1}", 0, "not UTF-8");
    refused("{\"\xF4\x90\x80\x80\":1}", 0, "not UTF-8");
    refused("{\"\xE2\x82\":1}", 0, "not UTF-8");
    CHECK(strstr(verdict("{\"a\0b\":1}", 9, 0), "control character"), "a NUL byte inside");
    CHECK(strstr(verdict("{}\0\0", 4, 0), "behind the closing }"), "NUL padding");
    static char deep[60000];
    memset(deep, '[', sizeof deep - 1);
    deep[0] = '{';
    refused(deep, 0, "no '\"'");
    memcpy(deep, "{\"a\":{\"shape\":", 14);
    refused(deep, 0, "no whole number");
    for (size_t i = 0; i + 5 < sizeof deep; i += 5) memcpy(deep + i, "{\"a\":", 5);
    refused(deep, 0, "unknown or repeated field");
}

static void bad_tensors(void)
{
    refused("{\"a\":" T("1", "0,4") ",\"a\":" T("1", "4,8") "}", 8, "two tensors are named \"a\"");
    refused("{\"a\":" T("1", "0,4") ",\"\\u0061\":" T("1", "4,8") "}", 8, "two tensors are named \"a\"");
    refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "second __metadata__");
    refused("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "\"a\" twice");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "no string");
    refused("{\"__metadata__\":{\"a\":{}}}", 0, "no string");
    refused("{\"__metadata__\":null}", 0, "no '{'");
    refused("{\"__metadata__\":\"x\"}", 0, "no '{'");
    refused("{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype");
    refused("{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype");
    refused("{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no '\"'");
    refused("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "lacks");
    refused("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "lacks");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks");
    refused("{\"a\":{}}", 0, "no '\"'");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "repeated field");
    refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "repeated field");
    refused("{\"a\":{\"dtype\":\"F32\",\"x\":0,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown");
    refused("{\"a\":" T("-1", "0,4") "}", 4, "no whole number");
    refused("{\"a\":" T("1.0", "0,4") "}", 4, "no whole number");
    refused("{\"a\":" T("1e0", "0,4") "}", 4, "no whole number");
    refused("{\"a\":" T("01", "0,4") "}", 4, "leading zero");
    refused("{\"a\":" T("true", "0,4") "}", 4, "no whole number");
    refused("{\"a\":" T("\"1\"", "0,4") "}", 4, "no whole number");
    refused("{\"a\":" T("18446744073709551617", "0,4") "}", 4, "over 64 bits");
    refused("{\"a\":" T("1", "0,18446744073709551620") "}", 4, "over 64 bits");
    refused("{\"a\":" T("9223372036854775808", "0,4") "}", 4, "64 bits can count");
    refused("{\"a\":" T("4294967296,4294967296", "0,0") "}", 0, "64 bits can count");
    refused("{\"a\":" T("4294967297,4294967297", "0,4") "}", 4, "64 bits can count");
    refused("{\"a\":" T("4611686018427387905", "0,4") "}", 4, "64 bits can count");
    refused("{\"a\":" T("1,1,1,1,1,1,1,1,1", "0,4") "}", 4, "too long");
    refused("{\"a\":" T("1", "0") "}", 4, "two data_offsets");
    refused("{\"a\":" T("1", "") "}", 4, "two data_offsets");
    refused("{\"a\":" T("1", "0,4,4") "}", 4, "too long");
    refused("{\"a\":" T("1", "4,0") "}", 4, "ends before it begins");
    refused("{\"a\":" T("1", "18446744073709551615,3") "}", 4, "ends before it begins");
    refused("{\"a\":" T("1", "0,5") "}", 5, "do not fit its shape");
    refused("{\"a\":" T("2", "0,4") "}", 4, "do not fit its shape");
    refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "whole bytes");
}

static void bad_ranges(void)
{
    refused("{\"a\":" T("1", "0,4") "}", 3, "take 4 bytes but the file has 3");
    refused("{\"a\":" T("1", "0,4") "}", 5, "take 4 bytes but the file has 5");
    refused("{}", 1, "take 0 bytes but the file has 1");
    refused("{\"a\":" T("1", "4,8") "}", 8, "leaves a hole");
    refused("{\"a\":" T("1", "0,4") ",\"b\":" T("1", "8,12") "}", 12, "\"b\" leaves a hole");
    refused("{\"a\":" T("2", "0,8") ",\"b\":" T("1", "4,8") "}", 8, "\"b\" overlaps");
    refused("{\"a\":" T("1", "0,4") ",\"b\":" T("1", "0,4") "}", 4, "\"b\" overlaps");
    refused("{\"a\":" T("2", "0,8") ",\"b\":" T("0", "4,4") "}", 8, "\"b\" overlaps");
    refused("{\"a\":" T("0", "9,9") "}", 0, "leaves a hole");
    refused("{\"a\":" T("1", "18446744073709551611,18446744073709551615") "}", 4, "leaves a hole");

    taut_safetensors *st;
    static const unsigned char tiny[7];
    CHECK(taut_safetensors_open(&st, temp_put("t", tiny, 7)) == TAUT_BAD_FILE, "under 8 bytes");
    CHECK(taut_safetensors_open(&st, temp_put("t", tiny, 0)) == TAUT_BAD_FILE, "an empty file");
    CHECK(taut_safetensors_open(&st, temp_put("t", "\x01\xE1\xF5\x05\0\0\0\0{}", 10)) == TAUT_BAD_FILE, "100,000,001");
    CHECK(strstr(taut_last_error(), "over the limit"), taut_last_error());
    CHECK(taut_safetensors_open(&st, temp_put("t", "\0\xE1\xF5\x05\0\0\0\0{}", 10)) == TAUT_BAD_FILE, "100,000,000");
    CHECK(strstr(taut_last_error(), "cut or no safetensors"), taut_last_error());
    CHECK(taut_safetensors_open(&st, temp_put("t", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10)) == TAUT_BAD_FILE,
          "2^64-1");
    CHECK(taut_safetensors_open(&st, temp_dir) == TAUT_BAD_FILE && strstr(taut_last_error(), "folder"), "a folder");
    CHECK(taut_safetensors_open(&st, temp_path("none")) == TAUT_BAD_FILE, "a missing file");
    CHECK(taut_safetensors_open(&st, "/dev/zero") == TAUT_BAD_FILE, "a device");
}

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    memcpy(dst, (const double *)arg + first, (size_t)count * sizeof *dst);
    return TAUT_OK;
}

/* A file with everything in it, small enough to be damaged often. */
static char *good_file(size_t *len)
{
    static double numbers[60];
    fill(numbers, 60);
    const taut_st_entry entries[] = { { "w\n\"q\\\xC3\xA9", "F32", 2, { 6, 10 }, fetch, numbers },
                                      { "d", "F64", 3, { 2, 3, 5 }, fetch, numbers },
                                      { "scalar", "F32", 0, { 0 }, fetch, numbers },
                                      { "nothing", "F32", 2, { 0, 7 }, fetch, NULL } };
    const taut_st_meta metas[] = { { "format", "pt" }, { "b\n", "v\xC3\xA9" } };
    const char *path = temp_path("good");
    CHECK(!taut_safetensors_write(path, entries, 4, metas, 2), taut_last_error());
    return temp_get(path, len);
}

/* Whatever was taken must be consistent: this is what the rest of the program relies on. */
static void consistent(taut_safetensors *st, uint64_t file_len)
{
    uint64_t at = 0;
    double got[64];
    for (int i = 0; i < taut_safetensors_count(st); i++) {
        const taut_st_tensor *t = taut_safetensors_at(st, i);
        int64_t count = 1;
        for (int k = 0; k < t->rank; k++) count *= t->shape[k];
        CHECK(t->rank >= 0 && t->rank <= 8 && count == t->count, "count");
        CHECK(t->begin == at && t->end >= t->begin && t->end <= file_len - 8, "ranges");
        CHECK(taut_safetensors_find(st, t->name) == t, "found by its name");
        at = t->end;
        if (t->count <= 64 && taut_safetensors_read(st, t, got, 0, t->count)) CHECK(*taut_last_error(), "has a line");
    }
}

static int flips(void)
{
    size_t len = 0;
    int taken_files = 0;
    char *good = good_file(&len), *bad = malloc(len + 16);
    const size_t header = 8 + ((unsigned char)good[0] | (size_t)(unsigned char)good[1] << 8);
    const char *path = temp_path("bad");
    const int fd = open(path, O_RDWR | O_CREAT, 0666); /* kept open: much faster than a new file each time */
    static const char pieces[] = "{}[]\",:0123456789\\ua\x80\xFF eE.-\0\n";
    for (case_no = 0; case_no < effort(10000); case_no++) {
        size_t now = len;
        memcpy(bad, good, len);
        for (int64_t k = rng_int(1, 3); k > 0; k--) {
            const size_t at = (size_t)rng_int(0, (int64_t)(rng_int(0, 9) ? header : len) - 1);
            bad[at] = rng_int(0, 1) ? (char)(bad[at] ^ 1 << rng_int(0, 7)) : pieces[rng_int(0, sizeof pieces - 2)];
        }
        if (rng_int(0, 3) == 0) now = (size_t)rng_int(0, (int64_t)(rng_int(0, 1) ? header : len));
        if (rng_int(0, 9) == 0) now = len + (size_t)rng_int(1, 16);
        for (size_t i = len; i < now; i++) bad[i] = 0;
        if (pwrite(fd, bad, now, 0) != (ssize_t)now || ftruncate(fd, (off_t)now) != 0) abort();
        taut_safetensors *st;
        const taut_status status = taut_safetensors_open(&st, path);
        CHECK(!status || (status == TAUT_BAD_FILE && !strchr(taut_last_error(), '\n')), "one line");
        if (!status) consistent(st, now);
        taken_files += !status;
        taut_safetensors_close(st);
    }
    close(fd);
    free(good);
    free(bad);
    return taken_files;
}

int main(void)
{
    test_begin();
    temp_begin();
    good_files();
    bad_json();
    bad_tensors();
    bad_ranges();
    const int taken_files = flips();
    return test_end("hostile", "%d of %d damaged safetensors were still consistent", taken_files, effort(10000));
}
