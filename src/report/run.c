#include "report/run.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sha256.h"

enum { NAME = 256 };

/* What a run is called: "x" for runs/x and runs/x/; "." is called what the folder is. */
static const char *base_name(char name[NAME], const char *folder)
{
    char real[PATH_MAX];
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/') len--;
    const bool dots = folder[len - 1] == '.' && (len == 1 || strchr("./", folder[len - 2]));
    if (dots && realpath(folder, real)) folder = real, len = strlen(real);
    size_t from = len;
    while (from > 0 && folder[from - 1] != '/') from--;
    snprintf(name, NAME, "%.*s", (int)(len - from), folder + from);
    return name;
}

static const char *in_folder(char path[4096], const char *folder, const char *name)
{
    snprintf(path, 4096, "%s/%s", folder, name);
    return path;
}

cJSON *taut_report_json(const char *folder, const char *name, bool *broken)
{
    char path[4096], *text = NULL;
    size_t len = 0;
    if (!taut_file_exists(in_folder(path, folder, name))) return NULL;
    cJSON *o = taut_file_read(&text, &len, path) ? NULL : cJSON_ParseWithLength(text, len);
    free(text);
    *broken = !cJSON_IsObject(o);
    if (!*broken) return o;
    cJSON_Delete(o);
    return NULL;
}

double taut_report_number(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    if (cJSON_IsNumber(v)) return v->valuedouble;
    return cJSON_IsString(v) && strcmp(v->valuestring, "inf") == 0 ? INFINITY : NAN;
}

double taut_report_raised(double v)
{
    char word[32];
    return isnan(v) ? v : strtod(taut_number_up(word, v), NULL);
}

double taut_report_lowered(double v)
{
    char word[32];
    return isnan(v) ? v : strtod(taut_number_down(word, v), NULL);
}

const char *taut_report_measure(const cJSON *o)
{
    const char *norm = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "norm")),
               *units = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "units"));
    return taut_about_measure(norm && strcmp(norm, "flat") == 0, units && strcmp(units, "rms") == 0);
}

enum { FACTS = 40, FACT_LEN = TAUT_ABOUT_ROOM };

/* The plain members of an object, as name and value. */
static void facts_of(taut_page *p, const cJSON *o)
{
    static const char *const answer[] = { "no", "yes" };
    const char *pair[FACTS][2];
    char word[FACTS][FACT_LEN];
    int count = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, o)
    {
        if (count == FACTS) break;
        pair[count][0] = v->string;
        pair[count][1] = word[count];
        if (cJSON_IsNumber(v) && strcmp(v->string, "bound") == 0)
            taut_number_up(word[count], v->valuedouble);
        else if (cJSON_IsNumber(v))
            snprintf(word[count], FACT_LEN, "%.8g", v->valuedouble);
        else if (cJSON_IsString(v))
            snprintf(word[count], FACT_LEN, "%s", v->valuestring);
        else if (cJSON_IsBool(v))
            pair[count][1] = answer[cJSON_IsTrue(v)];
        else
            continue;
        count++;
    }
    taut_page_facts(p, "the run in numbers, and what it ran with", count, (const char *const(*)[2])pair);
}

static void settings(taut_page *p, const char *folder)
{
    char path[4096], *text = NULL;
    size_t len = 0;
    if (!taut_file_exists(in_folder(path, folder, "recipe.ini"))) return;
    if (taut_file_read(&text, &len, path)) {
        taut_page_say(p, "recipe.ini cannot be read.");
        return;
    }
    taut_markup_add(&p->text, "<details><summary>every setting</summary><pre class=\"scroll\">");
    taut_markup_escape(&p->text, text);
    taut_markup_add(&p->text, "</pre></details>\n");
    free(text);
}

/* Whether an answer names a model, by its SHA-256, that is not the one in the folder: what is proved of another file is
 * nothing about this one.  Where there is no model to compare with, what there is is shown. */
static bool of_another(const cJSON *answer, const char *folder)
{
    char path[4096], hex[65];
    uint64_t bytes;
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(answer, "model");
    const char *named = cJSON_GetStringValue(cJSON_IsObject(model) ? cJSON_GetObjectItemCaseSensitive(model, "sha256")
                                                                   : model);
    if (!named || strlen(named) != 64 || !taut_file_exists(in_folder(path, folder, "model.safetensors"))) return false;
    return taut_sha256_file(hex, &bytes, path) || strcmp(hex, named) != 0;
}

