/* train.matmul: a word of three, refused by kernels that have no such products, over when training is, and not for what keeps
 * matrices orthogonal. */
#include "harness.h"
#include "train/trainer.h"

static taut_products now;
static int whole; /* how often products were set to be whole */

static taut_status remember(taut_products how)
{
    now = how;
    whole += how == TAUT_PRODUCTS_FP32;
    return TAUT_OK;
}

/* A newton step of taut_polar is a product: it must not find bf16. */
static const taut_kernels *below;
static int coarse;
static void watched(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count, int64_t m,
                    int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    coarse += now != TAUT_PRODUCTS_FP32;
    below->gemm_each(c, p, a, b, count, m, n, k, ta, tb, alpha, beta);
}

static taut_status open_with(const char *matmul, const taut_kernels *k)
{
    char text[256];
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    snprintf(text, sizeof text,
             "[data]\nsource = brackets\nlength = 5000\n[model]\nwidth = 8\ndepth = 1\nheads = 1\ncontext = 8\n"
             "[train]\nbatch = 2\nmatmul = %s\n",
             matmul);
    taut_status s = taut_config_parse(&cfg, text, "test");
    if (!s) s = taut_trainer_open(&t, cfg, k);
    if (!s && k->products == remember) CHECK(now == TAUT_PRODUCTS_BF16, "while it trains");
    taut_trainer_close(&t);
    taut_config_free(cfg);
    return s;
}

static void polar_is_exact(taut_kernels *k)
{
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    static const char text[] = "[data]\nsource = brackets\nlength = 5000\n[model]\nwidth = 8\ndepth = 1\nheads = 1\n"
                               "context = 8\ninit = orthogonal\nnorm = none\n[train]\noptimiser = muon\nbatch = 2\n"
                               "matmul = bf16\n[constrain]\nmethod = polar\n";
    CHECK(taut_config_parse(&cfg, text, "test") == TAUT_OK && taut_trainer_open(&t, cfg, k) == TAUT_OK,
          taut_last_error());
    k->gemm_each = watched, whole = coarse = 0;
    if (t.constrainer) taut_constrainer_settle(t.constrainer);
    CHECK(whole == 1 && coarse == 0 && now == TAUT_PRODUCTS_BF16, "whole products for polar, bf16 again behind it");
    k->gemm_each = below->gemm_each;
    taut_trainer_close(&t);
    taut_config_free(cfg);
}

int main(void)
{
    test_begin();
    const taut_kernels *cpu = taut_kernels_find("cpu"), *ref = taut_kernels_find("ref"), *cuda;
    taut_kernels table = *cpu;
    table.products = remember;
    CHECK(open_with("fp32", cpu) == TAUT_OK && open_with("fp32", ref) == TAUT_OK, "fp32 is for all");
    CHECK(open_with("tf32", cpu) == TAUT_BAD_CONFIG && strstr(taut_last_error(), "tf32"), "not on the cpu");
    CHECK(open_with("bf16", ref) == TAUT_BAD_CONFIG && strstr(taut_last_error(), "bf16"), "not on ref");
    CHECK(open_with("fp8", cpu) == TAUT_BAD_CONFIG && strstr(taut_last_error(), "train.matmul"), "a word of three");
    if (!taut_kernels_open(&cuda, "cuda")) CHECK(open_with("tf32", cuda) == TAUT_OK, "on a device");
    CHECK(open_with("bf16", &table) == TAUT_OK && now == TAUT_PRODUCTS_FP32, "whoever comes next has them whole");
    below = cpu;
    polar_is_exact(&table);
    return test_end("matmul", "refused where it cannot be");
}
