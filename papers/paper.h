/* One function a figure or table of a paper: runs it at a scale and describes what came out; NULL with a last error. */
#ifndef TAUT_PAPERS_PAPER_H
#define TAUT_PAPERS_PAPER_H
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool small;       /* minutes on two cores; else the paper's own size */
    bool ask;         /* full size, no device, and nobody has said yes */
    bool tiny;        /* small, and cut to seconds on built-in data: whether it runs, not what comes out */
    const char *out;  /* folder for its runs; a finished one with the same recipe is not run again */
    const char *data; /* a text, or NULL for the figure's own */
    const char *only; /* words, a comma between two: rows whose name holds all of them; NULL: every row */
    const char *k;    /* the kernels that train and attack; proofs and measurements have their own */
    int *kept;        /* counts the runs that were not run again */
} paper_options;

/* Whether a row of this name was asked for. */
bool paper_wants(const paper_options *, const char *name);

static inline int64_t paper_pick(const paper_options *o, int64_t tiny, int64_t small, int64_t full)
{
    return o->tiny ? tiny : o->small ? small : full;
}

/* What stands under a table, as sentences: what the paper has, what ours are of, why the two differ; and the data set where
 * there is a choice (else NULL). */
typedef struct {
    const char *published, *ours, *why, *data;
} paper_words;

/* A table as figures answer it: { title, columns, rows, published, ours, why }.  Rows are made of texts and numbers. */
cJSON *paper_table(const char *title, const char *const *columns, int count, paper_words);
/* name NULL: none.  A number that is NaN is printed as -. */
void paper_row(cJSON *table, const char *name, const double *number, int count);
void paper_print(const cJSON *table);
/* The data of a figure: what the user asked for, else the set; small ones take what is built in where the set is not there. */
const char *paper_source(const paper_options *, const char *set, const char *built_in);

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
