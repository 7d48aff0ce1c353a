#include "report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"

/* Also inside each .svg that stands alone, where the page's rules match nothing. */
static const char style[] =
    ":root{--ink:#1c2430;--soft:#5b6675;--grid:#dde2e8;--paper:#fff;--c0:#0b62c4;--c1:#c2570c;--c2:#16803a;--c3:#"
    "b3261e;"
    "--c4:#7a3fb8;--c5:#4d5a66}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa5b3;--grid:#333c48;--paper:#12161c;--c0:#66aaff;"
    "--c1:#ff9c54;--c2:#5ccf86;--c3:#ff8078;--c4:#c79bf5;--c5:#aab4bf}}\n"
    "@media "
    "print{:root{--ink:#000;--soft:#333;--grid:#ccc;--paper:#fff}details{display:none}figure{break-inside:avoid}}\n"
    "body{margin:0 auto;padding:1rem;max-width:60rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--grid)}h3{margin:0}\n"
    "figure{margin:1.5rem 0}figcaption{color:var(--soft)}\n"
    ".wide{overflow-x:auto;max-width:100%}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "td,th{padding:.15rem .6rem;border-bottom:1px solid var(--grid);text-align:left;white-space:nowrap}"
    "td+td,th+th{text-align:right}\n"
    "details{margin:.3rem 0;color:var(--soft)}code{overflow-wrap:anywhere}\n"
    ".chart{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}.chart text{fill:var(--ink)}\n"
    ".grid{stroke:var(--grid)}.line{fill:none;stroke-width:1.8}.dashed{stroke-dasharray:6 4}\n"
    ".s0{stroke:var(--c0);fill:var(--c0)}.s1{stroke:var(--c1);fill:var(--c1)}.s2{stroke:var(--c2);fill:var(--c2)}"
    ".s3{stroke:var(--c3);fill:var(--c3)}.s4{stroke:var(--c4);fill:var(--c4)}.s5{stroke:var(--c5);fill:var(--c5)}\n"
    ".fill{stroke:none}.mark{stroke:none}.line{fill:none!important}\n";

void taut_page_begin(taut_page *p, const char *title, const char *folder)
{
    *p = (taut_page){ .folder = folder };
    taut_markup_add(&p->text, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                              "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
    taut_markup_escape(&p->text, title);
    taut_markup_add(&p->text,
                    "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n%s</style>\n</head>\n<body>\n<h1>", style);
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

void taut_page_say(taut_page *p, const char *format, ...)
{
    char *raw = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&raw, format, args) < 0) raw = NULL;
    va_end(args);
    if (raw)
        tagged(&p->text, "p", raw);
    else
        p->text.failed = true;
    free(raw);
}

void taut_page_facts(taut_page *p, int count, const char *const (*pair)[2])
{
    taut_markup_add(&p->text, "<div class=\"wide\"><table><tbody>\n");
    for (int i = 0; i < count; i++) {
        taut_markup_add(&p->text, "<tr><td>");
        taut_markup_escape(&p->text, pair[i][0]);
        taut_markup_add(&p->text, "</td><td>");
        taut_markup_escape(&p->text, pair[i][1]);
        taut_markup_add(&p->text, "</td></tr>\n");
    }
    taut_markup_add(&p->text, "</tbody></table></div>\n");
}

/* The picture as a file: the same element, with the style sheet put inside it. */
static taut_status write_svg(const char *folder, const char *name, const taut_markup *svg)
{
    const char *inside = svg->data;
    while (*inside && *inside != '\n') inside++;
    char path[4096];
    taut_markup alone = { 0 };
    taut_markup_put(&alone, svg->data, (size_t)(inside - svg->data));
    taut_markup_add(&alone, "<style>\n%s</style>%s", style, inside);
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    const taut_status s = alone.failed ? taut_no_memory("the report") : taut_file_write(path, alone.data, alone.len);
    taut_markup_free(&alone);
    return s;
}

static void figure(taut_page *p, const char *name, const char *title, const char *about, taut_markup *svg,
                   taut_markup *table)
{
    p->figures++;
    p->text.failed |= svg->failed | table->failed;
    if (!p->text.failed) {
        taut_markup_add(&p->text, "<figure id=\"%s\">\n", name);
        tagged(&p->text, "h3", title);
        if (svg->data) taut_markup_put(&p->text, svg->data, svg->len);
        tagged(&p->text, "figcaption", about);
        if (svg->data) taut_markup_add(&p->text, "<details><summary>the numbers</summary>");
        taut_markup_add(&p->text, "<div class=\"wide\">");
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
    figure(p, name, title, about, &svg, &table);
}

void taut_page_bars(taut_page *p, const char *name, const char *title, const char *about, const taut_bars *c)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_bars_svg(&svg, c);
    taut_bars_table(&table, c);
    figure(p, name, title, about, &svg, &table);
}

void taut_page_heat(taut_page *p, const char *name, const char *title, const char *about, const taut_heat *c)
{
    taut_markup svg = { 0 }, table = { 0 };
    taut_heat_svg(&svg, c);
    taut_heat_table(&table, c);
    figure(p, name, title, about, &svg, &table);
}

void taut_page_table(taut_page *p, const char *name, const char *title, const char *about, int rows, int cols,
                     const char *const *head, const char *const *cell)
{
    taut_markup none = { 0 }, t = { 0 };
    taut_markup_add(&t, "<table><thead><tr>");
    for (int c = 0; c < cols; c++) tagged(&t, "th", head[c]);
    taut_markup_add(&t, "</tr></thead><tbody>\n");
    for (int r = 0; r < rows; r++) {
        taut_markup_add(&t, "<tr>");
        for (int c = 0; c < cols; c++) tagged(&t, "td", cell[r * cols + c]);
        taut_markup_add(&t, "</tr>\n");
    }
    taut_markup_add(&t, "</tbody></table>\n");
    figure(p, name, title, about, &none, &t);
}

taut_status taut_page_end(taut_page *p, const char *path)
{
    taut_markup_add(&p->text, "</body>\n</html>\n");
    taut_status s = p->status;
    if (!s && p->text.failed) s = taut_no_memory("the report");
    if (!s) s = taut_file_write(path, p->text.data, p->text.len);
    taut_markup_free(&p->text);
    return s;
}
