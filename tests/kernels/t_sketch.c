/* TensorSketch: cpu's transforms against ref, ref against the sum over all d^k tuples and a known case, the
 * derivatives, what hashing promises of lengths (exact enumeration), and how the deterministic reference
 * differs from it. */
#include "base/hash.h"
#include "base/rng.h"
#include "kernels/pair.h"

static int32_t *tables(int64_t d, int64_t size, int degree)
{
    int32_t *hash = calloc((size_t)(d * degree + 1), sizeof *hash);
    for (int t = 0; t < degree; t++) taut_hash_table(hash + t * d, d, size, rng_next());
    return hash;
}

static double mass(const double *x, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += fabs(x[i]);
    return sum;
}

static void compare(int64_t rows, int64_t d, int64_t size, int degree)
{
    int32_t *hash = tables(d, size, degree);
    taut_index *there = table_index(cpu, hash, d * degree);
    const taut_sketch_shape s = { rows, d, size, degree, (const taut_index *)hash };
    const taut_sketch_shape o = { rows, d, size, degree, there };
    pair x = pair_new(rows * d, 1), tx = pair_new(rows * d, 1), z = pair_new(rows * size, 0);
    pair gz = pair_new(rows * size, 1), gx = pair_new(rows * d, 1), before = pair_bits(&gx);
    const double e = (degree + 1) * (6 * log2((double)size) + (double)d + 8) * UNIT;
    double *tol = doubles(rows * size), *tolx = doubles(rows * d);
    for (int64_t i = 0; i < rows * size; i++) tol[i] = e * pow(mass(x.d + i / size * d, d), degree);
    SAME_BITS(z, (ref->sketch(R(&z), R(&x), &s), cpu->sketch(z.f, x.f, &o)));
    pair_near(&z, tol, 0, 0, "sketch");
    for (int64_t i = 0; i < rows * size; i++) {
        const int64_t at = i / size * d;
        tol[i] = degree * e * mass(tx.d + at, d) * pow(mass(x.d + at, d), degree - 1);
    }
    SAME_BITS(z, (ref->sketch_jvp(R(&z), R(&tx), R(&x), &s), cpu->sketch_jvp(z.f, tx.f, x.f, &o)));
    pair_near(&z, tol, 0, 0, "sketch_jvp");
    for (int64_t i = 0; i < rows * d; i++)
        tolx[i] = 2 * UNIT * fabs(before.d[i]) +
                  degree * e * mass(gz.d + i / d * size, size) * pow(mass(x.d + i / d * d, d), degree - 1);
    SAME_BITS(gx, (pair_restore(&gx, &before), ref->sketch_vjp(R(&gx), R(&gz), R(&x), &s),
                   cpu->sketch_vjp(gx.f, gz.f, x.f, &o)));
    pair_near(&gx, tolx, 0, 0, "sketch_vjp");
    double left = dot(gz.d, z.d, z.len), right = 0; /* z holds the jvp */
    for (int64_t i = 0; i < gx.len; i++) right += (gx.d[i] - before.d[i]) * tx.d[i];
    CHECK_NEAR(left, right,
               1e-12 * (1 + norm(gz.d, z.len) * norm(z.d, z.len) + mass(tx.d, gx.len) * mass(gx.d, gx.len)), "adjoint");
    pair_free(&x), pair_free(&tx), pair_free(&z), pair_free(&gz), pair_free(&gx), pair_free(&before);
    cpu->release(there);
    free(tol), free(tolx), free(hash);
}

/* z[b] = sum over tuples (i_1 .. i_k) with h_1(i_1) + ... = b of prod +-x_i */
static void tuples(int64_t d, int64_t size, int degree)
{
    int32_t *hash = tables(d, size, degree);
    double x[8], z[64], want[64] = { 0 };
    fill(x, d);
    int64_t total = 1;
    for (int t = 0; t < degree; t++) total *= d;
    for (int64_t tuple = 0; tuple < total; tuple++) {
        double term = 1;
        int64_t bucket = 0, rest = tuple;
        for (int t = 0; t < degree; t++, rest /= d) {
            const int32_t h = hash[t * d + rest % d];
            term *= h < 0 ? -x[rest % d] : x[rest % d];
            bucket += h < 0 ? ~h : h;
        }
        want[bucket % size] += term;
    }
    ref->sketch((taut_real *)z, (taut_real *)x, &(taut_sketch_shape){ 1, d, size, degree, (const taut_index *)hash });
    for (int64_t b = 0; b < size; b++) CHECK_NEAR(z[b], want[b], 1e-13 * pow(mass(x, d), degree), "all tuples");
    free(hash);
}

