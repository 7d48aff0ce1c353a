/* Tables as people have them: one series in many shapes of file gives the same numbers; columns are found by name and scaled as a
 * model was taught; dates; empty cells and gaps by their rules. */
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/names.h"
#include "data/series.h"
#include "harness.h"
#include "temp.h"

static taut_series *read_as(const char *text, taut_series_spec spec)
{
    taut_series *s = NULL;
    spec.source = temp_text("x.csv", text);
    CHECK(taut_series_open(&s, &spec) == TAUT_OK, taut_last_error());
    if (!s) exit(1); /* said above */
    return s;
}

static void refused(const char *text, taut_series_spec spec, const char *word)
{
    taut_series *s = NULL;
    spec.source = temp_text("x.csv", text);
    CHECK(taut_series_open(&s, &spec) != TAUT_OK && !s, word);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}

static void same(const taut_series *a, const taut_series *b, const char *what)
{
    CHECK(a->rows == b->rows && a->cols == b->cols && a->marks == b->marks, what);
    for (int64_t c = 0; c < a->cols; c++)
        CHECK(strcmp(a->name[c], b->name[c]) == 0 && a->mean[c] == b->mean[c] && a->std[c] == b->std[c], what);
    CHECK(memcmp(a->value, b->value, (size_t)(a->rows * a->cols) * sizeof *a->value) == 0, what);
    CHECK(memcmp(a->mark, b->mark, (size_t)(a->rows * a->marks) * sizeof *a->mark) == 0, what);
}

/* The same three days, however they are written. */
static void shapes(void)
{
    static const char plain[] = "date,T (degC),b\n2016-07-01,1.5,2\n2016-07-02,-3,4.25\n2016-07-03,5,0.5\n";
    static const char *const others[] = {
        "\xEF\xBB\xBF"
        "date,T (degC),b\r\n2016-07-01,1.5,2\r\n2016-07-02,-3,4.25\r\n2016-07-03,5,0.5\r\n\r\n\n",
        "date;T (degC);b\n01.07.2016;1,5;2\n02.07.2016;-3;4,25\n3.7.2016;5;0,5",
        "date\tT (degC)\tb\n7/1/2016\t1.5\t2\n7/2/2016\t-3\t4.25\n07/03/2016\t5\t0.5\n",
        "\"date\",\"T (degC)\",\"b\"\n\"2016-07-01\",\"1.5\",\"2\"\n\"2016-07-02\",-3,\"4.25\"\n\"2016-07-03\",5,.5\n",
        "date , T (degC) , b\n2016-07-01 00:00 , 1.5 , 2\n2016-07-02 0:00 , -3 , 4.25\n2016-07-03 00:00:00.000 , 5 , "
        "0.5\n",
        "date,T (degC),b\n2016-07-01T00:00:00Z,1.5,2\n2016-07-02T00:00Z,-3,4.25\n2016-07-03T00:00:00+00:00,5,0.5\n",
        "date,T (degC),b\n2016-07-01T00:00+01:00,1.5,2\n2016-07-02T00:00+0100,-3,4.25\n2016-07-03 00:00:00+01,5,0.5\n",
    };
    taut_series *first = read_as(plain, (taut_series_spec){ 0 });
    CHECK(first->marks == 4 && first->stride.unit == TAUT_SECONDS && first->stride.count == 86400, "days");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        taut_series *s = read_as(others[i], (taut_series_spec){ 0 });
        same(first, s, others[i]);
        taut_series_free(s);
    }
    taut_series_free(first);
    taut_series *latin = read_as("date,\xE4,b\n2016-07-01,1,2\n2016-07-02,2,1\n2016-07-03,2,1\n",
                                 (taut_series_spec){ 0 });
    CHECK(strcmp(latin->name[0], "\xC3\xA4") == 0, "Latin-1 becomes UTF-8");
    taut_series_free(latin);
}

