#include "train/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "model/slabs.h"

enum { KINDS = 5 };

typedef struct {
    const char *prefix;
    taut_real *slab;
    bool owned; /* every rank has its own weights' */
} kind;

/* What is kept of each weight: w. its value, m. and v. the optimiser's, b. its value when the run was best,
 * a. its running mean. */
static int kinds_of(const taut_optimiser *o, kind *kinds)
{
    const kind all[KINDS] = { { "w.", o->m->values, false },
                              { "m.", o->first, true },
                              { "v.", o->second, true },
                              { "b.", o->best, false },
                              { "a.", o->average, false } };
    int count = 0;
    for (int i = 0; i < KINDS; i++)
        if (all[i].slab) kinds[count++] = all[i];
    return count;
}

/* Elements from `first` to before `end` of one kind, of one weight, asked of the rank that owns them. */
typedef struct {
    int64_t kind, weight, first, end;
} question;

enum { ANSWER = 1 << 16 }; /* elements, at most */

/* What the first rank writes of one weight; several ranks ask each other for it. */
typedef struct {
    char name[280];
    const taut_optimiser *o;
    double *answer; /* room for ANSWER elements, those from `from` to before `to`; NULL: there is one rank */
    int64_t from, to;
    question ask;
} item;

/* Elements that this rank has itself. */
static void look(const taut_optimiser *o, double *dst, question q)
{
    kind kinds[KINDS];
    (void)kinds_of(o, kinds);
    const kind *k = &kinds[q.kind];
    const int64_t at = o->m->weight[q.weight].offset - (k->owned ? o->owned.lo : 0) + q.first;
    o->m->k->get(dst, taut_at(o->m->k, k->slab, at), q.end - q.first);
}

/* The same, from whoever owns them. */
static void ask(const taut_optimiser *o, double *dst, question q)
{
    const taut_messages *m = o->ranks.m;
    for (int r = 0; r < o->ranks.count; r++) {
        const taut_owned part = taut_owned_of(taut_owned_by(o->m, r, o->ranks.count), &o->m->weight[q.weight]);
        question of = q;
        if (part.lo > of.first) of.first = part.lo;
        if (part.hi < of.end) of.end = part.hi;
        if (of.first >= of.end) continue;
        if (r == o->ranks.rank) {
            look(o, dst + of.first - q.first, of);
            continue;
        }
        m->send(&of, sizeof of, r);
        m->receive(dst + of.first - q.first, (of.end - of.first) * (int64_t)sizeof *dst, r);
        m->wait();
    }
}

/* A rank that does not write answers, until nobody asks any more. */
static void answer(const taut_optimiser *o, double *room)
{
    const taut_messages *m = o->ranks.m;
    for (question q;;) {
        m->receive(&q, sizeof q, 0);
        m->wait();
        if (q.kind < 0) return;
        look(o, room, q);
        m->send(room, (q.end - q.first) * (int64_t)sizeof *room, 0);
        m->wait();
    }
}

static void no_more(const taut_optimiser *o)
{
    const question none = { .kind = -1 };
    for (int r = 1; r < o->ranks.count; r++) o->ranks.m->send(&none, sizeof none, r);
    o->ranks.m->wait();
}

/* Of another rank's device that failed only NaN arrives, and with one a run cannot go on anyway. */
static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    item *i = arg;
    question q = i->ask;
    bool bad = false;
    q.first = first, q.end = first + count;
    if (!i->answer) {
        look(i->o, dst, q);
        return i->o->m->k->read(NULL, NULL, 0);
    }
    for (int64_t done = 0; done < count;) { /* a message for each of the writer's pieces would be many */
        if (first + done == i->to) {
            const int64_t len = taut_weight_len(&i->o->m->weight[q.weight]), end = i->to + ANSWER;
            q.first = i->from = i->to, q.end = i->to = end < len ? end : len;
            ask(i->o, i->answer, q);
            for (int64_t e = 0; e < q.end - q.first; e++)
                if (isnan(i->answer[e])) bad = true;
        }
        const int64_t there = i->to - first - done, part = there < count - done ? there : count - done;
        memcpy(dst + done, i->answer + (first + done - i->from), (size_t)part * sizeof *dst);
        done += part;
    }
    const taut_status s = i->o->m->k->read(NULL, NULL, 0);
    return s || !bad ? s : taut_fail(TAUT_NOT_FINITE, "%s: a rank's numbers are not finite", i->name);
}

