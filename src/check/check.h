/* taut check: is a certificate true of a model file?  docs/certificate.md is the specification.
 *
 * With what makes certificates this folder shares base/ (files, memory, SHA-256, float32, UTF-8) and cJSON, and nothing else.
 * This folder is the core, which knows no module, but asks its rule.  Read it in this order: up.h (rounding), matrix.c (norms),
 * json.c, fields.c and model.c (the files and the tree), check.c (the whole).  rules/ has a file for every rule, or for a few
 * that are alike: read those that a model's tree names.  examples/ repeats predictions; machine/ asks whether this program
 * computes as up.h needs.  No constant is proved in these two. */
#ifndef TAUT_CHECK_CHECK_H
#define TAUT_CHECK_CHECK_H
#include <stdbool.h>

#include "base/status.h"

typedef struct {
    bool holds, flat;        /* flat: the norm; else tokens */
    bool series;             /* inputs are rows of numbers, outputs forecasts */
    bool foreign;            /* not held, and not refuted: a rule that the checker does not know */
    char why[512];           /* if it does not hold: one line that names the number or rule */
    int64_t pixels;          /* of an image: inputs are such numbers in [0, 1], moved; else 0 */
    double rows;             /* of a series: no row is longer before it is moved, as stated */
    double lip, reach, room; /* as stated; reach: no token is longer, of images it says nothing */
    double tolerance;        /* as stated, and not confirmed: radii are for a runtime whose logits are so near */
    char table[16];          /* for which kernels it was stated; "": for nobody's */
    double defect;           /* of proximal layers: |f~(x) - f~(x')| <= lip |x - x'| + defect */
    int64_t tokens, numbers, examples, certified; /* numbers confirmed; examples, and those with a radius */
    int64_t
        unknown; /* examples with a radius that the checker's forward pass is too coarse for, or found no proximal step */
} taut_checked;

/* A status other than TAUT_OK: a file could not be read, or is not a certificate at all; or this program's arithmetic is not
 * what the checker needs (TAUT_DEVICE). */
taut_status taut_check_files(taut_checked *out, const char *cert, const char *model) TAUT_MUST_USE;
#endif
