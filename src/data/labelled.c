/* Labelled texts by name: their files, their classes, their splits. */
#include "data/labelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/rng.h"
#include "data/find.h"

/* The distinct labels of some rows, and what they are called. */
typedef struct {
    const char **label; /* in the rows' memory */
    const char **name;  /* of each: itself, or a line of classes.txt */
    char *lines;        /* classes.txt */
    int64_t count;
    bool numbers;
} labels;

typedef struct {
    taut_text_rows rows[2]; /* the second: of a file that validates; without one, none */
    labels l;
} files;

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }
static int by_number(const void *a, const void *b)
{
    int64_t x = 0, y = 0;
    taut_number_int(&x, *(const char *const *)a);
    taut_number_int(&y, *(const char *const *)b);
    return (x > y) - (x < y);
}

static taut_status find_labels(labels *l, const taut_text_rows *r)
{
    int64_t number;
    l->label = taut_malloc((size_t)(r->count + 1) * sizeof *l->label);
    if (!l->label) return taut_no_memory("classes");
    for (int64_t i = 0; i < r->count; i++) l->label[i] = r->row[i].label;
    qsort(l->label, (size_t)r->count, sizeof *l->label, by_bytes);
    l->numbers = true;
    for (int64_t i = 0; i < r->count; i++) {
        if (l->count && strcmp(l->label[l->count - 1], l->label[i]) == 0) continue;
        l->numbers = l->numbers && taut_number_int(&number, l->label[i]);
        l->label[l->count++] = l->label[i];
    }
    if (l->numbers) qsort(l->label, (size_t)l->count, sizeof *l->label, by_number);
    l->name = taut_malloc((size_t)(l->count + 1) * sizeof *l->name);
    if (!l->name) return taut_no_memory("classes");
    for (int64_t i = 0; i < l->count; i++) l->name[i] = l->label[i];
    return TAUT_OK;
}

/* Numbers are called what the lines of classes.txt say, where it has as many. */
static taut_status read_names(labels *l, const char *folder)
{
    char path[4096];
    size_t len;
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/classes.txt", folder);
    if (!l->numbers || !taut_file_exists(path)) return TAUT_OK;
    const taut_status s = taut_file_read(&l->lines, &len, path);
    if (s) return s;
    for (const char *p = l->lines; *p; p += strcspn(p, "\r\n"), p += strspn(p, "\r\n")) count++;
    if (count != l->count)
        return taut_fail(TAUT_BAD_DATA, "%s: %lld names for %lld classes", path, (long long)count, (long long)l->count);
    char *p = l->lines;
    for (int64_t i = 0; i < count; i++) {
        char *end = p + strcspn(p, "\r\n"), *next = end + strspn(end, "\r\n");
        *end = 0;
        l->name[i] = p;
        p = next;
    }
    return TAUT_OK;
}

/* Which of the names with commas between them this is; -1: none. */
static int64_t place_in(const char *names, const char *name)
{
    int64_t i = 0;
    for (const char *p = names;; p++, i++) {
        const size_t len = strcspn(p, ",");
        if (strlen(name) == len && strncmp(p, name, len) == 0) return i;
        p += len;
        if (!*p) return -1;
    }
}

static int64_t count_names(const char *names)
{
    int64_t count = 1;
    for (const char *p = names; (p = strchr(p, ',')); p++) count++;
    return count;
}

/* The class of a label; -1: none of the names, or of no training text. */
static int64_t class_of(const labels *l, const char *names, const char *label)
{
    int64_t i = 0;
    while (i < l->count && strcmp(l->label[i], label) != 0) i++;
    if (i == l->count) return -1;
    const int64_t named = place_in(names, l->name[i]);
    bool all = true;
    for (int64_t k = 0; k < l->count; k++) all = all && place_in(names, l->name[k]) >= 0;
    if (all || named >= 0) return named;
    return l->numbers && !l->lines && count_names(names) == l->count ? i : -1;
}

static char *join_names(const labels *l)
{
    size_t size = 1;
    for (int64_t i = 0; i < l->count; i++) size += strlen(l->name[i]) + 1;
    char *names = taut_calloc(size, 1), *p = names;
    for (int64_t i = 0; names && i < l->count; i++) p += sprintf(p, "%s%s", i ? "," : "", l->name[i]);
    return names;
}

