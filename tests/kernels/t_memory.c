/* alloc zeroes and aligns; put and get round trip; a failing allocation is NULL. */
#include "base/alloc.h"
#include "kernels/pair.h"

int main(void)
{
    pair_begin();
    const taut_kernels *tables[] = { ref, cpu };
    for (case_no = 0; case_no < effort(200); case_no++) {
        const taut_kernels *k = tables[case_no % 2];
        const int64_t len = rng_int(0, 300);
        double *x = doubles(len), *y = doubles(len);
        taut_real *a = k->alloc(len);
        CHECK(a && (uintptr_t)a % 64 == 0, "aligned");
        k->get(y, a, len);
        for (int64_t i = 0; i < len; i++) CHECK(y[i] == 0, "zeroed");
        fill(x, len);
        k->put(a, x, len);
        k->get(y, a, len);
        for (int64_t i = 0; i < len; i++) near(y[i], x[i], k == ref ? 0 : UNIT * fabs(x[i]), "put and get");
        if (len > 3) {
            const double odd[] = { NAN, INFINITY, -INFINITY };
            k->put(taut_at(k, a, 1), odd, 3);
            k->get(y, taut_at(k, a, 1), 3);
            CHECK(isnan(y[0]) && y[1] == INFINITY && y[2] == -INFINITY, "nothing is hidden");
        }
        k->release(a);
        free(x);
        free(y);
    }
    for (int t = 0; t < 2; t++) {
        CHECK(tables[t]->alloc(INT64_MAX) == NULL, "too much is NULL");
        taut_alloc_fail_at(1);
        CHECK(tables[t]->alloc(10) == NULL, "out of memory is NULL");
        taut_alloc_fail_at(0);
        tables[t]->release(NULL);
        CHECK(tables[t]->sync() == TAUT_OK, "sync");
    }
    return test_end("memory", "worst error / promised = %.3f", worst);
}