static void known(void)
{
    static const double x[] = { 1, 2, -1 }, want[] = { 2, -3, 2, -1 }, plain[] = { 2, 4, 2, -4 };
    static const int32_t hash[] = { 0, ~3, 1, ~2, 2, 1 }, identity[] = { 0, 1, 2, 0, 1, 2 };
    double z[4];
    ref->sketch((taut_real *)z, (const taut_real *)x, &(taut_sketch_shape){ 1, 3, 4, 2, (const taut_index *)hash });
    for (int b = 0; b < 4; b++) CHECK(z[b] == want[b], "P2: sketch");
    ref->sketch((taut_real *)z, (const taut_real *)x, &(taut_sketch_shape){ 1, 3, 4, 2, (const taut_index *)identity });
    for (int b = 0; b < 4; b++) CHECK(z[b] == plain[b], "P2: deterministic reference");
}

/* Over all of the family GF(2^3), 3 points into 4 buckets: E |TS x|^2 = |x|^2, Var <= 2/size |x|^4. */
static void lengths(void)
{
    enum { D = 3, SIZE = 4, W = 3, FAMILY = 1 << (4 * W) };
    const double x[D] = { 0.6, -0.64, 0.48 };
    double mean = 0, square = 0;
    for (uint32_t f = 0; f < FAMILY; f++) {
        int32_t hash[D];
        double z[SIZE];
        for (uint32_t i = 0; i < D; i++) {
            const uint32_t p = taut_hash_value((const uint32_t[]){ f & 7, f >> 3 & 7, f >> 6 & 7, f >> 9 }, i, W);
            hash[i] = p & SIZE ? ~(int32_t)(p & 3) : (int32_t)(p & 3);
        }
        ref->sketch((taut_real *)z, (const taut_real *)x,
                    &(taut_sketch_shape){ 1, D, SIZE, 1, (const taut_index *)hash });
        mean += dot(z, z, SIZE) / FAMILY;
        square += dot(z, z, SIZE) * dot(z, z, SIZE) / FAMILY;
    }
    CHECK_NEAR(mean, 1, 1e-12, "P4: lengths are kept in the mean");
    CHECK_LE(square - mean * mean, 2.0 / SIZE, "P4: variance, degree 1");
}

/* The variance printed for degree 2, 2/size, is beaten; (3^2 - 1)/size holds: independent uniform tables of
 * two entries into three buckets, all 6^4 of them. */
static void variance(void)
{
    const double x[2] = { sqrt(0.5), sqrt(0.5) };
    double mean = 0, square = 0;
    for (int all = 0; all < 6 * 6 * 6 * 6; all++) {
        int32_t hash[4];
        double c[2][3] = { { 0 } }, z[3] = { 0 };
        for (int i = 0, rest = all; i < 4; i++, rest /= 6) hash[i] = rest % 6 < 3 ? rest % 6 : ~(rest % 6 - 3);
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < 2; i++)
                c[t][hash[2 * t + i] < 0 ? ~hash[2 * t + i] : hash[2 * t + i]] += hash[2 * t + i] < 0 ? -x[i] : x[i];
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) z[(a + b) % 3] += c[0][a] * c[1][b];
        mean += dot(z, z, 3) / 1296, square += dot(z, z, 3) * dot(z, z, 3) / 1296;
    }
    CHECK_NEAR(mean, 1, 1e-12, "P4: mean");
    CHECK_NEAR(square - mean * mean, 0.888889, 1e-6, "P4: variance of degree 2");
    CHECK(square - mean * mean > 2.0 / 3, "P4: the printed 2/D is beaten");
    CHECK_LE(square - mean * mean, 8.0 / 3, "P4: (3^k - 1)/D holds");
}

/* |z - z_det| of a constant row, degree 2, size = d = 256: far above the printed sqrt(1 + eta) + 1, below
 * sqrt(1 + eta) + sqrt(size). */
static void reference(void)
{
    enum { D = 256 };
    double *x = doubles(D), *z = doubles(D), *det = doubles(D);
    int32_t *hash = tables(D, D, 2), *identity = calloc(2 * D, sizeof *identity);
    for (int i = 0; i < D; i++) x[i] = 1.0 / 16, identity[i] = identity[D + i] = i;
    ref->sketch((taut_real *)z, (taut_real *)x, &(taut_sketch_shape){ 1, D, D, 2, (const taut_index *)hash });
    ref->sketch((taut_real *)det, (taut_real *)x, &(taut_sketch_shape){ 1, D, D, 2, (const taut_index *)identity });
    for (int i = 0; i < D; i++) det[i] -= z[i];
    CHECK(norm(det, D) > 15, "P5: the discrepancy printed without D^((k-1)/2) fails");
    CHECK_LE(norm(det, D), norm(z, D) + 16 * (1 + 1e-12), "P5: with it, it holds");
    free(x), free(z), free(det), free(hash), free(identity);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        compare(rng_int(0, case_no % 6 ? 4 : 70), rng_int(1, 40), (int64_t)1 << rng_int(1, 7), (int)rng_int(1, 4));
        tuples(rng_int(1, 6), (int64_t)1 << rng_int(1, 5), (int)rng_int(1, 4));
    }
    known();
    lengths();
    variance();
    reference();
    return test_end("sketch", "worst error / promised = %.3f", worst);
}
