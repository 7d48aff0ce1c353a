/* Labelled texts: columns and classes found in every form, cut into splits, read by a model's names, padded and cut; all else is
 * one line. */
#include "data/labelled.h"
#include "harness.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "data/records.h"
#include "temp.h"
#include "train/recipe.h"

static taut_labelled_spec spec_of(const char *path)
{
    return (taut_labelled_spec){ .source = path, .val_fraction = 0.25, .seed = 5, .length = 100 };
}

/* How many texts of both splits are exactly this, in this class. */
static int holds(const taut_labelled *t, const char *text, int32_t class)
{
    int found = 0;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < t->count[i]; k++) found += strcmp(t->text[i][k], text) == 0 && t->label[i][k] == class;
    return found;
}

static void opens(const char *file, const char *names, const char *text, int32_t class)
{
    taut_labelled *t = NULL;
    const taut_labelled_spec spec = spec_of(temp_text("a.csv", file));
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    if (!t) return;
    CHECK(strcmp(t->names, names) == 0, t->names);
    CHECK(t->count[0] + t->count[1] == 4 && t->count[1] == 1, "four texts, of which one validates");
    CHECK(holds(t, text, class) == 1, file);
    taut_labelled_free(t);
}

static void forms(void)
{
    opens("label,text\nspam,buy\nham,\"hi, you\"\nspam,now\nham,a\n", "ham,spam", "hi, you", 0);
    opens("id;Category ;Message\n1;b;x\n2;a;y, z\n3;b;w\n4;a;v\n", "a,b", "y, z", 0);
    opens("\xEF\xBB\xBFtext\tlabel\r\nsay \"no\"\tn\r\n\r\n\"quoted \"\"one\"\"\"\ty\r\nc\ty\r\nd\tn", "n,y",
          "quoted \"one\"", 1);
    opens("text\tlabel\nsay \"no\"\tn\n\"a\"\ty\nc\ty\nd\tn\n", "n,y", "say \"no\"", 0);
    opens("10,a,b\n9,c,\"d \"\"e\"\"\nf\"\n10,g,h\n9,i,j\n", "9,10", "c d \"e\"\nf", 0);
    opens("sentence,y\n\xC3\xA9t\xC3\xA9,1\nb,0\nc,1\nd,0\n", "0,1", "\xC3\xA9t\xC3\xA9", 1);
}

static void refused_with(taut_labelled_spec spec, const char *why)
{
    taut_labelled *t = NULL;
    CHECK(taut_labelled_open(&t, &spec) && !t, why);
    CHECK(strstr(taut_last_error(), why) && !strchr(taut_last_error(), '\n'), taut_last_error());
    taut_labelled_free(t);
}

static void refused(const char *file, const char *why) { refused_with(spec_of(temp_text("a.csv", file)), why); }

static void refusals(void)
{
    refused("", "no columns");
    refused("just a text\nof lines\n", "no columns");
    refused("label,text\na,b\na,b,c\n", "line 3 has 3 cells, where the first row has 2");
    refused("label,text\na,\"b\nb,c\n", "line 2: the quotes of a cell are not closed");
    refused("label,text\na,\"b\"c\nb,c\n", "line 2: the quotes of a cell are not closed");
    refused("label,text\na,b\n,c\n", "line 3 has no class");
    refused("label,text\na,b\nb, \t\n", "line 3 has no text");
    refused("label,text\na,b\na,c\n", "1 classes; at least 2");
    refused("label,text\na,b\na,c\nb,d\n", "line 4: the class \"b\" has one text");
    refused("kind,words\na,b\nb,c\na,d\nb,e\n", "line 1: the class \"kind\" has one text (is it a header?");
    refused("label,text\n\"a,z\",b\n\"a,z\",c\nb,d\nb,e\n", "has no comma");
    refused("label,text\na,\xFF\nb,c\n", "byte 13 is not UTF-8");
    refused_with(spec_of(temp_put("n.csv", "label,text\na,\0b\n", 16)), "byte 13 is NUL");
}

