/* Soft caps side by side, with their own caps and steps: matrices become what each becomes alone, bit for bit.  One is below
 * its cap, one is scaled down to what its step explains, one has no strength, one comes from an unknown step. */
#include "harness.h"
#include "train/constrain/hold.h"

enum { COUNT = 5, MOST = 64 };

static void together(const char *kernels, int64_t rows, int64_t cols)
{
    static const double cap[COUNT] = { 1, 2, 0.5, 1, 1.5 }, step[COUNT] = { 1.1, 2.2, 0.6, 4, 0 };
    static const double size[COUNT] = { 0.1, 1, 3, 2, 2 };
    static double w[COUNT][MOST * MOST], alone[MOST * MOST], got[MOST * MOST], start[MOST];
    const taut_kernels *k = taut_kernels_find(kernels);
    const int64_t len = rows * cols, room = taut_softcap_work(rows, cols, COUNT);
    taut_real *work = taut_reals(k, room), *v = taut_reals(k, cols);
    taut_hold h[COUNT];
    fill(start, cols);
    k->put(v, start, cols);
    for (int look = 0; look < 2; look++) {
        for (int j = 0; j < COUNT; j++) {
            fill(w[j], len);
            for (int64_t i = 0; i < len; i++) w[j][i] *= size[j];
            h[j] = (taut_hold){ k, taut_reals(k, len), rows, cols, cap[j], { work, room, k->elem }, v, 16 };
            k->put(h[j].w, w[j], len);
        }
        taut_softcap(h, step, COUNT, look);
        for (int j = 0; j < COUNT; j++, case_no++) {
            k->get(got, h[j].w, len);
            k->put(h[j].w, w[j], len);
            taut_softcap(&h[j], &step[j], 1, look);
            k->get(alone, h[j].w, len);
            k->release(h[j].w);
            CHECK(memcmp(got, alone, (size_t)len * sizeof *got) == 0, "the bits of one alone");
            CHECK(j == 0 || memcmp(got, w[j], (size_t)len * sizeof *got) != 0, "a matrix above its cap is changed");
        }
    }
    k->release(work), k->release(v);
}

int main(void)
{
    test_begin();
    together("ref", 12, 12), together("cpu", 33, 48), together("cpu", 40, 5), together("cpu", 20, 20);
    return test_end("softcap", "side by side and alone");
}
