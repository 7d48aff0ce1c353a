#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bound/print.h"
#include "measure.h"

static const char *const map_formula[TAUT_MAPS] = { "heads side by side, without W_O", "with the output projection",
                                                    "attention(norm(x)) of the residual branch", "x + branch",
                                                    "the residual and the norm behind it" };

static void print_about(const measure_about *a)
{
    printf("%s on %s; map: %s (%s); l2 norm over all tokens\n", a->model, a->source, taut_map_names[a->map],
           map_formula[a->map]);
}

/* A slope that was found is one from below: never printed above what it is.  - where there is none. */
static const char *lower_text(char dst[32], double v) { return isfinite(v) ? taut_number_down(dst, v) : "-"; }

/* How many times as large as the lower side the upper one is. */
static const char *gap_text(char dst[32], double upper, double lower)
{
    if (!(lower > 0) || !isfinite(upper)) return "-";
    snprintf(dst, 32, "%.3g", upper / lower);
    return dst;
}

/* ||W_O|| sqrt(sum_h L_h^2) without ||W_O||: for the bare map. */
static double together(const taut_layer_measure *m, int formula)
{
    double sum = 0;
    for (int64_t h = 0; h < m->heads; h++)
        sum += m->head[h].published[formula].value * m->head[h].published[formula].value;
    return sqrt(sum);
}

static int formula_named(const taut_layer_measure *m, const char *name)
{
    for (int i = 0; m->head && i < TAUT_PUBLISHED; i++)
        if (m->head[0].published[i].name && strcmp(m->head[0].published[i].name, name) == 0) return i;
    return -1;
}

static void print_formula(const taut_layer_measure *m, const char *name)
{
    const int i = formula_named(m, name);
    const double v = i < 0 ? NAN : together(m, i);
    if (isnan(v))
        printf(" %11s", "-");
    else
        printf(" %11.4g", v);
}

/* One character a head: 0 for the smallest lower bound of the model, 9 for the largest, logarithmically. */
static void print_heat(const taut_layer_measure *m, int count)
{
    double least = INFINITY, most = 0;
    for (int l = 0; l < count; l++)
        for (int64_t h = 0; m[l].head && h < m[l].heads; h++)
            if (m[l].head[h].lower > 0) least = fmin(least, m[l].head[h].lower), most = fmax(most, m[l].head[h].lower);
    if (!(most > 0)) return;
    printf("heads (rows are layers): 0 is %.4g, 9 is %.4g\n", least, most);
    for (int l = 0; l < count; l++) {
        printf("  %3d  ", m[l].layer);
        for (int64_t h = 0; m[l].head && h < m[l].heads; h++) {
            const double v = m[l].head[h].lower, at = most > least ? log(v / least) / log(most / least) : 0;
            putchar(v > 0 ? '0' + (int)(9.999 * at) : '.');
        }
        putchar('\n');
    }
}

static void print_heads(const taut_layer_measure *m)
{
    char lower[32], upper[32], gap[32];
    printf("heads of layer %d, bare:      lower       upper       gap\n", m->layer);
    for (int64_t h = 0; m->head && h < m->heads; h++)
        printf("  %3lld                 %11s %11s %9s\n", (long long)h, lower_text(lower, m->head[h].lower),
               taut_number_up(upper, m->head[h].upper), gap_text(gap, m->head[h].upper, m->head[h].lower));
    for (int i = 0; m->head && i < TAUT_PUBLISHED; i++) {
        double most = 0;
        for (int64_t h = 0; h < m->heads; h++) most = fmax(most, m->head[h].published[i].value);
        if (m->head[0].published[i].name && most > 0)
            printf("  largest %-24s %11.4g%s\n", m->head[0].published[i].name, most,
                   m->head[0].published[i].side == TAUT_BELOW         ? "  (somewhere in the ball, at least)"
                   : m->head[0].published[i].side == TAUT_OTHER_LAYER ? "  (of another layer)"
                                                                      : "");
    }
}

