/* log.jsonl: appending, resuming, torn lines, a full disk. */
#include "base/log.h"

#include <signal.h>
#include <sys/resource.h>

#include "harness.h"
#include "temp.h"

static cJSON *line(int step, double loss)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "step", step);
    cJSON_AddNumberToObject(object, "loss", loss);
    return object;
}

static void append(const char *path, int64_t keep, int from, int to)
{
    taut_log *log = NULL;
    CHECK(!taut_log_open(&log, path, keep), taut_last_error());
    for (int i = from; i <= to && log; i++) CHECK(!taut_log_line(log, line(i, 0.5)), taut_last_error());
    taut_log_close(log);
}

static void resuming(const char *path)
{
    append(path, 5, 1, 3); /* resuming without a file is starting */
    CHECK(temp_is(path, "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.5}\n{\"step\":3,\"loss\":0.5}\n"), "lines");
    append(path, 2, 3, 3);
    CHECK(temp_is(path, "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.5}\n{\"step\":3,\"loss\":0.5}\n"), "resume");
    append(path, -1, 1, 1);
    CHECK(temp_is(path, "{\"step\":1,\"loss\":0.5}\n"), "fresh");

    temp_text("log.jsonl",
              "{\"run\":\"a\"}\n{\"step\":1}\r\n\n{\"step\":9}\n{\"step\":2}{\"step\":3}\n[1]\n{\"step\":\"x\"}\n"
              "{\"step\":2.5}\n{\"step\":2,\"loss\":0.");
    append(path, 3, 3, 3);
    CHECK(temp_is(path, "{\"run\":\"a\"}\n{\"step\":1}\r\n{\"step\":2.5}\n{\"step\":3,\"loss\":0.5}\n"),
          "the future and whatever is no whole object go");
    temp_put("log.jsonl", "{\"step\":1}\n\0\0\0\0", 15);
    append(path, 3, 3, 3);
    CHECK(temp_is(path, "{\"step\":1}\n{\"step\":3,\"loss\":0.5}\n"), "blocks of zeros, as after a power cut");
    char *deep = calloc(1, 1 << 20);
    memset(deep, '[', (1 << 20) - 1);
    temp_text("log.jsonl", deep);
    free(deep);
    append(path, 3, 3, 3);
    CHECK(temp_is(path, "{\"step\":3,\"loss\":0.5}\n"), "deep nesting");
}

static void failures(const char *path)
{
    taut_log *log;
    CHECK(!taut_log_open(&log, path, 0), "open");
    CHECK(taut_log_line(log, NULL) == TAUT_NO_MEMORY, "NULL: building the object failed");
    CHECK(!taut_log_line(log, line(0, NAN)), "not finite");
    const struct rlimit small = { 30, RLIM_INFINITY };
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK(taut_log_line(log, line(1, 0.5)) == TAUT_BAD_FILE, "a full disk");
    CHECK(strstr(taut_last_error(), "log.jsonl: File too large"), taut_last_error());
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(!taut_log_line(log, line(2, 0.5)), "room again");
    taut_log_close(log);
    CHECK(temp_is(path, "{\"step\":0,\"loss\":null}\n{\"step\":2,\"loss\":0.5}\n"), "no half line");
    CHECK(taut_log_open(&log, temp_path("no/such/log"), 0) == TAUT_BAD_FILE && !log, "no folder");
    CHECK(taut_log_open(&log, temp_dir, -1) == TAUT_BAD_FILE && !log, "a folder");
}

int main(void)
{
    test_begin();
    temp_begin();
    const char *path = temp_path("log.jsonl");
    resuming(path);
    failures(path);
    return test_end("log", "append and resume");
}
