/* The standard's own examples, and any cutting of the input gives the same. */
#include "base/sha256.h"
#include "harness.h"

static void digest(char hex[65], const char *text, size_t len, size_t cut)
{
    taut_sha256 c;
    taut_sha256_begin(&c);
    for (size_t i = 0; i < len; i += cut) taut_sha256_add(&c, text + i, len - i < cut ? len - i : cut);
    taut_sha256_end(&c, hex);
}

int main(void)
{
    static const char *const known[][2] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    static char million[1000000];
    char hex[65], other[65];
    test_begin();
    for (int i = 0; i < 3; i++) {
        digest(hex, known[i][0], strlen(known[i][0]), 7);
        CHECK(strcmp(hex, known[i][1]) == 0, "a published digest");
    }
    memset(million, 'a', sizeof million);
    digest(hex, million, sizeof million, 4096);
    CHECK(strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0, "a million a");
    for (size_t len = 0; len < 200; len++) {
        digest(hex, million, len, 1);
        digest(other, million, len, 64);
        CHECK(strcmp(hex, other) == 0, "cut anywhere");
    }
    return test_end("sha256", "published digests");
}
