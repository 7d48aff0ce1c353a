#!/bin/sh
# What a terminal shows: a bar where there is room for one, none on a dumb terminal, a narrow one or a pipe; no colours anywhere.
. tests/cli/lib.sh
esc=$(printf '\033')
"$TAUT" >"$tmp/o" 2>"$tmp/e"
check "no command: exit code 1" [ $? = 1 ]
check "no command: the commands, on stderr" grep -q 'taut train' "$tmp/e"
check "no command: nothing on stdout" [ ! -s "$tmp/o" ]
"$TAUT" certfy x >"$tmp/o" 2>"$tmp/e"
check "a slip: the nearest command" grep -q 'did you mean certify' "$tmp/e"
for words in --help -h help "train --help" "train -h"; do
    # shellcheck disable=SC2086
    "$TAUT" $words >"$tmp/o" 2>"$tmp/e"
    check "$words: exit code 0" [ $? = 0 ]
    check "$words: help on stdout" grep -q 'taut train' "$tmp/o"
done
if [ -w /dev/full ]; then
    for words in --help --version "train --help"; do
        # shellcheck disable=SC2086
        "$TAUT" $words >/dev/full 2>"$tmp/e"
        check "$words that nobody got: exit code 1" [ $? = 1 ]
    done
fi

# shellcheck disable=SC2086 # $small is many words
"$TAUT" train $small --out "$tmp/piped" >"$tmp/o" 2>"$tmp/e"
check "piped: no escape codes" [ -z "$(grep -h "$esc" "$tmp/o" "$tmp/e")" ]
check "piped: no bar" [ -z "$(grep -h '%' "$tmp/e")" ]

if ! command -v script >/dev/null || ! script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    finish "terminal     (no terminal to be had here: pipes only)"
    exit
fi
on_terminal() { # COLUMNS TERM: a training run on such a terminal, to $tmp/seen
    echo "stty cols $1 2>/dev/null; TERM=$2 '$TAUT' train $(echo "$small" | tr '\n' ' ') --out '$tmp/run-$1-$2'" >"$tmp/go.sh"
    script -qec "sh $tmp/go.sh" /dev/null </dev/null >"$tmp/seen" 2>&1
}
on_terminal 80 xterm
check "80 columns: a bar" grep -q '\[#.*\] .*%.*loss' "$tmp/seen"
check "80 columns: it is wiped away" grep -q "$esc\[K" "$tmp/seen"
check "80 columns: no colours" [ -z "$(grep "$esc\[[0-9;]*m" "$tmp/seen")" ]
on_terminal 30 xterm
check "30 columns: a bar" grep -q '\[#.*\] .*%' "$tmp/seen"
tr '\r' '\n' <"$tmp/seen" | grep '\[#' | sed "s/$esc\[K//g" | awk 'length > 29 { exit 1 }'
check "30 columns: it does not wrap" [ $? = 0 ]
for bad in "8 xterm" "80 dumb"; do
    # shellcheck disable=SC2086
    on_terminal $bad
    check "$bad: no bar, no escape codes" [ -z "$(grep "$esc\|\[#" "$tmp/seen")" ]
    check "$bad: the result all the same" grep -q 'validation' "$tmp/seen"
done
finish "terminal     bars, pipes, narrow and dumb terminals"
