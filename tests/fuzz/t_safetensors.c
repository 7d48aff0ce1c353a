/* The safetensors reader: header, index and numbers. */
#include "fuzz.h"

#include "model/safetensors.h"

static taut_status ramp(void *arg, double *dst, int64_t first, int64_t count)
{
    (void)arg;
    for (int64_t i = 0; i < count; i++) dst[i] = (double)(first + i) / 8;
    return TAUT_OK;
}

static void fuzz_begin(void)
{
    const taut_st_entry entries[] = { { "a", "F32", 2, { 3, 2 }, ramp, NULL }, { "b.c", "F64", 1, { 4 }, ramp, NULL } };
    const taut_st_meta metas[] = { { "recipe", "[model]\nwidth = 8\n" } };
    if (taut_safetensors_write(temp_path("seed"), entries, 2, metas, 1)) abort();
    fuzz_seed_file(temp_path("seed"));
    static const char half[] =
        "\x3b\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}       \x80\x3f\xc0\x7f";
    fuzz_seed(half, sizeof half - 1);
    fuzz_seed_text("\x02");
    fuzz_seed_file("tests/golden/hf_gpt2_shards/model-00002-of-00002.safetensors");
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_safetensors *st = NULL;
    double some[16];
    if (taut_safetensors_open(&st, fuzz_file(data, len))) return;
    for (int i = 0; i < taut_safetensors_count(st); i++) {
        const taut_st_tensor *t = taut_safetensors_at(st, i);
        const int64_t count = t->count < 16 ? t->count : 16;
        taut_status s = taut_safetensors_read(st, t, some, t->count - count, count);
        (void)s;
    }
    taut_safetensors_close(st);
}
