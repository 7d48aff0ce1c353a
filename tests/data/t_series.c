/* Series: a strict reader, calendars, how a file is cut and scaled, and windows that are what the protocol says. */
#include "data/series.h"
#include "harness.h"
#include "temp.h"

static taut_status read_text(taut_series **out, const char *text)
{
    return taut_series_open(out, &(taut_series_spec){ .source = temp_text("x.csv", text) });
}

static void refused(const char *text, const char *word)
{
    taut_series *s = NULL;
    CHECK(read_text(&s, text) == TAUT_BAD_DATA, text);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}

#define HEAD "date,a,b\n2016-07-01 00:00:00,1,2\n"
static void bad(void)
{
    refused("", "is empty");
    refused("date,a,b\n", "header");
    refused("2016-07-01 00:00:00,1,2\n2016-07-01 01:00:00,2,3\n2016-07-01 02:00:00,3,1\n", "line 1 is a row");
    refused(HEAD "2016-07-01 01:00:00,1\n", "line 3 has 2 columns");
    refused(HEAD "2016-07-01 01:00:00,1,2,3\n", "line 3 has 4 columns");
    refused(HEAD "2016-07-01 01:00:00,,2\n", "line 3: no value for a, and 1 empty cell in all");
    refused(HEAD "2016-07-01 01:00:00,1,\n2016-07-01 02:00:00, ,\n",
            "line 3: no value for b, and 3 empty cells in all");
    refused(HEAD "2016-07-01 01:00:00,1,nan\n", "'nan' is no number for b");
    refused(HEAD "2016-07-01 01:00:00,1,inf\n", "line 3");
    refused(HEAD "2016-07-01 01:00:00,1,1/2\n", "'1/2' is no number");
    refused(HEAD "2016-07-01 01:00:00,x,2\n", "'x' is no number for a");
    refused(HEAD "2016-13-01 01:00:00,1,2\n", "is no date");
    refused(HEAD "2015-02-29 01:00:00,1,2\n", "is no date");
    refused(HEAD "yesterday,1,2\n", "line 3: 'yesterday' is no date");
    refused(HEAD "13/1/2016 1:00,1,2\n", "is no date"); /* the month comes first */
    refused(HEAD "7/1/16 1:00,1,2\n", "is no date");
    refused(HEAD "2016-7-1 1:00,1,2\n", "is no date");
    refused(HEAD "6/30/2016 23:00,1,2\n", "is earlier than");
    refused(HEAD "2016-06-30 23:00:00,1,2\n", "is earlier than");
    refused(HEAD "2016-07-01 00:00:00,1,2\n", "data.repeats");
    refused(HEAD "\n2016-07-01 01:00:00,1,2\n", "line 3 is empty");
    refused(HEAD "2016-07-01T01:00:00Z,1,2\n", "line 3: 2016-07-01T01:00:00Z has a zone");
    refused("date,a,a\n2016-07-01,1,2\n2016-07-02,2,3\n", "columns 2 and 3 are both called 'a'");
    refused("date,a,\n2016-07-01,1,2\n2016-07-02,2,3\n", "column 3 has no name");
    refused("date,a,b\n2016-07-01,\"1,2\n2016-07-02,2,3\n", "line 2");
    refused("date,a,b\n2016-07-01,\"1\"x,2\n2016-07-02,2,3\n", "line 2: the quotes of cell 2 are wrong");
    refused("date,a,b\n2016-07-01,1\"2,3\"4,5\n2016-07-02,2,3\n", "line 2 has 4 columns");
    refused("date,a,b\n2016-07-01,\"1,5\",2\n2016-07-02,2,3\n", "'1,5' is no number for a"); /* thousands? */
    refused("date;a\n2016-07-01;1,5\n2016-07-02;1.234\n", "'1.234' for a has a '.', where numbers before have a ','");
    refused("date;a\n2016-07-01;1.5\n2016-07-02;1,234\n", "has a ',', where numbers before have a '.'");
    refused("date;a\n2016-07-01;1.234,5\n2016-07-02;2\n", "'1.234,5' is no number for a");
    refused("date\n2016-07-01\n2016-07-02\n", "at least one column");
    refused("d,a\n2016-07-01,1\n2016-07-02,2\n2016-07-05,4\n2016-07-06,3\n2016-07-07,4\n2016-07-09,4\n",
            "2 gaps in time, first: lines 3 and 4 are 259200 s apart, where most are 86400 s");
    refused("d,a\n2016-01-31,1\n2016-02-29,2\n2016-04-30,4\n2016-05-31,3\n",
            "1 gap in time: lines 3 and 4 are 2 month ends apart, where most are 1 month end");
    refused(HEAD "2016-07-01 01:00:00,1,3\n2016-07-01 02:00:00,1,3\n2016-07-01 03:00:00,1,3\n", "column a is constant");
    refused(HEAD "2016-07-01 01:00:00,1e308,3\n2016-07-01 02:00:00,-1e308,3\n",
            "column a are too large to be standardised: 1e+308 in row 2 of them");
}

