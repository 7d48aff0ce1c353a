/* One file of labelled texts: which of its columns is the class, which are the text. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/labelled.h"
#include "data/records.h"

enum { COLUMNS = 16 }; /* that make a text, at most */

typedef struct {
    int64_t label, text[COLUMNS];
    int texts;
    bool header;
} columns;

void taut_text_rows_free(taut_text_rows *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        free(r->row[i].text);
        free(r->row[i].label);
    }
    free(r->row);
    *r = (taut_text_rows){ 0 };
}

static char *trim(char *s)
{
    s += strspn(s, " \t");
    size_t len = strlen(s);
    while (len && strchr(" \t", s[len - 1])) s[--len] = 0;
    return s;
}

/* The column of this name, `len` letters long, in the first row; -1: none. */
static int64_t column_of(const taut_records *r, const char *name, size_t len)
{
    for (int64_t i = 0; i < r->cells; i++) {
        const char *cell = trim(r->cell[i]);
        if (strlen(cell) == len && strncasecmp(cell, name, len) == 0) return i;
    }
    return -1;
}

/* The first of some usual names that the first row has. */
static int64_t usual(const taut_records *r, const char *const *names)
{
    int64_t found = -1;
    for (int i = 0; names[i] && found < 0; i++) found = column_of(r, names[i], strlen(names[i]));
    return found;
}

static taut_status no_column(const taut_records *r, const char *path, const char *key, const char *name, size_t len)
{
    return taut_fail(TAUT_BAD_DATA, "%s: %s = %.*s: its first row has no such column (it begins with \"%.60s\")", path,
                     key, (int)len, name, r->cell[0]);
}

static taut_status named_texts(columns *c, const taut_records *r, const char *path, const char *names)
{
    for (const char *p = names; *p; p += strcspn(p, ",")) {
        p += strspn(p, ", ");
        size_t len = strcspn(p, ",");
        while (len && p[len - 1] == ' ') len--;
        const int64_t at = column_of(r, p, len);
        if (at < 0) return no_column(r, path, "data.text", p, len);
        if (c->texts == COLUMNS) return taut_fail(TAUT_BAD_DATA, "%s: a text of more than %d columns", path, COLUMNS);
        c->text[c->texts++] = at;
    }
    return TAUT_OK;
}

static int64_t usual_text(const taut_records *r)
{
    static const char *const texts[] = { "text",  "sentence", "review",   "content",   "comment", "message",
                                         "tweet", "question", "document", "utterance", NULL };
    return usual(r, texts);
}

/* What the header says, or the recipe of it; without either the first column is the class. */
static taut_status find_columns(columns *c, const taut_records *r, const char *path, const taut_labelled_spec *spec)
{
    static const char *const labels[] = { "label",  "class", "target", "category", "sentiment",
                                          "intent", "topic", "y",      NULL };
    const int64_t text = usual_text(r), label = usual(r, labels);
    *c = (columns){ .label = spec->label ? column_of(r, spec->label, strlen(spec->label)) : label };
    if (spec->label && c->label < 0) return no_column(r, path, "data.label", spec->label, strlen(spec->label));
    if (spec->text) {
        const taut_status s = named_texts(c, r, path, spec->text);
        if (s) return s;
    } else if (text >= 0 && text != c->label) {
        c->text[c->texts++] = text;
    } else if (spec->label && r->cells == 2) {
        c->text[c->texts++] = 1 - c->label;
    }
    c->header = c->label >= 0 && c->texts;
    if (c->header) return TAUT_OK;
    if (spec->label || spec->text)
        return taut_fail(TAUT_BAD_DATA, "%s: %s names the other column", path,
                         spec->label ? "data.text" : "data.label");
    *c = (columns){ 0 };
    if (r->cells > COLUMNS)
        return taut_fail(TAUT_BAD_DATA, "%s: %lld columns, and no header", path, (long long)r->cells);
    for (int64_t i = 1; i < r->cells; i++) c->text[c->texts++] = i;
    return TAUT_OK;
}

/* The same where no column is the class (label -1): a table of several says which is the text. */
static taut_status find_texts(columns *c, const taut_records *r, const char *path, const char *names)
{
    const int64_t text = usual_text(r);
    *c = (columns){ .label = -1, .header = names || text >= 0 };
    if (names) return named_texts(c, r, path, names);
    if (text < 0 && r->cells > 1)
        return taut_fail(TAUT_BAD_DATA,
                         "%s: %lld columns, and none of its first row is called text, sentence or the like: say which "
                         "it is (--text NAME)",
                         path, (long long)r->cells);
    c->text[c->texts++] = text < 0 ? 0 : text;
    return TAUT_OK;
}

/* The cells of a text, with blanks between them; the caller frees.  NULL: out of memory. */
static char *join(char *const *cell, const columns *c)
{
    size_t size = 1;
    for (int i = 0; i < c->texts; i++) size += strlen(cell[c->text[i]]) + 1;
    char *text = taut_calloc(size, 1), *p = text;
    for (int i = 0; text && i < c->texts; i++) {
        const size_t len = strlen(cell[c->text[i]]);
        if (i) *p++ = ' ';
        memcpy(p, cell[c->text[i]], len);
        p += len;
    }
    return text;
}

static taut_status take(taut_text_rows *out, const taut_records *r, const columns *c, const char *path)
{
    const int64_t first = c->header;
    out->row = taut_calloc((size_t)(r->rows + 1), sizeof *out->row);
    if (!out->row) return taut_no_memory(path);
    for (int64_t i = first; i < r->rows; i++) {
        char *const *cell = r->cell + i * r->cells;
        taut_text_row *row = &out->row[out->count++];
        *row = (taut_text_row){ join(cell, c), taut_strdup(c->label < 0 ? "" : trim(cell[c->label])), r->line[i] };
        if (!row->text || !row->label) return taut_no_memory(path);
        const bool named = c->label < 0 || *row->label, said = row->text[strspn(row->text, " \t\r\n")];
        if (!named || !said)
            return taut_fail(TAUT_BAD_DATA, "%s: line %lld has no %s", path, (long long)row->line,
                             named ? "text" : "class");
    }
    return TAUT_OK;
}

/* spec NULL: no classes, and the text in these columns. */
static taut_status read_rows(taut_text_rows *out, const char *path, const taut_labelled_spec *spec, const char *names)
{
    char *text = NULL;
    size_t len;
    columns c;
    taut_records r = { 0 };
    *out = (taut_text_rows){ 0 };
    taut_status s = taut_file_read(&text, &len, path);
    if (!s) s = taut_records_read(&r, text, len, spec ? 2 : 1, path);
    if (!s) s = spec ? find_columns(&c, &r, path, spec) : find_texts(&c, &r, path, names);
    if (!s) s = take(out, &r, &c, path);
    if (s) taut_text_rows_free(out);
    taut_records_free(&r);
    free(text);
    return s;
}

taut_status taut_labelled_file(taut_text_rows *out, const char *path, const taut_labelled_spec *spec)
{
    return read_rows(out, path, spec, NULL);
}

taut_status taut_unlabelled_file(taut_text_rows *out, const char *path, const char *columns)
{
    return read_rows(out, path, NULL, columns);
}
