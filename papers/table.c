/* Tables of papers: how a figure describes what came out, and how that is printed: columns as wide as what stands in them,
 * sentences broken at words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound/ledger.h"
#include "bound/print.h"
#include "data/find.h"
#include "papers/paper.h"

enum { COLUMNS = 32, LINE = 110, MARGIN = 11 };

cJSON *paper_table(const char *title, const char *const *columns, int count, paper_words w)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "title", title);
    if (w.data) cJSON_AddStringToObject(o, "data", w.data);
    cJSON_AddItemToObject(o, "columns", cJSON_CreateStringArray(columns, count));
    cJSON_AddArrayToObject(o, "rows");
    cJSON_AddStringToObject(o, "published", w.published);
    cJSON_AddStringToObject(o, "ours", w.ours);
    cJSON_AddStringToObject(o, "why", w.why);
    return o;
}

void paper_row(cJSON *table, const char *name, const double *number, int count)
{
    cJSON *row = cJSON_CreateArray();
    if (name) cJSON_AddItemToArray(row, cJSON_CreateString(name));
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(row, isnan(number[i])   ? cJSON_CreateString("-")
                                  : isinf(number[i]) ? up_json(UP_NONE)
                                                     : cJSON_CreateNumber(number[i]));
    cJSON_AddItemToArray(cJSON_GetObjectItem(table, "rows"), row);
}

bool paper_wants(const paper_options *o, const char *name)
{
    char word[64];
    for (const char *p = o->only; p && *p; p += strcspn(p, ","), p += *p == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
        if (!strstr(name, word)) return false;
    }
    return true;
}

const char *paper_source(const paper_options *o, const char *set, const char *built_in)
{
    char *found = NULL;
    if (o->data) return o->data;
    const bool there = !o->small || (!o->tiny && !taut_data_find(&found, set));
    free(found);
    return there ? set : built_in;
}

/* What is proved is printed rounded up, everything else to the nearest. */
static const char *cell_text(char word[32], const cJSON *cell, const char *column)
{
    if (!cJSON_IsNumber(cell)) return cJSON_GetStringValue(cell);
    if (strstr(column, "proved")) return up_text(word, (taut_up){ cell->valuedouble });
    snprintf(word, 32, "%.5g", cell->valuedouble);
    return word;
}

/* The texts of a row, no more than COLUMNS; columns itself is a row. */
static int texts_of(const char *text[COLUMNS], char word[COLUMNS][32], const cJSON *row, const cJSON *columns)
{
    int count = 0;
    const cJSON *cell, *column = columns->child;
    cJSON_ArrayForEach(cell, row)
    {
        if (count == COLUMNS) break;
        text[count] = cell_text(word[count], cell, column ? cJSON_GetStringValue(column) : "");
        column = column ? column->next : NULL;
        count++;
    }
    return count;
}

/* The first column reads from the left, where names stand; all others end at the right. */
static void print_row(const int wide[COLUMNS], const cJSON *row, const cJSON *columns)
{
    const char *text[COLUMNS];
    char word[COLUMNS][32];
    const int count = texts_of(text, word, row, columns);
    for (int i = 0; i < count; i++) printf("%s%*s", i ? "  " : "", i ? wide[i] : -wide[i], text[i]);
    putchar('\n');
}

static void widen(int wide[COLUMNS], const cJSON *row, const cJSON *columns)
{
    const char *text[COLUMNS];
    char word[COLUMNS][32];
    const int count = texts_of(text, word, row, columns);
    for (int i = 0; i < count; i++)
        if ((int)strlen(text[i]) > wide[i]) wide[i] = (int)strlen(text[i]);
}

static void print_rows(const cJSON *columns, const cJSON *rows)
{
    int wide[COLUMNS] = { 0 };
    const cJSON *row;
    widen(wide, columns, columns);
    cJSON_ArrayForEach(row, rows) widen(wide, row, columns);
    print_row(wide, columns, columns);
    cJSON_ArrayForEach(row, rows) print_row(wide, row, columns);
}

static void print_words(const char *label, const char *text)
{
    int at = printf("%-*s", MARGIN, label);
    for (const char *p = text; p && *p;) {
        const int len = (int)strcspn(p, " \n");
        if (at > MARGIN && at + 1 + len > LINE) at = printf("\n%*s", MARGIN, "") - 1;
        if (at > MARGIN) at += printf(" ");
        at += printf("%.*s", len, p);
        p += len;
        p += strspn(p, " \n");
    }
    putchar('\n');
}

void paper_print(const cJSON *o)
{
    static const char *const said[][2] = {
        { "data", "data" }, { "published", "published" }, { "ours", "ours" }, { "why", "differ" }
    };
    const cJSON *cell;
    printf("%s\n\n", cJSON_GetStringValue(cJSON_GetObjectItem(o, "title")));
    print_rows(cJSON_GetObjectItem(o, "columns"), cJSON_GetObjectItem(o, "rows"));
    cJSON_ArrayForEach(cell, o) if (cJSON_IsNumber(cell)) printf("%s %.5g\n", cell->string, cell->valuedouble);
    putchar('\n');
    for (int i = 0; i < 4; i++) {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(o, said[i][0]));
        if (text) print_words(said[i][1], text);
    }
}
