/* taut_forecast_file: the newest rows of any table of the same columns; and the band, attacked.
 *
 * Tables whose rows are off by the stated noise (in random directions, and uphill for a number of the forecast by the model's own
 * derivative) are written as files and forecast again: no number may leave the band.  A band that is narrower by the factor of
 * the best attack would be left: that factor is printed. */
#include <cjson/cJSON.h>
#include <taut.h>

#include "api/runs.h"
#include "base/config.h"
#include "base/number.h"
#include "base/rng.h"
#include "data/series.h"

enum { SEQ = 12, LABEL = 6, AHEAD = 4, COLS = 2, MARKS = 4, ROWS = 150, WIDE = COLS + MARKS };

static double table[ROWS][COLS], deviation[COLS];
static double worst; /* what an attack reached, of what is proved */

static void fill_table(void)
{
    for (int i = 0; i < ROWS; i++) {
        table[i][0] = 20 + 5 * sin(i / 3.0) + i % 7;
        table[i][1] = 1e4 + 300 * cos(i / 5.0) - i % 5;
    }
}

/* Rows from `first` on, moved by e (SEQ, COLS) standard deviations in the newest rows; columns in either order. */
static const char *write_table(const char *name, int first, const double *e, bool turned)
{
    static char text[ROWS * 100];
    char *p = text + sprintf(text, turned ? "load,note,when,temp\n" : "when,temp,load\n");
    for (int i = first; i < ROWS; i++) {
        double v[COLS];
        for (int c = 0; c < COLS; c++)
            v[c] = table[i][c] + (e && i >= ROWS - SEQ ? e[(i - ROWS + SEQ) * COLS + c] * deviation[c] : 0);
        const int day = 1 + i / 24, hour = i % 24;
        p += turned ? sprintf(p, "%.17g,\"a, b\",2016-07-%02dT%02d:00Z,%.17g\n", v[1], day, hour, v[0])
                    : sprintf(p, "2016-07-%02d %02d:00:00,%.17g,%.17g\n", day, hour, v[0], v[1]);
    }
    return temp_text(name, text);
}

static cJSON *forecast(const char *run, const char *csv, double noise)
{
    char *json = NULL;
    must(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv, .noise = noise)), "forecast");
    cJSON *o = cJSON_Parse(json);
    taut_string_free(json);
    return o;
}

static const cJSON *column(const cJSON *o, int c) { return cJSON_GetArrayItem(cJSON_GetObjectItem(o, "columns"), c); }
static double number(const cJSON *o, int c, const char *key, int row)
{
    const cJSON *v = cJSON_GetArrayItem(cJSON_GetObjectItem(column(o, c), key), row);
    if (cJSON_IsString(v)) return strtod(v->valuestring, NULL);
    return v ? v->valuedouble : NAN;
}

static void train(const char *run, const char *attention, const char *more)
{
    char source[1200], kind[64];
    snprintf(source, sizeof source, "data.source=%s", write_table("own.csv", 0, NULL, false));
    snprintf(kind, sizeof kind, "model.attention=%s", attention);
    const char *const set[] = { source,
                                kind,
                                "model.width=8",
                                "model.heads=2",
                                "model.mlp=8",
                                "model.depth=1",
                                "model.seq=12",
                                "model.label=6",
                                "model.ahead=4",
                                "train.steps=8",
                                "train.batch=4",
                                "train.warmup=2",
                                "model.norm=none",
                                "train.eval_every=0",
                                "constrain.method=normalise",
                                "constrain.cap=0.7",
                                more };
    taut_result r;
    must(taut_train_recipe(&r, "recipes/forecast-waves.ini", run,
                           OPTIONS(taut_train_options, .overrides = set, .count = more ? 17 : 16, .overwrite = 1)),
         "train a forecaster");
}

static void read_deviations(const char *run)
{
    char path[1200];
    taut_config *cfg = NULL;
    snprintf(path, sizeof path, "%s/recipe.ini", run);
    must(taut_config_open(&cfg, path), "its recipe");
    CHECK(taut_number_list(deviation, COLS, taut_config_text(cfg, "data.deviations", "")) == COLS, "deviations");
    taut_config_free(cfg);
}

/* The window of the newest rows, as the model reads it. */
static void read_window(double x[(LABEL + AHEAD + SEQ) * WIDE], const char *run, const char *csv)
{
    char path[1200];
    taut_config *cfg = NULL;
    taut_series *s = NULL;
    snprintf(path, sizeof path, "%s/recipe.ini", run);
    must(taut_config_open(&cfg, path), "its recipe");
    const taut_series_spec spec = { .source = csv,
                                    .newest = SEQ,
                                    .columns = "temp,load",
                                    .means = taut_config_text(cfg, "data.means", ""),
                                    .deviations = taut_config_text(cfg, "data.deviations", "") };
    must(taut_series_open(&s, &spec), "rows");
    taut_series_window(x, s, SEQ, LABEL, AHEAD);
    taut_series_free(s);
    taut_config_free(cfg);
}

