/* safetensors: exact round trips, every dtype, refused and failed writes.  Hostile files:
 * t_safetensors_hostile.c. */
#include "model/safetensors.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "harness.h"
#include "temp.h"

static size_t make(unsigned char *file, const char *header, size_t header_len, size_t data_len)
{
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(header_len >> 8 * i);
    memcpy(file + 8, header, header_len);
    for (size_t i = 0; i < data_len; i++) file[8 + header_len + i] = (unsigned char)i;
    return 8 + header_len + data_len;
}

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    memcpy(dst, (const double *)arg + first, (size_t)count * sizeof *dst);
    return TAUT_OK;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Every float, as the double that the reader makes of it. */
static double wide(uint32_t bits)
{
    if ((bits & 0x7FFFFFFF) > 0x7F800000) /* a NaN, its payload and its quiet bit kept */
        return from_bits((uint64_t)(bits & 0x80000000) << 32 | UINT64_C(0x7FF) << 52 |
                         (uint64_t)(bits & 0x7FFFFF) << 29);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

enum { N = 5000 };
static double floats[N], doubles_in[N];

static const taut_st_meta metas[] = { { "format", "pt" }, { "b\n\"\\\x01\xC3\xA9", "v\t/" }, { "a", "" } };

static taut_status write_good(const char *path)
{
    const taut_st_entry entries[] = { { "w\n\"q\\\xC3\xA9", "F32", 2, { 50, 100 }, fetch, floats },
                                      { "d", "F64", 3, { 5, 10, 100 }, fetch, doubles_in },
                                      { "scalar", "F32", 0, { 0 }, fetch, floats },
                                      { "nothing", "F32", 2, { 0, 7 }, fetch, NULL },
                                      { "a", "F32", 1, { 3 }, fetch, floats } };
    return taut_safetensors_write(path, entries, 5, metas, 3);
}

static void fill_numbers(void)
{
    static const uint32_t special[] = { 0,          0x80000000, 1,          0x80000001, 0x7FFFFF,
                                        0x800000,   0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
                                        0x7F800001, 0xFFBFFFFF, 0xFFFFFFFF, 0x3F800000 };
    static const uint64_t special64[] = { 0, UINT64_C(1) << 63, 1, UINT64_C(0x7FF0000000000001),
                                          UINT64_C(0xFFF8000000000000) };
    for (int i = 0; i < N; i++) {
        floats[i] = wide(i < 14 ? special[i] : (uint32_t)rng_next());
        doubles_in[i] = from_bits(i < 5 ? special64[i] : rng_next());
    }
}

static void round_trip(void)
{
    const char *path = temp_path("good.safetensors"), *again = temp_path("again.safetensors");
    taut_safetensors *st = NULL;
    fill_numbers();
    CHECK(!write_good(path) && !write_good(again), taut_last_error());
    size_t len = 0, len2 = 0;
    char *a = temp_get(path, &len), *b = temp_get(again, &len2);
    CHECK(len == len2 && memcmp(a, b, len) == 0, "the same content gives the same bytes");
    CHECK(((unsigned char)a[0] | (unsigned char)a[1] << 8) % 8 == 0, "the header fills 8 bytes");
    CHECK(strstr(a + 8, "{\"__metadata__\":{\"a\":\"\",\"b\\n\\\"\\\\\\u0001\xC3\xA9\":\"v\\t/"
                        "\",\"format\":\"pt\"},\"d\":{"
                        "\"dtype\":\"F64\",\"shape\":[5,10,100],\"data_offsets\":[0,40000]},\"a\":{") == a + 8,
          a + 8);
    free(a);
    free(b);
    CHECK(!taut_safetensors_open(&st, path), taut_last_error());
    if (!st) return;
    CHECK(taut_safetensors_count(st) == 5, "all tensors");
    static const char *const order[] = { "d", "a", "nothing", "scalar", "w\n\"q\\\xC3\xA9" };
    for (int i = 0; i < 5; i++) CHECK(strcmp(taut_safetensors_at(st, i)->name, order[i]) == 0, "order");
    for (int i = 0; i < 3; i++) {
        const char *value = taut_safetensors_meta(st, metas[i].key);
        CHECK(value && strcmp(value, metas[i].value) == 0, "metadata");
    }
    CHECK(!taut_safetensors_meta(st, "none") && !taut_safetensors_find(st, "none"), "absent is NULL");
    double *got = doubles(N);
    const taut_st_tensor *w = taut_safetensors_find(st, "w\n\"q\\\xC3\xA9"), *d = taut_safetensors_find(st, "d");
    CHECK(w && w->rank == 2 && w->shape[0] == 50 && w->shape[1] == 100 && w->count == N && strcmp(w->dtype, "F32") == 0,
          "description");
    CHECK(!taut_safetensors_read(st, w, got, 0, N) && memcmp(got, floats, sizeof floats) == 0, "F32 to the bit");
    CHECK(!taut_safetensors_read(st, d, got, 0, N) && memcmp(got, doubles_in, sizeof doubles_in) == 0,
          "F64 to the bit");
    for (case_no = 0; case_no < effort(200); case_no++) {
        const int64_t first = rng_int(0, N), count = rng_int(0, N - first);
        CHECK(!taut_safetensors_read(st, w, got, first, count), "a part");
        CHECK(memcmp(got, floats + first, (size_t)count * sizeof *got) == 0, "a part to the bit");
    }
    CHECK(taut_safetensors_find(st, "scalar")->count == 1 && taut_safetensors_find(st, "nothing")->count == 0,
          "counts");
    CHECK(!taut_safetensors_read(st, taut_safetensors_find(st, "nothing"), got, 0, 0), "nothing to read");
    free(got);
    taut_safetensors_close(st);
}

/* One tensor of a dtype at an odd offset, its raw bytes, and the numbers they are. */
static void dtype_case(const char *dtype, int size, const uint64_t *raw, const double *want, int count, const char *why)
{
    unsigned char file[512];
    char header[200];
    const int len = snprintf(header, sizeof header,
                             "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                             "\"b\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[1,%d]}}%s",
                             dtype, count, 1 + count * size, size == 8 ? " " : "");
    const size_t total = make(file, header, (size_t)len, (size_t)(1 + count * size));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < size; k++) file[8 + len + 1 + i * size + k] = (unsigned char)(raw[i] >> 8 * k);
    taut_safetensors *st = NULL;
    double got[16];
    CHECK(!taut_safetensors_open(&st, temp_put("t", file, total)), taut_last_error());
    if (!st) return;
    const taut_status status = taut_safetensors_read(st, taut_safetensors_find(st, "b"), got, 0, count);
    if (why)
        CHECK(status == TAUT_BAD_FILE && strstr(taut_last_error(), why), taut_last_error());
    else
        CHECK(!status && memcmp(got, want, sizeof *want * (size_t)count) == 0, dtype);
    taut_safetensors_close(st);
}