cJSON *taut_report_own(const char *folder, const char *name, bool *broken, bool *other)
{
    cJSON *answer = taut_report_json(folder, name, broken);
    *other = of_another(answer, folder);
    if (!*other) return answer;
    cJSON_Delete(answer);
    return NULL;
}

/* The files of a run, each with what draws it, in the order of the page. */
static const struct {
    const char *file;
    void (*draw)(taut_page *, const cJSON *, const char *run);
} parts[] = { { "certificate.json", taut_report_certificate }, { "certify.json", taut_report_certified },
              { "attack.json", taut_report_attacked },         { "network.json", taut_report_network },
              { "forecast.json", taut_report_forecast },       { "measure.json", taut_report_measured },
              { "attention.json", taut_report_measured },      { "growth.json", taut_report_measured } };
enum { PARTS = sizeof parts / sizeof *parts, CERTIFICATE = 0, CERTIFY, ATTACK, NETWORK, FORECAST };

typedef struct {
    taut_card card[12];
    char word[12][32], name[12][128];
    int count;
} cards;

/* A number that is there becomes a card. */
static void deal(cards *c, const char *name, const char *format, double v)
{
    if (isnan(v)) return;
    snprintf(c->word[c->count], sizeof c->word[0], format, v);
    c->card[c->count] = (taut_card){ c->word[c->count], name };
    c->count++;
}

/* A constant with its norm and units, and the target that it was held under where it has one. */
static void deal_constant(cards *c, const cJSON *o, const char *key)
{
    const double target = taut_report_number(o, "target"), v = taut_report_number(o, key);
    char under[64] = "", number[32];
    if (isnan(v)) return;
    if (target > 0) snprintf(under, sizeof under, "; target %s", taut_number_print(number, target));
    taut_number_up(c->word[c->count], v);
    snprintf(c->name[c->count], sizeof c->name[0], "proved Lipschitz constant (%s%s)", taut_report_measure(o), under);
    c->card[c->count] = (taut_card){ c->word[c->count], c->name[c->count] };
    c->count++;
}

/* stale: the summary is about another model than the folder has now. */
static void show_cards(taut_page *p, const cJSON *summary, bool stale, cJSON *const *part, double wish)
{
    cards c = { .count = 0 };
    const double mae = taut_report_number(summary, "val_mae");
    deal(&c, "accuracy on examples it has not seen", "%.1f %%", 100 * taut_report_number(summary, "val_acc"));
    deal(&c, isnan(mae) ? "validation loss" : "mean squared error, validation", "%.3f",
         taut_report_number(summary, "val_loss"));
    if (!stale) deal_constant(&c, summary, "bound");
    deal_constant(&c, part[CERTIFICATE], "lip");
    const double radius = taut_report_radius(part[CERTIFY], wish);
    char within[64], word[32];
    snprintf(within, sizeof within, "right, and proved to stay so within %s", taut_number_print(word, radius));
    if (!isnan(radius)) deal(&c, within, "%.1f %%", 100 * taut_report_share(part[CERTIFY], radius));
    deal(&c, "steepest slope found (l2)", "%.4g", taut_report_number(part[NETWORK], "max"));
    if (part[FORECAST] && !isnan(taut_report_number(part[FORECAST], "moves"))) {
        taut_number_up(c.word[c.count], taut_report_number(part[FORECAST], "moves"));
        c.card[c.count] = (taut_card){ c.word[c.count], "a forecast can move by, proved" };
        c.count++;
    }
    deal(&c, "moved so far by noise that was found", "%.4g", taut_report_number(part[FORECAST], "found"));
    deal(&c, "attacks that beat a certificate", "%.0f", taut_report_number(part[ATTACK], "contradictions"));
    deal(&c, "weights", "%.0f", taut_report_number(summary, "weights"));
    deal(&c, "seconds of training", "%.0f", taut_report_number(summary, "seconds"));
    taut_page_cards(p, c.count, c.card);
}