static taut_status fetch_recent(void *arg, double *dst, int64_t first, int64_t count)
{
    memcpy(dst, (const double *)arg + first, (size_t)count * sizeof *dst);
    return TAUT_OK;
}

/* The [model] section of a printed recipe, from its heading to the next one, as a string of its own; NULL: no memory. */
static char *model_section(const char *recipe)
{
    const char *begin = strstr(recipe, "[model]"), *end = begin ? strstr(begin, "\n[") : NULL;
    char *copy = taut_strdup(begin ? begin : "");
    if (copy && end) copy[end - begin] = '\0';
    return copy;
}

static taut_status write_entries(const taut_clock *c, const taut_optimiser *o, const char *path, double *room,
                                 item *items, taut_st_entry *entry)
{
    const taut_model *m = o->m;
    const char *dtype = m->k->dtype;
    kind kinds[KINDS];
    char step[32], tokens[32], seconds[40], best[96];
    int count = 0;
    const int all = kinds_of(o, kinds);
    for (int k = 0; k < all; k++)
        for (int i = 0; i < m->weights; i++, count++) {
            const taut_weight *w = &m->weight[i];
            item *it = &items[count];
            *it = (item){ .o = o, .answer = kinds[k].owned ? room : NULL, .ask = { .kind = k, .weight = i } };
            snprintf(it->name, sizeof it->name, "%s%s", kinds[k].prefix, w->path);
            entry[count] = taut_slab_entry(NULL, it->name, dtype, w->param);
            entry[count].fetch = fetch, entry[count].arg = it;
        }
    taut_clock copy = *c;
    entry[count++] = (taut_st_entry){ "recent", "F64", 1, { TAUT_RECENT }, fetch_recent, copy.recent };
    snprintf(step, sizeof step, "%lld", (long long)c->step);
    snprintf(tokens, sizeof tokens, "%lld", (long long)c->tokens);
    snprintf(seconds, sizeof seconds, "%a", c->seconds);
    snprintf(best, sizeof best, "%lld %lld %a", (long long)c->best_step, (long long)c->waited, c->best_loss);
    char *section = model_section(m->recipe);
    const taut_st_meta meta[] = { { "format", "taut-state" }, { "taut.version", TAUT_VERSION },
                                  { "step", step },           { "tokens", tokens },
                                  { "seconds", seconds },     { "taut.vocab", m->vocab },
                                  { "taut.model", section },  { "best", best } };
    const taut_status s = section ? taut_safetensors_write(path, entry, count, meta, o->best ? 8 : 7)
                                  : taut_no_memory("saving the run");
    free(section);
    return s;
}

taut_status taut_state_save(const taut_clock *c, const taut_optimiser *o, const char *path)
{
    const size_t most = (size_t)(KINDS * o->m->weights + 1);
    const bool several = o->ranks.count > 1;
    item *items = taut_calloc(most, sizeof *items);
    taut_st_entry *entry = taut_calloc(most, sizeof *entry);
    double *room = several ? taut_malloc(ANSWER * sizeof *room) : NULL;
    taut_status s = items && entry && (room || !several) ? TAUT_OK : taut_no_memory("saving the run");
    s = taut_ranks_agree(&o->ranks, s);
    if (!s && o->ranks.rank > 0)
        answer(o, room);
    else if (!s) {
        s = write_entries(c, o, path, room, items, entry);
        if (several) no_more(o);
    }
    free(items);
    free(entry);
    free(room);
    return s;
}

