/* What a page says first of a run: one sentence that can be repeated without the rest, with nothing in it but what was
 * proved, and whether somebody has checked the proof. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/sha256.h"
#include "report/run.h"

static const char *word_of(const cJSON *o, const char *key)
{
    const char *word = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return word ? word : "";
}

/* How many examples are right and stay so when they are moved by less than `radius`. */
static int standing(const cJSON *list, double radius)
{
    int count = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, list) count += taut_report_number(one, "target") == taut_report_number(one, "predicted") &&
                                           taut_report_number(one, "radius") >= radius;
    return count;
}

bool taut_report_predicts(const cJSON *certify)
{
    return certify && strcmp(word_of(certify, "maps"), "embeddings to features") != 0;
}

double taut_report_radius(const cJSON *certify, double wish)
{
    static const double lead[] = { 5, 2, 1 };
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(certify, "examples");
    const int right = standing(list, 0);
    if (wish > 0) return wish;
    for (int e = 6; right && e >= -9; e--)
        for (int i = 0; i < 3; i++) {
            const double radius = lead[i] * pow(10, e);
            if (2 * standing(list, radius) >= right) return radius;
        }
    return NAN;
}

double taut_report_share(const cJSON *certify, double radius)
{
    const double all = taut_report_number(certify, "n_ex");
    return all > 0 ? standing(cJSON_GetObjectItemCaseSensitive(certify, "examples"), radius) / all : NAN;
}

/* The examples of which the sentence speaks are those of the certificate, with the same answers and radii. */
static bool same_examples(const cJSON *certify, const cJSON *cert)
{
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(certify, "examples");
    const cJSON *b = cJSON_GetObjectItemCaseSensitive(cert, "examples");
    if (!b || cJSON_GetArraySize(a) != cJSON_GetArraySize(b)) return false;
    for (a = a->child, b = b->child; a; a = a->next, b = b->next)
        if (taut_report_number(a, "radius") != taut_report_number(b, "radius") ||
            taut_report_number(a, "predicted") != taut_report_number(b, "predicted"))
            return false;
    return true;
}

/* check.json is about this very certificate. */
static bool about_this(const cJSON *check, const char *folder)
{
    char path[4096], hex[65];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/certificate.json", folder);
    return check && !taut_sha256_file(hex, &bytes, path) && strcmp(hex, word_of(check, "certificate")) == 0;
}

static void say_checked(taut_page *p, const char *folder, const cJSON *cert, const cJSON *certify, const cJSON *check)
{
    const cJSON *holds = cJSON_GetObjectItemCaseSensitive(check, "holds");
    if (!about_this(check, folder))
        taut_page_say(p, "Nobody has checked the proof of this yet: taut check RUN/certificate.json RUN.");
    else if (cJSON_IsFalse(holds))
        taut_page_say(p, "%s REFUTED the certificate on %s: %s.", word_of(check, "checker"), word_of(check, "date"),
                      word_of(check, "why"));
    else if (!cJSON_IsTrue(holds) || taut_report_number(check, "unknown") != 0)
        taut_page_say(p, "%s could not confirm all of the certificate on %s.", word_of(check, "checker"),
                      word_of(check, "date"));
    else if (taut_report_predicts(certify) && !same_examples(certify, cert))
        taut_page_say(p, "%s confirmed the constant on %s; the examples above are others than the certificate's.",
                      word_of(check, "checker"), word_of(check, "date"));
    else
        taut_page_say(p, "%s confirmed the certificate on %s, by other means than those that made it%s.",
                      word_of(check, "checker"), word_of(check, "date"),
                      taut_report_predicts(certify) ? "; which answers are right is what the data say" : "");
}

/* Which bytes, which inputs: what a reader needs to ask somebody else. */
static void say_what(taut_page *p, const cJSON *cert)
{
    char about[TAUT_ABOUT_ROOM], bytes[32];
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(cert, "model");
    snprintf(bytes, sizeof bytes, "%.0f", taut_report_number(model, "bytes"));
    const char *const pair[][2] = { { "SHA-256 of the model's file", word_of(model, "sha256") },
                                    { "its bytes", bytes },
                                    { "proved by", word_of(cert, "tool") },
                                    { "norm", word_of(cert, "norm") },
                                    { "the constant holds", taut_report_about(about, cert) } };
    taut_page_facts(p, "which model, which inputs", 5, pair);
}

void taut_report_conclusion(taut_page *p, const char *folder, const cJSON *cert, const cJSON *certify,
                            const cJSON *check, double wish)
{
    char word[32];
    const double radius = taut_report_radius(certify, wish), all = taut_report_number(certify, "n_ex");
    const cJSON *region = cJSON_GetObjectItemCaseSensitive(certify, "region");
    const bool image = cJSON_HasObjectItem(region, "box"), flat = strcmp(word_of(certify, "norm"), "flat") == 0;
    const bool answers = all > 0 && taut_report_predicts(certify);
    if (answers && isnan(radius))
        taut_page_lead(p, "None of %.0f answers is both right and proved to stand.", all);
    else if (answers)
        taut_page_lead(p, "%d of %.0f answers are right and cannot be changed by moving %s by less than %s (l2%s).",
                       standing(cJSON_GetObjectItemCaseSensitive(certify, "examples"), radius), all,
                       image  ? "the image"
                       : flat ? "the embeddings"
                              : "each token's embedding",
                       taut_number_print(word, radius), image ? "; a pixel goes from 0 to 1" : "");
    if (cert) say_checked(p, folder, cert, certify, check);
    if (cert) say_what(p, cert);
}
