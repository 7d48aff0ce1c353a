/* Attacks a stored model, and holds what is found against what is certified. */
#include "attack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

static taut_status begin(attack_scene *s)
{
    const cli_args *a = s->args;
    const char *norm = cli_text(a, "--norm", s->text ? "L2" : "Linf"), *eps = cli_text(a, "--eps", NULL);
    const taut_profile_options o = { .steps = cli_int(a, "--steps", 0, 1, 1000000),
                                     .restarts = cli_int(a, "--restarts", 0, 1, 1000),
                                     .targets = cli_int(a, "--targets", 0, 1, 4000),
                                     .queries = cli_int(a, "--queries", 0, 1, 100000000),
                                     .step = cli_real(a, "--step-size", 0, 1e-9, 1e9),
                                     .fixed_start = cli_flag(a, "--no-random-start") };
    taut_ball_kind kind;
    if (!taut_ball_parse(&kind, norm)) return taut_fail(TAUT_BAD_CONFIG, "--norm is Linf, L2 or L1, not %s", norm);
    if (!eps && s->text) return taut_fail(TAUT_BAD_CONFIG, "--eps is needed: embeddings have no usual radius");
    if (!eps) eps = kind == TAUT_BALL_LINF ? "8/255" : kind == TAUT_BALL_L2 ? "0.5" : "12";
    const uint64_t seed = (uint64_t)cli_int(a, "--seed", 0, 0, INT64_MAX);
    return taut_campaign_open(&s->c, cli_text(a, "--attack", "aa-standard"), kind, eps, !s->text, o, seed, s->n);
}

static taut_status look(attack_scene *s)
{
    const int64_t few = s->n < 64 ? s->n : 64;
    for (int p = 0; p < s->c.profiles; p++) {
        const taut_status status = taut_warn_before(&s->warnings, &s->target, &s->c.profile[p], s->x, s->label, few,
                                                    s->c.seed);
        if (status) return status;
    }
    return TAUT_OK;
}

/* With --no-certify nobody looks for contradictions: such results cannot be taken over into a run that does. */
static void about(char *text, size_t room, const attack_scene *s)
{
    snprintf(text, room, "%s %s %s%s", s->sha, cli_text(s->args, "--data", s->m.data.source), s->m.model->k->name,
             cli_flag(s->args, "--no-certify") ? " --no-certify" : "");
}

static taut_status seen(void *arg, const taut_campaign_part *p)
{
    attack_scene *s = arg;
    const taut_campaign *c = &s->c;
    char text[512];
    taut_status status = taut_watch_part(&s->watch, p);
    attack_gallery_see(s, p);
    about(text, sizeof text, s);
    if (!status && s->state) status = taut_campaign_save(c, text, s->watch.alarms, s->state);
    cli_bar(((double)(p->eps * c->profiles + p->profile) + (double)(p->first + p->count) / (double)c->n) /
                (double)(c->eps.count * c->profiles),
            c->profile[p->profile].name);
    return status;
}

static taut_status attack(attack_scene *s)
{
    char text[512];
    double room = 0;
    taut_status status = TAUT_OK;
    s->state = cli_text(s->args, "--state", NULL);
    for (int i = 0; i < s->c.eps.count; i++) room = fmax(room, attack_l2(s, i) * (1 + 1e-6));
    about(text, sizeof text, s);
    s->watch = (taut_watch){
        .c = &s->c, .label = s->label, .model = s->sha, .folder = cli_text(s->args, "--out", ".")
    };
    if (s->state && taut_file_exists(s->state)) status = taut_campaign_load(&s->c, text, &s->watch.alarms, s->state);
    if (!status && cli_flag(s->args, "--no-certify")) s->why = "it was not asked for";
    if (!status && !s->why) status = attack_certify(s, room);
    if (status) return status;
    if (s->radius) {
        s->watch.ref = &s->ref, s->watch.radius = s->radius, s->watch.predicted = s->predicted;
        s->watch.slack = attack_slack(s);
    }
    status = look(s);
    const double start = cli_now();
    s->target.forwards = s->target.backwards = 0;
    if (!status)
        status = taut_campaign_run(&s->c, &s->target, s->x, s->z, s->label,
                                   cli_int(s->args, "--batch-size", 256, 1, 100000), seen, s);
    cli_bar_end();
    s->seconds = cli_now() - start;
    for (int e = 0; !status && e < s->c.eps.count; e++)
        for (int p = 0; p < s->c.profiles; p++) {
            int64_t broken[TAUT_PROFILE_ATTACKS] = { 0 };
            for (int64_t i = 0; i < s->n; i++)
                if (taut_campaign_by(&s->c, e, p)[i] >= 0) broken[taut_campaign_by(&s->c, e, p)[i]]++;
            taut_warn_after(&s->warnings, &s->c.profile[p], broken, s->n);
        }
    return status;
}

static int run(const cli_args *a)
{
    attack_scene s = { .args = a, .n = cli_int(a, "--n-ex", 100, 1, 10000000) };
    const char *replay = cli_text(a, "--replay", NULL);
    taut_status status = attack_open(&s);
    int code = EXIT_BAD;
    if (!status && replay) {
        code = attack_replay(&s, replay);
        attack_close(&s);
        return code;
    }
    s.shown = cli_int(a, "--gallery", 0, 0, 64);
    s.gallery = cJSON_CreateArray();
    if (!status && s.shown && s.text)
        status = taut_fail(TAUT_BAD_CONFIG, "--gallery is for images: %s reads texts", a->operand[0]);
    if (!status) status = begin(&s);
    if (!status) status = attack(&s);
    if (status)
        code = cli_fail(a);
    else if (cli_flag(a, "--json"))
        code = attack_print_json(&s);
    else
        attack_print(&s), code = EXIT_DONE;
    if (code == EXIT_DONE && s.watch.alarms) code = EXIT_CONTRADICTION;
    attack_close(&s);
    return code;
}

static const cli_option options[] = {
    { "--attack", "LIST", "fgsm pgd apgd-ce apgd-dlr apgd-t fab fab-t square aa-standard aa-plus aa-rand ta-10" },
    { "--norm", "N", "Linf, L2 or L1; images in [0, 1] (default Linf), embeddings of a text (default L2)" },
    { "--eps", "LIST", "radii, such as 2/255,8/255 (default 8/255, 0.5 for L2, 12 for L1)" },
    { "--n-ex", "N", "the first N examples of the validation split (default 100)" },
    { "--data", "D", "other data than the model was trained on" },
    { "--steps", "N", "other than the attack's own number of steps" },
    { "--restarts", "N", "other than its own number of random starts" },
    { "--targets", "N", "other than its own number of wrong classes to pull to" },
    { "--queries", "N", "other than Square's 5000 queries" },
    { "--step-size", "X", "PGD's step over eps (default 2.5 / steps)" },
    { "--no-random-start", NULL, "PGD's first run starts at the clean input" },
    { "--batch-size", "N", "examples attacked and saved together (default 256); changes no result" },
    { "--gallery", "N", "keep up to N of the images that were turned in the JSON, for taut report" },
    { "--state", "FILE", "results so far; an interrupted attack goes on from it" },
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
