/* One function a figure or table of a paper: runs it at a scale and describes what came out; NULL with a last error. */
#ifndef TAUT_CLI_PAPER_H
#define TAUT_CLI_PAPER_H
#include <cjson/cJSON.h>
#include <stdbool.h>

typedef struct {
    bool small;       /* minutes on two cores; else the paper's own size */
    const char *out;  /* folder for its runs; finished ones are not run again */
    const char *data; /* a text, or NULL for the figure's own */
} paper_options;

cJSON *paper_enforced_fig2(const paper_options *);
cJSON *paper_enforced_fig3(const paper_options *);
cJSON *paper_enforced_fig4(const paper_options *);
cJSON *paper_enforced_table1(const paper_options *);
cJSON *paper_jasmin_table1(const paper_options *);
cJSON *paper_jasmin_table2(const paper_options *);
cJSON *paper_jasmin_fig3(const paper_options *);
cJSON *paper_jasmin_fig4(const paper_options *);
cJSON *paper_jasmin_fig6(const paper_options *);
cJSON *paper_plash_fig4(const paper_options *);
cJSON *paper_plash_table1(const paper_options *);
cJSON *paper_plash_deviation(const paper_options *);
cJSON *paper_plash_table2(const paper_options *);
cJSON *paper_plash_fig3(const paper_options *);
cJSON *paper_attlip_fig1(const paper_options *);
cJSON *paper_attlip_table1(const paper_options *);
cJSON *paper_attlip_table2(const paper_options *);
cJSON *paper_castin_fig1(const paper_options *);
cJSON *paper_castin_fig2(const paper_options *);
cJSON *paper_castin_fig3(const paper_options *);
cJSON *paper_bounds_table(const paper_options *);
#endif
