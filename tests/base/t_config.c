/* Recipes: every kind of problem has its line, the resolved recipe reads back, and no allocation may fail
 * unseen. */
#include "base/config.h"

#include "base/alloc.h"
#include "harness.h"
#include "temp.h"

typedef struct {
    int64_t steps;
    double lr, eps;
    bool tied;
    const char *data;
    int optimiser;
} answers;

static void ask(answers *a, taut_config *cfg)
{
    a->steps = taut_config_int(cfg, "train.steps", 1000, 1, 1000000000);
    a->lr = taut_config_real(cfg, "train.lr", 1e-3, 0, 10);
    a->tied = taut_config_bool(cfg, "model.tied", true);
    a->data = taut_config_text(cfg, "data.source", "brackets");
    a->optimiser = taut_config_choice(cfg, "train.optimiser", "adamw|muon|sgd", 0);
    a->eps = taut_config_real(cfg, "attack.eps", 8.0 / 255, 0, INFINITY);
}

/* The line of the first problem of a text; "" if there is none. */
static const char *problem(const char *text, const char *set)
{
    taut_config *cfg;
    answers a;
    static char line[2048];
    line[0] = 0;
    taut_status status = taut_config_parse(&cfg, text, "tiny.ini");
    if (status) return "parse failed";
    if (set) status = taut_config_set(cfg, set);
    if (!status) {
        ask(&a, cfg);
        status = taut_config_finish(cfg);
    }
    CHECK(!status || status == TAUT_BAD_CONFIG, "the status");
    if (status) snprintf(line, sizeof line, "%s", taut_last_error());
    taut_config_free(cfg);
    return line;
}

static void expect(const char *text, const char *set, const char *line)
{
    const char *got = problem(text, set);
    if (strcmp(got, line) != 0 && fails++ < 20) fprintf(stderr, "FAIL wanted: %s\n     got:    %s\n", line, got);
}

static void problems(void)
{
    expect("", NULL, "");
    expect("\xEF\xBB\xBF[train]\n; a\n# b\n  steps = 5 ; c\n\tlr=1/6 # d\r\n\n[model]\ntied = no\n", NULL, "");
    expect("[train]\nsteps = abc\n", NULL,
           "tiny.ini: train.steps = \"abc\" is not a whole number from 1 to 1000000000");
    expect("[train]\nsteps = 0\n", NULL, "tiny.ini: train.steps = \"0\" is not a whole number from 1 to 1000000000");
    expect("[train]\nsteps =\n", NULL, "tiny.ini: train.steps = \"\" is not a whole number from 1 to 1000000000");
    expect("[train]\nsteps = 10 20\n", NULL,
           "tiny.ini: train.steps = \"10 20\" is not a whole number from 1 to 1000000000");
    expect("[train]\nlr = nan\n", NULL, "tiny.ini: train.lr = \"nan\" is not a number from 0 to 10");
    expect("[train]\nlr = 1e999\n", NULL, "tiny.ini: train.lr = \"1e999\" is not a number from 0 to 10");
    expect("[attack]\neps = -1\n", NULL, "tiny.ini: attack.eps = \"-1\" is not a number from 0 up");
    expect("[model]\ntied = maybe\n", NULL, "tiny.ini: model.tied = \"maybe\" is not true or false");
    expect("[train]\noptimiser = adam\n", NULL,
           "tiny.ini: train.optimiser = \"adam\" is not one of adamw, muon, sgd (did you mean adamw?)");
    expect("[train]\noptimiser = lbfgs\n", NULL,
           "tiny.ini: train.optimiser = \"lbfgs\" is not one of adamw, muon, sgd");
    expect("[train]\nstpes = 5\n", NULL, "tiny.ini: train.stpes: unknown key (did you mean train.steps?)");
    expect("[model]\nsteps = 5\n", NULL, "tiny.ini: model.steps: unknown key (did you mean train.steps?)");
    expect("[x]\ny = 5\n", NULL, "tiny.ini: x.y: unknown key");
    expect("[train]\nsteps = 5\nlr = 1\nsteps = 5\n", NULL, "tiny.ini: line 4: train.steps is given twice");
    expect("[train]\nsteps = 5\n[model]\n[train]\nsteps = 5\n", NULL, "tiny.ini: line 5: train.steps is given twice");
    expect("\nsteps = 5\n", NULL, "tiny.ini: line 2: \"steps\" stands outside any [section]");
    expect("[train]\n\nsteps 5\n", NULL, "tiny.ini: line 3 is neither \"key = value\" nor \"[section]\"");
    expect("[train\nsteps = 5\n", NULL, "tiny.ini: line 1 is neither \"key = value\" nor \"[section]\"");
    expect("[train] steps = 5\n", NULL, "tiny.ini: line 1 has something behind its ]");
    expect("[train]\n= 5\n", NULL, "tiny.ini: line 2: \"\" in [train] is not a legal key");
    expect("[tr.ain]\nx = 5\n", NULL, "tiny.ini: line 2: \"x\" in [tr.ain] is not a legal key");
    expect("[train]\nsteps = 5\a\n", NULL, "tiny.ini: line 2 has a control character");
    static char text[140000];
    snprintf(text, sizeof text, "[train]\n# %0200d\nsteps = 5\n", 0);
    expect(text, NULL, "");
    snprintf(text, sizeof text, "[train]\nsteps = 5 # %0200d\n", 0);
    expect(text, NULL, "");
    snprintf(text, sizeof text, "[train]\nsteps %0200d\n", 0);
    expect(text, NULL, "tiny.ini: line 2 is longer than 190 bytes");
    snprintf(text, sizeof text, "[train]\nx%0200d = 5\n", 0);
    expect(text, NULL, "tiny.ini: line 2 is longer than 190 bytes");
    snprintf(text, sizeof text, "[train]\nsteps = 5 \a %0200d\n", 0);
    expect(text, NULL, "tiny.ini: line 2 has a control character");
    snprintf(text, sizeof text, "[data]\nsource = %0131100d\n", 0);
    expect(text, NULL, "tiny.ini: line 2 is longer than 131072 bytes");
}

