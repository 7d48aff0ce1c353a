#include "report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "report/style.h"
#include "taut.h"

void taut_page_begin(taut_page *p, const char *title, const char *folder)
{
    *p = (taut_page){ .folder = folder };
    taut_markup_add(&p->text, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
    taut_markup_escape(&p->text, title);
    taut_markup_add(&p->text,
                    "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>",
                    taut_report_style);
    taut_markup_escape(&p->text, title);
    taut_markup_add(&p->text, "</h1>\n");
    if (folder) p->status = taut_dir_make(folder);
}

static void tagged(taut_markup *t, const char *tag, const char *raw)
{
    taut_markup_add(t, "<%s>", tag);
    taut_markup_escape(t, raw);
    taut_markup_add(t, "</%s>\n", tag);
}

void taut_page_section(taut_page *p, const char *title) { tagged(&p->text, "h2", title); }

static void paragraph(taut_page *p, const char *open, const char *format, va_list args)
{
    char *raw = NULL;
    if (vasprintf(&raw, format, args) < 0) raw = NULL;
    taut_markup_add(&p->text, "%s", open);
    if (raw)
        taut_markup_escape(&p->text, raw);
    else
        p->text.failed = true;
    taut_markup_add(&p->text, "</p>\n");
    free(raw);
}

void taut_page_say(taut_page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    paragraph(p, "<p>", format, args);
    va_end(args);
}

void taut_page_lead(taut_page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    paragraph(p, "<p class=\"lead\">", format, args);
    va_end(args);
}

void taut_page_facts(taut_page *p, const char *title, int count, const char *const (*pair)[2])
{
    taut_markup_add(&p->text, "<details><summary>");
    taut_markup_escape(&p->text, title);
    taut_markup_add(&p->text, "</summary><div class=\"scroll\"><table><tbody>\n");
    for (int i = 0; i < count; i++) {
        taut_markup_add(&p->text, "<tr><td>");
        taut_markup_escape(&p->text, pair[i][0]);
        taut_markup_add(&p->text, "</td><td>");
        taut_markup_escape(&p->text, pair[i][1]);
        taut_markup_add(&p->text, "</td></tr>\n");
    }
    taut_markup_add(&p->text, "</tbody></table></div></details>\n");
}

void taut_page_cards(taut_page *p, int count, const taut_card *card)
{
    if (count == 0) return;
    taut_markup_add(&p->text, "<div class=\"cards\">");
    for (int i = 0; i < count; i++) {
        taut_markup_add(&p->text, "<div class=\"card\"><b%s>", strlen(card[i].value) > 7 ? " class=\"long\"" : "");
        taut_markup_escape(&p->text, card[i].value);
        taut_markup_add(&p->text, "</b><span>");
        taut_markup_escape(&p->text, card[i].name);
        taut_markup_add(&p->text, "</span></div>");
    }
    taut_markup_add(&p->text, "</div>\n");
}

/* The picture as a file: the same element, with the style sheet put inside it. */
static taut_status write_svg(const char *folder, const char *name, const taut_markup *svg)
{
    const char *inside = svg->data;
    while (*inside && *inside != '\n') inside++;
    char path[4096];
    taut_markup alone = { 0 };
    taut_markup_put(&alone, svg->data, (size_t)(inside - svg->data));
    taut_markup_add(&alone, "<style>\n%s</style>%s", taut_report_style, inside);
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    const taut_status s = alone.failed ? taut_no_memory("the report") : taut_file_write(path, alone.data, alone.len);
    taut_markup_free(&alone);
    return s;
}

/* A figure's anchor and the name of its file: signs that mean something to HTML or to a shell become _, and a name that is
 * taken, by a run of the same name in another folder, is numbered. */
static void figure_name(char out[300], const taut_page *p, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_=,+";
    char anchor[320], word[280];
    size_t len = 0;
    for (; name[len] && len + 1 < sizeof word; len++)
        word[len] = (unsigned char)name[len] < 0x80 && !strchr(plain, name[len]) ? '_' : name[len];
    word[len] = 0;
    snprintf(out, 300, "%s", word);
    for (int i = 2; snprintf(anchor, sizeof anchor, "<figure id=\"%s\"", out), strstr(p->text.data, anchor); i++)
        snprintf(out, 300, "%s-%d", word, i);
}

/* wide: as broad as the page.  A figure without a picture is its table. */
static void figure(taut_page *p, const char *called, const char *title, const char *about, bool wide, taut_markup *svg,
                   taut_markup *table)
{
    char name[300];
    p->figures++;
    p->text.failed |= svg->failed | table->failed;
    if (!p->text.failed) {
        figure_name(name, p, called);
        taut_markup_add(&p->text, "<figure id=\"%s\"%s>\n", name, wide ? " class=\"wide\"" : "");
        tagged(&p->text, "h3", title);
        tagged(&p->text, "figcaption", about);
        if (svg->data) taut_markup_put(&p->text, svg->data, svg->len);
        if (svg->data) taut_markup_add(&p->text, "<details><summary>the numbers</summary>");
        taut_markup_add(&p->text, "<div class=\"scroll\">");
        taut_markup_put(&p->text, table->data, table->len);
        taut_markup_add(&p->text, "</div>%s</figure>\n", svg->data ? "</details>" : "");
        if (p->folder && svg->data && !p->status) p->status = write_svg(p->folder, name, svg);
    }
    taut_markup_free(svg);
    taut_markup_free(table);
}

void taut_page_plot(taut_page *p, const char *name, const char *title, const char *about, const taut_plot *c)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_plot_svg(&svg, c);
    taut_plot_table(&table, c);
    figure(p, name, title, about, false, &svg, &table);
}

void taut_page_bars(taut_page *p, const char *name, const char *title, const char *about, const taut_bars *c)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_bars_svg(&svg, c);
    taut_bars_table(&table, c);
    figure(p, name, title, about, false, &svg, &table);
}

void taut_page_heat(taut_page *p, const char *name, const char *title, const char *about, const taut_heat *c)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_heat_svg(&svg, c);
    taut_heat_table(&table, c);
    figure(p, name, title, about, false, &svg, &table);
}

void taut_page_tiles(taut_page *p, const char *name, const char *title, const char *about, const taut_tiles *c,
                     const taut_table *numbers)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_tiles_svg(&svg, c);
    taut_table_html(&table, numbers);
    figure(p, name, title, about, c->cols > 8, &svg, &table);
}

void taut_page_table(taut_page *p, const char *name, const char *title, const char *about, const taut_table *t)
{
    taut_markup none = { 0 }, table = { 0 };
    taut_table_html(&table, t);
    figure(p, name, title, about, t->cols > 5, &none, &table);
}

taut_status taut_page_end(taut_page *p, const char *path)
{
    taut_markup_add(&p->text,
                    "<footer>Written by taut %s.  What is called proved was proved from the stored weights, "
                    "rounding included; what is called found is a search's best and may be exceeded.</footer>\n"
                    "</main>\n</body>\n</html>\n",
                    TAUT_VERSION);
    taut_status s = p->status;
    if (!s && p->text.failed) s = taut_no_memory("the report");
    if (!s) s = taut_file_write(path, p->text.data, p->text.len);
    taut_markup_free(&p->text);
    return s;
}
