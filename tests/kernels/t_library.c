/* The library of a device: its tables, or a line that says why there are none; names that nobody has; products that a table
 * cannot make are refused. */
#include "kernels/pair.h"

static void device(const char *name)
{
    const taut_kernels *k = taut_kernels_find(name);
    char start[32];
    snprintf(start, sizeof start, "kernels %s: ", name);
    if (!k) {
        CHECK(strncmp(taut_last_error(), start, strlen(start)) == 0 && !strchr(taut_last_error(), '\n'), "a line");
        return;
    }
    CHECK(strcmp(k->name, name) == 0 && !k->host && !k->rigorous, "what it is");
    CHECK(k->elem == (strcmp(k->dtype, "F64") == 0 ? 8u : 4u) && k->available() > 0, "what it has");
    CHECK(k == taut_kernels_find(name), "opened once");
    CHECK((k->products(TAUT_PRODUCTS_TF32) == TAUT_OK) == (k->elem == 4), "tf32 is for floats");
    CHECK(k->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "and back");
}

int main(void)
{
    pair_begin();
    const taut_kernels *hosts[] = { ref, taut_kernels_find("cpu") };
    for (int i = 0; i < 2; i++) {
        CHECK(hosts[i]->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "full precision");
        CHECK(hosts[i]->products(TAUT_PRODUCTS_BF16) == TAUT_BAD_CONFIG && strstr(taut_last_error(), hosts[i]->name),
              "no bf16 on the host");
    }
    CHECK(!taut_kernels_find("gpu") && strstr(taut_last_error(), "gpu") && strstr(taut_last_error(), "cuda64"),
          "a name that nobody has");
    device("cuda");
    device("cuda64");
    return test_end("library", "%s", taut_kernels_find("cuda") ? "a device" : taut_last_error());
}
