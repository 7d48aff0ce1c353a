/* gather and scatter: cpu against ref, and they are adjoint. */
#include "kernels/pair.h"

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t rows = case_no % 10 == 9 ? rng_int(1000, 4000) : rng_int(0, case_no % 6 ? 30 : 900);
        const int64_t d = rng_int(0, case_no % 6 ? 50 : 150), names = rng_int(1, case_no % 20 == 19 ? 3000 : 20);
        int32_t *ids = calloc((size_t)rows + 1, sizeof *ids);
        const taut_index *in_ref = (const taut_index *)ids;
        pair table = pair_new(names * d, 1), t0 = pair_copy(&table), y = pair_new(rows * d, 1),
             g = pair_new(rows * d, 0);
        double *tol = doubles(table.len);
        for (int64_t i = 0; i < table.len; i++) tol[i] = fabs(table.d[i]);
        for (int64_t r = 0; r < rows; r++) {
            ids[r] = (int32_t)rng_int(0, names - 1);
            for (int64_t c = 0; c < d; c++) tol[ids[r] * d + c] += fabs(y.d[r * d + c]);
        }
        for (int64_t i = 0; i < table.len; i++) tol[i] *= (double)(rows + 1) * UNIT;
        taut_index *there = table_index(cpu, ids, rows);
        SAME_BITS(g, (ref->gather(R(&g), R(&table), in_ref, rows, d), cpu->gather(g.f, table.f, there, rows, d)));
        pair_near(&g, NULL, 0, 0, "gather");
        for (int64_t i = 0; i < g.len; i++) CHECK(g.d[i] == table.d[ids[i / d] * d + i % d], "gather takes the row");
        SAME_BITS(table, (memcpy(table.d, t0.d, (size_t)t0.len * sizeof(double)), pair_sync(&table),
                          ref->scatter(R(&table), names, R(&y), in_ref, rows, d),
                          cpu->scatter(table.f, names, y.f, there, rows, d)));
        pair_near(&table, tol, 0, 0, "scatter");
        /* <gather(T), y> = <T, scatter(y)>, where scatter(y) = table - t0 */
        for (int64_t i = 0; i < table.len; i++) table.d[i] -= t0.d[i];
        CHECK_NEAR(dot(g.d, y.d, g.len), dot(t0.d, table.d, t0.len), 1e-12 * (double)(1 + g.len), "adjoint");
        pair_free(&table);
        pair_free(&t0);
        pair_free(&y);
        pair_free(&g);
        free(tol);
        free(ids);
        cpu->release(there);
    }
    return test_end("embed", "worst error / promised = %.3f", worst);
}
