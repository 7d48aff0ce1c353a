/* AttLip where training multiplies in tf32 and bf16: its solvers multiply in float all the same, so that steep problems are
 * solved in as few gradients and products as ever, and what comes after them is multiplied as before. */
#include "kernels/pair.h"
#include "module/modules.h"

enum { N = 2, T = 24, D = 24, LEN = N * T * D };

static void place(taut_param *p, const char *path, void *arg)
{
    (void)path, (void)arg;
    const int64_t n = p->rows * p->cols;
    double *w = doubles(n);
    for (int64_t i = 0; i < n; i++) w[i] = 24 * rng_pm() * sqrt(3 / (double)p->cols);
    p->value = taut_reals(cpu, n), p->grad = taut_reals(cpu, n);
    cpu->put(p->value, w, n);
    free(w);
}

static void give_back(taut_param *p, const char *path, void *arg)
{
    (void)path, (void)arg;
    cpu->release(p->value), cpu->release(p->grad);
}

/* How a product of numbers that tf32 cannot hold comes out. */
static double product(void)
{
    pair x = pair_new(64, 0), y = pair_new(64, 0);
    for (int i = 0; i < 64; i++) x.d[i] = 1 + 0x1p-13;
    pair_sync(&x);
    cpu->gemm(y.f, x.f, x.f, 8, 8, 8, false, false, 1, 0);
    double sum[64];
    cpu->get(sum, y.f, 64);
    pair_free(&x), pair_free(&y);
    return sum[0];
}

static void steep(taut_products mode, double eta)
{
    const taut_attlip_spec a = { .width = D,
                                 .heads = 4,
                                 .head_width = 6,
                                 .eta = eta,
                                 .tol = 1e-5,
                                 .loose = 1e-3,
                                 .slope_tol = 1e-3,
                                 .near = 1,
                                 .rope_base = 100,
                                 .init = TAUT_INIT_NORMAL };
    taut_module *m = taut_attlip(&a);
    taut_params(m, place, NULL);
    CHECK(taut_module_place(m, cpu) == TAUT_OK, "constants are there");
    const taut_shape shape = { N, T, D };
    const taut_plan plan = taut_plan_of(m, shape);
    pair x = pair_new(LEN, 2), y = pair_new(LEN, 0), g = pair_new(LEN, 0);
    taut_real *trace = taut_reals(cpu, plan.trace), *scratch = taut_reals(cpu, plan.scratch);
    double *host = doubles(plan.host);
    taut_solves there = { 0 }, back = { 0 };
    taut_watcher watch = { .solved = taut_solves_add, .arg = &there };
    taut_run run = { .k = cpu,
                     .scratch = { scratch, plan.scratch, (int)cpu->elem },
                     .host = { (taut_real *)host, plan.host, sizeof(double) },
                     .products = mode,
                     .watch = &watch };
    const taut_point at = { { x.f, shape }, { trace, plan.trace, (int)cpu->elem } };
    CHECK(cpu->products(mode) == TAUT_OK, "the table multiplies so");
    const double before = product();
    taut_forward(m, &run, (taut_tensor){ y.f, shape }, at);
    watch.arg = &back;
    taut_vjp(m, &run, (taut_tensor){ g.f, shape }, (taut_tensor){ x.f, shape }, at);
    CHECK(product() == before, "others are multiplied as before");
    CHECK(there.abstained == 0, "every example got there");
    CHECK_LE((double)(there.gradients + there.products), 25.0 * N, "gradients of the forward pass");
    CHECK_LE((double)back.products, 25.0 * N, "products of the way back");
    (void)cpu->products(TAUT_PRODUCTS_FP32);
    taut_params(m, give_back, NULL);
    taut_module_free(m);
    cpu->release(trace), cpu->release(scratch);
    pair_free(&x), pair_free(&y), pair_free(&g);
    free(host);
}

int main(void)
{
    const char *name = getenv("TAUT_KERNELS");
    if (!name || strcmp(name, "cuda") != 0)
        return test_skip("tf32 and bf16 are for floats on a device: TAUT_KERNELS=cuda");
    pair_begin();
    for (case_no = 0; case_no < 3; case_no++)
        steep(TAUT_PRODUCTS_TF32, pow(4, case_no)), steep(TAUT_PRODUCTS_BF16, pow(4, case_no));
    return test_end("attlip, coarse", "%d steep problems in tf32 and bf16", 6 * N);
}