static void dtypes(void)
{
    dtype_case("F16", 2, (uint64_t[]){ 0x3C00, 0xC000, 0x0001, 0x8000, 0x7BFF, 0x7C00, 0x03FF, 0x0400 },
               (double[]){ 1, -2, 0x1p-24, -0.0, 65504, INFINITY, 1023 * 0x1p-24, 0x1p-14 }, 8, NULL);
    dtype_case("F16", 2, (uint64_t[]){ 0xFE01 }, (double[]){ from_bits(UINT64_C(0xFFF8040000000000)) }, 1, NULL);
    dtype_case("BF16", 2, (uint64_t[]){ 0x3F80, 0x4049, 0x0001, 0xFF80, 0x7F81 },
               (double[]){ 1, 3.140625, 0x1p-133, -INFINITY, from_bits(UINT64_C(0x7FF0200000000000)) }, 5, NULL);
    dtype_case("I8", 1, (uint64_t[]){ 0x80, 0x7F, 0xFF }, (double[]){ -128, 127, -1 }, 3, NULL);
    dtype_case("U8", 1, (uint64_t[]){ 0x80, 0xFF }, (double[]){ 128, 255 }, 2, NULL);
    dtype_case("I16", 2, (uint64_t[]){ 0x8000, 0x7FFF }, (double[]){ -32768, 32767 }, 2, NULL);
    dtype_case("U16", 2, (uint64_t[]){ 0xFFFF }, (double[]){ 65535 }, 1, NULL);
    dtype_case("I32", 4, (uint64_t[]){ 0x80000000, 5 }, (double[]){ -2147483648.0, 5 }, 2, NULL);
    dtype_case("U32", 4, (uint64_t[]){ 0xFFFFFFFF }, (double[]){ 4294967295.0 }, 1, NULL);
    dtype_case("I64", 8, (uint64_t[]){ UINT64_C(1) << 63, ~UINT64_C(0), UINT64_C(1) << 53 },
               (double[]){ -0x1p63, -1, 0x1p53 }, 3, NULL);
    dtype_case("U64", 8, (uint64_t[]){ UINT64_C(1) << 63 }, (double[]){ 0x1p63 }, 1, NULL);
    dtype_case("BOOL", 1, (uint64_t[]){ 0, 1 }, (double[]){ 0, 1 }, 2, NULL);
    dtype_case("BOOL", 1, (uint64_t[]){ 1, 2 }, NULL, 2, "element 1 of tensor \"b\" is no BOOL");
    dtype_case("I64", 8, (uint64_t[]){ (UINT64_C(1) << 53) + 1 }, NULL, 1, "element 0 of tensor \"b\" is no I64");
    dtype_case("I64", 8, (uint64_t[]){ INT64_MAX }, NULL, 1, "is no I64");
    dtype_case("U64", 8, (uint64_t[]){ UINT64_MAX }, NULL, 1, "is no U64");
    dtype_case("F8_E4M3", 1, (uint64_t[]){ 0 }, NULL, 1, "tensor \"b\" is F8_E4M3, which taut does not read");
    dtype_case("C64", 8, (uint64_t[]){ 0 }, NULL, 1, "which taut does not read");
}

