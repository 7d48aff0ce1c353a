/* What a run's folder can tell, on a page.  Every file is optional and is read as it is: an unfinished run shows what there
 * is, a file that cannot be read is named, and one that is about another model than the folder's is named and not shown.
 *
 *     summary.json, log.jsonl, recipe.ini     from taut train
 *     certificate.json                        taut certify RUN --out RUN/certificate.json
 *     certify.json                            taut certify RUN --n-ex N --json
 *     check.json                              taut check RUN/certificate.json RUN
 *     attack.json                             taut attack RUN --json, with --gallery N for its images
 *     network.json, attention.json            taut measure RUN --network N --json, taut measure RUN --maps --json
 *     measure.json, growth.json               taut measure RUN --json, taut measure RUN --lengths A:B:C --json
 *     forecast.json                           taut eval RUN --json, of a forecaster; with --noise R for the proved band */
#ifndef TAUT_REPORT_RUN_H
#define TAUT_REPORT_RUN_H
#include <cjson/cJSON.h>

#include "base/about.h"
#include "report/page.h"

void taut_report_run(taut_page *, const char *folder,
                     double radius); /* 0: a round one that half of the right answers reach */
void taut_report_frontier(taut_page *, int runs, char *const *folder); /* loss against proved bound, a point a run */

/* The object in FOLDER/NAME; NULL if the file is not there, or is no JSON object (then *broken is set). */
cJSON *taut_report_json(const char *folder, const char *name, bool *broken);
/* The same of an answer about the folder's own model; NULL and *other: it is about another one. */
cJSON *taut_report_own(const char *folder, const char *name, bool *broken, bool *other);
/* The norm and units of a certificate's constant, or of a summary's target. */
const char *taut_report_measure(const cJSON *);
double taut_report_number(const cJSON *object,
                          const char *name); /* NaN if there is none; the string "inf" is infinity */

/* What the constant of a certificate is about (base/about.h). */
const char *taut_report_about(char text[TAUT_ABOUT_ROOM], const cJSON *cert); /* proof.c */

/* A number of which six digits show all: a bound is raised to it, a radius lowered (base/number.h).  NaN stays. */
double taut_report_raised(double);
double taut_report_lowered(double);

/* conclusion.c.  Does certify.json have answers to its examples, not features?  The radius that the page speaks of (NaN: no
 * right answer is certified), and the share of the examples that are right and stand at least that far. */
bool taut_report_predicts(const cJSON *certify);
double taut_report_radius(const cJSON *certify, double wish);
double taut_report_share(const cJSON *certify, double radius);
void taut_report_conclusion(taut_page *, const char *folder, const cJSON *cert, const cJSON *certify,
                            const cJSON *check, double wish);
void taut_report_moved(taut_page *, const cJSON *certify, const char *run, double radius); /* moved.c */
void taut_report_curves(taut_page *, const char *folder, const char *run);                 /* curves.c */
void taut_report_certificate(taut_page *, const cJSON *cert, const char *run);             /* proof.c */
void taut_report_measured(taut_page *, const cJSON *measure, const char *run);             /* sandwich.c */
void taut_report_certified(taut_page *, const cJSON *certify, const char *run);
void taut_report_attacked(taut_page *, const cJSON *attack, const char *run); /* attacked.c */
void taut_report_gallery(taut_page *, const cJSON *list, const char *run);    /* gallery.c */
void taut_report_network(taut_page *, const cJSON *network, const char *run); /* network.c */
void taut_report_maps(taut_page *, const cJSON *list, const char *run);       /* maps.c */
void taut_report_forecast(taut_page *, const cJSON *eval, const char *run);   /* forecast.c */
#endif