/* Values of any length come back as they are, from a text and from an override. */
static void long_values(void)
{
    static char value[100001], text[100100];
    for (int len = 150; len <= 100000; len = len < 250 ? len + 1 : 10 * len) {
        taut_config *cfg;
        for (int i = 0; i < len; i++) value[i] = i && i < len - 1 && i % 7 == 3 ? ' ' : (char)('a' + i % 26);
        value[len] = 0;
        snprintf(text, sizeof text, "[data]\n source\t= %s  ; text\n[train]\nlr = 1\n", value);
        if (taut_config_parse(&cfg, text, "a")) abort();
        CHECK(strcmp(taut_config_text(cfg, "data.source", ""), value) == 0, "a long value");
        CHECK(taut_config_real(cfg, "train.lr", 0, 0, 1) == 1, "and the line behind it");
        char *printed = taut_config_print(cfg);
        taut_config_free(cfg);
        if (taut_config_parse(&cfg, printed, "b")) abort();
        CHECK(strcmp(taut_config_text(cfg, "data.source", ""), value) == 0, "printed and read again");
        free(printed);
        taut_config_free(cfg);
        snprintf(text, sizeof text, "data.source=%s", value);
        if (taut_config_parse(&cfg, "", "c")) abort();
        CHECK(!taut_config_set(cfg, text), taut_last_error());
        CHECK(strcmp(taut_config_text(cfg, "data.source", ""), value) == 0, "an override");
        taut_config_free(cfg);
    }
}

static void overrides(void)
{
    expect("[train]\nsteps = abc\n", "train.steps=7", "");
    expect("", " train.steps = 7 ", "");
    expect("", "train.steps=x", "set train.steps = \"x\" is not a whole number from 1 to 1000000000");
    expect("", "train.stpes=7", "set train.stpes: unknown key (did you mean train.steps?)");
    expect("", "train.steps", "set train.steps: wants section.key=value");
    expect("", "steps=7", "set steps=7: wants section.key=value");
    expect("", "a.b.c=7", "set a.b.c=7: wants section.key=value");
    expect("", "data.source=a #b", "set data.source: the value is too long or could not stand in a recipe");
    expect("", "data.source=a\nb", "set data.source: the value is too long or could not stand in a recipe");
    expect("", "data.source=a=b", "");
}