static void calendar(void)
{
    double m[5];
    taut_date_marks(m, 5, (taut_date){ 0 }); /* Thursday, the first of January */
    CHECK(m[0] == -0.5 && m[2] == -0.5 && m[3] == -0.5 && m[4] == -0.5, "1970");
    CHECK_NEAR(m[1], 3.0 / 6 - 0.5, 1e-15, "a Thursday");
    taut_date_marks(m, 5, (taut_date){ .seconds = 951868740 }); /* 2000-02-29 23:59 UTC, a Tuesday */
    CHECK_NEAR(m[0], 0.5, 1e-15, "hour");
    CHECK_NEAR(m[1], 1.0 / 6 - 0.5, 1e-15, "weekday");
    CHECK_NEAR(m[2], 28.0 / 30 - 0.5, 1e-15, "day");
    CHECK_NEAR(m[3], 59.0 / 365 - 0.5, 1e-15, "day of the year");
    CHECK_NEAR(m[4], 0.5, 1e-15, "minute");
    taut_date_marks(m, 4, (taut_date){ .seconds = -1 }); /* 1969-12-31 23:59:59 */
    CHECK_NEAR(m[0], 0.5, 1e-15, "before 1970");
}

static void one_column(void)
{
    taut_series *s = NULL;
    taut_series_spec spec = { .source = "waves", .length = 100, .seed = 3 }, one = spec;
    CHECK(taut_series_open(&s, &spec) == TAUT_OK, taut_last_error());
    const double seventh = s->value[3 * 7 + 1], mean = s->mean[1];
    taut_series_free(s);
    one.columns = "week";
    CHECK(taut_series_open(&s, &one) == TAUT_OK, taut_last_error());
    CHECK(s->cols == 1 && strcmp(s->name[0], "week") == 0 && s->value[7] == seventh && s->mean[0] == mean, "mode S");
    taut_series_free(s);
    one.columns = "month";
    CHECK(taut_series_open(&s, &one) == TAUT_BAD_DATA, "no such column");
    CHECK(strstr(taut_last_error(), "no column 'month'") != NULL, taut_last_error());
}

