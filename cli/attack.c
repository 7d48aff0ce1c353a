/* Attacks a stored model, and holds what is found against what is certified. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "cli.h"

static double percent(const cJSON *o, const char *key) { return 100 * cli_number(o, key); }

static void print_profile(const cJSON *profile)
{
    const cJSON *parts = cJSON_GetObjectItem(profile, "parts"), *part;
    if (cJSON_GetArraySize(parts) > 1)
        cJSON_ArrayForEach(part, parts) printf("    after %-12s %6.2f %%   (%.0f broken)\n", cli_word(part, "attack"),
                                               percent(part, "after"), cli_number(part, "broken"));
    printf("  %-16s %6.2f %%\n", cli_word(profile, "profile"), percent(profile, "robust_acc"));
}

static void print_radius(const cJSON *radius, const char *norm)
{
    const cJSON *profiles = cJSON_GetObjectItem(radius, "attacks"), *profile;
    char l2[32];
    printf("%s, eps = %s; the largest perturbation %.6g\n", norm, cli_word(radius, "eps"),
           cli_number(radius, "largest_perturbation"));
    cJSON_ArrayForEach(profile, profiles) print_profile(profile);
    if (cJSON_GetArraySize(profiles) > 1) printf("  %-16s %6.2f %%\n", "worst case", percent(radius, "robust_acc"));
    if (cJSON_GetObjectItem(radius, "certified_acc"))
        printf("  %-16s %6.2f %%   (l2 radius above %s)\n", "certified", percent(radius, "certified_acc"),
               taut_number_down(l2, cli_number(radius, "certified_l2")));
}

static void print(const cJSON *o)
{
    const cJSON *item;
    printf("%.0f examples, clean accuracy %.2f %%\n", cli_number(o, "n_ex"), percent(o, "clean_acc"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(o, "radii")) print_radius(item, cli_word(o, "norm"));
    if (cJSON_GetObjectItem(o, "for")) printf("certified is what the kernels %s compute\n", cli_word(o, "for"));
    if (cJSON_GetObjectItem(o, "not_certified")) printf("no certified column: %s\n", cli_word(o, "not_certified"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(o, "warnings")) printf("warning: %s\n", cJSON_GetStringValue(item));
    if (cli_number(o, "float_only") > 0)
        printf("note: %.0f successes lie inside a certified radius in float and are not repeated in double\n",
               cli_number(o, "float_only"));
    printf("%.0f passes forward, %.0f back, %.1f s\n", cli_number(o, "forwards"), cli_number(o, "backwards"),
           cli_number(o, "seconds"));
    if (cli_number(o, "contradictions") > 0)
        printf("CONTRADICTION: %.0f successes inside a certified radius%s%s\n", cli_number(o, "contradictions"),
               *cli_word(o, "reproducer") ? "; see " : "", cli_word(o, "reproducer"));
}

static int replay(const cli_args *a, const char *file)
{
    char *json = NULL;
    if (taut_attack_replay(&json, a->operand[0], file)) return cli_fail(a);
    cJSON *o = cJSON_Parse(json);
    const bool rings = cJSON_IsTrue(cJSON_GetObjectItem(o, "contradiction"));
    if (cli_flag(a, "--json"))
        puts(json);
    else
        printf("%s on example %.0f: class %.0f, then %.0f at l2 distance %.17g; certified radius %.17g\n%s\n",
               cli_word(o, "attack"), cli_number(o, "example"), cli_number(o, "predicted"), cli_number(o, "attacked"),
               cli_number(o, "distance"), cli_number(o, "radius"),
               rings ? "CONTRADICTION: the certificate does not hold" : "no contradiction");
    cJSON_Delete(o);
    taut_string_free(json);
    return rings ? EXIT_CONTRADICTION : EXIT_DONE;
}

static int run(const cli_args *a)
{
    const taut_attack_options o = { .size = sizeof o,
                                    .kernels = cli_table(a),
                                    .attacks = cli_text(a, "--attack", NULL),
                                    .norm = cli_text(a, "--norm", NULL),
                                    .eps = cli_text(a, "--eps", NULL),
                                    .examples = cli_int(a, "--n-ex", 100, 1, 10000000),
                                    .data = cli_text(a, "--data", NULL),
                                    .steps = cli_int(a, "--steps", 0, 1, 1000000),
                                    .restarts = cli_int(a, "--restarts", 0, 1, 1000),
                                    .targets = cli_int(a, "--targets", 0, 1, 4000),
                                    .queries = cli_int(a, "--queries", 0, 1, 100000000),
                                    .step_size = cli_real(a, "--step-size", 0, 1e-9, 1e9),
                                    .fixed_start = cli_flag(a, "--no-random-start"),
                                    .seed = (uint64_t)cli_int(a, "--seed", 0, 0, INT64_MAX),
                                    .no_certify = cli_flag(a, "--no-certify"),
                                    .folder = cli_text(a, "--out", "."),
                                    .state = cli_text(a, "--state", NULL),
                                    .batch = cli_int(a, "--batch-size", 0, 1, 100000),
                                    .gallery = cli_int(a, "--gallery", 0, 0, 64),
                                    .progress = cli_show,
                                    .arg = "attacking",
                                    .join = cli_text(a, "--join", NULL),
                                    .runs_on = cli_text(a, "--for", NULL) };
    if (o.runs_on && o.no_certify) return cli_refuse(a, "--for is about certificates: leave --no-certify");
    if (cli_text(a, "--replay", NULL)) return replay(a, cli_text(a, "--replay", NULL));
    const int together = cli_group_here().count;
    if (together > 1 && !o.join)
        return cli_refuse(
            a, "%d processes were started together, and each would do all of it: share it with --join DIR", together);
    if (o.join) (void)cli_hush(); /* of processes that were started together the first says what all have found */
    taut_attacked *found = NULL;
    taut_attack_facts facts;
    char *json = NULL;
    taut_status s = taut_attack_file(&found, a->operand[0], &o);
    cli_bar_end();
    if (!s) s = taut_attacked_look(found, &facts);
    if (!s) s = taut_attacked_json(found, &json);
    taut_attacked_free(found);
    if (s) return cli_fail(a);
    cJSON *all = cJSON_Parse(json);
    if (cli_flag(a, "--json"))
        puts(json);
    else
        print(all);
    cJSON_Delete(all);
    taut_string_free(json);
    return facts.contradictions ? EXIT_CONTRADICTION : EXIT_DONE;
}
static const cli_option options[] = {
    { "--attack", "LIST",
      "fgsm pgd apgd-ce apgd-dlr apgd-t fab fab-t square aa-standard (autoattack) aa-plus aa-rand ta-10" },
    { "--norm", "N", "Linf, L2 or L1; images in [0, 1] (default Linf), embeddings of a text (default L2)" },
    { "--eps", "LIST", "radii, such as 2/255,8/255 (default 8/255, 0.5 for L2, 12 for L1)" },
    { "--n-ex", "N", "N examples of the validation split (default 100), those that taut certify --n-ex N takes" },
    { "--data", "D", "other data than the model was trained on" },
    { "--steps", "N", "other than the attack's own number of steps" },
    { "--restarts", "N", "other than its own number of random starts" },
    { "--targets", "N", "other than its own number of wrong classes to pull to" },
    { "--queries", "N", "other than Square's 5000 queries" },
    { "--step-size", "X", "PGD's step over eps (default 2.5 / steps)" },
    { "--no-random-start", NULL, "PGD's first run starts at the clean input" },
    { "--batch-size", "N", "examples attacked and saved together (default 256, with --join 16); changes no result" },
    { "--join", "DIR",
      "share the examples with every process that is given the same words and DIR; each ends with all results" },
    { "--gallery", "N", "keep up to N of the images that were turned in the JSON, for taut report" },
    { "--state", "FILE", "results so far; an interrupted attack goes on from it" },
    { "--for", "K",
      "certified is what the kernels K compute, those of --kernels, and not only the network in real arithmetic" },
    { "--no-certify", NULL, "do not hold the results against certificates" },
    { "--out", "DIR", "where an input that contradicts a certificate is saved (default .)" },
    { "--replay", "FILE", "look at such an input again" },
    { NULL, NULL, NULL },
};

const cli_command cli_attack = {
    "attack",
    "MODEL",
    "attacks a model; exit code 2 if an attack beats a certificate",
    "taut attack runs/vit --attack aa-standard --norm L2 --eps 0.25 --n-ex 20",
    1,
    1,
    options,
    run,
};
