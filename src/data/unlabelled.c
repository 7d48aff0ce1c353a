#include "data/unlabelled.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "data/labelled.h"

taut_unlabelled_one *taut_unlabelled_add(taut_unlabelled *u, const char *file, int64_t place)
{
    if (u->count == u->room) {
        const int64_t room = 2 * u->room + 64;
        taut_unlabelled_one *more = taut_realloc(u->of, (size_t)room * sizeof *more);
        if (!more) return NULL;
        u->of = more;
        u->room = room;
    }
    char *copy = taut_strdup(file);
    if (!copy) return NULL;
    u->of[u->count] = (taut_unlabelled_one){ .file = copy, .place = place };
    return &u->of[u->count++];
}

void taut_unlabelled_free(taut_unlabelled *u)
{
    for (int64_t i = 0; i < u->count; i++) {
        free(u->of[i].file);
        free(u->of[i].text);
        free(u->of[i].pixels);
    }
    free(u->of);
    *u = (taut_unlabelled){ 0 };
}

bool taut_text_table(const char *path)
{
    const size_t len = strlen(path);
    return len > 4 && (strcasecmp(path + len - 4, ".csv") == 0 || strcasecmp(path + len - 4, ".tsv") == 0);
}

static taut_status take_rows(taut_unlabelled *u, const char *path, const char *columns)
{
    taut_text_rows rows;
    taut_status s = taut_unlabelled_file(&rows, path, columns);
    for (int64_t i = 0; !s && i < rows.count; i++) {
        taut_unlabelled_one *one = taut_unlabelled_add(u, path, rows.row[i].line);
        if (!one) s = taut_no_memory(path);
        if (one) one->text = rows.row[i].text;
        if (one) rows.row[i].text = NULL; /* it is the list's from here on */
    }
    taut_text_rows_free(&rows);
    return s;
}

static taut_status take_lines(taut_unlabelled *u, char *text, const char *path)
{
    char *next = text + (strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
    for (int64_t line = 1; next; line++) {
        char *at = next, *end = at + strcspn(at, "\n");
        next = *end ? end + 1 : NULL;
        if (end > at && end[-1] == '\r') end--;
        *end = 0;
        if (!at[strspn(at, " \t")]) continue;
        taut_unlabelled_one *one = taut_unlabelled_add(u, path, line);
        if (!one || !(one->text = taut_strdup(at))) return taut_no_memory(path);
    }
    return TAUT_OK;
}

taut_status taut_unlabelled_texts(taut_unlabelled *u, const char *path, const char *columns)
{
    char *text = NULL;
    size_t len;
    const int64_t before = u->count;
    taut_status s = TAUT_OK;
    if (taut_text_table(path)) {
        s = take_rows(u, path, columns);
    } else {
        s = taut_file_read(&text, &len, path);
        const size_t good = s ? 0 : taut_utf8_check(text, len);
        if (!s && good < len) s = taut_fail(TAUT_BAD_DATA, "%s: byte %zu is not UTF-8 text", path, good);
        if (!s && strlen(text) < len) s = taut_fail(TAUT_BAD_DATA, "%s: byte %zu is NUL", path, strlen(text));
        if (!s) s = take_lines(u, text, path);
        free(text);
    }
    if (!s && u->count == before) s = taut_fail(TAUT_BAD_DATA, "%s: no text is in it", path);
    return s;
}
