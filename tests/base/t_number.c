/* Numbers as people write them. */
#include "base/number.h"

#include <fenv.h>
#include <float.h>
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
    static const char *const bad[] = { "",      "nan", "inf",  "-inf", "infinity", "1e999",   "0x1p3",
                                       "1..2",  "1,5", " 1",   "1 ",   "1/0",      "1/",      "/2",
                                       "1/2/3", "e5",  "1e",   "+",    ".",        "-1e999",  "1e308/1e-308",
                                       "abc",   "1f",  "1 /2", "0/0",  "1e-400",   "-3e-999", "1e-300/1e300" };
    double v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!taut_number_real(&v, bad[i]) && v == 7, bad[i]);
    CHECK(taut_number_real(&v, "8/255") && v == 8.0 / 255, "8/255");
    CHECK(taut_number_real(&v, "-1/6") && v == -1.0 / 6, "-1/6");
    CHECK(taut_number_real(&v, "1e-3") && v == 1e-3, "1e-3");
    CHECK(taut_number_real(&v, ".5") && v == 0.5, ".5");
    CHECK(taut_number_real(&v, "4.9406564584124654e-324") && v == 4.9406564584124654e-324, "subnormal");
    CHECK(taut_number_real(&v, "0.00e-400") && v == 0, "0 as it is written");
    CHECK(taut_number_real(&v, "0/5") && v == 0, "0/5");
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

/* The shortest decimal that is the number, found by trying all lengths. */
static void shortest(void)
{
    for (case_no = 0; case_no < effort(3000); case_no++) {
        char text[32], want[32];
        const double short_one = (double)rng_int(-99999, 99999) * pow(10, rng_int(-320, 290));
        const double v = case_no % 3 == 0 ? rng_int(0, 255) / 255.0 : case_no % 3 == 1 ? short_one : rng_pm();
        if (v == floor(v)) continue;
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(want, sizeof want, "%.*g", digits, v);
            if (strtod(want, NULL) == v) break;
        }
        CHECK(strcmp(taut_number_print(text, v), want) == 0, want);
    }
    char text[32];
    CHECK(strcmp(taut_number_print(text, INFINITY), "inf") == 0, "infinity");
}

/* strtod rounds as the mode says: a decimal is at or above v if and only if, read downward, it is. */
static double read_in(int mode, const char *text)
{
    fesetround(mode);
    const double v = strtod(text, NULL);
    fesetround(FE_TONEAREST);
    return v;
}

static void outward(void)
{
    static const double whole[] = { 0, 6, 0.5, 123456, 1e6, 1024, 0.015625, 3e9 };
    char up[32], down[32], text[32];
    for (case_no = 0; case_no < effort(20000); case_no++) {
        const int digits = (int)rng_int(1, 17); /* short decimals too: their doubles lie on either side of them */
        snprintf(text, sizeof text, "%.*e", digits - 1, pow(10, 299 * rng_pm()));
        const double v = strtod(text, NULL);
        CHECK_LE(v, read_in(FE_DOWNWARD, taut_number_up(up, v)), "up is at or above");
        CHECK_LE(read_in(FE_UPWARD, taut_number_down(down, v)), v, "down is at or below");
        CHECK_LE(strtod(up, NULL) - strtod(down, NULL), 1.00001e-5 * v, "they are neighbours");
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        snprintf(text, sizeof text, "%g", whole[i]);
        CHECK(strcmp(taut_number_up(up, whole[i]), text) == 0 && strcmp(taut_number_down(down, whole[i]), text) == 0,
              "a number of six digits is itself");
    }
    CHECK(strcmp(taut_number_up(up, 5.9999929), "6") == 0, "not 6.00001: that would look like a broken target");
    CHECK(strcmp(taut_number_up(up, 5.000000005), "5.00001") == 0 &&
              strcmp(taut_number_down(down, 5.000000005), "5") == 0,
          "a bound, a region");
    CHECK(strcmp(taut_number_up(up, INFINITY), "inf") == 0 && strcmp(taut_number_down(down, INFINITY), "inf") == 0,
          "inf");
    CHECK(strcmp(taut_number_up(up, NAN), "inf") == 0 && strcmp(taut_number_down(down, NAN), "0") == 0,
          "nothing is known");
    CHECK(strcmp(taut_number_up(up, 5e-324), "1e-300") == 0 && strcmp(taut_number_down(down, 5e-324), "0") == 0,
          "subnormal");
    CHECK(strcmp(taut_number_up(up, DBL_MAX), "inf") == 0 && strtod(taut_number_down(down, DBL_MAX), NULL) <= DBL_MAX,
          "the largest");
}

int main(void)
{
    test_begin();
    char text[32];
    for (int pass = 0; pass < 2; pass++) {
        integers();
        reals();
        round_trip();
        shortest();
        if (pass == 0) outward(); /* strtod would want the comma */
        taut_number_print(text, 0.1);
        CHECK(strcmp(text, "0.1") == 0, "shortest");
        CHECK(strcmp(taut_number_down(text, 0.33696492), "0.336964") == 0, "a point in every locale");
        if (!setlocale(LC_ALL, "de_DE.UTF-8")) break; /* a comma locale, where there is one */
    }
    return test_end("number", "read and print");
}
