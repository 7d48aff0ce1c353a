#include "data/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t DAY = 86400;

/* Days since 1970 of a date in the Gregorian calendar (the months counted from March). */
static int64_t days_of(int64_t y, int m, int d)
{
    y -= m <= 2;
    const int64_t era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    const int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1, doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static void day_of(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097, doe = days - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
                  doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

static int64_t days_before(int64_t seconds) { return seconds >= 0 ? seconds / DAY : -((DAY - 1 - seconds) / DAY); }

/* At least `least` and at most `most` digits at *p. */
static bool digits(int *out, const char **p, int least, int most)
{
    int count = 0;
    *out = 0;
    for (; count < most && **p >= '0' && **p <= '9'; count++, (*p)++) *out = 10 * *out + (**p - '0');
    return count >= least;
}

static bool sign(const char **p, char c) { return **p == c && (*p)++; }

static bool parse_day(int *y, int *m, int *d, const char **p)
{
    int first, second;
    const char *back = *p;
    if (digits(y, p, 4, 4) && sign(p, '-')) return digits(m, p, 2, 2) && sign(p, '-') && digits(d, p, 2, 2);
    *p = back;
    if (!digits(&first, p, 1, 2) || (**p != '/' && **p != '.')) return false;
    const char mark = *(*p)++;
    *m = first, *d = first;
    if (!digits(&second, p, 1, 2) || !sign(p, mark)) return false;
    *(mark == '/' ? d : m) = second; /* month/day/year, day.month.year */
    return digits(y, p, 4, 4);
}

/* 0:00, 00:00, with seconds, with zeros behind them. */
static bool parse_time(int64_t *seconds, const char **p)
{
    int h, mi, s = 0;
    if (!digits(&h, p, 1, 2) || !sign(p, ':') || !digits(&mi, p, 2, 2)) return false;
    if (sign(p, ':')) {
        if (!digits(&s, p, 2, 2)) return false;
        if (sign(p, '.') && !sign(p, '0')) return false;
        while (sign(p, '0')) {}
    }
    *seconds = h * 3600 + mi * 60 + s;
    return h <= 23 && mi <= 59 && s <= 59;
}

static bool parse_zone(int64_t *zone, const char **p)
{
    int h, mi = 0;
    if (sign(p, 'Z')) return true;
    const bool west = **p == '-';
    if (!west && **p != '+') return false;
    (*p)++;
    if (!digits(&h, p, 2, 2)) return false;
    if (sign(p, ':') ? !digits(&mi, p, 2, 2) : **p && !digits(&mi, p, 2, 2)) return false;
    *zone = (west ? -1 : 1) * (h * 3600 + mi * 60);
    return h <= 18 && mi <= 59;
}

bool taut_date_parse(taut_date *date, const char *p)
{
    int y, mo, d;
    int64_t time = 0, zone = 0;
    if (!parse_day(&y, &mo, &d, &p) || mo < 1 || mo > 12 || d < 1 || d > 31) return false;
    if (*p && ((!sign(&p, ' ') && !sign(&p, 'T')) || !parse_time(&time, &p))) return false;
    sign(&p, ' ');
    const bool zoned = *p != 0;
    if (p[-1] == ' ' && !zoned) return false;
    if (zoned && (!parse_zone(&zone, &p) || *p)) return false;
    const int64_t days = days_of(y, mo, d);
    int64_t year;
    int month, day;
    day_of(days, &year, &month, &day);
    *date = (taut_date){ days * DAY + time, zone, zoned };
    return year == y && month == mo && day == d;
}

const char *taut_date_print(char dst[TAUT_DATE_ROOM], taut_date date)
{
    const int64_t days = days_before(date.seconds), rest = date.seconds - days * DAY,
                  zone = date.zone < 0 ? -date.zone : date.zone;
    int64_t year;
    int month, day, len;
    day_of(days, &year, &month, &day);
    len = snprintf(dst, TAUT_DATE_ROOM, "%04lld-%02d-%02d %02d:%02d:%02d", (long long)year, month, day,
                   (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    if (date.zoned)
        snprintf(dst + len, (size_t)(TAUT_DATE_ROOM - len), "%c%02d:%02d", date.zone < 0 ? '-' : '+',
                 (int)(zone / 3600), (int)(zone / 60 % 60));
    return dst;
}

int64_t taut_date_instant(taut_date date) { return date.seconds - date.zone; }

/* Months since year 0, the day, the seconds of the day. */
static int64_t month_of(taut_date date, int *day, int64_t *rest)
{
    const int64_t days = days_before(date.seconds);
    int64_t year;
    int month;
    day_of(days, &year, &month, day);
    *rest = date.seconds - days * DAY;
    return 12 * year + month - 1;
}

static int last_day(int64_t month)
{
    const int64_t next = month + 1;
    return (int)(days_of(next / 12, (int)(next % 12) + 1, 1) - days_of(month / 12, (int)(month % 12) + 1, 1));
}

int64_t taut_date_apart(taut_date a, taut_date b, taut_time_unit unit)
{
    int day[2];
    int64_t rest[2];
    if (unit == TAUT_SECONDS) {
        const int64_t seconds = taut_date_instant(b) - taut_date_instant(a);
        return seconds > 0 ? seconds : 0;
    }
    const int64_t from = month_of(a, &day[0], &rest[0]), to = month_of(b, &day[1], &rest[1]);
    const bool same = unit == TAUT_MONTHS ? day[0] == day[1] : day[0] == last_day(from) && day[1] == last_day(to);
    return to > from && same && rest[0] == rest[1] ? to - from : 0;
}

taut_date taut_date_later(taut_date date, taut_stride stride, int64_t count)
{
    int day;
    int64_t rest;
    if (stride.unit == TAUT_SECONDS) {
        date.seconds += stride.count * count;
        return date;
    }
    const int64_t month = month_of(date, &day, &rest) + stride.count * count;
    const int most = last_day(month);
    day = stride.unit == TAUT_MONTH_ENDS || day > most ? most : day;
    date.seconds = days_of(month / 12, (int)(month % 12) + 1, day) * DAY + rest;
    return date;
}

const char *taut_stride_print(char dst[TAUT_DATE_ROOM], taut_stride s)
{
    static const char *const words[] = { "s", "month", "month end" };
    snprintf(dst, TAUT_DATE_ROOM, "%lld %s%s", (long long)s.count, words[s.unit],
             s.unit != TAUT_SECONDS && s.count != 1 ? "s" : "");
    return dst;
}

bool taut_stride_parse(taut_stride *s, const char *text)
{
    char again[TAUT_DATE_ROOM], *rest;
    const int64_t count = strtoll(text, &rest, 10);
    *s = (taut_stride){ strstr(rest, "end")     ? TAUT_MONTH_ENDS
                        : strstr(rest, "month") ? TAUT_MONTHS
                                                : TAUT_SECONDS,
                        count };
    return count > 0 && count <= 10000000000 && strcmp(taut_stride_print(again, *s), text) == 0;
}

void taut_date_marks(double *mark, int64_t marks, taut_date date)
{
    const int64_t days = days_before(date.seconds), rest = date.seconds - days * DAY;
    int64_t year;
    int month, day;
    day_of(days, &year, &month, &day);
    const int64_t weekday = ((days + 3) % 7 + 7) % 7; /* 1970 began on a Thursday; Monday is 0 */
    mark[0] = (double)(rest / 3600) / 23 - 0.5;
    mark[1] = (double)weekday / 6 - 0.5;
    mark[2] = (double)(day - 1) / 30 - 0.5;
    mark[3] = (double)(days - days_of(year, 1, 1)) / 365 - 0.5;
    if (marks > 4) mark[4] = (double)(rest / 60 % 60) / 59 - 0.5;
}
