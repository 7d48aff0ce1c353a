/* Tokenizers: a model file's vocabulary, the files of a pretrained one, and any bytes as text.  The first byte of an input says
 * which of these the rest is. */
#include "fuzz.h"

#include "data/vocab.h"

static const char vocab_json[] = "{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"\\u0120a\":4}";
static const char merges[] = "#version: 0.2\na b\n\xc4\xa0 a\n";
static const char pieces[] = "[UNK]\n[MASK]\na\n##b\nab\n,\n";
enum { PARSE, JSON, MERGES, PIECES, TEXT, KINDS };
static taut_vocab *known[2]; /* a bpe and a wordpiece, for texts */

static void seed_kind(int kind, const char *text)
{
    char b[4096];
    b[0] = (char)kind;
    memcpy(b + 1, text, strlen(text));
    fuzz_seed(b, strlen(text) + 1);
}

static void seed_file(int kind, const char *path)
{
    size_t len = 0;
    char *text = temp_get(path, &len);
    if (!text || len > 4000) abort();
    seed_kind(kind, text);
    free(text);
}

static void put_bpe(void)
{
    temp_text("vocab.json", vocab_json);
    temp_text("merges.txt", merges);
}

static void end(void)
{
    taut_vocab_free(known[0]);
    taut_vocab_free(known[1]);
}

static void fuzz_begin(void)
{
    put_bpe();
    if (taut_vocab_open(&known[0], temp_dir)) abort();
    remove(temp_path("vocab.json"));
    remove(temp_path("merges.txt"));
    temp_text("vocab.txt", pieces);
    if (taut_vocab_open(&known[1], temp_dir)) abort();
    remove(temp_path("vocab.txt"));
    atexit(end);
    seed_kind(PARSE, "bytes");
    seed_kind(PARSE, "chars:a,20-7e,e9");
    for (int i = 0; i < 2; i++) {
        char *printed = taut_vocab_print(known[i]);
        seed_kind(PARSE, printed);
        free(printed);
    }
    seed_kind(JSON, vocab_json);
    seed_kind(MERGES, merges);
    seed_kind(PIECES, pieces);
    seed_file(JSON, "tests/golden/tokens/bpe/vocab.json");
    seed_file(MERGES, "tests/golden/tokens/bpe/merges.txt");
    seed_kind(TEXT, "ab, a\xc3\xa9 \xe4\xb8\xad it's 12  b\n\xff");
}

static void encode(const taut_vocab *v, const char *text, size_t len)
{
    int32_t *ids = NULL;
    int64_t count = 0;
    char *back = NULL;
    size_t back_len = 0;
    if (taut_vocab_encode(&ids, &count, v, text, len)) return;
    for (int64_t i = 0; i < count; i++) CHECK(ids[i] >= 0 && ids[i] < taut_vocab_size(v), "an id of the vocabulary");
    CHECK(!taut_vocab_decode(&back, &back_len, v, ids, count), "decodes");
    if (strncmp(taut_vocab_kind(v), "wordpiece", 9) != 0)
        CHECK(back_len == len && memcmp(back, text, len) == 0, "the same text");
    free(back);
    free(ids);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_vocab *v = NULL;
    if (len == 0) return;
    const int kind = data[0] % KINDS;
    char *text = malloc(len);
    memcpy(text, data + 1, len - 1);
    text[len - 1] = '\0';
    taut_status s = TAUT_OK;
    if (kind == TEXT)
        for (int i = 0; i < 2; i++) encode(known[i], text, len - 1);
    else if (kind == PARSE)
        s = taut_vocab_parse(&v, text);
    else {
        put_bpe();
        temp_put(kind == JSON ? "vocab.json" : kind == MERGES ? "merges.txt" : "vocab.txt", text, len - 1);
        if (kind == PIECES) remove(temp_path("vocab.json")), remove(temp_path("merges.txt"));
        s = taut_vocab_open(&v, temp_dir);
        remove(temp_path("vocab.json")), remove(temp_path("merges.txt")), remove(temp_path("vocab.txt"));
    }
    if (v) {
        char *printed = taut_vocab_print(v);
        taut_vocab *again = NULL;
        CHECK(!taut_vocab_parse(&again, printed) && taut_vocab_size(again) == taut_vocab_size(v), "reads back");
        encode(v, "ab a", 4);
        taut_vocab_free(again);
        free(printed);
    }
    (void)s;
    taut_vocab_free(v);
    free(text);
}
