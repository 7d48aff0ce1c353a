#!/bin/sh
# taut paper castin-fig2 at the tiny scale: it builds GPT-2 with random weights, which takes seconds of its own.
. tests/cli/lib.sh
unset TAUT_DATA
"$TAUT" paper castin-fig2 --scale tiny --json >"$tmp/table.json" 2>"$tmp/err"
rc=$?
check "castin-fig2: $(head -n 1 "$tmp/err")" [ $rc = 0 ]
check "as JSON" json "$tmp/table.json"
for key in title published ours why command; do
    check "it has $key" [ -n "$(json_get "$tmp/table.json" $key)" ]
done
finish "paper        castin-fig2"
