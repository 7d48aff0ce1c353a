/* Muon's polynomials against PyTorch, which applied them to the singular values of an SVD.
 * ref 1e-10; cpu 1e-4: a small singular value grows up to 1137 times, and its 2^-24 of rounding with it. */
#include "golden/golden.h"
#include "train/muon.h"

static double compare(const taut_safetensors *st, const taut_kernels *k, const char *shape, int polynomial)
{
    static const char *const names[] = { "you6", "nanogpt5", "classic5" };
    const taut_st_tensor *t = golden_find(st, "", shape);
    const int64_t rows = t->shape[0], cols = t->shape[1], len = rows * cols;
    char dot_name[32];
    snprintf(dot_name, sizeof dot_name, ".%s", names[polynomial]);
    double *x = golden_read(st, "", shape, len), *y = golden_read(st, shape, dot_name, len);
    taut_real *a = taut_reals(k, len), *work = taut_reals(k, taut_muon_work(rows, cols));
    k->put(a, x, len);
    taut_muon_orthogonalise(k, a, work, 1, rows, cols, polynomial);
    k->get(x, a, len);
    const double error = golden_distance(x, y, len, golden_largest(y, len));
    k->release(a);
    k->release(work);
    free(x);
    free(y);
    return error;
}

int main(void)
{
    static const char *const shapes[] = { "tall", "wide", "square" };
    const char *table = golden_table();
    const taut_kernels *k[] = { taut_kernels_find("ref"), taut_kernels_find(table) };
    const double tol[] = { 1e-10, golden_is_double(table) ? 1e-10 : 1e-4 };
    double worst[] = { 0, 0 };
    taut_safetensors *st = NULL;
    test_begin();
    golden_must(taut_safetensors_open(&st, "tests/golden/muon.safetensors"));
    CHECK(strcmp(taut_muon_names, "you6|nanogpt5|classic5") == 0, "order of the polynomials");
    CHECK(taut_safetensors_count(st) == 12, "three matrices and three polynomials of each");
    for (int i = 0; i < 2; i++)
        for (int s = 0; s < 3; s++)
            for (int p = 0; p < 3; p++) golden_judge(&worst[i], compare(st, k[i], shapes[s], p), tol[i], shapes[s]);
    taut_safetensors_close(st);
    return test_end("golden_muon", "against an SVD: ref %.1e, %s %.1e", worst[0], table, worst[1]);
}