/* When the run was best; a state without that is of a run without patience. */
static taut_status load_best(taut_clock *c, const taut_safetensors *st, const char *path)
{
    const char *best = taut_safetensors_meta(st, "best");
    long long step, waited;
    int end = 0;
    if (!best || sscanf(best, "%lld %lld %n", &step, &waited, &end) != 2 || step < 0 || waited < 0 || step > c->step)
        return taut_fail(TAUT_BAD_FILE, "%s: does not say when the run was best, and train.patience asks", path);
    c->best_step = step, c->waited = waited, c->best_loss = strtod(best + end, NULL);
    return TAUT_OK;
}

static taut_status load_clock(taut_clock *c, const taut_safetensors *st, const taut_model *m, const char *path)
{
    const char *step = taut_safetensors_meta(st, "step"), *tokens = taut_safetensors_meta(st, "tokens");
    const char *seconds = taut_safetensors_meta(st, "seconds"), *vocab = taut_safetensors_meta(st, "taut.vocab");
    const taut_st_tensor *recent = taut_safetensors_find(st, "recent");
    if (!step || !tokens || !seconds || !vocab || !recent || recent->count != TAUT_RECENT)
        return taut_fail(TAUT_BAD_FILE, "%s: not the state of a taut run", path);
    if (strcmp(vocab, m->vocab) != 0)
        return taut_fail(TAUT_BAD_FILE, "%s: the run was trained on another vocabulary than this text has", path);
    *c = (taut_clock){ .seconds = strtod(seconds, NULL) };
    const bool numbers = taut_number_int(&c->step, step) && taut_number_int(&c->tokens, tokens);
    if (!numbers || c->step < 0 || c->tokens < 0 || !(c->seconds >= 0 && c->seconds < INFINITY))
        return taut_fail(TAUT_BAD_FILE, "%s: step %.40s, %.40s tokens, %.40s seconds: that makes no sense", path, step,
                         tokens, seconds);
    return taut_safetensors_read(st, recent, c->recent, 0, TAUT_RECENT);
}

/* Weights that fit say nothing of heads, activations or scales: those must be the same too. */
static taut_status check_model(const taut_safetensors *st, const taut_model *m, const char *path)
{
    const char *theirs = taut_safetensors_meta(st, "taut.model");
    char *ours = model_section(m->recipe);
    if (!ours) return taut_no_memory("reading the run");
    const bool same = theirs && strcmp(theirs, ours) == 0;
    free(ours);
    return same ? TAUT_OK
                : taut_fail(TAUT_BAD_FILE, "%s: the run was trained with another [model] section than this recipe's",
                            path);
}

taut_status taut_state_load(taut_clock *c, taut_optimiser *o, const char *path)
{
    const taut_model *m = o->m;
    kind kinds[KINDS];
    char name[280];
    taut_safetensors *st = NULL;
    taut_status s = taut_safetensors_open(&st, path);
    if (s) return s;
    s = load_clock(c, st, m, path);
    if (!s && o->best) s = load_best(c, st, path);
    const int all = kinds_of(o, kinds);
    const taut_owned whole = { 0, m->slab };
    for (int k = 0; k < all; k++)
        for (int i = 0; !s && i < m->weights; i++) {
            const taut_weight *w = &m->weight[i];
            const taut_owned has = kinds[k].owned ? o->owned : whole, part = taut_owned_of(has, w);
            snprintf(name, sizeof name, "%s%s", kinds[k].prefix, w->path);
            s = taut_slab_load(m->k, taut_at(m->k, kinds[k].slab, w->offset - has.lo + part.lo), st, path, name,
                               w->param, part.lo, part.hi);
        }
    if (!s && taut_safetensors_count(st) != all * m->weights + 1)
        s = taut_fail(TAUT_BAD_FILE, "%s: the state of another model or optimiser", path);
    if (!s) s = check_model(st, m, path);
    taut_safetensors_close(st);
    return s;
}

double taut_clock_recent(const taut_clock *c)
{
    const int64_t count = c->step < TAUT_RECENT ? c->step : TAUT_RECENT;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += c->recent[i];
    return count ? sum / (double)count : NAN;
}