/* What there is to learn: two classes or more, of two texts or more each; a name has no comma. */
static taut_status check_labels(const labels *l, const taut_text_rows *r, const char *path)
{
    if (l->count < 2)
        return taut_fail(TAUT_BAD_DATA, "%s: %lld classes; at least 2 are wanted", path, (long long)l->count);
    for (int64_t i = 0; i < l->count; i++) {
        int64_t times = 0, line = 0;
        if (strchr(l->name[i], ','))
            return taut_fail(TAUT_BAD_DATA, "%s: \"%.60s\": a class's name has no comma", path, l->name[i]);
        for (int64_t k = 0; k < r->count && times < 2; k++)
            if (strcmp(r->row[k].label, l->label[i]) == 0) times++, line = r->row[k].line;
        if (times < 2)
            return taut_fail(
                TAUT_BAD_DATA,
                "%s: line %lld: the class \"%.60s\" has one text (is it a header? data.label and data.text "
                "name columns)",
                path, (long long)line, l->label[i]);
    }
    return TAUT_OK;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* folder/name.csv or .tsv; false: neither is there. */
static bool file_in(char path[4096], const char *folder, const char *name)
{
    for (int i = 0; i < 2; i++) {
        snprintf(path, 4096, "%s/%s.%s", folder, name, i ? "tsv" : "csv");
        if (taut_file_exists(path)) return true;
    }
    return false;
}

static taut_status read_folder(files *f, const char *folder, const taut_labelled_spec *spec)
{
    static const char *const names[] = { "train", "test", "val", "valid", "validation" };
    char path[2][4096];
    int found = 0;
    for (int i = 0; i < 5 && found < 2; i++) found += file_in(path[found], folder, names[i]);
    if (!found || (found == 2 && !file_in(path[0], folder, "train")))
        return taut_fail(TAUT_BAD_DATA, "%s: neither train.csv nor one test.csv (.tsv, .csv) is in it", folder);
    taut_status s = taut_labelled_file(&f->rows[0], path[0], spec);
    if (!s && found == 2) s = taut_labelled_file(&f->rows[1], path[1], spec);
    return s;
}

static taut_status read_files(files *f, const char *path, const taut_labelled_spec *spec)
{
    const bool folder = path && is_folder(path);
    taut_status s = !path    ? taut_animals_make(&f->rows[0], spec->length, spec->seed)
                    : folder ? read_folder(f, path, spec)
                             : taut_labelled_file(&f->rows[0], path, spec);
    if (!s) s = find_labels(&f->l, &f->rows[0]);
    if (!s && folder) s = read_names(&f->l, path);
    return s;
}

static taut_status room_for(taut_labelled *t, const files *f)
{
    const size_t all = (size_t)(f->rows[0].count + f->rows[1].count) + 1;
    for (int i = 0; i < 2; i++) {
        t->text[i] = taut_calloc(all, sizeof *t->text[i]);
        t->label[i] = taut_calloc(all, sizeof *t->label[i]);
        if (!t->text[i] || !t->label[i]) return taut_no_memory("texts");
    }
    return TAUT_OK;
}

/* Of one file each text's number decides by itself: a permutation of the numbers, of which the last ones validate. */
static taut_status fill(taut_labelled *t, files *f, const taut_labelled_spec *spec)
{
    const bool cut = f->rows[1].count == 0;
    const uint64_t key = taut_rng_key(spec->seed, TAUT_RNG_DATA, 0), all = (uint64_t)f->rows[0].count;
    const uint64_t train = cut ? (uint64_t)((1 - spec->val_fraction) * (double)all) : all;
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < f->rows[part].count; i++) {
            taut_text_row *row = &f->rows[part].row[i];
            const int64_t class = class_of(&f->l, t->names, row->label);
            const bool valid = part || (cut && taut_rng_place(key, (uint64_t)i, all) >= train);
            if (class < 0)
                return taut_fail(TAUT_BAD_DATA, "%s: line %lld: the class \"%.60s\" is none of %.300s", spec->source,
                                 (long long)row->line, row->label, t->names);
            t->label[valid][t->count[valid]] = (int32_t) class;
            t->text[valid][t->count[valid]++] = row->text;
            row->text = NULL; /* it is the set's from here on */
        }
    if (t->count[TAUT_VALID]) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA, "%s: of %lld texts none would validate", spec->source, (long long)all);
}

taut_status taut_labelled_open(taut_labelled **out, const taut_labelled_spec *spec)
{
    files f = { 0 };
    char *path = NULL;
    *out = NULL;
    taut_labelled *t = taut_calloc(1, sizeof *t);
    taut_status s = t ? TAUT_OK : taut_no_memory("texts");
    if (!s && strcmp(spec->source, "animals") != 0) s = taut_data_find(&path, spec->source);
    if (!s) s = read_files(&f, path, spec);
    if (!s && !spec->names) s = check_labels(&f.l, &f.rows[0], spec->source);
    if (!s && !(t->names = spec->names ? taut_strdup(spec->names) : join_names(&f.l))) s = taut_no_memory("classes");
    if (!s) s = room_for(t, &f);
    if (!s) s = fill(t, &f, spec);
    if (!s) t->classes = count_names(t->names);
    for (int i = 0; i < 2; i++) taut_text_rows_free(&f.rows[i]);
    free(f.l.label);
    free(f.l.name);
    free(f.l.lines);
    free(path);
    if (s)
        taut_labelled_free(t);
    else
        *out = t;
    return s;
}

void taut_labelled_free(taut_labelled *t)
{
    if (!t) return;
    for (int i = 0; i < 2; i++) {
        for (int64_t k = 0; k < t->count[i]; k++) free(t->text[i][k]);
        free(t->text[i]);
        free(t->label[i]);
    }
    free(t->names);
    free(t);
}
