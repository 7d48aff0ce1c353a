/* Axes, escaping, and charts of numbers that cannot be drawn. */
#include "harness.h"

#include "base/alloc.h"
#include "report/axis.h"
#include "report/chart.h"
#include "report/run.h"

static taut_axis axis(bool log, double a, double b)
{
    taut_axis x = taut_axis_start(log);
    taut_axis_see(&x, a);
    taut_axis_see(&x, b);
    taut_axis_finish(&x, 0, 100);
    return x;
}

static void axes(void)
{
    for (case_no = 0; case_no < effort(2000); case_no++) {
        const bool log = rng_int(0, 1);
        const double a = (log ? 1 : rng_pm()) * pow(10, 12 * rng_pm()), b = a * (1 + 1e3 * rng_unit() * rng_unit());
        const taut_axis x = axis(log, a, b);
        double tick[TAUT_TICKS];
        const int n = taut_axis_ticks(&x, tick);
        CHECK(x.lo < x.hi, "an axis has a length");
        CHECK_LE(x.lo, fmin(a, b) * (1 + (a > 0 ? 1e-9 : -1e-9)), "the axis starts before the data");
        CHECK_LE(fmax(a, b) * (1 - (b > 0 ? 1e-9 : -1e-9)), x.hi, "the axis ends after the data");
        CHECK(n >= 2 && n <= TAUT_TICKS, "some ticks, not too many");
        for (int i = 0; i < n; i++) {
            const double at = taut_axis_pixel(&x, tick[i]);
            CHECK(at > -1e-6 && at < 100 + 1e-6, "a tick lies on its axis");
            CHECK(i == 0 || tick[i] > tick[i - 1], "ticks rise");
        }
    }
    const double ends[][2] = { { 1e-290, 1e290 }, { -1e300, 1e300 }, { 1e-300, 1e300 },
                               { -1e308, 1e308 }, { 1e308, 1e308 },  { 5e-324, 1 } };
    for (case_no = 0; case_no < 12; case_no++) {
        const taut_axis x = axis(case_no % 2, ends[case_no / 2][0], ends[case_no / 2][1]);
        for (int i = 0; i < 2; i++) {
            const double v = ends[case_no / 2][i], at = taut_axis_shows(&x, v) ? taut_axis_pixel(&x, v) : 50;
            CHECK(x.lo < x.hi && at > -1e-6 && at < 100 + 1e-6,
                  "the largest and the smallest numbers lie on their axis");
        }
    }
    char word[24];
    taut_axis_word(word, 1e8);
    CHECK(strcmp(word, "1e8") == 0, "1e8");
    taut_axis_word(word, 2.5e-6);
    CHECK(strcmp(word, "2.5e-6") == 0, "2.5e-6");
    taut_axis_word(word, 1e-300);
    CHECK(strcmp(word, "1e-300") == 0, "1e-300");
    double taken = -INFINITY;
    CHECK(taut_axis_room(&taken, 10, "0.25") && !taut_axis_room(&taken, 30, "0.3") && taut_axis_room(&taken, 60, "0.3"),
          "a word stands where there is room");
    taut_axis_word(word, 0.25);
    CHECK(strcmp(word, "0.25") == 0, "0.25");
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) n++;
    return n;
}

static void strange_numbers(void)
{
    const double x[] = { 1, 2, 3, 4, 5 }, y[] = { 1, NAN, -3, INFINITY, 5 };
    taut_plot plot = { "a<b", "\"c\" & d", false, true, { { "it's", x, y, NULL, 5, TAUT_DRAW_LINE } }, 1 };
    taut_markup svg = { 0 }, table = { 0 };
    taut_plot_svg(&svg, &plot);
    taut_plot_table(&table, &plot);
    CHECK(count_of(svg.data, "<circle") == 2, "on a log axis only what is positive and finite is drawn");
    CHECK(count_of(table.data, "<tr>") == 6, "the table has every point");
    CHECK(!strstr(svg.data, "nan") && !strstr(svg.data, "inf"), "no coordinate is NaN");
    CHECK(strstr(svg.data, "a&lt;b") && strstr(svg.data, "&quot;c&quot; &amp; d") && strstr(svg.data, "it&#39;s"),
          "escaped");
    taut_markup_free(&svg);
    taut_markup_free(&table);
    plot.series[0].count = 0;
    taut_plot_svg(&svg, &plot);
    CHECK(strstr(svg.data, "</svg>"), "a plot of nothing is a frame");
    taut_markup_free(&svg);

    const char *const row[] = { "one", "two", "three" };
    const double value[] = { 0.1, INFINITY, NAN };
    const taut_bars bars = { "layer", "constant", true, 3, row, value };
    taut_bars_svg(&svg, &bars);
    CHECK(count_of(svg.data, "<rect") == 3 && !strstr(svg.data, "width=\"-") && !strstr(svg.data, "\"nan"),
          "three bars");
    taut_markup_free(&svg);

    const double cell[] = { 0, 1, NAN, INFINITY, 1e9, 2 };
    const taut_heat heat = { "layer", "head", "constant", 2, 3, cell };
    taut_heat_svg(&svg, &heat);
    CHECK(count_of(svg.data, "<rect") == 6 && !strstr(svg.data, "\"nan") && !strstr(svg.data, "\"-nan"), "six cells");
    taut_markup_free(&svg);
}

/* Charts print six digits: of a bound that was raised and a radius that was lowered they show all. */
static void six_digits(void)
{
    char word[32];
    for (case_no = 0; case_no < effort(5000); case_no++) {
        const double v = pow(10, 290 * rng_pm()), more = taut_report_raised(v), less = taut_report_lowered(v);
        snprintf(word, sizeof word, "%.6g", more);
        CHECK(v <= more && strtod(word, NULL) == more, "raised");
        snprintf(word, sizeof word, "%.6g", less);
        CHECK(less <= v && strtod(word, NULL) == less, "lowered");
        CHECK_LE(more - less, 1.1e-5 * v, "and near");
    }
    CHECK(taut_report_raised(INFINITY) == INFINITY && isnan(taut_report_lowered(NAN)), "what is no number");
}

static void out_of_memory(void)
{
    taut_markup t = { 0 };
    taut_alloc_fail_at(1);
    taut_markup_add(&t, "%d", 1);
    taut_alloc_fail_at(0);
    taut_markup_add(&t, "%d", 2);
    CHECK(t.failed && t.len == 0, "a failure is remembered");
    taut_markup_free(&t);
}

int main(void)
{
    test_begin();
    axes();
    strange_numbers();
    six_digits();
    out_of_memory();
    return test_end("report charts", "axes, strange numbers, rounding");
}
