/* Every table that can be found has a name, an element size and no NULL slot; unknown names have none. */
#include "kernels/pair.h"

int main(void)
{
    pair_begin();
    const taut_kernels *tables[] = { ref, cpu };
    for (int t = 0; t < 2; t++) {
        const char *from = (const char *)tables[t];
        CHECK(tables[t]->name && strlen(tables[t]->name) > 0, "a name");
        CHECK(tables[t]->elem == (strcmp(tables[t]->dtype, "F64") == 0 ? sizeof(double) : sizeof(float)),
              "an element size");
        /* all slots after elem are function pointers of one size */
        for (size_t at = offsetof(taut_kernels, alloc); at < sizeof(taut_kernels); at += sizeof(void (*)(void))) {
            void (*slot)(void);
            memcpy(&slot, from + at, sizeof slot);
            CHECK(slot != NULL, "no slot is NULL");
        }
    }
    CHECK(taut_kernels_find("none") == NULL, "unknown name");
    static const char *const builds[] = { "cpu-v4", "cpu-v3", "cpu-base" };
    int best = 0;
    while (best < 3 && !taut_kernels_find(builds[best])) best++;
    CHECK(best < 3 && taut_kernels_find(builds[best]) == taut_kernels_find("cpu"),
          "cpu is the best build that runs here");
    for (int i = best; i < 3; i++)
        for (int j = i; j < 3; j++)
            CHECK(taut_kernels_find(builds[i]) &&
                      (taut_kernels_find(builds[i]) == taut_kernels_find(builds[j])) == (i == j),
                  "whoever runs a build runs those before it, and each is another");
    taut_threads_set(3);
    CHECK(taut_threads() == 3, "threads are set");
    setenv("OMP_NUM_THREADS", "5,2", 1);
    taut_threads_set(0);
    CHECK(taut_threads() == 5, "0 asks for what the environment says");
    for (int i = 0; i < 3; i++) {
        setenv("OMP_NUM_THREADS", (const char *[]){ "many", "-4", "100000000000" }[i], 1);
        taut_threads_set(0);
        CHECK(taut_threads() >= 1 && taut_threads() <= 1024, "and if that makes no sense, for one per processor");
    }
    return test_end("table", "%d slots in ref and cpu",
                    (int)((sizeof(taut_kernels) - offsetof(taut_kernels, alloc)) / sizeof(void (*)(void))));
}