static void defaults(void)
{
    taut_config *cfg;
    CHECK(!taut_config_parse(&cfg, "", "d.ini"), "parse");
    CHECK(taut_config_int(cfg, "a.b", 5, 0, 9) == 5 && taut_config_int(cfg, "a.b", 5, 0, 9) == 5, "asked twice");
    CHECK(!taut_config_text(cfg, "a.none", NULL), "no default");
    CHECK(!taut_config_finish(cfg), "the same default twice is fine");
    CHECK(taut_config_int(cfg, "a.b", 6, 0, 9) == 6 && taut_config_finish(cfg), "two defaults are not");
    CHECK(strstr(taut_last_error(), "two defaults"), taut_last_error());
    taut_config_free(cfg);
    CHECK(!taut_config_parse(&cfg, "", "d.ini"), "parse");
    CHECK(taut_config_int(cfg, "a.b", 0, 1, 9) == 0 && taut_config_finish(cfg), "a default outside its range");
    taut_config_free(cfg);
    CHECK(!taut_config_parse(&cfg, "", "d.ini"), "parse");
    CHECK(isnan(taut_config_real(cfg, "a.b", NAN, -INFINITY, INFINITY)) && taut_config_finish(cfg), "a NaN default");
    taut_config_free(cfg);
}

/* Any values: print, parse, ask again, print again. */
static void round_trip(void)
{
    for (case_no = 0; case_no < effort(500); case_no++) {
        char text[1024];
        const char *const names[] = { "adamw", "muon", "sgd" };
        snprintf(text, sizeof text, "[train]\nsteps=%d\nlr=%.17g\noptimiser=%s\n[data]\nsource= %c b;c#d\n",
                 (int)rng_int(1, 1000000), rng_unit() * 10, names[rng_int(0, 2)], (char)rng_int('a', 'z'));
        taut_config *first, *second;
        answers a, b;
        if (taut_config_parse(&first, text, "a")) abort();
        ask(&a, first);
        CHECK(!taut_config_finish(first), taut_last_error());
        char *printed = taut_config_print(first);
        if (taut_config_parse(&second, printed, "b")) abort();
        ask(&b, second);
        CHECK(!taut_config_finish(second), taut_last_error());
        char *again = taut_config_print(second);
        CHECK(strcmp(printed, again) == 0, "prints the same");
        CHECK(a.steps == b.steps && a.lr == b.lr && a.eps == b.eps && a.tied == b.tied && a.optimiser == b.optimiser &&
                  strcmp(a.data, b.data) == 0,
              "answers the same");
        CHECK(b.eps == 8.0 / 255, "defaults survive to the bit");
        free(printed);
        free(again);
        taut_config_free(first);
        taut_config_free(second);
    }
    taut_config *cfg;
    answers a;
    if (taut_config_parse(&cfg, "[train]\nlr = 1/4\n", "a")) abort();
    ask(&a, cfg);
    char *printed = taut_config_print(cfg);
    CHECK(strcmp(printed, "[train]\nsteps = 1000\nlr = 0.25\noptimiser = adamw\n\n[model]\ntied = true\n\n[data]\n"
                          "source = brackets\n\n[attack]\neps = 0.03137254901960784\n") == 0,
          printed);
    free(printed);
    taut_config_free(cfg);
}

static taut_status whole(const char *path)
{
    taut_config *cfg;
    answers a;
    taut_status status = taut_config_open(&cfg, path);
    if (status) return status;
    status = taut_config_set(cfg, "train.steps=9");
    if (!status) status = taut_config_set(cfg, "train.lr=1");
    if (!status) {
        ask(&a, cfg);
        status = taut_config_finish(cfg);
    }
    char *printed = taut_config_print(cfg);
    if (!printed) status = TAUT_NO_MEMORY;
    free(printed);
    taut_config_free(cfg);
    return status;
}

