/* The test of this program's arithmetic: it passes, costs milliseconds, notices a mode that is set later, in this thread or by
 * another that asks first, and is not fooled by having passed before.  tests/cli/t_arithmetic.sh plants faults. */
#include "bound/arithmetic.h"

#include <fenv.h>
#include <pthread.h>
#include <time.h>

#include "harness.h"

static double cpu_ms(void) { return (double)clock() * 1e3 / CLOCKS_PER_SEC; }

static void *ask(void *mode)
{
    static taut_status answers[2];
    fesetround(*(const int *)mode);
    return memcpy(&answers[*(const int *)mode == FE_TONEAREST], &(taut_status){ taut_arithmetic_test() },
                  sizeof *answers);
}

static taut_status asked_by_another(int mode)
{
    pthread_t id;
    void *answer = NULL;
    CHECK(pthread_create(&id, NULL, ask, &mode) == 0 && pthread_join(id, &answer) == 0, "a thread");
    return *(taut_status *)answer;
}

int main(void)
{
    test_begin();
    const double start = cpu_ms();
    CHECK(taut_arithmetic_test() == TAUT_OK, taut_last_error());
    const double first = cpu_ms() - start;
    for (case_no = 0; case_no < 1000; case_no++) CHECK(taut_arithmetic_test() == TAUT_OK, taut_last_error());
    const double later = (cpu_ms() - start - first) / 1000;
    static const int others[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (case_no = 0; case_no < 3; case_no++) {
        fesetround(others[case_no]);
        CHECK(taut_arithmetic_test() == TAUT_DEVICE, "another rounding mode is noticed");
        fesetround(FE_TONEAREST);
        CHECK(asked_by_another(others[case_no]) == TAUT_DEVICE, "in another thread too");
        CHECK(asked_by_another(FE_TONEAREST) == TAUT_OK && taut_arithmetic_test() == TAUT_OK,
              "each thread has its own");
    }
    return test_end("arithmetic", "%.1f ms of processor time, then %.4f", first, later);
}
