/* Files: what can be read, and that a failed write keeps the old file and leaves nothing behind. */
#include "base/file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "harness.h"
#include "temp.h"

static void reading(void)
{
    char *text;
    size_t len;
    CHECK(!taut_file_read(&text, &len, temp_put("a", "x\0y", 3)) && len == 3 && memcmp(text, "x\0y", 4) == 0, "NUL");
    free(text);
    CHECK(!taut_file_read(&text, &len, temp_put("a", "", 0)) && len == 0 && *text == 0, "empty");
    free(text);
    CHECK(taut_file_read(&text, &len, temp_path("none")) == TAUT_BAD_FILE && !text, "missing");
    CHECK(strstr(taut_last_error(), "none: No such file or directory"), taut_last_error());
    CHECK(taut_file_read(&text, &len, temp_dir) == TAUT_BAD_FILE, "folder");
    CHECK(strstr(taut_last_error(), "is a folder"), taut_last_error());
    CHECK(!taut_file_read(&text, &len, "/proc/self/status") && len > 0, "a file that does not know its size");
    free(text);
}

static void folders(void)
{
    const char *deep = temp_path("d/e//f/");
    CHECK(!taut_dir_make(deep) && taut_file_exists(deep), "with parents");
    CHECK(!taut_dir_make(deep) && !taut_dir_make("/") && !taut_dir_make("."), "there already");
    const char *file = temp_text("file", "x");
    CHECK(taut_dir_make(file) == TAUT_BAD_FILE && strstr(taut_last_error(), "is no folder"), taut_last_error());
    CHECK(taut_dir_make(temp_path("file/g")) == TAUT_BAD_FILE, "a file in the way");
    CHECK(!taut_file_exists(temp_path("file/g")), "not made");
}

static void writing(void)
{
    const char *path = temp_text("w", "old");
    char *big = malloc(300000);
    size_t len = 0;
    taut_writer w;
    chmod(path, 0640);
    memset(big, 'x', 300000);
    CHECK(!taut_writer_begin(&w, path) && temp_is(path, "old"), "begin");
    for (int i = 0; i < 1000; i++) CHECK(!taut_writer_put(&w, big, (size_t)i), "small puts");
    CHECK(!taut_writer_put(&w, big, 300000), "a big put");
    CHECK(temp_is(path, "old"), "the old file until the end");
    const int before = temp_count();
    CHECK(!taut_writer_commit(&w) && temp_count() == before - 1, "commit");
    char *got = temp_get(path, &len);
    CHECK(got && len == 799500, "all of it");
    free(got);
    free(big);
    struct stat info;
    CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0640, "keeps the mode");
    CHECK(taut_writer_put(&w, "x", 1) == TAUT_BAD_FILE && taut_writer_commit(&w) == TAUT_BAD_FILE, "over is over");
    taut_writer_abort(&w);

    CHECK(!taut_file_write(path, "new", 3) && temp_is(path, "new"), "write");
    CHECK(!taut_writer_begin(&w, path) && !taut_writer_put(&w, "y", 1), "begin");
    taut_writer_abort(&w);
    CHECK(temp_is(path, "new") && temp_count() == before - 1, "abort leaves nothing");
    CHECK(symlink("w", temp_path("link")) == 0 && !taut_file_write(temp_path("link"), "via", 3), "a link");
    CHECK(temp_is(path, "via") && lstat(temp_path("link"), &info) == 0 && S_ISLNK(info.st_mode), "is followed");
    CHECK(taut_file_write("/dev/null", "x", 1) == TAUT_BAD_FILE, "a device is not replaced");
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode), "a device is not replaced");
    CHECK(taut_file_write(temp_dir, "x", 1) == TAUT_BAD_FILE, "nor a folder");
    CHECK(taut_file_write(temp_path("no/such"), "x", 1) == TAUT_BAD_FILE, "a folder that is not there");
}

/* A limit on the file size stands in for a full disk: it works without root. */
static void full_disk(void)
{
    static char big[200000];
    const struct rlimit small = { 100000, RLIM_INFINITY };
    struct rlimit before;
    const char *path = temp_text("full", "old");
    const int count = temp_count();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    if (before.rlim_max != RLIM_INFINITY || setrlimit(RLIMIT_FSIZE, &small) != 0) return;
    CHECK(taut_file_write(path, big, sizeof big) == TAUT_BAD_FILE, "fails in put");
    CHECK(strstr(taut_last_error(), "full: File too large (the old file is kept)"), taut_last_error());
    CHECK(temp_is(path, "old") && temp_count() == count, "the old file stays, the temporary goes");
    const struct rlimit tiny = { 10, RLIM_INFINITY };
    setrlimit(RLIMIT_FSIZE, &tiny);
    CHECK(taut_file_write(path, big, 100) == TAUT_BAD_FILE, "fails in commit");
    CHECK(temp_is(path, "old") && temp_count() == count, "the old file stays, the temporary goes");
    CHECK(taut_file_write(temp_path("other"), big, 100) == TAUT_BAD_FILE, "no old file");
    CHECK(!strstr(taut_last_error(), "old file") && !taut_file_exists(temp_path("other")), taut_last_error());
    taut_writer w;
    CHECK(!taut_writer_begin(&w, path), "begin");
    CHECK(taut_writer_put(&w, big, sizeof big) == TAUT_BAD_FILE && taut_writer_put(&w, big, 1) == TAUT_BAD_FILE &&
              taut_writer_commit(&w) == TAUT_BAD_FILE,
          "once failed, always failed");
    taut_writer_abort(&w);
    CHECK(temp_is(path, "old") && temp_count() == count, "the old file stays, the temporary goes");
    setrlimit(RLIMIT_FSIZE, &before);
}

static void locks(void)
{
    const char *path = temp_path("locked");
    int one = -1, two = -1;
    CHECK(taut_dir_lock(&one, path) == TAUT_BAD_FILE && one == -1, "a folder that is not there");
    CHECK(!taut_dir_make(path) && !taut_dir_lock(&one, path), "locked");
    CHECK(taut_dir_lock(&two, path) == TAUT_BAD_FILE && two == -1 && strstr(taut_last_error(), "another process"),
          "only once");
    taut_dir_release(one);
    CHECK(!taut_dir_lock(&two, path), "released");
    taut_dir_release(two);
    taut_dir_release(-1);
}

static void memory(void)
{
    const char *path = temp_text("m", "old");
    const int count = temp_count();
    long n = 0;
    taut_status status;
    do {
        taut_alloc_fail_at(++n);
        status = taut_file_write(path, "new", 3);
        if (!status) {
            char *text = NULL;
            size_t len;
            status = taut_file_read(&text, &len, "/proc/self/maps");
            free(text);
        }
        if (!status) status = taut_dir_make(temp_path("m2"));
        taut_alloc_fail_at(0);
        CHECK(!status || status == TAUT_NO_MEMORY, taut_last_error());
    } while (status && n < 100);
    CHECK(n > 4 && temp_count() == count + 1, "every allocation was made to fail");
}

int main(void)
{
    test_begin();
    temp_begin();
    reading();
    folders();
    writing();
    full_disk();
    locks();
    memory();
    return test_end("file", "read, write, full disk, locks");
}