static void dates(void)
{
    static const char *const good[][2] = { { "2016-07-01", "2016-07-01 00:00:00" },
                                           { "12/31/1999 23:59", "1999-12-31 23:59:00" },
                                           { "31.12.1999 23:59:59", "1999-12-31 23:59:59" },
                                           { "2016-02-29T06:07:08-03:30", "2016-02-29 06:07:08-03:30" },
                                           { "1969-12-31 23:00Z", "1969-12-31 23:00:00+00:00" },
                                           { "2016-07-01 01:00 +02:00", "2016-07-01 01:00:00+02:00" } };
    static const char *const bad[] = { "",
                                       "2016",
                                       "2016-07",
                                       "2016-7-1",
                                       "2016-13-01",
                                       "2015-02-29",
                                       "13/1/2016",
                                       "32.1.2016",
                                       "1.1/2016",
                                       "2016-07-01 24:00",
                                       "2016-07-01 1:60",
                                       "2016-07-01 ",
                                       "2016-07-01T",
                                       "2016-07-01 01:00:00.5",
                                       "2016-07-01 01:00+",
                                       "2016-07-01 01:00+1",
                                       "2016-07-01Z",
                                       "2016-07-01 01:00Zx",
                                       "2016-07-01 01:00+19:00",
                                       "2016-07-01 01:00 ",
                                       "20160701" };
    char text[TAUT_DATE_ROOM];
    taut_date d;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(taut_date_parse(&d, good[i][0]), good[i][0]);
        CHECK(strcmp(taut_date_print(text, d), good[i][1]) == 0, text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!taut_date_parse(&d, bad[i]), bad[i]);
    CHECK(taut_date_parse(&d, "2016-01-01T00:30:00+01:00") && taut_date_instant(d) == 1451604600, "an instant");
}

static void steps_of_time(void)
{
    char text[TAUT_DATE_ROOM];
    taut_date d;
    taut_stride s;
    static const char *const steps[] = { "3600 s", "1 month", "3 months", "1 month end", "12 month ends" };
    for (int i = 0; i < 5; i++)
        CHECK(taut_stride_parse(&s, steps[i]) && strcmp(taut_stride_print(text, s), steps[i]) == 0, steps[i]);
    CHECK(!taut_stride_parse(&s, "0 s") && !taut_stride_parse(&s, "-1 s") && !taut_stride_parse(&s, "1 months") &&
              !taut_stride_parse(&s, "s") && !taut_stride_parse(&s, "5 s x"),
          "no step");
    CHECK(taut_date_parse(&d, "2016-01-31") && taut_stride_parse(&s, "1 month end"), "the end of January");
    CHECK(strcmp(taut_date_print(text, taut_date_later(d, s, 1)), "2016-02-29 00:00:00") == 0, text);
    CHECK(strcmp(taut_date_print(text, taut_date_later(d, s, 14)), "2017-03-31 00:00:00") == 0, text);
    /* a day of 23 hours where the clock is put forward is a day */
    taut_series *x = read_as("d,a\n2016-03-26T00:00+01:00,1\n2016-03-27T00:00+01:00,2\n2016-03-28T00:00+02:00,3\n"
                             "2016-03-29T00:00+02:00,4\n",
                             (taut_series_spec){ 0 });
    CHECK(x->stride.count == 86400 && x->last.zone == 7200, "days of a clock");
    taut_series_free(x);
}

