#!/usr/bin/env python3
"""Writes tests/golden/tokens/: what Hugging Face's tokenizers answers, for tests/data/t_tokenizer.c.

    python3 tools/dump_tokens.py               from the repository's root; needs the package tokenizers, the tests do not

bpe/ and wordpiece/ are small tokenizers trained here on the texts below; gpt2 and bert-base-uncased are the published
ones, read from $TAUT_DATA/tokenizers, whose files the repository does not hold.  Each line of encodings.jsonl is a text
and its ids under each of the four, no special tokens added.
"""
import json
import os
import random
import shutil
import unicodedata

from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

FOLDER, DATA = "tests/golden/tokens/", os.environ["TAUT_DATA"] + "/tokenizers/"
TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n ", "a", " a", "a ", "Hello, world!", "Hello world, it's a test. Don't we'll they've I'm he'd you're",
    "IT'S DON'T 'S 's ' s ''s", "  two  spaces   three\tTab\t\ttabs \n newline\r\n crlf\n\n\nmany",
    "numbers 1 12 123 1234 3.14 1,000,000 1e-9 x86_64 v2.0", "snake_case camelCase kebab-case a.b.c",
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do.",
    "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m r\u00e9sum\u00e9 \u00dcber stra\u00dfe \u0130stanbul \u0131", "cafe\u0301 e\u0301\u0301 \u1ea5",
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u03a3\u0391\u03a3",
    "\u4f60\u597d\u4e16\u754c \u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8 \ud55c\uad6d\uc5b4 abc\u4e2ddef",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 emoji \u2764\ufe0f", "\u00a0nbsp\u2003em\u2009thin\u3000wide\u0085nel",
    "\u200bzero\u200dwidth\ufeffbom\u00adsoft", "\u2018quotes\u2019 \u201cdouble\u201d \u2014 dash \u2026 \u00bfqu\u00e9? \u00a1s\u00ed!",
    "$100 ^ ` ~ + = < > | \\ / @ # % & * ( ) [ ] { }", "\u00b2 \u00bd \u2167 \u0663 \u4e09 \u2460", "x" * 99, "x" * 100, "x" * 101,
    "\x01\x02 control \x1c\x1d \x7f", "tab\tin word\x0bvt\x0cff", "\ufffdreplacement", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "unaffable unbelievable antidisestablishmentarianism", "....!!!??? ---- ____", "a\u0300\u0301b \u0301start", "\u1e9b\u0323 \ufb01 \u212b",
]
POOLS = [range(0x20, 0x7F), range(0x20, 0x7F), range(0x09, 0x0E), [0x20, 0x0A, 0x27], range(0xA0, 0x250), range(0x300, 0x370),
         range(0x370, 0x530), range(0x2000, 0x2070), range(0x3040, 0x30FF), range(0x4E00, 0x4F00), range(0xAC00, 0xAD00),
         range(0x1F600, 0x1F640), range(0x0900, 0x0980), range(0x2150, 0x2190), range(0x0660, 0x066A)]


def known(code):
    """Assigned in every Unicode version that a test may meet."""
    return unicodedata.ucd_3_2_0.category(chr(code)) != "Cn" or 0x1F600 <= code < 0x1F640


def fuzz(count):
    rng = random.Random(7)
    for _ in range(count):
        codes = [rng.choice(rng.choice(POOLS)) for _ in range(rng.randint(1, 24))]
        yield "".join(chr(c) for c in codes if known(c))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for kind in ("bpe", "wordpiece"):
        os.makedirs(FOLDER + kind)
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(TEXTS, vocab_size=420, show_progress=False, special_tokens=["<s>", "<mask>"])
    bpe.save_model(FOLDER + "bpe")
    piece = BertWordPieceTokenizer()
    piece.train_from_iterator(TEXTS, vocab_size=420, show_progress=False)
    piece.save_model(FOLDER + "wordpiece")
    makers = {
        "bpe": bpe,
        "wordpiece": BertWordPieceTokenizer(FOLDER + "wordpiece/vocab.txt"),
        "gpt2": ByteLevelBPETokenizer(DATA + "gpt2/encoder.json", DATA + "gpt2/vocab.bpe"),
        "bert-base-uncased": BertWordPieceTokenizer(DATA + "bert-base-uncased/vocab.txt"),
    }
    with open(FOLDER + "encodings.jsonl", "w") as f:
        for text in TEXTS + list(fuzz(150)):
            row = {"text": text}
            row |= {k: m.encode(text, add_special_tokens=False).ids for k, m in makers.items()}
            f.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
