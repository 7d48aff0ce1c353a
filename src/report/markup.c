#include "report/markup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool make_room(taut_markup *t, size_t more)
{
    if (t->failed) return false;
    if (t->len + more + 1 <= t->room) return true;
    size_t room = t->room ? t->room : 1024;
    while (room < t->len + more + 1) room *= 2;
    char *data = taut_malloc(room);
    if (!data) {
        t->failed = true;
        return false;
    }
    if (t->len) memcpy(data, t->data, t->len);
    free(t->data);
    t->data = data;
    t->room = room;
    return true;
}

void taut_markup_put(taut_markup *t, const char *data, size_t len)
{
    if (!make_room(t, len)) return;
    memcpy(t->data + t->len, data, len);
    t->len += len;
    t->data[t->len] = '\0';
}

void taut_markup_add(taut_markup *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0 || !make_room(t, (size_t)len)) return;
    va_start(args, format);
    vsnprintf(t->data + t->len, (size_t)len + 1, format, args);
    va_end(args);
    t->len += (size_t)len;
}

void taut_markup_escape(taut_markup *t, const char *raw)
{
    for (const char *p = raw; *p; p++) switch (*p) {
        case '&':
            taut_markup_put(t, "&amp;", 5);
            break;
        case '<':
            taut_markup_put(t, "&lt;", 4);
            break;
        case '>':
            taut_markup_put(t, "&gt;", 4);
            break;
        case '"':
            taut_markup_put(t, "&quot;", 6);
            break;
        case '\'':
            taut_markup_put(t, "&#39;", 5);
            break;
        default:
            taut_markup_put(t, p, 1);
        }
}

void taut_markup_free(taut_markup *t)
{
    free(t->data);
    *t = (taut_markup){ 0 };
}
