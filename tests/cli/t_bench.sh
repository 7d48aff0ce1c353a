#!/bin/sh
# taut bench where it is quick: what the parts of a step say adds up to the step, and options that do not belong are refused.  What
# the figures are is nobody's business here: a machine with other work must pass.
. tests/cli/lib.sh

"$TAUT" bench train --parts --small --json >"$tmp/parts" 2>"$tmp/err"
check "parts: exit code 0" [ $? = 0 ]
check "parts: one JSON object" json "$tmp/parts"
cat >"$tmp/sums.awk" <<'AWK'
# One member a line: numbers above "parts" are the step's, those below it belong to the part that was opened last.
function value() { gsub(/[",]/, ""); return $2 }
/"parts":/ { inside = 1; next }
inside && /\{/ { names++ }
/"step_s":/ { step = value() }
/"processor_s":/ { if (inside) work += value(); else all = value() }
/"seconds":/ { one = value(); sum += one; if (one < 0) { print "a part below 0"; bad = 1 } if (one > 0) parts++ }
/"share":/ { shares += value() }
function near(a, b) { return a - b < 1e-9 * b && b - a < 1e-9 * b }
END {
    if (names != 9 || parts != 9) { print names " parts, " parts " above 0"; bad = 1 }
    if (!near(sum, step) || !near(shares, 1) || !near(work, all)) { print sum, step, shares, work, all; bad = 1 }
    exit bad
}
AWK
check "parts: nine of them, which add up to the step" awk -f "$tmp/sums.awk" "$tmp/parts"

"$TAUT" bench growth --small --json >"$tmp/growth" 2>"$tmp/err"
check "growth: exit code 0: $(cat "$tmp/err")" [ $? = 0 ]
check "growth: one JSON object" json "$tmp/growth"
for axis in width depth context examples; do
    sed -n "/^\t\"$axis\":/,/^\t}/p" "$tmp/growth" >"$tmp/axis"
    for command in train certify check measure attack; do
        sed -n "/^\t\t\"$command\":/,/^\t\t}/p" "$tmp/axis" >"$tmp/one"
        check "growth: $command against $axis: two exponents" [ "$(grep -c '"exponent":.-*[0-9]' "$tmp/one")" = 2 ]
        check "growth: $command against $axis: two last ones" [ "$(grep -c '"last":.-*[0-9]' "$tmp/one")" = 2 ]
        check "growth: $command against $axis: memory was used" grep -q '"bytes":.\[[1-9][0-9]*, [1-9]' "$tmp/one"
    done
done

refuse "parts of another figure" "--parts is for train" "$TAUT" bench attention --parts
refuse "small without parts" "--small is for" "$TAUT" bench train --small
finish "bench        $checks checks"
