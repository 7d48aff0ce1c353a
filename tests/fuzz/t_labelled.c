/* CSV and TSV files of labelled texts: whatever is in them, texts in classes or one line that says what is wrong; the same of
 * texts without classes, in tables and in lines. */
#include "fuzz.h"

#include "data/labelled.h"
#include "data/unlabelled.h"

static void fuzz_begin(void)
{
    fuzz_seed_text("label,text\nspam,\"buy, \"\"now\"\"\nor never\"\nham,hi\nspam,x\nham,y\n");
    fuzz_seed_text("text\tclass\r\na b\t1\r\nb\t2\r\n\r\nc\t1\r\n\"d\"\t2\r\n");
    fuzz_seed_text("Text\n\"one, two\"\nthree\n");
    fuzz_seed_text("3;title;\xC3\xA9t\xC3\xA9\n4;a;b\n3;c;d\n4;e;f\n");
}

static void one_line(taut_status status)
{
    if (status) CHECK(*taut_last_error() && !strchr(taut_last_error(), '\n'), "one line");
}

static void unlabelled(const char *path, size_t len)
{
    taut_text_rows rows;
    taut_unlabelled lines = { 0 };
    const taut_status s = taut_unlabelled_file(&rows, path, len % 4 == 0 ? "text,id" : NULL);
    one_line(s);
    for (int64_t i = 0; !s && i < rows.count; i++) CHECK(*rows.row[i].text && rows.row[i].line > 0, "a text of a line");
    taut_text_rows_free(&rows);
    const taut_status t = taut_unlabelled_texts(&lines, path, NULL);
    one_line(t);
    for (int64_t i = 0; !t && i < lines.count; i++) CHECK(*lines.of[i].text && lines.of[i].place > 0, "a line");
    taut_unlabelled_free(&lines);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    unlabelled(fuzz_file(data, len), len);
    taut_labelled *t = NULL;
    const taut_labelled_spec spec = { .source = fuzz_file(data, len),
                                      .label = len % 3 == 0 ? "label" : NULL,
                                      .names = len % 5 == 0 ? "1,2" : NULL,
                                      .val_fraction = 0.3 };
    const taut_status status = taut_labelled_open(&t, &spec);
    CHECK(!status == (t != NULL), "texts or an error");
    if (status) {
        CHECK(*taut_last_error() && !strchr(taut_last_error(), '\n'), "one line");
        return;
    }
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < t->count[i]; k++)
            CHECK(*t->text[i][k] && t->label[i][k] >= 0 && t->label[i][k] < t->classes, "a text in a class");
    taut_labelled_free(t);
}