/* The noise that moves number (row, c) of the forecast most, to first order: a step of `size` per row up its gradient. */
static void uphill(double *e, const char *run, const char *csv, int row, int c, int outs, double size)
{
    taut_net *net = NULL;
    double x[(LABEL + AHEAD + SEQ) * WIDE], gx[(LABEL + AHEAD + SEQ) * WIDE], gy[AHEAD * COLS] = { 0 };
    read_window(x, run, csv);
    must(taut_net_open(&net, run, OPTIONS(taut_open_options, .kernels = "ref")), "open");
    gy[row * outs + c] = 1;
    must(taut_net_vjp(net, gx, gy, &(taut_inputs){ 1, LABEL + AHEAD + SEQ, NULL, x }), "vjp");
    taut_net_free(net);
    for (int i = 0; i < SEQ; i++) {
        double square = 0;
        for (int k = 0; k < COLS; k++) {
            double g = gx[(LABEL + AHEAD + i) * WIDE + k];
            if (i >= SEQ - LABEL) g += gx[(i - SEQ + LABEL) * WIDE + k];
            e[i * COLS + k] = g;
            square += g * g;
        }
        for (int k = 0; k < COLS; k++) e[i * COLS + k] *= square > 0 ? size / sqrt(square) : 0;
    }
}

/* The band is the certificate's: its constant for rows as long as the window's, times the noise, and rounding, in the
 * column's units. */
static void agree(const cJSON *own, const char *run, const char *csv, double noise, int outs)
{
    double x[(LABEL + AHEAD + SEQ) * WIDE], rows = 0;
    taut_cert *cert = NULL;
    taut_cert_facts f;
    read_window(x, run, csv);
    for (int i = 0; i < LABEL + AHEAD + SEQ; i++) {
        double square = 0;
        for (int k = 0; k < WIDE; k++) square += x[i * WIDE + k] * x[i * WIDE + k];
        rows = fmax(rows, sqrt(square));
    }
    must(taut_certify_file(&cert, run,
                           OPTIONS(taut_certify_options, .metric = TAUT_TOKENS, .room = noise, .rows = rows)),
         "certify");
    must(taut_cert_look(cert, &f), "look");
    taut_cert_free(cert);
    for (int c = 0; c < outs; c++) {
        const double moves = cJSON_GetNumberValue(cJSON_GetObjectItem(column(own, c), "moves"));
        const double wanted = (f.lip * noise + f.defect + 2 * f.round) * deviation[outs == 1 ? 1 : c];
        CHECK_LE(wanted * (1 - 1e-12), moves, "no less than is proved");
        CHECK_LE(moves, wanted * (1 + 1e-6) + 1e-6, "and no more");
    }
}

/* Every number of the forecast of the moved table is in the band of the table itself. */
static void hold(const cJSON *own, const char *run, const double *e, int outs)
{
    cJSON *o = forecast(run, write_table("moved.csv", 0, e, false), 0);
    for (int row = 0; row < AHEAD; row++)
        for (int c = 0; c < outs; c++) {
            const double v = number(o, c, "values", row), said = number(own, c, "values", row);
            CHECK(number(own, c, "low", row) <= v && v <= number(own, c, "high", row), "inside the band");
            const double proved = cJSON_GetNumberValue(cJSON_GetObjectItem(column(own, c), "moves"));
            worst = fmax(worst, fabs(v - said) / proved);
        }
    cJSON_Delete(o);
}

static void attack(const char *run, const char *csv, double noise, int outs)
{
    double e[SEQ * COLS];
    cJSON *own = forecast(run, csv, noise);
    CHECK(cJSON_IsTrue(cJSON_GetObjectItem(own, "proved")), "a finite band");
    CHECK(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(own, "about")), "rows") != NULL, "and what it is about");
    agree(own, run, csv, noise, outs);
    for (int row = 0; row < AHEAD; row++)
        for (int c = 0; c < outs; c++) {
            CHECK(number(own, c, "low", row) < number(own, c, "values", row), "low");
            CHECK(number(own, c, "high", row) > number(own, c, "values", row), "high");
            for (int sign = -1; sign <= 1; sign += 2) {
                uphill(e, run, csv, row, c, outs, sign * noise * (1 - 1e-9));
                hold(own, run, e, outs);
            }
        }
    for (int i = 0; i < effort(20); i++) {
        for (int t = 0; t < SEQ; t++) {
            const double angle = 6.283185307179586 * rng_unit();
            e[t * COLS] = noise * (1 - 1e-9) * cos(angle);
            e[t * COLS + 1] = noise * (1 - 1e-9) * sin(angle);
        }
        hold(own, run, e, outs);
    }
    cJSON_Delete(own);
}

