/* Numbers as people write them. */
#include "base/number.h"

#include <locale.h>

#include "harness.h"

static void integers(void)
{
    static const char *const bad[] = { "",    "-",  "+1",  " 1", "1 ", "1.0", "1e3", "0x10", "9223372036854775808",
                                       "--1", "1a", "1_0", "inf" };
    int64_t v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!taut_number_int(&v, bad[i]) && v == 7, bad[i]);
    CHECK(taut_number_int(&v, "-9223372036854775808") && v == INT64_MIN, "the least");
    CHECK(taut_number_int(&v, "9223372036854775807") && v == INT64_MAX, "the greatest");
    CHECK(taut_number_int(&v, "007") && v == 7, "zeros in front");
}

static void reals(void)
{
    static const char *const bad[] = { "",      "nan", "inf",  "-inf", "infinity", "1e999",  "0x1p3",
                                       "1..2",  "1,5", " 1",   "1 ",   "1/0",      "1/",     "/2",
                                       "1/2/3", "e5",  "1e",   "+",    ".",        "-1e999", "1e308/1e-308",
                                       "abc",   "1f",  "1 /2", "0/0" };
    double v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!taut_number_real(&v, bad[i]) && v == 7, bad[i]);
    CHECK(taut_number_real(&v, "8/255") && v == 8.0 / 255, "8/255");
    CHECK(taut_number_real(&v, "-1/6") && v == -1.0 / 6, "-1/6");
    CHECK(taut_number_real(&v, "1e-3") && v == 1e-3, "1e-3");
    CHECK(taut_number_real(&v, ".5") && v == 0.5, ".5");
    CHECK(taut_number_real(&v, "4.9406564584124654e-324") && v == 4.9406564584124654e-324, "subnormal");
    CHECK(taut_number_real(&v, "-0") && v == 0 && signbit(v), "-0");
}

static void round_trip(void)
{
    for (case_no = 0; case_no < effort(20000); case_no++) {
        const uint64_t bits = rng_next();
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        char text[32];
        taut_number_print(text, v);
        CHECK(taut_number_real(&back, text) && memcmp(&v, &back, sizeof v) == 0, text);
    }
}

int main(void)
{
    test_begin();
    char text[32];
    for (int pass = 0; pass < 2; pass++) {
        integers();
        reals();
        round_trip();
        taut_number_print(text, 0.1);
        CHECK(strcmp(text, "0.1") == 0, "shortest");
        if (!setlocale(LC_ALL, "de_DE.UTF-8")) break; /* a comma locale, where there is one */
    }
    return test_end("number", "read and print");
}
