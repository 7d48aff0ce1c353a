/* Both sides of the slope of every attention layer, and what papers print. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"

/* A slope that was found is one from below: never printed above what it is.  - where there is none. */
static const char *lower_text(char dst[32], double v) { return isfinite(v) ? taut_number_down(dst, v) : "-"; }

/* How many times as large as the lower side the upper one is. */
static const char *gap_text(char dst[32], double upper, double lower)
{
    if (!(lower > 0) || !isfinite(upper)) return "-";
    snprintf(dst, 32, "%.3g", upper / lower);
    return dst;
}

/* NaN: the formula does not apply; JSON has no infinity, so null is one. */
static double published(const cJSON *head, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(cJSON_GetObjectItem(head, "published"), name);
    return cJSON_IsNull(found) ? INFINITY : cJSON_IsNumber(found) ? found->valuedouble : NAN;
}

/* ||W_O|| sqrt(sum_h L_h^2) without ||W_O||: for the bare map.  NaN: a head has no such number. */
static double together(const cJSON *layer, const char *name)
{
    const cJSON *head, *heads = cJSON_GetObjectItem(layer, "heads");
    double sum = heads ? 0 : NAN;
    cJSON_ArrayForEach(head, heads) sum += published(head, name) * published(head, name);
    return sqrt(sum);
}

static void print_formula(double v)
{
    if (isnan(v))
        printf(" %11s", "-");
    else
        printf(" %11.4g", v);
}

/* One character a head: 0 for the smallest lower bound of the model, 9 for the largest, logarithmically. */
static void print_heat(const cJSON *layers)
{
    const cJSON *layer, *head;
    double least = INFINITY, most = 0;
    cJSON_ArrayForEach(layer, layers) cJSON_ArrayForEach(head, cJSON_GetObjectItem(layer, "heads"))
    {
        const double v = cli_number(head, "lower");
        if (v > 0) least = fmin(least, v), most = fmax(most, v);
    }
    if (!(most > 0)) return;
    printf("heads (rows are layers): 0 is %.4g, 9 is %.4g\n", least, most);
    cJSON_ArrayForEach(layer, layers)
    {
        printf("  %3.0f  ", cli_number(layer, "layer"));
        cJSON_ArrayForEach(head, cJSON_GetObjectItem(layer, "heads"))
        {
            const double v = cli_number(head, "lower"), at = most > least ? log(v / least) / log(most / least) : 0;
            putchar(v > 0 ? '0' + (int)(9.999 * at) : '.');
        }
        putchar('\n');
    }
}

static void print_heads(const cJSON *layer, const cJSON *formulas)
{
    const cJSON *head, *formula, *heads = cJSON_GetObjectItem(layer, "heads");
    char lower[32], upper[32], gap[32];
    int h = 0;
    printf("heads of layer %.0f, bare:      lower       upper       gap\n", cli_number(layer, "layer"));
    cJSON_ArrayForEach(head, heads)
    {
        const double low = cli_number(head, "lower"), up = cli_number(head, "upper");
        printf("  %3d                 %11s %11s %9s\n", h++, lower_text(lower, low), taut_number_up(upper, up),
               gap_text(gap, up, low));
    }
    cJSON_ArrayForEach(formula, formulas)
    {
        const char *name = cli_word(formula, "name"), *side = cli_word(formula, "side");
        double most = 0;
        cJSON_ArrayForEach(head, heads) most = fmax(most, published(head, name));
        if (most > 0)
            printf("  largest %-24s %11.4g%s\n", name, most,
                   strcmp(side, "below") == 0         ? "  (somewhere in the ball, at least)"
                   : strcmp(side, "other layer") == 0 ? "  (of another layer)"
                                                      : "");
    }
}

/* Returns whether its search ended before it converged. */
static bool print_layer(const cJSON *layer, double tolerance, bool ball)
{
    char up[32], low[32], gap[32];
    const double lower = cli_number(layer, "lower"), residual = cli_number(layer, "residual"),
                 castin = together(layer, "castin_3_3");
    const bool early = residual > tolerance;
    printf("%5.0f %7.0f %7.4g %11s%s  %8.1e %11s %7s", cli_number(layer, "layer"), cli_number(layer, "tokens"),
           cli_number(layer, "radius"), lower_text(low, lower), early ? "*" : " ", residual, cli_up(up, layer, "upper"),
           gap_text(gap, cli_number(layer, "upper"), lower));
    if (ball) printf(" %11s %11s", lower_text(low, cli_number(layer, "ball_lower")), cli_up(up, layer, "ball"));
    print_formula(together(layer, "jasmin_3"));
    print_formula(isnan(castin) ? together(layer, "castin_4_3") : castin);
    print_formula(together(layer, "printed_specformer_1"));
    putchar('\n');
    return early;
}

void measure_print_layers(const cJSON *o, double tolerance)
{
    const cJSON *layer, *layers = cJSON_GetObjectItem(o, "layers");
    const bool ball = cli_number(o, "ball_radius") > 0;
    bool early = false;
    char text[32];
    measure_print_about(o);
    printf("layer  tokens  radius       lower   residual       upper     gap%s    jasmin_3  castin_3_3  specformer\n",
           ball ? "  ball lower  ball upper" : "");
    cJSON_ArrayForEach(layer, layers) early |= print_layer(layer, tolerance, ball);
    printf("lower: found, attained by a direction.  upper: proved.  The last three: sqrt(sum over heads of the "
           "squares), without W_O\n");
    if (ball)
        printf("ball: both sides for all inputs whose tokens are each moved by at most %s\n",
               cli_down(text, o, "ball_radius"));
    if (early)
        printf("* its steps ended before the residual was at most %g (--tolerance): more of them may find a steeper "
               "direction\n",
               tolerance);
    print_heat(layers);
    if (cJSON_GetArraySize(layers) == 1) print_heads(layers->child, cJSON_GetObjectItem(o, "formulas"));
}