static taut_status write_and_open(const char *path)
{
    taut_safetensors *st;
    taut_status status = write_good(path);
    if (!status) status = taut_safetensors_open(&st, path);
    if (!status) taut_safetensors_close(st);
    return status;
}

static void memory(void)
{
    const char *path = temp_text("m.safetensors", "old");
    const int count = temp_count();
    long n = 0;
    taut_status status;
    do {
        taut_alloc_fail_at(++n);
        status = write_and_open(path);
        taut_alloc_fail_at(0);
        CHECK(!status || status == TAUT_NO_MEMORY, taut_last_error());
    } while (status && n < 1000);
    CHECK(n > 10 && temp_count() == count, "every allocation was made to fail");
}

static void refused_writes(void)
{
    const char *path = temp_text("w", "old");
    const int count = temp_count();
    double big[2] = { 1, 1e300 };
    const taut_st_entry e = { "a", "F32", 1, { 2 }, fetch, floats }, f = { "a", "F64", 1, { 2 }, fetch, floats };
    const taut_st_entry huge = { "big", "F32", 1, { 2 }, fetch, big },
                        latin = { "\xE9", "F32", 0, { 0 }, fetch, floats };
    const taut_st_entry meta = { "__metadata__", "F32", 0, { 0 }, fetch, floats };
    const taut_st_meta m = { "a", "b" }, bad = { "a", "\xFF" };
    CHECK(taut_safetensors_write(path, (taut_st_entry[]){ e, f }, 2, NULL, 0) == TAUT_BAD_DATA, "a name twice");
    CHECK(taut_safetensors_write(path, &huge, 1, NULL, 0) == TAUT_BAD_DATA, "too large for F32");
    CHECK(strstr(taut_last_error(), "element 1 of tensor \"big\" is 1e+300"), taut_last_error());
    CHECK(taut_safetensors_write(path, &latin, 1, NULL, 0) == TAUT_BAD_DATA, "not UTF-8");
    CHECK(taut_safetensors_write(path, &meta, 1, NULL, 0) == TAUT_BAD_DATA, "a reserved name");
    CHECK(taut_safetensors_write(path, &e, 1, (taut_st_meta[]){ m, m }, 2) == TAUT_BAD_DATA, "a key twice");
    CHECK(taut_safetensors_write(path, &e, 1, &bad, 1) == TAUT_BAD_DATA, "a value that is not UTF-8");
    const struct rlimit small = { 1000, RLIM_INFINITY };
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK(write_good(path) == TAUT_BAD_FILE && strstr(taut_last_error(), "the old file is kept"), taut_last_error());
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(temp_is(path, "old") && temp_count() == count, "the old file stays, nothing else is left");
    taut_safetensors *st = NULL;
    CHECK(!taut_safetensors_write(path, NULL, 0, NULL, 0) && !taut_safetensors_open(&st, path), "nothing at all");
    CHECK(st && taut_safetensors_count(st) == 0 && !taut_safetensors_find(st, "a"), "nothing at all");
    taut_safetensors_close(st);
}

static void cut_under_us(void)
{
    taut_safetensors *st;
    double got[4];
    const char *path = temp_path("good.safetensors");
    CHECK(!taut_safetensors_open(&st, path) && truncate(path, 100) == 0, "open, then cut");
    CHECK(taut_safetensors_read(st, taut_safetensors_find(st, "d"), got, 0, 4) == TAUT_BAD_FILE, "an error, no signal");
    taut_safetensors_close(st);
}

int main(void)
{
    test_begin();
    temp_begin();
    round_trip();
    dtypes();
    memory();
    refused_writes();
    cut_under_us();
    return test_end("safetensors", "round trips to the bit");
}
