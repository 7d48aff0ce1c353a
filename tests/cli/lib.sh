# shellcheck shell=sh disable=SC2034
# What every test of the program uses.  Sourced from the root of the repository:  . tests/cli/lib.sh
set -u
: "${TAUT:?the program}" "${BUILD:?the build folder}"
export TAUT
# In a sanitizer build the search for leaks costs seconds a process (gcc on arm64), and hundreds start here: the tests in C
# search the library, t_json.sh each command once.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS
[ -x "$TAUT" ] || { echo "FAIL there is no program $TAUT"; exit 1; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/taut-cli-XXXXXX") || exit 1
child=
# shellcheck disable=SC2329 # the traps call it
tidy() {
    [ -z "$child" ] || kill -9 "$child" 2>/dev/null
    rm -rf "$tmp"
}
trap tidy EXIT
trap 'exit 1' HUP INT TERM
fails=0 checks=0

check() { # WHAT COMMAND...: the command must succeed
    checked=$1; shift
    checks=$((checks + 1))
    if "$@" >"$tmp/check.log" 2>&1; then return 0; fi
    fails=$((fails + 1))
    echo "FAIL $checked: $*"
    sed 's/^/     /' "$tmp/check.log" | head -n 5
    return 0
}

numpy() { # the first Python with NumPy, as a word; fails where there is none
    for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2>/dev/null && echo "$p" && return; done
    return 1
}

long() { # for a test that puts together what others try singly: skipped where only a part of the cases is asked for
    awk -v e="${TAUT_EFFORT:-1}" 'BEGIN { exit !(e < 1) }' || return 0
    echo "skipped: long, and TAUT_EFFORT is below 1"
    exit 77
}

finish() { # the closing line, the exit code
    if [ "$fails" = 0 ]; then echo "$1  ok"; else echo "$1  $fails of $checks FAILED"; fi
    [ "$fails" = 0 ]
}

refuse() { # WHAT PATTERN COMMAND...: exit code 1, one line on stderr that says the pattern, nothing on stdout
    what=$1 pattern=$2; shift 2
    "$@" >"$tmp/out" 2>"$tmp/err"
    rc=$?
    check "$what: exit code 1, not $rc" [ $rc = 1 ]
    check "$what: one line" [ "$(wc -l <"$tmp/err")" = 1 ]
    check "$what: says '$pattern', not '$(cat "$tmp/err")'" grep -q -e "$pattern" "$tmp/err"
    check "$what: nothing on stdout" [ ! -s "$tmp/out" ]
}

# A run of milliseconds: taut train $small --out RUN
small="recipes/tiny-free.ini --set model.width=16 --set model.depth=1 --set model.heads=2 --set model.context=16
 --set train.steps=6 --set train.batch=2 --set train.warmup=2 --set train.log_every=1 --set data.length=2000"

json() { awk -f tests/cli/json.awk "$@"; } # "key value" of every plain member; fails if it is not one object
json_get() { json "$1" | sed -n "s/^$2 //p"; } # FILE KEY
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 == a && a < b) }'; } # a number, and below b
near() { awk -v a="$1" -v b="$2" -v tol="$3" 'BEGIN { d = a - b; exit !(a != "" && d <= tol && -d <= tol) }'; }

without_seconds() { sed 's/,*"seconds":[^,}]*//' "$1"; } # of log lines
# A state's header without the seconds and the padding, then its numbers: FILE HEADER NUMBERS
split_state() {
    len=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +9 "$1" | head -c "$len" | sed 's/"seconds":"[^"]*"//; s/ *$//' >"$2"
    tail -c +"$((len + 9))" "$1" >"$3"
}

nan_weights() { # MODEL OUT: a model.safetensors with NaN for every weight
    len=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    head -c $((len + 8)) "$1" >"$2"
    awk -v n=$((($(wc -c <"$1") - len - 8) / 4)) 'BEGIN { for (i = 0; i < n; i++) printf "%s", "\377\377\377\177" }' >>"$2"
}
