#include "report/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

static const char *base_name(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash && slash[1] ? slash + 1 : folder;
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

void taut_report_up(char word[24], double v)
{
    double more = v;
    snprintf(word, 24, "%.6g", v);
    for (int i = 0; isfinite(v) && strtod(word, NULL) < v && i < 12; i++) {
        more *= 1 + 1e-6; /* a unit of the sixth digit is a millionth to a hundred-thousandth of the number */
        snprintf(word, 24, "%.6g", more);
    }
}

double taut_report_raised(double v)
{
    char word[24];
    taut_report_up(word, v);
    return strtod(word, NULL);
}

enum { FACTS = 40, FACT_LEN = 64 };

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
        if (cJSON_IsNumber(v))
            snprintf(word[count], FACT_LEN, "%.8g", v->valuedouble);
        else if (cJSON_IsString(v))
            snprintf(word[count], FACT_LEN, "%s", v->valuestring);
        else if (cJSON_IsBool(v))
            pair[count][1] = answer[cJSON_IsTrue(v)];
        else
            continue;
        count++;
    }
    taut_page_facts(p, count, (const char *const(*)[2])pair);
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
    taut_markup_add(&p->text, "<details><summary>every setting</summary><pre class=\"wide\">");
    taut_markup_escape(&p->text, text);
    taut_markup_add(&p->text, "</pre></details>\n");
    free(text);
}

void taut_report_run(taut_page *p, const char *folder)
{
    static const struct {
        const char *file;
        void (*draw)(taut_page *, const cJSON *, const char *run);
    } parts[] = { { "certificate.json", taut_report_certificate },
                  { "measure.json", taut_report_measured },
                  { "growth.json", taut_report_measured },
                  { "attack.json", taut_report_attacked } };
    const char *run = base_name(folder);
    bool broken = false;
    taut_page_section(p, run);
    cJSON *summary = taut_report_json(folder, "summary.json", &broken);
    if (summary)
        facts_of(p, summary);
    else
        taut_page_say(p, broken ? "summary.json is damaged." : "This run has not finished: there is no summary.json.");
    taut_report_curves(p, folder, run);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        broken = false;
        cJSON *o = taut_report_json(folder, parts[i].file, &broken);
        if (o) parts[i].draw(p, o, run);
        if (broken) taut_page_say(p, "%s is damaged.", parts[i].file);
        cJSON_Delete(o);
    }
    settings(p, folder);
    cJSON_Delete(summary);
}

void taut_report_frontier(taut_page *p, int runs, char *const *folder)
{
    double *x = taut_calloc((size_t)runs, sizeof *x), *y = taut_calloc((size_t)runs, sizeof *y);
    const char **label = taut_calloc((size_t)runs, sizeof *label);
    int count = 0;
    for (int i = 0; x && y && label && i < runs; i++) {
        bool broken = false;
        cJSON *cert = taut_report_json(folder[i], "certificate.json", &broken);
        cJSON *summary = taut_report_json(folder[i], "summary.json", &broken);
        if (cert && summary) {
            x[count] = taut_report_raised(taut_report_number(cert, "lip"));
            y[count] = taut_report_number(summary, "val_loss");
            label[count++] = base_name(folder[i]);
        }
        cJSON_Delete(cert);
        cJSON_Delete(summary);
    }
    p->text.failed |= !x || !y || !label;
    if (count > 1) {
        const taut_plot plot = { "proved Lipschitz constant",
                                 "validation loss",
                                 true,
                                 false,
                                 { { "runs", x, y, label, count, TAUT_DRAW_POINTS } },
                                 1 };
        taut_page_plot(p, "frontier", "What a bound costs",
                       "One point a run: further left is a smaller proved constant, further down a better model.",
                       &plot);
    }
    free(x);
    free(y);
    free(label);
}
