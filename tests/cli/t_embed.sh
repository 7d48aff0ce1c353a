#!/bin/sh
# An encoder without a head: converted, asked for features of lines of text, certified; the same of one with a head.
. tests/cli/lib.sh
refused() { # LINE COMMAND...: exit 1 and one line with LINE in it, nothing on stdout
    line=$1; shift
    "$TAUT" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
    [ "$rc" = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$line" "$tmp/err"
}
mkdir "$tmp/bert"
cp tests/golden/hf_bert/config.json tests/golden/hf_bert/model.safetensors "$tmp/bert"
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nquick\nbrown\nfox\njump\n##s\nover\nlazy\ndog\n' >"$tmp/bert/vocab.txt"
printf 'The quick fox\n\nthe LAZY dog jumps\nthe the the the the the the the the the\n' >"$tmp/text"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "the quick brown fox jumps over the lazy dog " }' >"$tmp/long"
head=$tmp/head.safetensors none=$tmp/none.safetensors
check "convert, with its head" "$TAUT" convert "$tmp/bert" --out "$head"
check "convert, without" "$TAUT" convert "$tmp/bert" --set model.head=none --set model.pool=mean --out "$none"
"$TAUT" embed "$none" "$tmp/text" --out "$tmp/a.csv" >"$tmp/log"
check "three lines, and their names" [ "$(wc -l <"$tmp/a.csv")" = 4 ]
check "16 numbers each" [ "$(head -1 "$tmp/a.csv" | tr , '\n' | grep -c '^f[0-9]')" = 16 ]
check "line numbers, tokens" grep -q "\",3,7," "$tmp/a.csv"
check "one is cut off, and said so" grep -q "^1 of them are longer than 8 tokens" "$tmp/log"
"$TAUT" embed "$head" "$tmp/text" >"$tmp/b.csv" 2>"$tmp/err"
check "the head does not matter" cmp -s "$tmp/a.csv" "$tmp/b.csv"
"$TAUT" embed "$none" "$tmp/text" --pool class >"$tmp/c.csv" 2>"$tmp/err"
check "the first token is not the mean" sh -c '! cmp -s "$1" "$2"' - "$tmp/a.csv" "$tmp/c.csv"
"$TAUT" embed "$none" "$tmp/text" --unit --bound --json >"$tmp/json"
check "of length 1" sh -c 'tr -d " \t\n" <"$1" | sed "s/.*\"line\":1,[^[]*\[//; s/\].*//" | tr , "\n" |
    awk "{ s += \$1 * \$1 } END { exit !(NR == 16 && s > 0.999999 && s < 1.000001) }"' - "$tmp/json"
check "a constant and what it means" grep -q "features move by at most" "$tmp/json"
"$TAUT" certify "$none" --norm tokens --json >"$tmp/cert"
check "the certificate's constant" [ "$(json_get "$tmp/json" lip)" = "$(json_get "$tmp/cert" lip)" ]
check "from embeddings to features" [ "$(json_get "$tmp/cert" maps)" = "embeddings to features" ]
check "stdin" sh -c '"$TAUT" embed "$1" - <"$2" | sed "s/^\"[^\"]*\"//" | tail -3 >"$3"; sed "s/^\"[^\"]*\"//" "$4" | tail -3 | cmp -s - "$3"' - \
    "$none" "$tmp/text" "$tmp/d" "$tmp/a.csv"

# proofs of both, in both norms, and what holds around examples
for norm in tokens flat; do
    check "certify features, $norm" "$TAUT" certify "$none" --norm "$norm" --data "$tmp/long" --n-ex 3 --local --radius 0.001 --out "$tmp/c.json"
    check "check them, $norm" "$TAUT" check "$tmp/c.json" "$none"
    check "certify the hidden token, $norm" "$TAUT" certify "$head" --norm "$norm" --data "$tmp/long" --n-ex 3 --local --radius 0.001 --out "$tmp/c.json"
    check "check it, $norm" "$TAUT" check "$tmp/c.json" "$head"
done
"$TAUT" certify "$none" --data "$tmp/long" --n-ex 3 --local --radius 0.001 --json >"$tmp/json"
check "three constants around texts" [ "$(tr -d ' \t\n' <"$tmp/json" | sed 's/.*"local":\[//; s/\].*//' | tr '{' '\n' | grep -c '"lip"')" = 3 ]
# more tokens than features, and no mask among them
mkdir "$tmp/wide"
cp tests/golden/hf_bert/config.json tests/golden/hf_bert/model.safetensors "$tmp/wide"
{ printf '[PAD]\n[UNK]\nthe\nquick\nbrown\nfox\n'; awk 'BEGIN { for (i = 0; i < 23; i++) print "word" i }'; } >"$tmp/wide/vocab.txt"
refuse "no row for the mask" "its embedding has 29 rows; a vocabulary of 29 tokens and the mask takes 30" "$TAUT" convert "$tmp/wide" --out "$tmp/w"
check "features want none" "$TAUT" convert "$tmp/wide" --set model.head=none --set model.pool=mean --out "$tmp/w"
check "and are certified around texts" "$TAUT" certify "$tmp/w" --data "$tmp/long" --n-ex 2 --local
check "features have no accuracy" sh -c '! grep -q "median_margin\|\"accuracy\"" "$1"' - "$tmp/json"
check "growth with the length" "$TAUT" measure "$none" --text "$tmp/long" --lengths 2:8:2 --samples 2

check "no answers to swap tokens under" refused "has no head" certify "$none" --data "$tmp/long" --n-ex 2 --swaps 1
mkdir "$tmp/run" && cp "$none" "$tmp/run/model.safetensors" && cp "$tmp/json" "$tmp/run/certify.json"
check "a report of features" "$TAUT" report "$tmp/run" --out "$tmp/page.html"
check "speaks of no answers" sh -c '! grep -q "answers\? is" "$1"' - "$tmp/page.html"
check "nothing to evaluate" refused "has no head" eval "$none" --data "$tmp/long"
check "no such pool" refused "mean or class" embed "$none" "$tmp/text" --pool max
check "no file" refused "No such file" embed "$none" "$tmp/nobody"
check "no lines" refused "no line of text" embed "$none" /dev/null
check "no place" refused "No such file" embed "$none" "$tmp/text" --out "$tmp/nowhere/x.csv"
printf 'good\nb\377d\n' >"$tmp/bad"
check "no UTF-8, and where" refused "bad:2: .*UTF-8" embed "$none" "$tmp/bad" --out "$tmp/e.csv"
check "nothing was written" [ ! -e "$tmp/e.csv" ]
printf 'a\0b\n' >"$tmp/nul"
check "NUL" refused "nul:1: NUL" embed "$none" "$tmp/nul"
check "a bound is about features" refused "model.head=none" embed "$head" "$tmp/text" --bound
check "a gpt has none" refused "an encoder's" embed gpt2 "$tmp/text"
check "a data name is wanted" refused "--data NAME" certify "$head" --n-ex 2
finish "embed"
