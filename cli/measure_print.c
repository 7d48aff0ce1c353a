#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"

void measure_print_about(const cJSON *o)
{
    static const char *const formula[][2] = { { "bare", "heads side by side, without W_O" },
                                              { "attention", "with the output projection" },
                                              { "branch", "attention(norm(x)) of the residual branch" },
                                              { "residual", "x + branch" },
                                              { "block", "the residual and the norm behind it" } };
    int map = 0;
    while (map < 4 && strcmp(formula[map][0], cli_word(o, "map")) != 0) map++;
    printf("%s on %s; map: %s (%s); l2 norm over all tokens\n", cli_word(o, "model"), cli_word(o, "text"),
           cli_word(o, "map"), formula[map][1]);
}

enum { ROWS = 16, COLS = 72 };
typedef struct {
    double n, value, radius;
} point;

static point point_of(const cJSON *row)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        const cJSON *one = cJSON_GetArrayItem(row, i);
        v[i] = cJSON_IsNumber(one) ? one->valuedouble : NAN;
    }
    return (point){ v[0], v[1], v[2] };
}

/* Dots at (ln n, ln slope); the digit is the radius of the tokens, 0 the smallest and 9 the largest. */
static void plot(const cJSON *points)
{
    char cell[ROWS][COLS + 1];
    double n0 = INFINITY, n1 = 0, y0 = INFINITY, y1 = 0, r0 = INFINITY, r1 = 0;
    const cJSON *row;
    memset(cell, ' ', sizeof cell);
    cJSON_ArrayForEach(row, points)
    {
        const point p = point_of(row);
        if (!(p.value > 0)) continue;
        n0 = fmin(n0, p.n), n1 = fmax(n1, p.n), y0 = fmin(y0, p.value), y1 = fmax(y1, p.value);
        r0 = fmin(r0, p.radius), r1 = fmax(r1, p.radius);
    }
    if (!(n1 > n0) || !(y1 > y0)) return;
    cJSON_ArrayForEach(row, points)
    {
        const point p = point_of(row);
        if (!(p.value > 0)) continue;
        const int x = (int)((COLS - 1) * log(p.n / n0) / log(n1 / n0));
        const int y = (int)((ROWS - 1) * log(p.value / y0) / log(y1 / y0));
        cell[ROWS - 1 - y][x] = (char)('0' + (r1 > r0 ? (int)(9.999 * (p.radius - r0) / (r1 - r0)) : 0));
    }
    for (int r = 0; r < ROWS; r++) {
        cell[r][COLS] = '\0';
        printf("%10.4g |%s\n", y0 * pow(y1 / y0, (double)(ROWS - 1 - r) / (ROWS - 1)), cell[r]);
    }
    printf("%10s +%-35g%37g  tokens\n", "", n0, n1);
    printf("digits: radius of the tokens, 0 is %.4g, 9 is %.4g\n", r0, r1);
}

void measure_print_lengths(const cJSON *o)
{
    const cJSON *points = cJSON_GetObjectItem(o, "points");
    const int count = cJSON_GetArraySize(points);
    const bool adversarial = cJSON_IsTrue(cJSON_GetObjectItem(o, "adversarial"));
    const double exponent = cli_number(o, "exponent"), factor = cli_number(o, "factor");
    measure_print_about(o);
    printf("layer %.0f, %d points%s\n", cli_number(o, "layer"), count, adversarial ? ", adversarial" : "");
    plot(points);
    if (count == 0 || point_of(points->child).n == point_of(cJSON_GetArrayItem(points, count - 1)).n)
        printf("one length: no exponent\n");
    else if (isnan(exponent))
        printf("fewer than two lengths have a slope that can be fitted: no exponent\n");
    else if (isnan(cli_number(o, "exponent_low")))
        printf("slope ~ %.4g n^%.4f; two points: no interval\n", factor, exponent);
    else
        printf("slope ~ %.4g n^%.4f, exponent in [%.4f, %.4f] with 95 %% confidence\n", factor, exponent,
               cli_number(o, "exponent_low"), cli_number(o, "exponent_high"));
    if (adversarial)
        printf("made for head %.0f, whose logit gap at radius 1 is %.4g\n", cli_number(o, "head"),
               cli_number(o, "gap"));
}

