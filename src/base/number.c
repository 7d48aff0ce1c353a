/* strtod and printf follow the program's locale, which may want a comma; here the C locale is borrowed. */
#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Borrowing the C locale costs no memory: it always exists. */
static locale_t locale_enter(void)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? uselocale(c) : (locale_t)0;
}

static void locale_leave(locale_t before)
{
    if (before) freelocale(uselocale(before));
}

int taut_number_int(int64_t *out, const char *text)
{
    if (!out || !text) return 0;
    const char *digits = text + (*text == '-');
    if (*digits == 0 || digits[strspn(digits, "0123456789")] != 0) return 0;
    errno = 0;
    const long long value = strtoll(text, NULL, 10);
    if (errno != 0) return 0;
    *out = value;
    return 1;
}

/* What strtod would also take: spaces, hex, inf and nan; and a number so small that 0 comes back, which was not meant. */
static bool decimal(double *out, const char *text)
{
    if (text[0] == 0 || text[strspn(text, "0123456789.eE+-")] != 0) return false;
    const bool zero = strcspn(text, "123456789") >= strcspn(text, "eE"); /* no other digit before the exponent */
    char *end;
    *out = strtod(text, &end);
    return *end == 0 && end != text && isfinite(*out) && (*out != 0 || zero);
}

int taut_number_real(double *out, const char *text)
{
    if (!out || !text) return 0;
    const char *slash = strchr(text, '/');
    char upper[64] = "";
    double over = 0, under = 1;
    if (slash && (size_t)(slash - text) >= sizeof upper) return 0;
    if (slash) memcpy(upper, text, (size_t)(slash - text));
    const locale_t before = locale_enter();
    const bool good = decimal(&over, slash ? upper : text) && (!slash || decimal(&under, slash + 1));
    locale_leave(before);
    if (!good || under == 0 || !isfinite(over / under) || (over != 0 && over / under == 0)) return 0;
    *out = over / under;
    return 1;
}

int taut_number_list(double *out, int room, const char *text)
{
    int count = 0;
    char word[64];
    for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
        const size_t len = strcspn(text, " ,");
        if (count == room || len >= sizeof word) return -1;
        memcpy(word, text, len);
        word[len] = 0;
        if (!taut_number_real(&out[count++], word)) return -1;
        text += len;
    }
    return count;
}

/* At least so many digits are needed to tell the value from every other.  A decimal of up to 15 digits survives the way through a
 * double and back, but where doubles are subnormal: if 15 digits give the value, they are the shortest and zeros. */
static int least_digits(double value)
{
    char text[40];
    if (!(fabs(value) > 1e-300) || isinf(value)) return 1;
    snprintf(text, sizeof text, "%.14e", value);
    if (strtod(text, NULL) != value) return 16;
    int digits = 15;
    for (const char *last = strchr(text, 'e') - 1; *last == '0'; last--) digits--;
    return digits > 1 ? digits : 1;
}

const char *taut_number_print(char dst[32], double value)
{
    if (!dst) return NULL;
    const locale_t before = locale_enter();
    const bool whole = fabs(value) < 1e15 && value == floor(value); /* 10, not 1e+01 */
    if (whole) snprintf(dst, 32, "%.0f", value);
    for (int digits = whole ? 18 : least_digits(value); digits <= 17; digits++) {
        snprintf(dst, 32, "%.*g", digits, value);
        if (strtod(dst, NULL) == value) break; /* a NaN never does and ends with 17 */
    }
    locale_leave(before);
    return dst;
}

/* printf gives every digit of a double when it is asked for as many as the longest has, 767; then the sixth is the last that is
 * kept, and any digit behind it that is not 0 makes a difference.  Six digits survive the way through a double and back, but
 * where doubles are subnormal: nobody needs the digits there. */
static const char *six_digits(char dst[32], double value, bool up)
{
    enum { ALL = 767, KEPT = 6 };
    const double least = 1e-300;
    char digits[ALL + 16], shorter[32];
    if (!dst) return NULL;
    if (isnan(value) || isinf(value)) return strcpy(dst, up || value > 0 ? "inf" : "0");
    if (!(value > 0)) return strcpy(dst, "0");
    if (value < least) return strcpy(dst, up ? "1e-300" : "0");
    const locale_t before = locale_enter();
    snprintf(digits, sizeof digits, "%.*e", ALL - 1, value); /* d.ddd...e+xx */
    char *mark = strchr(digits, 'e'), *rest = digits + KEPT + 1;
    const int power = atoi(mark + 1) - (KEPT - 1);
    const bool exact = strspn(rest, "0") == (size_t)(mark - rest);
    *rest = '\0';
    digits[1] = digits[0];
    snprintf(shorter, sizeof shorter, "%lde%d", strtol(digits + 1, NULL, 10) + (up && !exact), power);
    snprintf(dst, 32, "%.*g", KEPT, strtod(shorter, NULL)); /* above the largest double: inf */
    locale_leave(before);
    return dst;
}

const char *taut_number_up(char dst[32], double value) { return six_digits(dst, value, true); }
const char *taut_number_down(char dst[32], double value) { return six_digits(dst, value, false); }
