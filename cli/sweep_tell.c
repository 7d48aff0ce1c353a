/* What a sweep found.  What is chosen by a sweep is chosen by validation loss: with --mean, by its mean over the values of
 * keys that are no choice, such as the seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

typedef struct {
    int run; /* the first of them */
    double loss, spread;
} setting;

/* Best first; NaN, a setting whose runs are not all there, last. */
static int by_loss(const void *a_, const void *b_)
{
    const setting *a = a_, *b = b_;
    if (isnan(a->loss) || isnan(b->loss)) return isnan(a->loss) - isnan(b->loss);
    return a->loss < b->loss ? -1 : a->loss > b->loss;
}

/* The settings: runs that differ only in keys of --mean are one; returns how many. */
static int settings_of(const sweep *s, const double *loss, setting *out)
{
    int count = 0;
    for (int run = 0; run < s->runs; run++) {
        double sum = 0, square = 0;
        int many = 0, first = run;
        for (int other = 0; other < s->runs; other++) {
            bool same = true;
            for (int i = 0; i < s->axes; i++)
                if (!s->axis[i].mean && strcmp(sweep_value(s, run, i), sweep_value(s, other, i)) != 0) same = false;
            if (!same) continue;
            if (other < first) first = other;
            sum += loss[other], square += loss[other] * loss[other], many++;
        }
        if (first < run) continue;
        out[count++] = (setting){ run, sum / many, sqrt(fmax(0, square / many - sum / many * (sum / many))) };
    }
    qsort(out, (size_t)count, sizeof *out, by_loss);
    return count;
}

/* One line per setting, best first. */
static void rank(const sweep *s, const double *loss, cJSON *list)
{
    setting all[SWEEP_RUNS] = { { 0 } };
    const int count = settings_of(s, loss, all);
    for (int i = 0; i < count; i++) {
        char text[SWEEP_PATH] = "";
        for (int x = 0, len = 0; x < s->axes; x++)
            if (!s->axis[x].mean && s->axis[x].count > 1)
                len += snprintf(text + len, sizeof text - (size_t)len, "%s%s=%s", len ? " " : "", s->axis[x].key,
                                sweep_value(s, all[i].run, x));
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "setting", text);
        cJSON_AddNumberToObject(one, "val_loss", all[i].loss);
        cJSON_AddNumberToObject(one, "spread", all[i].spread);
        cJSON_AddItemToArray(list, one);
        if (cli_flag(s->args, "--json")) continue;
        printf("%-80s  loss %8.4f +- %.4f over %d runs\n", text, all[i].loss, all[i].spread, s->runs / count);
    }
}

/* The proved constant of a run: under a target in its norm and units, else as the certificate has it. */
static void print_bound(const cJSON *o)
{
    char bound[32], target[32];
    const cJSON *t = cJSON_GetObjectItem(o, "target");
    if (t)
        printf("  bound %s (%s; target %s) %s", cli_up(bound, t, "bound"), cli_word(t, "measure"),
               taut_number_print(target, cli_number(t, "target")), cli_word(t, "about"));
    else if (*cli_word(o, "about"))
        printf("  bound %s (%s) %s", cli_up(bound, o, "lip"), cli_word(o, "measure"), cli_word(o, "about"));
    else
        printf("  not certified");
}

/* One line of the table, and the run's validation loss. */
static double tell_run(const sweep *s, const char *folder, cJSON *runs)
{
    cJSON *o = sweep_look(folder), *one = cJSON_CreateObject(), *target = cJSON_GetObjectItem(o, "target");
    const double loss = cli_number(cJSON_GetObjectItem(o, "summary"), "val_loss");
    const double steps = cli_number(cJSON_GetObjectItem(o, "summary"), "steps");
    cJSON_AddStringToObject(one, "run", folder);
    cJSON_AddNumberToObject(one, "steps", steps);
    cJSON_AddNumberToObject(one, "val_loss", loss);
    cJSON_AddNumberToObject(one, "lip", cli_number(o, "lip"));
    if (*cli_word(o, "measure")) cJSON_AddStringToObject(one, "measure", cli_word(o, "measure"));
    if (target) cJSON_AddItemToObject(one, "target", cJSON_Duplicate(target, true));
    if (!cli_flag(s->args, "--json")) {
        if (isnan(steps)) { /* no summary */
            printf("%-60s  failed\n", folder);
        } else {
            printf("%-60s  %6.0f steps  loss %8.4f", folder, steps, loss);
            print_bound(o);
            printf("\n");
        }
    }
    cJSON_AddItemToArray(runs, one);
    cJSON_Delete(o);
    return loss;
}

int sweep_tell(const sweep *s)
{
    char(*folder)[SWEEP_PATH] = calloc((size_t)s->runs, sizeof *folder), page[SWEEP_LEN * 2];
    const char **list = calloc((size_t)s->runs, sizeof *list);
    cJSON *o = cJSON_CreateObject(), *runs = cJSON_AddArrayToObject(o, "runs");
    double loss[SWEEP_RUNS];
    int code = EXIT_DONE;
    if (!folder || !list) return cli_refuse(s->args, "out of memory");
    for (int i = 0; i < s->runs; i++) {
        sweep_folder(s, i, folder[i]);
        list[i] = folder[i];
        loss[i] = tell_run(s, folder[i], runs);
    }
    if (cli_flag(s->args, "--mean")) rank(s, loss, cJSON_AddArrayToObject(o, "settings"));
    snprintf(page, sizeof page, "%s/frontier.html", s->out);
    const taut_page_options options = { .size = sizeof options, .title = s->recipe, .frontier = 1 };
    if (taut_report_page(NULL, page, list, s->runs, &options)) code = cli_fail(s->args);
    free(folder);
    free(list);
    if (!code && cli_flag(s->args, "--json")) return cli_json(o);
    if (!code) printf("%s\n", page);
    cJSON_Delete(o);
    return code;
}