void measure_print_network(const cJSON *o)
{
    static const char *const names[] = { "min", "q05", "q25", "median", "q75", "q95", "max", "mean" };
    char lip[32];
    printf("slope of the whole network, l2 over everything (norm flat), at %.0f examples (largest relative residual "
           "%.2g)\n",
           cli_number(o, "examples"), cli_number(o, "residual"));
    for (int i = 0; i < 8; i++) printf("  %-8s %.6g\n", names[i], cli_number(o, names[i]));
    printf("  %-8s %s   %s\n", "proved", cli_up(lip, o, "proved"), cli_word(o, "about"));
}

/* One letter a weight, from nothing to everything. */
void measure_print_maps(const cJSON *o)
{
    static const char ink[] = " .:-=+*#%@";
    const int tokens = (int)cli_number(o, "tokens");
    const cJSON *layer, *head, *weight;
    int l = 0;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItem(o, "maps"))
    {
        int h = 0;
        cJSON_ArrayForEach(head, layer)
        {
            int i = 0;
            printf("layer %d, head %d: a row for each token that asks, a letter for each it listens to\n", l, h++);
            cJSON_ArrayForEach(weight, head)
            {
                putchar(ink[(int)fmin(9, 10 * weight->valuedouble)]);
                if (i++ % tokens == tokens - 1) putchar('\n');
            }
        }
        l++;
    }
}

static void print_stray(const cJSON *s)
{
    char text[3][32], size[48];
    snprintf(size, sizeof size, "%.0f/%.0f", cli_number(s, "keys"), cli_number(s, "groups"));
    printf("%-24s %4.0f %9s %10.4g %12.6g %12s %12s %9.3g %% %11s", cli_word(s, "layer"), cli_number(s, "head"), size,
           cli_number(s, "soft"), cli_number(s, "deviation"), cli_up(text[0], s, "fast"), cli_up(text[1], s, "audit"),
           100 * (cli_number(s, "audit") / cli_number(s, "deviation") - 1), cli_up(text[2], s, "trivial"));
    if (!isnan(cli_number(s, "delta")))
        printf(" %11s %11s %11.4g", cli_up(text[0], s, "corrected"), cli_up(text[1], s, "delta"),
               cli_number(s, "printed"));
    printf("\n");
}

void measure_print_deviation(const cJSON *o)
{
    const cJSON *s;
    bool papers = false, none = false;
    printf("distance from softmax attention on the same queries, keys and values, over %.0f examples (Frobenius)\n",
           cli_number(o, "examples"));
    printf("%-24s %4s %9s %10s %12s %12s %12s %9s   %11s %11s %11s %11s\n", "layer", "head", "keys/M", "|Y_soft|",
           "deviation", "fast", "audit", "over", "trivial", "corrected", "delta", "printed");
    cJSON_ArrayForEach(s, cJSON_GetObjectItem(o, "heads"))
    {
        const bool theirs = !isnan(cli_number(s, "delta"));
        print_stray(s);
        papers |= theirs;
        none |= !theirs && strcmp(cli_word(s, "attention"), "plash") == 0;
    }
    printf(
        "fast and audit are proved for every query, as is the trivial bound; deviation is computed in long double\n");
    if (papers)
        printf("corrected: the PLASH paper's certificate with every constant right, eta = %g, which fails with "
               "probability delta; printed is no bound\n",
               cli_number(o, "eta"));
    if (none)
        printf("no paper's certificate: model.plash_sizes below what the sketch reads leave no deterministic "
               "reference, or the mixer is too large\n");
}