/* A table is read by name, on the scale that is given, whatever the order, the other columns and the units of its own. */
static void by_name(void)
{
    static const char own[] =
        "date,a,b,c\n2016-07-01,1,20,7\n2016-07-02,2,10,7\n2016-07-03,4,70,7\n2016-07-04,3,40,7\n";
    static const char other[] =
        "note,c,b,when,a\nx,7,20,2016-07-01,1\ny,,10,2016-07-02,2\n,7,70,2016-07-03,4\nx,1,40,2016-07-04,3\n";
    const taut_series_spec spec = { .columns = "a,b", .means = "2 30", .deviations = "0.5 10", .step = "86400 s" };
    taut_series *s = read_as(own, spec), *t = read_as(other, spec);
    same(s, t, "reordered");
    CHECK(s->value[0] == -2 && s->value[1] == -1 && s->value[5] == 4, "the given scale, not the table's");
    taut_series_free(t);
    t = read_as(own, (taut_series_spec){ .columns = "b,a", .means = "30 2", .deviations = "10 0.5", .targets = "a" });
    CHECK(t->value[0] == -1 && t->value[1] == -2 && strcmp(t->name[0], "b") == 0, "in the order that is asked for");
    CHECK(t->targets == 1 && t->target[0] == 1, "the one that is forecast");
    taut_series_free(s);
    taut_series_free(t);
    refused(own, (taut_series_spec){ .columns = "a,d" }, "has no column 'd'");
    refused(own, (taut_series_spec){ .columns = "a,a" }, "names 'a' twice");
    refused(own, (taut_series_spec){ .columns = "a,,b" }, "wants names");
    refused(own, (taut_series_spec){ .columns = "date" }, "has the dates");
    refused(own, (taut_series_spec){ .columns = "a", .targets = "b" }, "'b', which is none of the columns");
    refused(own, (taut_series_spec){ .columns = "a", .means = "1", .deviations = "0" }, "not above 0");
    refused(own, (taut_series_spec){ .columns = "a", .means = "1 2", .deviations = "1 2" },
            "a number for each of the 1");
    refused(own, (taut_series_spec){ .columns = "a", .means = "1" }, "go together");
    refused(own, (taut_series_spec){ .columns = "a", .step = "3600 s" },
            "a row every 86400 s, the model one every 3600 s");
    refused(own, (taut_series_spec){ .columns = "a", .step = "soon" }, "data.step");
    refused("d,a,b\n2016-07-01,north,1\n2016-07-02,south,2\n", (taut_series_spec){ 0 },
            "no number for a (data.columns");
    refused(own, (taut_series_spec){ 0 }, "column c is constant in the 2 training rows");
    s = read_as(own, (taut_series_spec){ .keep_constant = true });
    CHECK(s->std[2] == 1 && s->mean[2] == 7 && s->value[2] == 0, "deviation 1");
    taut_series_free(s);
    refused("d,a,b\n2016-07-01,1,1\n2016-07-02,1,1\n", (taut_series_spec){ 0 }, "columns a, b are constant");
}

static void names(void)
{
    char *const odd[] = { "a", "b, c", "say \"x\"", "#n", ";", "\xC3\xA4 (m/s)", "blank " };
    char *list = NULL;
    taut_names back;
    CHECK(taut_names_print(&list, odd, 7) == TAUT_OK && taut_names_read(&back, list, "k") == TAUT_OK,
          taut_last_error());
    CHECK(back.count == 7, list);
    for (int64_t i = 0; i < back.count; i++) CHECK(strcmp(back.name[i], odd[i]) == 0, back.name[i]);
    taut_names_free(&back);
    free(list);
    char *const worse[] = { "a #1" };
    CHECK(taut_names_print(&list, worse, 1) == TAUT_BAD_DATA && strstr(taut_last_error(), "'a #1'"), "a comment");
}

