/* The word somebody probably meant. */
#include "harness.h"
#include "taut.h"

static const char *const list[] = { "train.steps", "train.batch", "train.lr", "model.width", "adamw", "muon", "sgd" };

static const char *near(const char *word)
{
    const char *found = taut_nearest(word, list, 7);
    return found ? found : "";
}

int main(void)
{
    test_begin();
    CHECK(strcmp(near("train.stpes"), "train.steps") == 0, "a swap");
    CHECK(strcmp(near("train.step"), "train.steps") == 0, "a letter short");
    CHECK(strcmp(near("TRAIN.LR"), "train.lr") == 0, "case");
    CHECK(strcmp(near("adam"), "adamw") == 0, "adam");
    CHECK(strcmp(near("mun"), "muon") == 0, "mun");
    CHECK(strcmp(near("sdg"), "sgd") == 0, "sdg");
    CHECK(strcmp(near("model.widht"), "model.width") == 0, "widht");
    CHECK(strcmp(near("muon"), "muon") == 0, "the word itself");
    CHECK(!*near("lbfgs") && !*near("") && !*near("zzz") && !*near("a"), "nothing is near");
    CHECK(!taut_nearest("a", list, 0), "an empty list");

    char word[300];
    for (case_no = 0; case_no < effort(2000); case_no++) { /* any bytes, any length: an answer from the list */
        const int64_t len = rng_int(0, 299);
        for (int64_t i = 0; i < len; i++) word[i] = (char)rng_int(1, 255);
        word[len] = 0;
        const char *own[] = { word, list[0] };
        const char *found = taut_nearest(word, list, 7);
        for (int i = 0; found && i < 7; i++)
            if (found == list[i]) found = NULL;
        CHECK(!found, "an entry of the list");
        CHECK(len == 0 || len > 63 || taut_nearest(word, own, 2) == word, "distance 0 wins");
    }
    return test_end("nearest", "suggestions");
}