void measure_print_layers(const measure_about *about, const taut_layer_measure *m, int count)
{
    char up[32], low[32], ball[32], gap[32];
    bool early = false;
    print_about(about);
    printf("layer  tokens  radius       lower   residual       upper     gap%s    jasmin_3  castin_3_3  specformer\n",
           about->ball > 0 ? "  ball lower  ball upper" : "");
    for (int l = 0; l < count; l++) {
        const bool stopped = m[l].slope.residual > about->tolerance;
        early |= stopped;
        printf("%5d %7lld %7.4g %11s%s  %8.1e %11s %7s", m[l].layer, (long long)m[l].tokens, m[l].radius,
               lower_text(low, m[l].lower), stopped ? "*" : " ", m[l].slope.residual, up_text(up, m[l].upper),
               gap_text(gap, m[l].upper.v, m[l].lower));
        if (about->ball > 0) printf(" %11s %11s", lower_text(low, m[l].ball_lower), up_text(ball, m[l].ball));
        print_formula(&m[l], "jasmin_3");
        print_formula(&m[l], formula_named(&m[l], "castin_3_3") >= 0 &&
                                     !isnan(together(&m[l], formula_named(&m[l], "castin_3_3")))
                                 ? "castin_3_3"
                                 : "castin_4_3");
        print_formula(&m[l], "printed_specformer_1");
        putchar('\n');
    }
    printf("lower: found, attained by a direction.  upper: proved.  The last three: sqrt(sum over heads of the "
           "squares), without W_O\n");
    if (about->ball > 0)
        printf("ball: both sides for all inputs whose tokens are each moved by at most %s\n",
               taut_number_down(ball, about->ball));
    if (early)
        printf("* its steps ended before the residual was at most %g (--tolerance): more of them may find a steeper "
               "direction\n",
               about->tolerance);
    print_heat(m, count);
    if (count == 1) print_heads(&m[0]);
}

enum { ROWS = 16, COLS = 72 };

/* Dots at (ln n, ln slope); the digit is the radius of the tokens, 0 the smallest and 9 the largest. */
static void plot(const measure_scatter *s)
{
    char cell[ROWS][COLS + 1];
    double n0 = INFINITY, n1 = 0, y0 = INFINITY, y1 = 0, r0 = INFINITY, r1 = 0;
    memset(cell, ' ', sizeof cell);
    for (int64_t i = 0; i < s->count; i++) {
        const taut_scatter_point *p = &s->point[i];
        if (!(p->value > 0)) continue;
        n0 = fmin(n0, (double)p->n), n1 = fmax(n1, (double)p->n), y0 = fmin(y0, p->value), y1 = fmax(y1, p->value);
        r0 = fmin(r0, p->radius), r1 = fmax(r1, p->radius);
    }
    if (!(n1 > n0) || !(y1 > y0)) return;
    for (int64_t i = 0; i < s->count; i++) {
        const taut_scatter_point *p = &s->point[i];
        if (!(p->value > 0)) continue;
        const int x = (int)((COLS - 1) * log((double)p->n / n0) / log(n1 / n0));
        const int y = (int)((ROWS - 1) * log(p->value / y0) / log(y1 / y0));
        cell[ROWS - 1 - y][x] = (char)('0' + (r1 > r0 ? (int)(9.999 * (p->radius - r0) / (r1 - r0)) : 0));
    }
    for (int r = 0; r < ROWS; r++) {
        cell[r][COLS] = '\0';
        printf("%10.4g |%s\n", y0 * pow(y1 / y0, (double)(ROWS - 1 - r) / (ROWS - 1)), cell[r]);
    }
    printf("%10s +%-35g%37g  tokens\n", "", n0, n1);
    printf("digits: radius of the tokens, 0 is %.4g, 9 is %.4g\n", r0, r1);
}

void measure_print_scatter(const measure_about *about, const measure_scatter *s)
{
    print_about(about);
    printf("layer %d, %lld points%s\n", s->layer, (long long)s->count, s->adversarial ? ", adversarial" : "");
    plot(s);
    if (s->count == 0 || s->point[0].n == s->point[s->count - 1].n)
        printf("one length: no exponent\n");
    else if (isnan(s->growth.exponent))
        printf("fewer than two lengths have a slope that can be fitted: no exponent\n");
    else if (isnan(s->growth.low))
        printf("slope ~ %.4g n^%.4f; two points: no interval\n", s->growth.factor, s->growth.exponent);
    else
        printf("slope ~ %.4g n^%.4f, exponent in [%.4f, %.4f] with 95 %% confidence\n", s->growth.factor,
               s->growth.exponent, s->growth.low, s->growth.high);
    if (s->adversarial) printf("made for head %lld, whose logit gap at radius 1 is %.4g\n", (long long)s->head, s->gap);
}