static void holes(void)
{
    static const char gap[] = "d,a\n2016-07-01 00:00,1\n2016-07-01 01:00,2\n2016-07-01 02:00,3\n2016-07-01 05:00,6\n"
                              "2016-07-01 06:00,8\n2016-07-01 07:00,9\n";
    static const char empty[] = "d,a,b\n2016-07-01,,1\n2016-07-02,2,\n2016-07-03,,\n2016-07-04,5,4\n2016-07-05,,3\n";
    const double hold[] = { 2, 1, 2, 1, 2, 1, 5, 4, 5, 3 }, line[] = { 2, 1, 2, 2, 3.5, 3, 5, 4, 5, 3 };
    taut_series_spec raw = { .columns = "a,b", .means = "0 0", .deviations = "1 1", .missing = TAUT_MISSING_HOLD };
    taut_series *s = read_as(empty, raw);
    for (int i = 0; i < 10; i++) CHECK(s->value[i] == hold[i], "held");
    taut_series_free(s);
    raw.missing = TAUT_MISSING_INTERPOLATE;
    s = read_as(empty, raw);
    for (int i = 0; i < 10; i++) CHECK_NEAR(s->value[i], line[i], 1e-14, "on a line");
    taut_series_free(s);
    refused("d,a,b\n2016-07-01,,1\n2016-07-02,,2\n", (taut_series_spec){ .missing = TAUT_MISSING_HOLD },
            "column a has no value");

    taut_series_spec one = { .columns = "a", .means = "0", .deviations = "1" };
    refused(gap, one, "1 gap in time: lines 4 and 5 are 10800 s apart, where most are 3600 s");
    one.gaps = TAUT_GAPS_JOIN;
    s = read_as(gap, one);
    CHECK(s->rows == 6 && s->value[3] == 6, "joined");
    taut_series_free(s);
    one.gaps = TAUT_GAPS_FILL;
    refused(gap, one, "data.gaps = fill wants data.missing");
    one.missing = TAUT_MISSING_INTERPOLATE;
    s = read_as(gap, one);
    CHECK(s->rows == 8, "filled");
    for (int i = 0; i < 7; i++) CHECK_NEAR(s->value[i], i < 6 ? i + 1 : 8, 1e-14, "on a line");
    CHECK_NEAR(s->mark[4 * 4], 4.0 / 23 - 0.5, 1e-15, "with its hour");
    taut_series_free(s);
    refused("d,a\n2016-07-01 00:00,1\n2016-07-01 01:00,2\n2016-07-01 02:00,3\n2016-07-01 03:30,6\n", one,
            "lines 4 and 5 are no whole number of steps apart");
    refused("d,a\n2016-07-01 00:00,1\n2016-07-01 01:00,2\n9999-07-01 02:00,3\n", one, "more rows are missing");
}

/* Rows of one time: refused, or one of them is kept; what the rules did is said in a line. */
static void repeats(void)
{
    static const char twice[] = "d,a\n2016-07-01 00:00,1\n2016-07-01 01:00,\n2016-07-01 01:00,3\n2016-07-01 01:00,4\n"
                                "2016-07-01 02:00,8\n2016-07-01 05:00,9\n";
    char note[TAUT_SERIES_NOTE];
    taut_series_spec one = { .columns = "a", .means = "0", .deviations = "1", .missing = TAUT_MISSING_INTERPOLATE };
    refused(twice, one, "line 4: 2016-07-01 01:00 is the time of the line before, too (data.repeats");
    one.repeats = TAUT_REPEATS_FIRST;
    refused(twice, one, "1 gap in time: lines 6 and 7 are");
    one.gaps = TAUT_GAPS_FILL;
    taut_series *s = read_as(twice, one);
    CHECK(s->rows == 6 && s->empty == 1 && s->value[2] == 8, "the first of three is kept");
    CHECK_NEAR(s->value[1], 4.5, 1e-14, "and its empty cell filled");
    CHECK(strcmp(taut_series_note(note, s, &one),
                 "1 empty cell interpolated, 1 gap filled with 2 rows, 2 rows of a time "
                 "that was there left out") == 0,
          note);
    taut_series_free(s);
    one.repeats = TAUT_REPEATS_LAST;
    one.gaps = TAUT_GAPS_JOIN;
    s = read_as(twice, one);
    CHECK(s->rows == 4 && s->empty == 0 && s->value[1] == 4, "the last of three is kept");
    CHECK(strcmp(taut_series_note(note, s, &one), "1 gap joined, 2 rows of a time that comes again left out") == 0,
          note);
    taut_series_free(s);
    one.newest = 3; /* of the end of the file, more rows are read where some may be left out */
    s = read_as(twice, one);
    CHECK(s->rows >= 3 && s->value[s->rows - 3] == 4, "the newest three times");
    taut_series_free(s);
    one.newest = 0;
    refused("d,a\n2016-07-01 00:00,1\n2016-07-01 00:00,2\n", one, "at least two times");
    refused("d,a\n2016-07-01 02:00,1\n2016-07-01 01:00,2\n2016-07-01 03:00,2\n", one,
            "line 3: 2016-07-01 01:00 is earlier");
}

