#include "base/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/program.h"
#include "base/sha256.h"

enum { PATH = 4096 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *path_of(const taut_join *j, char path[PATH], int64_t piece, const char *kind)
{
    snprintf(path, PATH, "%s/%lld.%s", j->folder, (long long)piece, kind);
    return path;
}

static bool has_result(const taut_join *j, int64_t piece)
{
    char path[PATH];
    return taut_file_exists(path_of(j, path, piece, "result"));
}

/* The first process writes what the work is, whole and only if nobody has; the others read it. */
static taut_status check_key(const taut_join *j, const char *key)
{
    char path[PATH], mine[PATH + 64], host[64] = "";
    char *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/key", j->folder);
    (void)gethostname(host, sizeof host - 1);
    snprintf(mine, sizeof mine, "%s.%s.%ld", path, host, (long)getpid());
    taut_status s = taut_file_exists(path) ? TAUT_OK : taut_file_write(mine, key, strlen(key));
    if (!s && !taut_file_exists(path) && link(mine, path) != 0 && errno != EEXIST)
        s = taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
    (void)unlink(mine);
    if (!s) s = taut_file_read(&text, &len, path);
    if (!s && strcmp(text, key) != 0)
        s = taut_fail(TAUT_BAD_FILE,
                      "%s is shared by other work: another model, other data or options, another build of taut; name "
                      "another folder",
                      j->folder);
    free(text);
    return s;
}

taut_status taut_join_check(const char *folder)
{
    static const char *const names[] = { "recipe.ini", "state.safetensors", "model.safetensors" };
    char path[PATH];
    if (!*folder) return taut_fail(TAUT_BAD_CALL, "join names no folder");
    if (strlen(folder) > PATH - 96) return taut_fail(TAUT_BAD_FILE, "the name of the shared folder is too long");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (taut_file_exists(path))
            return taut_fail(TAUT_BAD_FILE,
                             "join %s is a run's folder (%s is there): name one for the shared work alone", folder,
                             names[i]);
    }
    return TAUT_OK;
}

taut_status taut_join_open(taut_join *j, const char *folder, const char *key, int64_t pieces)
{
    *j = (taut_join){ .pieces = pieces, .piece = -1, .longest = 0.5 };
    if (strlen(folder) > PATH - 96) return taut_fail(TAUT_BAD_FILE, "the name of the shared folder is too long");
    char program[65];
    taut_sha256 h;
    taut_status s = taut_program_hash(program);
    if (s) return s;
    taut_sha256_begin(&h);
    taut_sha256_add(&h, program, strlen(program));
    taut_sha256_add(&h, key, strlen(key));
    taut_sha256_end(&h, j->key);
    j->folder = taut_strdup(folder);
    s = j->folder ? taut_dir_make(folder) : taut_no_memory("a shared folder");
    return s ? s : check_key(j, j->key);
}

void taut_join_close(taut_join *j)
{
    free(j->folder);
    j->folder = NULL;
}

/* What stands above a result: it is whole, of this work, and of this piece. */
static void seal(const taut_join *j, char hex[65], int64_t piece, const char *text)
{
    taut_sha256 h;
    taut_sha256_begin(&h);
    taut_sha256_add(&h, j->key, strlen(j->key));
    taut_sha256_add(&h, &piece, sizeof piece);
    taut_sha256_add(&h, text, strlen(text));
    taut_sha256_end(&h, hex);
}

/* One that nobody has taken; -1: there is none. */
static taut_status take_new(taut_join *j, int64_t *piece)
{
    char path[PATH];
    for (*piece = -1; j->next < j->pieces; j->next++) {
        if (has_result(j, j->next)) continue;
        const int fd = open(path_of(j, path, j->next, "taken"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
        if (fd < 0) continue;
        close(fd);
        *piece = j->next++;
        return TAUT_OK;
    }
    return TAUT_OK;
}

/* One of those without a result, and how many there are.  Each process begins elsewhere, so that two seldom do the same. */
static int64_t without_result(const taut_join *j, int64_t *count)
{
    const int64_t from = (int64_t)getpid() % (j->pieces ? j->pieces : 1);
    int64_t found = -1;
    *count = 0;
    for (int64_t i = 0; i < j->pieces; i++) {
        const int64_t piece = (from + i) % j->pieces;
        if (has_result(j, piece)) continue;
        if (found < 0) found = piece;
        ++*count;
    }
    return found;
}

taut_status taut_join_take(taut_join *j, int64_t *piece, int (*tell)(double, void *), void *arg)
{
    const double start = now();
    int64_t left, before = -1;
    taut_status s = take_new(j, piece);
    while (!s && *piece < 0) {
        const int64_t found = without_result(j, &left);
        const bool waited = now() - start > 2 * j->longest;
        if (tell && left != before && tell(1 - (double)left / (double)(j->pieces + 1), arg))
            return taut_fail(TAUT_BAD_CALL, "stopped");
        before = left;
        if (found < 0) break;
        if (waited) *piece = found;
        if (!waited) (void)usleep(20000);
    }
    j->piece = *piece, j->began = now();
    return s;
}

taut_status taut_join_put(taut_join *j, cJSON *o)
{
    char path[PATH];
    char *text = taut_json_text(o, false), *sealed = text ? taut_malloc(strlen(text) + 67) : NULL;
    cJSON_Delete(o);
    if (sealed) {
        seal(j, sealed, j->piece, text);
        sealed[64] = '\n';
        memcpy(sealed + 65, text, strlen(text) + 1);
    }
    const taut_status s = sealed ? taut_file_write(path_of(j, path, j->piece, "result"), sealed, strlen(sealed))
                                 : taut_no_memory("a result");
    if (now() - j->began > j->longest) j->longest = now() - j->began;
    free(text), free(sealed);
    return s;
}

taut_status taut_join_damaged(const taut_join *j, int64_t piece)
{
    return taut_fail(TAUT_BAD_FILE, "%s/%lld.result: a damaged result, or one of other work: delete it", j->folder,
                     (long long)piece);
}

taut_status taut_join_get(const taut_join *j, int64_t piece, cJSON **out)
{
    char path[PATH], hex[65];
    char *text = NULL;
    size_t len;
    *out = NULL;
    const taut_status s = taut_file_read(&text, &len, path_of(j, path, piece, "result"));
    if (s) return s;
    if (len > 65 && text[64] == '\n') {
        seal(j, hex, piece, text + 65);
        if (memcmp(hex, text, 64) == 0) *out = cJSON_Parse(text + 65);
    }
    free(text);
    return *out ? TAUT_OK : taut_join_damaged(j, piece);
}
