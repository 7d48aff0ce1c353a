/* train.matmul: a word of three, refused by kernels that have no such products, and over when training is. */
#include "harness.h"
#include "train/trainer.h"

static taut_products now;

static taut_status remember(taut_products how)
{
    now = how;
    return TAUT_OK;
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
    return test_end("matmul", "refused where it cannot be");
}