/* The electricity series as it is published (semicolons, quotes, decimal commas, no name for the date) and as papers share it. */
static void electricity(void)
{
    static const char first[] = "\"\";\"MT_001\";\"MT_002\"\n\"2011-01-01 00:15:00\";0,0;3,80710659898477\n"
                                "\"2011-01-01 00:30:00\";1,5;2\n\"2011-01-01 00:45:00\";2,25;1\n";
    static const char later[] = "date,MT_001,MT_002\n2011-01-01 00:15:00,0.0,3.80710659898477\n"
                                "2011-01-01 00:30:00,1.5,2\n2011-01-01 00:45:00,2.25,1\n";
    taut_series *a = read_as(first, (taut_series_spec){ 0 }), *b = read_as(later, (taut_series_spec){ 0 }), *c = NULL;
    same(a, b, "ECL");
    CHECK(a->marks == 5 && strcmp(a->name[1], "MT_002") == 0, "quarters of an hour");
    taut_series_free(a);
    taut_series_free(b);
    CHECK(mkdir(temp_path("ecl"), 0777) == 0, "a folder");
    temp_text("ecl/ECL.csv", later);
    const char *before = getenv("TAUT_DATA");
    char *kept = before ? strdup(before) : NULL;
    setenv("TAUT_DATA", temp_dir, 1);
    CHECK(taut_series_open(&c, &(taut_series_spec){ .source = "ECL" }) == TAUT_OK && c->cols == 2, "by its name");
    taut_series_free(c);
    if (kept) setenv("TAUT_DATA", kept, 1);
    free(kept);
}

/* What papers share, by name. */
static void by_their_names(void)
{
    static const char *const all[] = { "ETTh1", "ETTh2", "ETTm1", "ETTm2", "WTH" };
    for (int i = 0; i < 5; i++) {
        taut_series *s = NULL;
        if (taut_series_open(&s, &(taut_series_spec){ .source = all[i] })) continue; /* they may not be here */
        CHECK(s->cols == (i < 4 ? 7 : 12) && s->stride.count == (i == 2 || i == 3 ? 900 : 3600), all[i]);
        CHECK(i == 4 || s->end[0] == (i < 2 ? 8640 : 4 * 8640), "cut by months");
        taut_series_free(s);
    }
}

/* Each allocation fails once: a status, and nothing is left behind (the sanitizers look). */
static void memory(void)
{
    taut_series *s = NULL;
    const taut_series_spec spec = { .source = temp_text(
                                        "x.csv", "d;a;\"b\"\n1.7.2016;1,5;1\n2.7.2016;;2\n3.7.2016;3;\n5.7.2016;3;4\n"),
                                    .columns = "b,a",
                                    .targets = "a",
                                    .missing = TAUT_MISSING_INTERPOLATE,
                                    .gaps = TAUT_GAPS_FILL };
    taut_status status;
    long n = 0;
    do {
        taut_alloc_fail_at(++n);
        status = taut_series_open(&s, &spec);
        taut_alloc_fail_at(0);
        CHECK(!status || status == TAUT_NO_MEMORY, taut_last_error());
    } while (status && n < 1000);
    CHECK(n > 20 && s && s->rows == 5, "every allocation was made to fail");
    taut_series_free(s);
}

int main(void)
{
    test_begin();
    temp_begin();
    shapes();
    dates();
    steps_of_time();
    by_name();
    names();
    holes();
    repeats();
    electricity();
    by_their_names();
    memory();
    return test_end("tables", "shapes of files, dates, names, scales, holes");
}
