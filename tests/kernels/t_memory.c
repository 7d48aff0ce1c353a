/* alloc zeroes and aligns; put and get round trip; a failing allocation is NULL.  A device without room for what a slot
 * needs while it runs fails in the middle of a training step, which ends with its line, and nothing is a number afterwards. */
#include "base/alloc.h"
#include "kernels/pair.h"
#include "train/small.h"

/* Sums and indices, also carved out of the middle of elements. */
static void carved(const taut_kernels *k)
{
    enum { N = 5 };
    const int32_t id[N] = { 3, 0, 2, 2, 1 };
    const double want[N] = { 1, -2, NAN, 0, 1e300 };
    double table[4] = { 10, 11, 12, 13 }, got[N];
    const int64_t len = 3 + taut_sums_len(N) + taut_indices_len(N) + 4 + N;
    taut_span rest = { taut_reals(k, len), len, k->elem };
    taut_real *all = rest.data, *odd = taut_take(&rest, 3);
    taut_sum *sums = taut_take_sums(&rest, N);
    taut_index *ids = taut_take_indices(&rest, N);
    taut_real *rows = taut_take(&rest, 4), *y = taut_take(&rest, N);
    CHECK(rest.len == 0 && (uintptr_t)sums % 8 == 0, "as many as planned, and doubles where doubles may be");
    k->put(odd, want, 3), k->put_index(ids, id, N), k->put(rows, table, 4), k->put_sum(sums, want, N);
    k->gather(y, rows, ids, N, 1);
    k->get(got, y, N);
    for (int i = 0; i < N; i++) CHECK(got[i] == table[id[i]], "indices");
    CHECK(k->read(got, sums, N) == TAUT_OK, "read");
    for (int i = 0; i < N; i++) CHECK(isnan(want[i]) ? isnan(got[i]) : got[i] == want[i], "sums are doubles");
    k->put_sum(sums, NULL, N - 1);
    CHECK(k->read(got, sums, N) == TAUT_OK && got[0] == 0 && got[3] == 0 && got[4] == 1e300, "zeros");
    k->release(all);
}

/* The last thing that is done: a failure stays. */
static void workspace(const taut_kernels *k)
{
    static const char recipe[] =
        "[data]\nsource = brackets\nlength = 2000\n[model]\narch = gpt\nwidth = 32\nheads = 2\ndepth = 1\n"
        "context = 16\npositions = rope\n[train]\nsteps = 2\nbatch = 2\n";
    taut_trainer t;
    taut_step step = { .loss = 1 };
    double y = 0;
    taut_config *cfg = trainer_of(&t, recipe, k->name);
    taut_alloc_fail_at(1);
    CHECK(taut_trainer_step(&t, &step) == TAUT_DEVICE, "a step");
    taut_alloc_fail_at(0);
    CHECK(strstr(taut_last_error(), "out of memory") && strstr(taut_last_error(), "of workspace"), taut_last_error());
    CHECK(k->read(NULL, NULL, 0) == TAUT_DEVICE, "it stays");
    k->get(&y, t.model->values, 1);
    CHECK(isnan(y), "no number");
    CHECK(taut_trainer_step(&t, &step) == TAUT_DEVICE, "another step");
    trainer_end(&t, cfg);
}

int main(void)
{
    pair_begin();
    const taut_kernels *tables[] = { ref, cpu };
    for (case_no = 0; case_no < effort(200); case_no++) {
        const taut_kernels *k = tables[case_no % 2];
        const int64_t len = rng_int(0, 300);
        double *x = doubles(len), *y = doubles(len);
        taut_real *a = taut_reals(k, len);
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
        CHECK(taut_reals(tables[t], INT64_MAX) == NULL && taut_reals(tables[t], -1) == NULL, "too much is NULL");
        CHECK(tables[t]->available() > 0, "there is memory");
        taut_alloc_fail_at(1);
        CHECK(taut_reals(tables[t], 10) == NULL, "out of memory is NULL");
        taut_alloc_fail_at(0);
        tables[t]->release(NULL);
        CHECK(tables[t]->read(NULL, NULL, 0) == TAUT_OK, "nothing failed");
    }
    carved(ref), carved(cpu);
    if (!cpu->host) workspace(cpu);
    return test_end("memory", "worst error / promised = %.3f", worst);
}