/* 10 : cut 7, 1, 2.  Values 0 .. 9 and their squares. */
static void cut(void)
{
    char text[1024];
    taut_series *s = NULL;
    taut_source *source = NULL;
    snprintf(text, sizeof text, "date,a,b\n");
    for (int i = 0; i < 10; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "2016-07-01 %02d:%02d:00,%d,%d\n", i / 4,
                 15 * (i % 4), i, i * i);
    CHECK(read_text(&s, text) == TAUT_OK, taut_last_error());
    CHECK(s->rows == 10 && s->cols == 2 && s->marks == 5 && strcmp(s->name[1], "b") == 0, "shape");
    CHECK(s->end[0] == 7 && s->begin[1] == 7 && s->end[1] == 8 && s->end[2] == 10, "7 : 1 : 2");
    CHECK_NEAR(s->mean[0], 3, 1e-15, "mean of the training rows");
    CHECK_NEAR(s->std[0], 2, 1e-15, "population standard deviation");
    CHECK_NEAR(s->value[2 * 9], 3, 1e-15, "standardised");
    CHECK(taut_source_series(&source, s, 3, 2, 1) == TAUT_OK, taut_last_error());
    CHECK(taut_source_count(source, TAUT_TRAIN) == 4 && taut_source_count(source, TAUT_VALID) == 1 &&
              taut_source_count(source, TAUT_TEST) == 2,
          "windows of stride 1");
    double x[6 * 7], want[2];
    source->ops->get(source, (taut_slot){ .reals = x, .wanted = want }, TAUT_VALID,
                     0);                         /* asks about row 7, knows 4 .. 6 */
    const double rows[] = { 5, 6, -1, 4, 5, 6 }; /* label, ahead, seq */
    for (int t = 0; t < 6; t++)
        CHECK_NEAR(x[7 * t], rows[t] < 0 ? 0 : (rows[t] - 3) / 2, 1e-15, "which rows a window has");
    CHECK_NEAR(want[0], 2, 1e-15, "and what it asks about");
    CHECK_NEAR(x[7 * 2 + 2], 1.0 / 23 - 0.5, 1e-15, "the time of a row that is not known is");
    taut_source_free(source);
}

static void protocol(void)
{
    taut_series *s = NULL;
    taut_source *source = NULL;
    CHECK(taut_series_open(&s, &(taut_series_spec){ .source = "waves", .length = 100, .seed = 3 }) == TAUT_OK, "waves");
    CHECK(s->rows == 100 && s->cols == 3 && s->marks == 4, "waves");
    CHECK(taut_source_series(&source, s, 60, 10, 20) == TAUT_BAD_DATA, "shorter than a window");
    CHECK(strstr(taut_last_error(), "shorter than a window"), taut_last_error());
    const char *path = getenv("TAUT_DATA");
    if (!path) return;
    if (taut_series_open(&s, &(taut_series_spec){ .source = "ett/ETTh1.csv" })) return;
    CHECK(s->rows == 17420 && s->cols == 7 && s->marks == 4, "ETTh1");
    CHECK(s->end[0] == 8640 && s->end[1] == 11520 && s->end[2] == 14400, "12, 4 and 4 months");
    CHECK(taut_source_series(&source, s, 96, 48, 24) == TAUT_OK, "windows");
    CHECK(taut_source_count(source, TAUT_TRAIN) == 8521 && taut_source_count(source, TAUT_VALID) == 2848 &&
              taut_source_count(source, TAUT_TEST) == 2848,
          "as many windows as Informer has: 2857 in whole batches of 32");
    taut_source_free(source);
    CHECK(taut_series_open(&s, &(taut_series_spec){ .source = "ett/ETTh1.csv", .full = true }) == TAUT_OK, "all of it");
    CHECK(s->end[0] == 12194 && s->end[1] == 13936 && s->end[2] == 17420, "7 : 1 : 2 of the file");
    CHECK(taut_source_series(&source, s, 96, 48, 24) == TAUT_OK, "windows");
    CHECK(taut_source_count(source, TAUT_TEST) == 3461, "all windows");
    taut_source_free(source);
    if (taut_series_open(&s, &(taut_series_spec){ .source = "ett/ETTm1.csv" })) return;
    CHECK(s->marks == 5 && s->end[0] == 4 * 8640, "quarters of an hour, compressed");
    taut_series_free(s);
    if (taut_series_open(&s, &(taut_series_spec){ .source = "weather/WTH.csv" })) return;
    CHECK(s->rows == 35064 && s->cols == 12 && s->marks == 4 && s->end[0] == 24544 && s->begin[2] == 28052, "weather");
    CHECK_NEAR(s->mark[4 * 25], 1.0 / 23 - 0.5, 1e-15, "the second day's second hour");
    CHECK_NEAR(s->mark[4 * 25 + 2], 1.0 / 30 - 0.5, 1e-15, "the second day");
    taut_series_free(s);
}

int main(void)
{
    test_begin();
    temp_begin();
    bad();
    calendar();
    one_column();
    cut();
    protocol();
    return test_end("series", "reader, calendar, protocol");
}
