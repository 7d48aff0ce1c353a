#!/bin/sh
# taut report: of a whole run, of a run cut short, of a damaged one; and its page in a real browser.
. tests/cli/lib.sh
. tests/cli/browser.sh
# shellcheck disable=SC2086 # $small is many words
"$TAUT" train $small --set train.eval_every=2 --out "$tmp/a&b" >/dev/null 2>&1
"$TAUT" certify "$tmp/a&b" --n-ex 4 --out "$tmp/a&b/certificate.json" >/dev/null 2>&1
"$TAUT" measure "$tmp/a&b" --tokens 8 --json >"$tmp/a&b/measure.json" 2>/dev/null
"$TAUT" measure "$tmp/a&b" --lengths 4:12:4 --samples 2 --json >"$tmp/a&b/growth.json" 2>/dev/null
echo '{"norm":"L2","n_ex":2,"clean_acc":1,"contradictions":0,"radii":[{"eps_value":0.1,"robust_acc":0.5,"certified_acc":0.5},
    {"eps_value":0.2,"robust_acc":0.5}]}' >"$tmp/a&b/attack.json"
"$TAUT" measure "$tmp/a&b" --maps --tokens 8 --json >"$tmp/a&b/attention.json" 2>/dev/null
"$TAUT" measure "$tmp/a&b" --network 3 --json >"$tmp/a&b/network.json" 2>/dev/null
page=$tmp/report.html
"$TAUT" report "$tmp/a&b" --out "$page" --svg "$tmp/svg" --json >"$tmp/o" 2>"$tmp/e"
check "one object" json "$tmp/o"
figures=$(json_get "$tmp/o" figures)
check "figures" [ "$figures" -ge 13 ]
check "each has its numbers" [ "$(grep -c '<figure' "$page")" = "$figures" ]
charts=$((figures - 1)) # one of them is a table
check "and a file" [ "$(find "$tmp/svg" -name '*.svg' | wc -l)" = "$charts" ]
check "nothing from the network" [ -z "$(grep -Eo '(src|href)="(http|//)[^"]*' "$page")" ]
check "no script" [ -z "$(grep -i '<script' "$page")" ]
check "names are escaped" grep -q '<h2>a&amp;b</h2>' "$page"

mkdir "$tmp/cut" && head -n 2 "$tmp/a&b/log.jsonl" >"$tmp/cut/log.jsonl" && printf '{"step":3,"lo' >>"$tmp/cut/log.jsonl"
"$TAUT" report "$tmp/cut" --out "$tmp/cut.html" >/dev/null 2>&1
check "an unfinished run shows what there is" grep -q 'has not finished' "$tmp/cut.html"
check "also its curve" grep -q 'cut-loss' "$tmp/cut.html"
mkdir "$tmp/bad" && echo '{"steps":' >"$tmp/bad/summary.json" && echo '[]' >"$tmp/bad/certificate.json"
"$TAUT" report "$tmp/bad" "$tmp/a&b" --out "$tmp/bad.html" >/dev/null 2>&1
check "a damaged file is named" grep -q 'summary.json is damaged' "$tmp/bad.html"
check "and the other" grep -q 'certificate.json is damaged' "$tmp/bad.html"
check "and the sound run is there" grep -q 'b-waterfall' "$tmp/bad.html"
# a model that has changed since it was certified: the old constant is no bound of it
cp -r "$tmp/a&b" "$tmp/stale"
# shellcheck disable=SC2086
"$TAUT" train $small --set train.eval_every=2 --out "$tmp/stale" --overwrite --seed 9 >/dev/null 2>&1
"$TAUT" certify "$tmp/a&b" --n-ex 2 --json >"$tmp/stale/certify.json" 2>/dev/null
cp "$tmp/a&b/certificate.json" "$tmp/stale"
waves="recipes/forecast-waves-lip.ini --set data.length=1500 --set train.steps=2 --set train.eval_every=0"
# shellcheck disable=SC2086
"$TAUT" train $waves --out "$tmp/waves" >/dev/null 2>&1
"$TAUT" eval "$tmp/waves" --noise 0.01 --windows 1 --json >"$tmp/stale/forecast.json" 2>/dev/null
"$TAUT" report "$tmp/stale" "$tmp/a&b" --out "$tmp/stale.html" >/dev/null 2>&1
for file in certificate.json certify.json forecast.json; do
    check "a stale $file is named" grep -q "<p>$file is about another model" "$tmp/stale.html"
done
check "and not shown" [ "$(grep -c 'id="stale-waterfall"' "$tmp/stale.html")$(grep -c 'id="a_b-waterfall"' "$tmp/stale.html")" = 01 ]
check "nor in the frontier" [ "$(grep -c 'id="frontier' "$tmp/stale.html")" = 0 ]

# what the page says first: a sentence, and "confirmed" only of the certificate that was checked
"$TAUT" train recipes/mlp-shapes-small.ini --set train.steps=40 --out "$tmp/shapes" >/dev/null 2>&1
"$TAUT" certify "$tmp/shapes" --n-ex 12 --out "$tmp/shapes/certificate.json" --json >"$tmp/shapes/certify.json" 2>/dev/null
first() { "$TAUT" report "$tmp/shapes" --out "$tmp/shapes.html" "$@" >/dev/null 2>&1; grep -A1 -m1 'class="lead"' "$tmp/shapes.html" >"$tmp/first"; }
first
check "a conclusion" grep -Eq '[0-9]+ of 12 answers are right and cannot be changed by moving the image by less than [0-9.]+ ' "$tmp/first"
check "not checked" grep -q 'Nobody has checked' "$tmp/first"
cp "$tmp/shapes/certificate.json" "$tmp/elsewhere.json"
check "the check of a copy" "$TAUT" check "$tmp/elsewhere.json" "$tmp/shapes"
check "leaves nothing in the run" [ ! -e "$tmp/shapes/check.json" ]
check "that of the run's own certificate does" sh -c '"$TAUT" check "$1/certificate.json" "$1" | grep -q "kept in .*check.json"' - "$tmp/shapes"
mkdir "$tmp/nothing"
refuse "a folder without a run" "no run is in it" "$TAUT" report "$tmp/nothing" --out "$tmp/nothing.html"
check "no page of it" [ ! -e "$tmp/nothing.html" ]
first --radius 1e-6
check "its radius" grep -q 'by less than 1e-06 ' "$tmp/first"
check "checked: $(cat "$tmp/first")" grep -Eq 'confirmed the certificate on 20[0-9]{2}-[0-9]{2}-[0-9]{2}' "$tmp/first"
check "how far that is" grep -q 'id="shapes-moved"' "$tmp/shapes.html"
first --radius 1e6
check "a radius that nothing reaches" grep -q '>0 of 12 answers' "$tmp/first"
check "has no picture" [ "$(grep -c 'id="shapes-moved"' "$tmp/shapes.html")" = 0 ]
sed 's/"holds":.*true/"holds": false, "why": "a test"/' "$tmp/shapes/check.json" >"$tmp/refuted" && mv "$tmp/refuted" "$tmp/shapes/check.json"
first
check "a refuted one" grep -q 'REFUTED' "$tmp/first"
"$TAUT" certify "$tmp/shapes" --n-ex 11 --out "$tmp/shapes/certificate.json" >/dev/null 2>&1
first
check "another certificate than the one that was checked" grep -q 'Nobody has checked' "$tmp/first"
"$TAUT" check "$tmp/shapes/certificate.json" "$tmp/shapes" --json >"$tmp/shapes/check.json" 2>/dev/null
first
check "other examples than those that were checked" grep -q 'examples above are others' "$tmp/first"
refuse "a radius below 0" "--radius" "$TAUT" report "$tmp/shapes" --radius -1

mkdir -p "$tmp/one/it's \"<i>" "$tmp/two"
cp "$tmp/a&b/log.jsonl" "$tmp/one/it's \"<i>" && cp -r "$tmp/one/it's \"<i>" "$tmp/two"
"$TAUT" report "$tmp/one/it's \"<i>/" "$tmp/two/it's \"<i>" --out "$tmp/twins.html" --svg "$tmp/twins" --json >"$tmp/o" 2>"$tmp/e"
check "a folder's slash is no part of its name: $(cat "$tmp/e")" grep -q "<h2>it&#39;s &quot;&lt;i&gt;</h2>" "$tmp/twins.html"
check "two runs of one name: a file a figure" [ "$(find "$tmp/twins" -name '*.svg' | wc -l)" = "$(json_get "$tmp/o" figures)" ]
check "and an anchor" [ "$(grep -o '<figure id="[^"<>]*"' "$tmp/twins.html" | sort -u | wc -l)" = "$(json_get "$tmp/o" figures)" ]
taut=$(cd "$(dirname "$TAUT")" && pwd)/$(basename "$TAUT")
(cd "$tmp/cut" && "$taut" report . --out ../dot.html >/dev/null 2>&1)
check "'.' is called what the folder is" grep -q '<h2>cut</h2>' "$tmp/dot.html"
refused() { # WHAT WORDS COMMAND...: exit 1 and one line
    "$TAUT" report "$@" >"$tmp/o" 2>"$tmp/e"
    [ $? = 1 ] && [ "$(wc -l <"$tmp/e")" = 1 ]
}
check "-o is --out" "$TAUT" report "$tmp/cut" -o "$tmp/short.html"
check "and it is written" [ -s "$tmp/short.html" ]
check "no such run" refused "$tmp/nowhere"
check "a file is no run" refused recipes/tiny.ini
check "an output that cannot be written" refused "$tmp/cut" --out "$tmp/nowhere/x/report.html"
check "a folder for pictures that cannot be made" refused "$tmp/cut" --out "$tmp/z.html" --svg "$page/svg"

if look "$page" "$charts"; then
    finish "taut report"
else
    finish "taut report (no browser starts here: the page was not looked at)"
fi
