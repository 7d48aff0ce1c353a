/* What a move of the example does to every token by itself: N of docs/certificate.md, "Examples", through all modules but
 * attention.  Computed to nearest: whoever walks the proof leaves room for it at every step. */
#include "certify/near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MOST = 1024 }; /* tokens that have a column each */

static bool make(taut_near_shape *s, int64_t rows, int64_t cols)
{
    *s = (taut_near_shape){ .r = s->r, .rows = rows, .cols = cols };
    s->n = taut_calloc((size_t)(rows * cols), sizeof *s->n);
    return s->n != NULL;
}

static bool fill(taut_near_shape *s, int64_t rows, int64_t cols)
{
    if (!make(s, rows, cols)) return false;
    for (int64_t i = 0; i < rows * cols; i++) s->n[i] = INFINITY;
    return true;
}

/* A column for each token, or none if they are too many. */
static bool identity(taut_near_shape *s, int64_t rows, double by)
{
    if (rows > MOST) return fill(s, rows, 1);
    if (!make(s, rows, rows)) return false;
    for (int64_t t = 0; t < rows; t++) s->n[t * rows + t] = by;
    return true;
}

bool taut_shape_begin(taut_near_shape *s, int64_t tokens, bool flat, double r)
{
    s->r = r;
    if (flat) return identity(s, tokens, 1);
    if (!make(s, tokens, 1)) return false;
    for (int64_t t = 0; t < tokens; t++) s->n[t] = 1;
    return true;
}

bool taut_shape_copy(taut_near_shape *to, const taut_near_shape *from)
{
    to->r = from->r;
    if (!make(to, from->rows, from->cols)) return false;
    memcpy(to->n, from->n, (size_t)(from->rows * from->cols) * sizeof *to->n);
    return true;
}

static double length(const double *v, int64_t count, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += v[i * step] * v[i * step];
    return sqrt(sum);
}

double taut_shape_row(const taut_near_shape *s, int64_t t) { return length(s->n + t * s->cols, s->cols, 1); }

double *taut_shape_moved(const taut_near_shape *s, double moved)
{
    double *m = taut_malloc((size_t)(s->rows + 1) * sizeof *m);
    for (int64_t t = 0; m && t < s->rows; t++) m[t] = fmin(moved, s->r * taut_shape_row(s, t));
    return m;
}

void taut_shape_mix(taut_near_shape *s, const taut_near_shape *in, double keep, double mix)
{
    if (s->rows != in->rows || s->cols != in->cols) {
        for (int64_t i = 0; i < s->rows * s->cols; i++) s->n[i] = INFINITY;
        return;
    }
    for (int64_t i = 0; i < s->rows * s->cols; i++) s->n[i] = fabs(keep) * in->n[i] + fabs(mix) * s->n[i];
}

/* Rules that make every token of itself alone. */
static bool apart(const char *rule)
{
    static const char *const all[] = { "linear",    "position", "sinusoid",  "scale",      "pointwise",
                                       "channel",   "maxmin",   "layernorm", "centernorm", "mlp",
                                       "potential", "sll",      "sketch" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(rule, all[i]) == 0) return true;
    return false;
}

void taut_shape_scale(taut_near_shape *s, const double *each)
{
    for (int64_t i = 0; i < s->rows * s->cols; i++) s->n[i] *= each[i / s->cols];
}

/* One row of all: the mean, the first, or lengths of columns. */
static bool together(taut_near_shape *to, const taut_near_shape *s, bool pool, bool mean)
{
    if (!make(to, 1, s->cols)) return false;
    for (int64_t j = 0; j < s->cols; j++) {
        double sum = 0;
        for (int64_t t = 0; t < s->rows; t++) sum += s->n[t * s->cols + j];
        to->n[j] = !pool ? length(s->n + j, s->rows, s->cols) : mean ? sum / (double)s->rows : s->n[j];
    }
    return true;
}

static bool is(const char *rule, const char *name) { return strcmp(rule, name) == 0; }

bool taut_shape_pass(taut_near_shape *s, const cJSON *tree, const char *rule, double lip, bool first)
{
    taut_near_shape to = { .r = s->r };
    bool made = true;
    if (apart(rule)) {
        for (int64_t i = 0; i < s->rows * s->cols; i++) s->n[i] *= lip;
        return true;
    }
    if (is(rule, "pool") || is(rule, "l2pool") || is(rule, "concat"))
        made = together(&to, s, is(rule, "pool"), taut_near_number(tree, "mean") != 0);
    else if (is(rule, "prefix")) {
        made = make(&to, s->rows + 1, s->cols);
        if (made) memcpy(to.n + s->cols, s->n, (size_t)(s->rows * s->cols) * sizeof *s->n);
    } else if (is(rule, "pixels") && first) {
        const double tall = taut_near_number(tree, "height") / taut_near_number(tree, "patch_height"),
                     wide = taut_near_number(tree, "width") / taut_near_number(tree, "patch_width");
        made = identity(&to, (int64_t)(tall * wide), lip);
    } else
        made = fill(&to, s->rows, 1);
    free(s->n);
    *s = to;
    return made;
}

bool taut_shape_fit(taut_near_shape *s, int64_t rows)
{
    if (s->rows == rows) return true;
    free(s->n);
    return fill(s, rows, 1);
}