static void files_and_memory(void)
{
    const char *path = temp_text("a.ini", "[train]\nsteps = 5\n");
    long n = 0;
    taut_status status;
    do {
        taut_alloc_fail_at(++n);
        status = whole(path);
        taut_alloc_fail_at(0);
        CHECK(!status || status == TAUT_NO_MEMORY, taut_last_error());
    } while (status && n < 1000);
    CHECK(n > 20, "every allocation was made to fail");
    taut_config *cfg;
    CHECK(taut_config_open(&cfg, temp_path("none.ini")) == TAUT_BAD_FILE && !cfg, "a missing file");
    CHECK(taut_config_open(&cfg, temp_dir) == TAUT_BAD_FILE, "a folder");
    CHECK(taut_config_open(&cfg, temp_put("nul.ini", "[a]\n\0b=1", 9)) == TAUT_BAD_CONFIG, "a NUL");
}

/* Any bytes at all: an answer, one line, no crash. */
/* A record says what was overridden and whether a recipe is still the same; a key that it does not know has its default. */
static void record(void)
{
    static const char *const may[] = { "train.steps", NULL };
    const char *value[2] = { NULL, NULL };
    taut_config *first = NULL, *again = NULL, *stored = NULL;
    answers a;
    CHECK(!taut_config_parse(&first, "[train]\nlr = 0.5\n", "r"), "a recipe");
    CHECK(!taut_config_set(first, "train.lr=0.25") && !taut_config_fill(first, "train.lr=1"), "an override stands");
    CHECK(!taut_config_fill(first, "model.tied=false"), "data fill what nobody gave");
    char *sets = taut_config_print_sets(first);
    CHECK(sets && strcmp(sets, "# --set train.lr=0.25\n") == 0, "only overrides are on record");
    ask(&a, first);
    char *text = taut_config_print(first);
    CHECK(text && !taut_config_parse(&stored, text, "record"), "the record");
    CHECK(!taut_config_parse(&again, "[train]\nlr = 0.5\nsteps = 7\n[model]\ntied = false\n", "r"), "the recipe again");
    CHECK(!taut_config_take_sets(again, sets), "overridden as before");
    ask(&a, again);
    CHECK(!taut_config_differs(again, stored, may, value), "the same but for its steps");
    const char *key = taut_config_differs(again, stored, may + 1, value);
    CHECK(key && strcmp(key, "train.steps") == 0 && strcmp(value[0], "7") == 0, "which may not always change");
    taut_config_free(stored), taut_config_free(again);
    CHECK(!taut_config_parse(&stored, "[train]\nlr = 0.25\n[model]\ntied = false\n", "old"), "an older record");
    CHECK(!taut_config_differs(first, stored, may, value), "knows fewer keys");
    taut_config_free(stored);
    CHECK(!taut_config_parse(&stored, "[train]\nlr = 0.25\n[model]\ntied = false\nx = 1\n", "other"), "another");
    key = taut_config_differs(first, stored, may, value);
    CHECK(key && strcmp(key, "model.x") == 0 && !value[0] && strcmp(value[1], "1") == 0, "a key that nobody asks for");
    taut_config_free(stored), taut_config_free(first);
    free(sets), free(text);
}

static void noise(void)
{
    static const char pieces[] = "[]=;# \t\n\rabc.train.steps:12-\"\x80\xFF";
    for (case_no = 0; case_no < effort(20000); case_no++) {
        char text[600];
        const int64_t len = rng_int(0, 599);
        for (int64_t i = 0; i < len; i++) text[i] = pieces[rng_int(0, (int64_t)sizeof pieces - 2)];
        text[len] = 0;
        CHECK(!strchr(problem(text, NULL), '\n'), "one line");
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    problems();
    long_values();
    overrides();
    defaults();
    round_trip();
    files_and_memory();
    record();
    noise();
    return test_end("config", "problems, round trips, failed allocations");
}
