/* Cross entropy: cpu against ref, the gradient against differences of ref, ignored rows, ties, poison; the same for rows
 * as long as a vocabulary, which a device keeps in the memory of a processor where they fit. */
#include "kernels/pair.h"

static double run(const taut_kernels *k, taut_real *g, int64_t *correct, const taut_real *x, const int32_t *t,
                  int64_t rows, int64_t classes, double weight)
{
    taut_sum *sums = table_sums(k, 2, 5); /* the slot adds */
    taut_index *target = table_index(k, t, rows);
    k->cross_entropy(g, sums, x, target, rows, classes, weight);
    const double loss = table_sum(k, sums, 0) - 5;
    *correct = (int64_t)table_sum(k, sums, 1);
    k->release(sums), k->release(target);
    return loss;
}

static double run_shared(const taut_kernels *k, taut_real *g, int64_t *correct, const taut_real *x, const taut_real *q,
                         int64_t rows, int64_t classes, double weight)
{
    taut_sum *sums = table_sums(k, 2, 5);
    k->shared_cross_entropy(g, sums, x, q, rows, classes, weight);
    const double loss = table_sum(k, sums, 0) - 5;
    *correct = (int64_t)table_sum(k, sums, 1);
    k->release(sums);
    return loss;
}

static void both(int64_t rows, int64_t classes, double spread)
{
    pair x = pair_new(rows * classes, spread), g = pair_new(x.len, 1), z = pair_copy(&x);
    int32_t *t = calloc((size_t)rows + 1, sizeof *t);
    const double weight = 0.5 * (1 + rng_unit());
    int64_t right = 0, found = 0;
    for (int64_t r = 0; r < rows; r++) t[r] = (int32_t)rng_int(-1, classes - 1);
    const double loss = run(ref, R(&g), &right, R(&x), t, rows, classes, weight);
    pair got = pair_new(1, 0);
    SAME_BITS(got, (got.d[0] = run(cpu, g.f, &found, x.f, t, rows, classes, weight)));
    const double tol = (double)rows *
                       ((4 + log((double)classes)) * UNIT + 0x1p-48 * (2 + log((double)classes) + 3 * spread));
    near(got.d[0], loss, tol + 0x1p-51 * (loss + 5), "loss"); /* the 5 that was there took digits */
    CHECK(found == right, "correct");
    pair_near(&g, NULL, 8 * UNIT * weight, 0, "gradient");
    near(run(cpu, NULL, &found, x.f, t, rows, classes, weight), loss, tol + 0x1p-51 * (loss + 5),
         "loss without gradient");
    run(ref, R(&z), &found, R(&z), t, rows, classes, weight);
    run(cpu, z.f, &found, z.f, t, rows, classes, weight);
    pair_same(&z, &g, "in place");
    for (int i = 0; i < 5 && x.len > 0 && spread < 100; i++) {
        const int64_t at = rng_int(0, x.len - 1);
        const double h = 1e-4, here = x.d[at];
        x.d[at] = here + h;
        const double up = run(ref, NULL, &right, R(&x), t, rows, classes, 1);
        x.d[at] = here - h;
        const double down = run(ref, NULL, &right, R(&x), t, rows, classes, 1);
        x.d[at] = here;
        CHECK_NEAR(g.d[at] / weight, (up - down) / (2 * h), 1e-7 + 1e-11 * loss, "gradient is the derivative");
    }
    pair_free(&x);
    pair_free(&g);
    pair_free(&z);
    pair_free(&got);
    free(t);
}

/* Shares: with all of it in one class the loss is the plain one; else cpu against ref, and the derivative. */
static void shares(int64_t rows, int64_t classes)
{
    pair x = pair_new(rows * classes, 5), q = pair_new(x.len, 1), g = pair_new(x.len, 1);
    int32_t *t = calloc((size_t)rows + 1, sizeof *t);
    int64_t right = 0, found = 0;
    const double weight = 0.5 + rng_unit();
    for (int64_t i = 0; i < x.len; i++) q.d[i] = rng_int(0, 2) ? fabs(q.d[i]) / (double)classes : 0;
    pair_sync(&q);
    const double loss = run_shared(ref, R(&g), &right, R(&x), R(&q), rows, classes, weight);
    const double got = run_shared(cpu, g.f, &found, x.f, q.f, rows, classes, weight);
    near(got, loss, (double)rows * 8 * UNIT + 0x1p-51 * (loss + 5), "shared loss");
    CHECK(found == right, "correct");
    pair_near(&g, NULL, 8 * UNIT * weight, 2 * UNIT, "shared gradient");
    for (int i = 0; i < 5; i++) {
        const int64_t at = rng_int(0, x.len - 1);
        const double h = 1e-4, here = x.d[at];
        x.d[at] = here + h;
        const double up = run_shared(ref, NULL, &right, R(&x), R(&q), rows, classes, 1);
        x.d[at] = here - h;
        const double down = run_shared(ref, NULL, &right, R(&x), R(&q), rows, classes, 1);
        x.d[at] = here;
        CHECK_NEAR(g.d[at] / weight, (up - down) / (2 * h), 1e-7 + 1e-11 * loss, "shared gradient is the derivative");
    }
    for (int64_t r = 0; r < rows; r++) {
        t[r] = (int32_t)rng_int(0, classes - 1);
        for (int64_t c = 0; c < classes; c++) q.d[r * classes + c] = c == t[r];
    }
    CHECK_NEAR(run_shared(ref, NULL, &right, R(&x), R(&q), rows, classes, 1),
               run(ref, NULL, &found, R(&x), t, rows, classes, 1), 1e-11 * (1 + loss), "one share is a target");
    pair_free(&x), pair_free(&q), pair_free(&g);
    free(t);
}

