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

refuse "parts of another figure" "--parts is for train" "$TAUT" bench attention --parts
refuse "small without parts" "--small is for" "$TAUT" bench train --small
finish "bench        $checks checks"
