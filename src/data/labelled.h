/* Texts and their classes, in two splits, and as a source of examples.
 *
 * Files are CSV or TSV (records.h).  A first row that names a column label, class, target, category, sentiment, intent,
 * topic or y and one text, sentence, review, content, comment, message, tweet, question, document or utterance is a
 * header (small or capital letters).  Without it the first column is the class, and the others, with blanks between
 * them, are the text.  A folder has train.csv, and test, val, valid or validation.csv, which validates (.tsv alike); or
 * one of them, of which a drawn part validates, as of a file.  classes.txt beside them names classes that are numbers, a
 * line per class in their order. */
#ifndef TAUT_DATA_LABELLED_H
#define TAUT_DATA_LABELLED_H
#include "data/source.h"

typedef struct {
    const char *source; /* "animals" is built in: `length` texts from the seed; anything else is found as data */
    const char *label,
        *text;         /* columns by name, of a header: one; one or more, with commas between them; NULL: found */
    const char *names; /* the classes that there may be, in this order, with commas; NULL: all that occur */
    int64_t length;
    double val_fraction;
    uint64_t seed;
} taut_labelled_spec;

typedef struct {
    int64_t classes, count[2];
    char **text[2];
    int32_t *label[2];
    char
        *names; /* of the classes, with commas between them: numbers in their order, else in the order of their bytes */
} taut_labelled;

/* Labels are those of spec->names by name, or, where they are as many and numbers, in the order of the numbers.  Without
 * names, a class of one text is refused: it is nothing to learn, and may be a header that is not understood. */
taut_status taut_labelled_open(taut_labelled **out, const taut_labelled_spec *) TAUT_MUST_USE;
void taut_labelled_free(taut_labelled *);

/* source_labelled.c: (context) ids and one class.  A longer text is cut; a shorter one is filled behind its end with the
 * vocabulary's padding, or where it has none with the id behind its last.  The training stream goes through all texts in
 * a new order every time.  The vocabulary is the source's from the call on, even if it fails; the texts remain the
 * caller's. */
taut_status taut_source_labelled(taut_source **out, const taut_labelled *, taut_vocab *, int64_t context) TAUT_MUST_USE;

/* The ids of one text, cut or filled as above; *all: how many it has before, if asked for. */
taut_status taut_labelled_encode(int32_t *ids, int64_t context, int64_t *all, const taut_vocab *,
                                 const char *text) TAUT_MUST_USE;

/* A text and its class as a file or a built-in set has them; both are freed one by one. */
typedef struct {
    char *text, *label;
    int64_t line; /* where it stands */
} taut_text_row;
typedef struct {
    taut_text_row *row;
    int64_t count;
} taut_text_rows;
void taut_text_rows_free(taut_text_rows *);
/* labelled_file.c: the rows of one file, columns as the spec says. */
taut_status taut_labelled_file(taut_text_rows *, const char *path, const taut_labelled_spec *) TAUT_MUST_USE;
/* The same without classes: the columns of these names (commas between them), or NULL: the usual text column of a header, or
 * the only column that there is. */
taut_status taut_unlabelled_file(taut_text_rows *, const char *path, const char *columns) TAUT_MUST_USE;
/* animals.c: the built-in set. */
taut_status taut_animals_make(taut_text_rows *, int64_t length, uint64_t seed) TAUT_MUST_USE;
#endif