/* In place, one number further on in memory: a device cuts rows in the same way wherever they lie. */
static void moved(int64_t rows, int64_t classes)
{
    pair x = pair_new(rows * classes, 10), g = pair_new(x.len, 1);
    taut_real *all = taut_reals(cpu, x.len + 1), *there = taut_at(cpu, all, 1);
    int32_t *t = calloc((size_t)rows, sizeof *t);
    double *here = doubles(x.len), *got = doubles(x.len);
    int64_t right = 0, found = 0;
    for (int64_t r = 0; r < rows; r++) t[r] = (int32_t)rng_int(-1, classes - 1);
    cpu->put(there, x.d, x.len);
    const double loss = run(cpu, g.f, &right, x.f, t, rows, classes, 1);
    const double again = run(cpu, there, &found, there, t, rows, classes, 1);
    cpu->get(here, g.f, x.len), cpu->get(got, there, x.len);
    CHECK(found == right && (cpu->host || loss == again), "the loss of rows that were moved");
    for (int64_t i = 0; i < x.len; i++) near(got[i], here[i], cpu->host ? 16 * UNIT : 0, "the gradient of moved rows");
    cpu->release(all);
    pair_free(&x), pair_free(&g);
    free(t), free(here), free(got);
}

/* Three entries, the first, one in the middle and the last; all others are -inf and change nothing. */
static void corners(const taut_kernels *k, int64_t classes)
{
    const double rows[][3] = { { 2, 2, 1 },       { 1, NAN, 0 }, { INFINITY, 1, 1 }, { -INFINITY, 1, 1 },
                               { NAN, NAN, NAN }, { 1, 2, 2 },   { 0, 0, NAN } };
    const int64_t places[] = { 0, classes / 2, classes - 1 };
    const int target[] = { 0, 0, 0, 0, -1, 2, 0 };
    double *row = doubles(classes), *g = doubles(classes);
    taut_real *x = taut_reals(k, classes), *gx = taut_reals(k, classes);
    for (int i = 0; i < 7; i++) {
        const int32_t want = target[i] < 0 ? -1 : (int32_t)places[target[i]];
        int64_t correct = 0, odd = 0;
        for (int64_t c = 0; c < classes; c++) row[c] = -INFINITY;
        for (int j = 0; j < 3; j++) row[places[j]] = rows[i][j];
        k->put(x, row, classes);
        const double loss = run(k, gx, &correct, x, &want, 1, classes, 1);
        k->get(g, gx, classes);
        const double first = g[0], middle = g[classes / 2];
        const bool poison = i == 1 || i == 2 || i == 6;
        for (int64_t c = 0; c < classes; c++)
            odd += c != places[1] && c != 0 && c != places[2] && !(poison ? isnan(g[c]) : g[c] == 0);
        CHECK(odd == 0, "what others get");
        if (i == 0) CHECK(correct == 6 && fabs(loss - log(2 + exp(-1))) < 1e-6, "the first of a tie");
        if (poison) CHECK(isnan(loss) && isnan(first) && isnan(g[classes - 1]) && correct == 5, "poison");
        if (i == 3) CHECK(loss == INFINITY && first == -1 && fabs(middle - 0.5) < 1e-6, "an impossible target");
        if (i == 4) CHECK(loss == 0 && first == 0 && g[classes - 1] == 0, "an ignored row is not looked at");
        if (i == 5) CHECK(correct == 5 && fabs(loss - log(2 + exp(-1))) < 1e-6, "the last of a tie");
    }
    k->release(x), k->release(gx);
    free(row), free(g);
}

/* A device of 227 KB a processor keeps rows of up to 57,600 floats or 28,800 doubles, from 8,192 or 4,096 on. */
static void long_rows(void)
{
    const int64_t classes[] = { 4096, 8191, 8192, 20001, 28800, 28801, 50257, 50304, 57600, 57604 };
    for (case_no = 0; case_no < 10; case_no++) {
        both(3, classes[case_no], case_no % 2 ? 10 : 300);
        moved(3, classes[case_no]);
        corners(cpu, classes[case_no]);
    }
    both(case_no = 300, 8200, 10); /* more than a device takes at once */
    corners(ref, 50304);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++)
        both(rng_int(0, case_no % 8 ? 12 : 700), rng_int(1, case_no % 8 ? 70 : 300), pow(10, 1 + 2 * rng_pm()));
    for (case_no = 0; case_no < effort(30); case_no++) shares(rng_int(1, 20), rng_int(1, 30));
    corners(ref, 3);
    corners(cpu, 3);
    long_rows();
    return test_end("cross_entropy", "worst error / promised = %.3f", worst);
}