void taut_report_run(taut_page *p, const char *folder, double radius)
{
    char run[NAME];
    bool broken = false, damaged[PARTS] = { false }, other[PARTS];
    cJSON *part[PARTS], *summary = taut_report_json(folder, "summary.json", &broken);
    const bool stale = of_another(summary, folder);
    for (int i = 0; i < PARTS; i++) part[i] = taut_report_own(folder, parts[i].file, &damaged[i], &other[i]);
    taut_page_section(p, base_name(run, folder));
    bool torn = false; /* then it was not checked */
    cJSON *check = taut_report_json(folder, "check.json", &torn);
    taut_report_conclusion(p, folder, part[CERTIFICATE], part[CERTIFY], check, radius);
    show_cards(p, summary, stale, part, radius);
    if (!summary)
        taut_page_say(p, broken ? "summary.json is damaged." : "This run has not finished: there is no summary.json.");
    else if (stale)
        taut_page_say(p, "This run has been trained further since summary.json was written.");
    for (int i = 0; i < PARTS; i++) {
        if (part[i]) parts[i].draw(p, part[i], run);
        if (i == CERTIFY) taut_report_moved(p, part[i], run, taut_report_radius(part[i], radius));
        if (damaged[i]) taut_page_say(p, "%s is damaged.", parts[i].file);
        if (other[i])
            taut_page_say(p, "%s is about another model than model.safetensors, and is not shown.", parts[i].file);
        cJSON_Delete(part[i]);
    }
    taut_report_curves(p, folder, run);
    if (summary) facts_of(p, summary);
    settings(p, folder);
    cJSON_Delete(check);
    cJSON_Delete(summary);
}

typedef struct {
    cJSON *cert, *summary; /* of the folder's own model; NULL: there is none */
    char name[NAME];
} point;

/* What the constants are measured in: that of the targets where all runs have one and the same, else that of the certificates;
 * NULL: certificates of different norms. */
static const char *common_measure(const point *run, int runs, bool targets)
{
    const char *same = NULL;
    for (int i = 0; i < runs; i++) {
        const cJSON *o = targets ? run[i].summary : run[i].cert;
        if (!run[i].cert || !run[i].summary) continue;
        if (targets && !(taut_report_number(o, "target") > 0)) return NULL;
        if (same && strcmp(same, taut_report_measure(o)) != 0) return NULL;
        same = taut_report_measure(o);
    }
    return same;
}

/* One point per run: a number of its summary, times `unit`, against its proved constant.  Nothing for fewer than two. */
static void frontier(taut_page *p, int runs, const point *run, const char *key, double unit, const char *y_name,
                     const char *about)
{
    double *x = taut_calloc((size_t)runs, sizeof *x), *y = taut_calloc((size_t)runs, sizeof *y);
    const char **label = taut_calloc((size_t)runs, sizeof *label), *target = common_measure(run, runs, true),
               *measure = target ? target : common_measure(run, runs, false);
    char name[64], x_name[96];
    int count = 0;
    for (int i = 0; x && y && label && i < runs; i++) {
        x[count] = taut_report_raised(target ? taut_report_number(run[i].summary, "bound")
                                             : taut_report_number(run[i].cert, "lip"));
        y[count] = unit * taut_report_number(run[i].summary, key);
        label[count] = run[i].name;
        if (run[i].cert && run[i].summary && !isnan(y[count])) count++;
    }
    p->text.failed |= !x || !y || !label;
    snprintf(name, sizeof name, "frontier-%s", key);
    snprintf(x_name, sizeof x_name, "proved Lipschitz constant (%s)", measure ? measure : "l2, each in its own norm");
    if (count > 1 && !p->text.failed)
        taut_page_plot(
            p, name, "What a bound costs", about,
            &(taut_plot){ x_name, y_name, true, false, { { "runs", x, y, label, count, TAUT_DRAW_POINTS } }, 1 });
    free(x);
    free(y);
    free(label);
}

void taut_report_frontier(taut_page *p, int runs, char *const *folder)
{
    point *run = taut_calloc((size_t)runs, sizeof *run);
    bool broken, other;
    p->text.failed |= !run;
    for (int i = 0; run && i < runs; i++) {
        run[i].cert = taut_report_own(folder[i], "certificate.json", &broken, &other);
        run[i].summary = taut_report_own(folder[i], "summary.json", &broken, &other);
        base_name(run[i].name, folder[i]);
    }
    if (run) {
        frontier(p, runs, run, "val_loss", 1, "validation loss",
                 "One point per run: further left is a smaller proved constant (each for the inputs that its proof "
                 "states), further down a model that errs less; the best runs lie on the border at the bottom left.");
        frontier(
            p, runs, run, "val_acc", 100, "accuracy, %",
            "The same runs by the share of their answers that are right: the best lie on the border at the top left.");
    }
    for (int i = 0; run && i < runs; i++) {
        cJSON_Delete(run[i].cert);
        cJSON_Delete(run[i].summary);
    }
    free(run);
}
