/* exp, 1/x and sqrt for vector code against long double, over all they promise to be right for, and their ends. */
#include "bound/vmath.h"

#include "harness.h"

int main(void)
{
    long double worst = 0, more = 0;
    test_begin();
    for (case_no = 0; case_no < effort(300000); case_no++) {
        const double reach = case_no % 3 == 0 ? 700 : case_no % 3 == 1 ? 50 : 0.4, x = reach * (2 * rng_unit() - 1);
        const long double truth = expl((long double)x), off = fabsl(bound_exp(x) - truth) / truth;
        worst = off > worst ? off : worst;
        CHECK(off <= 4 * 0x1p-53L, "exp within 4 units");
        const double y = pow(10, case_no % 2 ? 280 * x / reach : 2 * x / reach);
        const long double inverse = fabsl(bound_inverse(y) * (long double)y - 1);
        const long double root = fabsl(bound_root(y) / sqrtl((long double)y) - 1);
        CHECK(inverse <= 8 * 0x1p-53L && root <= 8 * 0x1p-53L, "1/x and sqrt within 8 units");
        more = fmaxl(more, fmaxl(inverse, root));
    }
    CHECK(bound_root(0) == 0, "sqrt(0)");
    CHECK(bound_exp(0) == 1 && bound_exp(-INFINITY) == bound_exp(-700), "ends");
    CHECK(bound_exp(-700) > 0 && bound_exp(-700) < 1e-300, "small and not 0");
    return test_end("vmath", "exp is off by %.3Lf 2^-53, the others by %.3Lf", worst * 0x1p53L, more * 0x1p53L);
}
