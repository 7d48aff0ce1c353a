/* Appends with one write a line; resuming rewrites what is kept, atomically, before it appends. */
#include "base/log.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

struct taut_log {
    char *path;
    int fd;
};

static bool line_kept(const char *line, size_t len, int64_t keep_steps)
{
    /* cJSON takes the first value and lets anything follow; a torn or doubled line must not pass */
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithLengthOpts(line, len, &end, false);
    while (end && end < line + len && (*end == ' ' || *end == '\r')) end++;
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(object, "step");
    const bool kept = cJSON_IsObject(object) && end == line + len &&
                      (!step || (cJSON_IsNumber(step) && step->valuedouble <= (double)keep_steps));
    cJSON_Delete(object);
    return kept;
}

static taut_status rewrite(const char *path, const char *text, size_t len, int64_t keep_steps)
{
    taut_writer w;
    taut_status status = taut_writer_begin(&w, path);
    for (const char *line = text; !status && line < text + len;) {
        const size_t rest = (size_t)(text + len - line);
        const char *newline = memchr(line, '\n', rest);
        const size_t size = newline ? (size_t)(newline - line) : rest;
        if (line_kept(line, size, keep_steps)) {
            status = taut_writer_put(&w, line, size);
            if (!status) status = taut_writer_put(&w, "\n", 1);
        }
        line += size + 1;
    }
    return status ? status : taut_writer_commit(&w);
}

taut_status taut_log_open(taut_log **out, const char *path, int64_t keep_steps)
{
    *out = NULL;
    char *text = NULL;
    size_t len = 0;
    taut_log *log = NULL;
    taut_status status = TAUT_OK;
    if (keep_steps >= 0 && taut_file_exists(path)) status = taut_file_read(&text, &len, path);
    if (!status) status = rewrite(path, text ? text : "", len, keep_steps);
    free(text);
    if (status) return status;
    log = taut_malloc(sizeof *log);
    if (!log || !(log->path = taut_strdup(path))) {
        free(log);
        return taut_no_memory(path);
    }
    log->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log->fd < 0) {
        status = taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
        free(log->path);
        free(log);
        return status;
    }
    *out = log;
    return TAUT_OK;
}

static taut_status append(taut_log *log, const char *line, size_t len)
{
    const off_t before = lseek(log->fd, 0, SEEK_END);
    while (len > 0) {
        const ssize_t done = write(log->fd, line, len);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            const int why = errno;
            const bool whole = before >= 0 && ftruncate(log->fd, before) == 0;
            return taut_fail(TAUT_BAD_FILE, "%s: %s%s", log->path, strerror(why),
                             whole ? "" : " (its last line is torn)");
        }
        line += done;
        len -= (size_t)done;
    }
    return TAUT_OK;
}

taut_status taut_log_line(taut_log *log, cJSON *object)
{
    char *line = object ? taut_json_text(object, false) : NULL;
    cJSON_Delete(object);
    if (!line) return taut_no_memory(log->path);
    const size_t len = strlen(line);
    line[len] = '\n'; /* the closing NUL is not written: one write, so that a line is there whole or not */
    const taut_status status = append(log, line, len + 1);
    cJSON_free(line);
    return status;
}

void taut_log_close(taut_log *log)
{
    if (!log) return;
    close(log->fd);
    free(log->path);
    free(log);
}
