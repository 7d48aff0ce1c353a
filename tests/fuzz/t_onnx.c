/* The reader of ONNX weights: protobuf of any shape. */
#include "fuzz.h"

#include "model/onnx.h"

static void fuzz_begin(void)
{
    /* a model with a graph of one node (Add, from a to b) and one initializer (a: two floats) */
    static const uint8_t small[] = { 0x3a, 0x22, 0x0a, 0x0b, 0x0a, 1,    'a', 0x12, 1, 'b',  0x22, 3,
                                     'A',  'd',  'd',  0x2a, 0x13, 0x08, 2,   0x10, 1, 0x42, 1,    'a',
                                     0x4a, 8,    0,    0,    0x80, 0x3f, 0,   0,    0, 0x40, 0x50, 0 };
    fuzz_seed(small, sizeof small);
    fuzz_seed("\x3a\x00", 2);
    fuzz_seed_file("tests/golden/onnx/vit.onnx");
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_onnx *o = NULL;
    double some[8];
    if (taut_onnx_open(&o, fuzz_file(data, len))) return;
    for (int i = 0; i < taut_onnx_count(o); i++) {
        const taut_st_tensor *t = taut_onnx_at(o, i);
        const int64_t count = t->count < 8 ? t->count : 8;
        taut_onnx_read(o, t, some, t->count - count, count);
    }
    taut_onnx_other_node(o, "|Add|");
    taut_onnx_close(o);
}