static void named_columns(void)
{
    taut_labelled *t = NULL;
    taut_labelled_spec spec = spec_of(temp_text("c.csv", "who,says,kind,also\nme,hello,g,you\nI,bye,l,all\nhe,hi,g,x\n"
                                                         "she,so long,l,y\n"));
    spec.label = "Kind";
    refused_with(spec, "data.text names the other column");
    spec.text = "says, also";
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    CHECK(t && strcmp(t->names, "g,l") == 0 && holds(t, "hello you", 0) == 1, "two columns make a text");
    taut_labelled_free(t);
    spec.text = "says,nothing";
    refused_with(spec, "data.text = nothing: its first row has no such column");
    spec.label = "sort";
    refused_with(spec, "data.label = sort: its first row has no such column");
}

/* A model's classes are matched by name, not by their order in another file. */
static void known_names(void)
{
    taut_labelled *t = NULL;
    taut_labelled_spec spec = spec_of(temp_text("k.csv", "label,text\nc,1\na,2\nc,3\na,4\n"));
    spec.names = "a,b,c";
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    CHECK(t && t->classes == 3 && holds(t, "1", 2) == 1 && holds(t, "2", 0) == 1, "by name");
    taut_labelled_free(t);
    spec.names = "x,y";
    refused_with(spec, "line 2: the class \"c\" is none of x,y");
    spec = spec_of(temp_text("k.csv", "label,text\n2,1\n1,2\n2,3\n1,4\n"));
    spec.names = "no,yes";
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    CHECK(t && holds(t, "1", 1) == 1 && holds(t, "2", 0) == 1, "as many numbers, in their order");
    taut_labelled_free(t);
    spec.names = "no,perhaps,yes";
    refused_with(spec, "is none of no,perhaps,yes");
}

static void folders(void)
{
    taut_labelled *t = NULL;
    if (mkdir(temp_path("set"), 0755)) abort();
    taut_labelled_spec spec = spec_of(temp_path("set"));
    refused_with(spec, "neither train.csv nor");
    temp_text("set/test.csv", "1,a\n2,b\n1,c\n2,d\n");
    temp_text("set/classes.txt", "World\nSci/Tech\n");
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    CHECK(t && strcmp(t->names, "World,Sci/Tech") == 0 && t->count[1] == 1 && holds(t, "b", 1) == 1, "one file is cut");
    taut_labelled_free(t);
    temp_text("set/train.tsv", "1\te\n1\tf\n2\tg\n2\th\n");
    CHECK(!taut_labelled_open(&t, &spec), taut_last_error());
    CHECK(t && t->count[0] == 4 && t->count[1] == 4 && strcmp(t->text[0][0], "e") == 0, "two are as they are");
    taut_labelled_free(t);
    temp_text("set/test.csv", "1,a\n3,b\n");
    refused_with(spec, "line 2: the class \"3\" is none of World,Sci/Tech");
    temp_text("set/classes.txt", "World\n");
    refused_with(spec, "1 names for 2 classes");
}

/* The same cut again, another with another seed; every text once. */
static void cuts(void)
{
    taut_labelled *a = NULL, *b = NULL, *c = NULL;
    taut_labelled_spec spec = { .source = "animals", .val_fraction = 0.1, .seed = 1, .length = 500 };
    CHECK(!taut_labelled_open(&a, &spec) && !taut_labelled_open(&b, &spec), taut_last_error());
    spec.seed = 2;
    CHECK(!taut_labelled_open(&c, &spec), taut_last_error());
    CHECK(a->count[0] == 450 && a->count[1] == 50 && a->classes == 4, "as large as asked");
    int same = 0, other = 0;
    for (int64_t i = 0; i < 50; i++) {
        same += strcmp(a->text[1][i], b->text[1][i]) == 0;
        other += strcmp(a->text[1][i], c->text[1][i]) == 0;
    }
    CHECK(same == 50 && other < 5, "a function of the seed");
    CHECK(strcmp(a->names, "birds,fish,insects,mammals") == 0, a->names);
    taut_labelled_free(a), taut_labelled_free(b), taut_labelled_free(c);
    spec.val_fraction = 1;
    CHECK(!taut_labelled_open(&a, &spec) && a->count[0] == 0 && a->count[1] == 500, "none to train on");
    taut_labelled_free(a);
}

static void words(void)
{
    taut_vocab *v = NULL;
    char *texts[] = { "The cat, the DOG.", "a cat and a b\xC3\xA9 dog; the end.", "once" };
    CHECK(!taut_vocab_words(&v, texts, 3, 100), taut_last_error());
    char *printed = taut_vocab_print(v);
    CHECK(strcmp(printed, "wordpiece:\n[PAD]\n[UNK]\nthe\n.\na\ncat\ndog\n") == 0, printed);
    CHECK(taut_vocab_pad(v) == 0 && taut_vocab_mask(v) == -1, "padding is a token of it");
    free(printed);
    taut_vocab_free(v);
    CHECK(!taut_vocab_words(&v, texts, 3, 4) && taut_vocab_size(v) == 4, "no more than asked for");
    taut_vocab_free(v);
}

