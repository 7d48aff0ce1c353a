/* Where data is looked for, and that the error says so. */
#include "data/find.h"

#include "base/alloc.h"
#include "base/file.h"
#include "harness.h"
#include "temp.h"

int main(void)
{
    test_begin();
    temp_begin();
    char *path;
    const char *own = temp_text("own.txt", "x");
    CHECK(!taut_data_find(&path, own) && strcmp(path, own) == 0, "a path as given");
    free(path);
    setenv("TAUT_DATA", temp_dir, 1);
    CHECK(!taut_data_find(&path, "own.txt") && strcmp(path, own) == 0, "a name under $TAUT_DATA");
    free(path);
    CHECK(taut_data_find(&path, "no-such-data") == TAUT_BAD_DATA && !path, "nowhere");
    CHECK(strstr(taut_last_error(), temp_dir) && strstr(taut_last_error(), "./data") &&
              strstr(taut_last_error(), "/usr/share/datasets"),
          "the error lists where it looked");
    unsetenv("TAUT_DATA");
    CHECK(taut_data_find(&path, "no-such-data") == TAUT_BAD_DATA && strstr(taut_last_error(), "not set"), "not set");
    CHECK(taut_data_find(&path, "/no/such") == TAUT_BAD_DATA && !strstr(taut_last_error(), "./data"), "absolute");
    CHECK(taut_data_find(&path, "") == TAUT_BAD_DATA, "no name");
    if (chdir(temp_dir) != 0 || taut_dir_make("data")) abort();
    temp_text("data/in.txt", "x");
    CHECK(!taut_data_find(&path, "in.txt") && strcmp(path, "./data/in.txt") == 0, "a name under ./data");
    free(path);
    for (long n = 1; n <= 1; n++) {
        taut_alloc_fail_at(n);
        CHECK(taut_data_find(&path, "in.txt") == TAUT_NO_MEMORY && !path, "no memory");
        taut_alloc_fail_at(0);
    }
    return test_end("find", "places");
}