/* Any table of these columns, long or short, in any order, says the same; dates go on. */
static void tables(const char *run)
{
    cJSON *own = forecast(run, write_table("own.csv", 0, NULL, false), 0.01);
    CHECK(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(own, "last")), "2016-07-07 05:00:00") == 0, "the newest row");
    const cJSON *dates = cJSON_GetObjectItem(own, "dates");
    CHECK(cJSON_GetArraySize(dates) == AHEAD, "rows ahead");
    CHECK(strcmp(cJSON_GetArrayItem(dates, 3)->valuestring, "2016-07-07 09:00:00") == 0, "dates go on");
    for (int i = 0; i < 2; i++) {
        cJSON *o = forecast(run, write_table("other.csv", i ? ROWS - SEQ : 40, NULL, i == 1), 0.01);
        for (int row = 0; row < AHEAD; row++)
            for (int c = 0; c < COLS; c++)
                CHECK(number(o, c, "values", row) == number(own, c, "values", row) &&
                          number(o, c, "low", row) == number(own, c, "low", row) &&
                          number(o, c, "high", row) == number(own, c, "high", row),
                      "the same bits");
        if (i == 1)
            CHECK(strcmp(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "dates"), 0)->valuestring,
                         "2016-07-07 06:00:00+00:00") == 0,
                  "in its zone");
        cJSON_Delete(o);
    }
    /* in other units the scale of the training rows stays: what is read is another table */
    for (int i = 0; i < ROWS; i++) table[i][0] += 1;
    cJSON *o = forecast(run, write_table("other.csv", 0, NULL, false), 0);
    CHECK(number(o, 0, "values", 0) != number(own, 0, "values", 0), "not standardised by its own mean");
    cJSON_Delete(o);
    cJSON_Delete(own);
    fill_table();
}

static void refused(const char *run)
{
    char *json = NULL;
    const char *csv = write_table("short.csv", ROWS - SEQ + 1, NULL, false);
    CHECK(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv)) == TAUT_BAD_DATA, "too short");
    CHECK(strstr(taut_last_error(), "11 rows") != NULL, taut_last_error());
    csv = temp_text("less.csv", "when,temp\n2016-07-01,1\n2016-07-02,2\n");
    CHECK(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv)) == TAUT_BAD_DATA && !json,
          "less");
    CHECK(strstr(taut_last_error(), "no column 'load'") != NULL, taut_last_error());
}

/* Holes in a table that the training table did not have: rules for this one, and for nothing else. */
static void holes(const char *run)
{
    static char text[4096];
    char *json = NULL, *p = text + sprintf(text, "when,temp,load\n");
    for (int i = 0; i < 40; i++)
        if (i != 33)
            p += sprintf(p, i == 35 ? "2016-07-%02d %02d:00:00,,10000\n" : "2016-07-%02d %02d:00:00,20,10000\n",
                         1 + i / 24, i % 24);
    const char *csv = temp_text("holes.csv", text);
    const char *const one[] = { "data.missing=hold" }, *const both[] = { "data.missing=hold", "data.gaps=fill" },
                      *const other[] = { "data.columns=temp" };
    CHECK(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv)), "refused");
    CHECK(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv, .overrides = one, .count = 1)),
          "the gap is left");
    CHECK(strstr(taut_last_error(), "data.gaps") != NULL, taut_last_error());
    CHECK(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv, .overrides = other, .count = 1)) ==
              TAUT_BAD_CONFIG,
          "columns are the model's");
    CHECK(strstr(taut_last_error(), "data.missing, gaps") != NULL, taut_last_error());
    must(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .data = csv, .overrides = both, .count = 2)),
         "both rules");
    CHECK(strstr(json, "\"repaired\"") != NULL, "it says what was done");
    taut_string_free(json);
}

int main(void)
{
    static const char *const kinds[] = { "softmax", "position", "l2", "attlip" };
    test_begin();
    temp_begin();
    fill_table();
    char run[1100];
    for (int i = 0; i < 4; i++) {
        snprintf(run, sizeof run, "%s", temp_path(kinds[i]));
        train(run, kinds[i], i == 1 ? "data.targets=load" : NULL);
        read_deviations(run);
        const char *csv = write_table("own.csv", 0, NULL, false);
        attack(run, csv, i % 2 ? 0.5 : 0.01, i == 1 ? 1 : COLS);
        if (i == 0) tables(run);
        if (i == 0) refused(run);
        if (i == 0) holes(run);
    }
    CHECK(worst > 1e-4, "an attack moved a forecast");
    snprintf(run, sizeof run, "%s", temp_path("clustered"));
    train(run, "clustered", "model.clusters=4");
    cJSON *o = forecast(run, write_table("own.csv", 0, NULL, false), 0.01);
    CHECK(cJSON_IsFalse(cJSON_GetObjectItem(o, "proved")) && cJSON_GetObjectItem(o, "no_constant"),
          "no band, in words");
    CHECK(number(o, 0, "low", 0) == -INFINITY && number(o, 1, "high", 3) == INFINITY, "and in numbers");
    cJSON_Delete(o);
    return test_end("forecast", "bands of 4 attentions; found / proved at most %.3f", worst);
}