/* Cut and filled to the context: padding of the vocabulary's own, or the id behind its last. */
static void padded(void)
{
    taut_labelled *t = NULL;
    taut_source *s = NULL;
    taut_vocab *v = NULL;
    int32_t ids[4], target = -7;
    const taut_labelled_spec spec = spec_of(temp_text("p.csv", "label,text\n0,ab\n1,abcdef\n0,ab\n1,abcdef\n"));
    CHECK(!taut_labelled_open(&t, &spec) && !taut_vocab_bytes(&v), taut_last_error());
    CHECK(!taut_source_labelled(&s, t, v, 4), taut_last_error());
    CHECK(s->task.tokens == 257 && s->task.asked == 1 && s->task.answers == 2 && s->task.t == 4, "its task");
    CHECK(taut_source_count(s, TAUT_TRAIN) == 3 && taut_source_whole(s, TAUT_VALID) == 1, "every example is whole");
    int seen[2] = { 0, 0 };
    for (int64_t i = 0; i < 3; i++) {
        s->ops->draw(s, (taut_slot){ .ids = ids, .target = &target }, 9, i);
        CHECK(ids[0] == 'a' && ids[1] == 'b' && ids[2] == (target ? 'c' : 256) && ids[3] == (target ? 'd' : 256),
              "ids");
        seen[target]++;
    }
    CHECK(seen[0] > 0 && seen[1] > 0 && seen[0] + seen[1] == 3, "an epoch has every text once");
    taut_source_free(s);
    CHECK(!taut_vocab_words(&v, t->text[0], 3, 10) && !taut_source_labelled(&s, t, v, 4), taut_last_error());
    s->ops->get(s, (taut_slot){ .ids = ids, .target = &target }, TAUT_VALID, 0);
    CHECK(s->task.tokens == taut_vocab_size(v) && ids[0] >= 1 && ids[1] == 0 && ids[3] == 0, "[PAD]");
    taut_source_free(s);
    taut_labelled_free(t);
}

static void recipe(void)
{
    taut_config *cfg = NULL;
    char line[600];
    taut_recipe r;
    snprintf(line, sizeof line, "[model]\narch = classifier\n[data]\nsource = %s\n",
             temp_text("r.csv", "label,text\nup,a b\ndown,c\nup,a\ndown,d\nleft,e\nleft,f\n"));
    CHECK(!taut_config_parse(&cfg, line, "test"), taut_last_error());
    CHECK(!taut_recipe_read(&r, cfg), taut_last_error());
    CHECK(r.model.classes == 3 && strcmp(r.data.class_names, "down,left,up") == 0, "classes become keys");
    CHECK(strcmp(r.data.tokens, "words") == 0 && r.model.context == 128, "words by default");
    taut_config_free(cfg);
}

/* Each allocation fails once: a status, and nothing is lost. */
static void without_memory(void)
{
    const taut_labelled_spec spec = spec_of(temp_text("m.csv", "label,text\na,b\na,c\nb,d\nb,e\n"));
    for (long n = 1;; n++) {
        taut_labelled *t = NULL;
        taut_source *s = NULL;
        taut_vocab *v = NULL;
        const long before = taut_alloc_failures();
        taut_alloc_fail_at(n);
        taut_status status = taut_labelled_open(&t, &spec);
        if (!status) status = taut_vocab_words(&v, t->text[0], t->count[0], 9);
        if (!status) status = taut_source_labelled(&s, t, v, 3);
        const bool all = taut_alloc_failures() == before;
        taut_alloc_fail_at(0);
        CHECK(all ? !status : status == TAUT_NO_MEMORY, taut_last_error());
        taut_source_free(s);
        taut_labelled_free(t);
        if (all) break;
    }
}

int main(void)
{
    temp_begin();
    forms();
    refusals();
    named_columns();
    known_names();
    folders();
    cuts();
    words();
    padded();
    recipe();
    without_memory();
    return test_end("labelled", "6 forms of files, their classes and splits, words and padding");
}
