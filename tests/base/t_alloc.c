/* The allocation hooks: the n-th one fails, once, and the others are ordinary. */
#include "base/alloc.h"
#include "base/status.h"
#include "harness.h"

int main(void)
{
    test_begin();
    for (long n = 1; n <= 5; n++) {
        int failed = 0, where = 0;
        taut_alloc_fail_at(n);
        for (int i = 1; i <= 5; i++) {
            void *p = i == 1   ? taut_malloc(10)
                      : i == 2 ? taut_calloc(3, 4)
                      : i == 3 ? taut_realloc(NULL, 8)
                      : i == 4 ? taut_malloc_aligned(100)
                               : (void *)taut_strdup("x");
            if (!p) {
                failed++;
                where = i;
            }
            free(p);
        }
        CHECK(failed == 1 && where == n, "exactly the n-th allocation fails");
    }
    taut_alloc_fail_at(1);
    taut_alloc_fail_at(0);
    void *p = taut_malloc(0);
    CHECK(p, "0 switches the hook off, and no bytes are no failure");
    free(p);

    unsigned char *a = taut_malloc_aligned(1000);
    int sum = 0;
    for (int i = 0; i < 1000; i++) sum += a[i];
    CHECK((uintptr_t)a % 64 == 0 && sum == 0, "aligned and zeroed");
    free(a);
    CHECK(!taut_malloc_aligned(SIZE_MAX), "rounding up does not wrap");
    char *s = taut_strdup("taut");
    CHECK(s && strcmp(s, "taut") == 0, "strdup copies");
    free(s);

    CHECK(taut_fail(TAUT_BAD_DATA, "%s %d", "row", 3) == TAUT_BAD_DATA, "fail hands the status back");
    taut_fail(TAUT_BAD_FILE, "f: %s", taut_last_error());
    CHECK(strcmp(taut_last_error(), "f: row 3") == 0, "the last error may be part of the next");
    return test_end("alloc", "hooks");
}
