/* The words of texts as a vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/vocab.h"
#include "data/wordpiece.h"

typedef struct {
    const char *word; /* ends with a newline or NUL */
    size_t len;
    int64_t times;
} entry;

static int by_spelling(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int order = memcmp(x->word, y->word, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The most frequent first; words that are as frequent, in the order of their bytes. */
static int by_times(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->times != y->times ? (x->times < y->times) - (x->times > y->times) : by_spelling(a, b);
}

/* All words of all texts, each behind a newline; the caller frees. */
static taut_status all_words(char **out, char *const *text, int64_t count)
{
    size_t used = 0;
    taut_status s = TAUT_OK;
    *out = NULL;
    for (int64_t i = 0; !s && i < count; i++) {
        char *words = NULL;
        s = taut_wordpiece_words(&words, text[i], strlen(text[i]), true);
        const size_t len = s ? 0 : strlen(words);
        char *more = s ? NULL : taut_realloc(*out, used + len + 1);
        if (!s && !more) s = taut_no_memory("the words of a text");
        if (!s) memcpy(more + used, words, len + 1);
        if (more) *out = more;
        used += len;
        free(words);
    }
    return s;
}

/* The distinct words, sorted by how often they occur; *count of them.  NULL: out of memory. */
static entry *count_words(size_t *count, const char *words)
{
    size_t all = 0, used = 0;
    for (const char *p = words; (p = strchr(p, '\n')); p++) all++;
    entry *list = taut_malloc((all + 1) * sizeof *list);
    if (!list) return NULL;
    for (const char *p = words; (p = strchr(p, '\n'));) {
        p++;
        list[used++] = (entry){ p, strcspn(p, "\n"), 1 };
    }
    qsort(list, used, sizeof *list, by_spelling);
    *count = 0;
    for (size_t i = 0; i < used; i++)
        if (*count && by_spelling(&list[*count - 1], &list[i]) == 0)
            list[*count - 1].times++;
        else
            list[(*count)++] = list[i];
    qsort(list, *count, sizeof *list, by_times);
    return list;
}

taut_status taut_vocab_words(taut_vocab **out, char *const *text, int64_t count, int32_t most)
{
    static const char head[] = "wordpiece:\n[PAD]\n[UNK]\n";
    char *words = NULL;
    size_t distinct = 0;
    *out = NULL;
    taut_status s = all_words(&words, text, count);
    entry *list = s || !words ? NULL : count_words(&distinct, words);
    char *printed = list ? taut_malloc(sizeof head + strlen(words)) : NULL;
    if (!s && !printed) s = taut_no_memory("the words of a text");
    if (!s) {
        char *p = printed + strlen(strcpy(printed, head));
        for (size_t i = 0; i < distinct && (int64_t)i + 2 < most && list[i].times > 1; i++) {
            memcpy(p, list[i].word, list[i].len);
            p += list[i].len;
            *p++ = '\n';
        }
        *p = 0;
        s = taut_vocab_parse(out, printed);
    }
    free(printed);
    free(list);
    free(words);
    return s;
}
