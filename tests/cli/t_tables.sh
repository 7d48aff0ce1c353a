#!/bin/sh
# A forecaster of a table of one's own: the model's file knows its columns by name, means and deviations, so that a table in another
# order gives the same answers, one in other units is not rescaled behind your back, and one without a column is refused.
. tests/cli/lib.sh
small="recipes/forecast-waves.ini --set model.width=8 --set model.heads=2 --set model.mlp=8 --set model.depth=1 --set model.seq=12
 --set model.label=6 --set model.ahead=4 --set train.steps=6 --set train.batch=4 --set train.warmup=2 --set train.eval_every=0"
rows() { # FORMAT of printf for hour, a, b, c: 200 hours
    awk -v f="$1" 'BEGIN { for (i = 0; i < 200; i++) { day = 1 + int(i / 24)
        printf f, day, i % 24, 10 + 3 * sin(i / 4) + i % 7 / 9, 500 + 40 * cos(i / 9) + i % 5, i % 11 } }'
}
{ echo "date,temp,load,c"; rows '2016-07-%02d %02d:00:00,%.3f,%.2f,%d\n'; } >"$tmp/own.csv"
{ echo "\"Zeit\";\"load\";\"Ort\";\"c\";\"temp\""; awk -F, 'NR > 1 { split($1, t, "[- ]"); gsub("[.]", ",", $2); gsub("[.]", ",", $3)
    printf "\"%s.%s.%s %s\";%s;\"hier; da\";%s;%s\r\n", t[3], t[2], t[1], t[4], $3, $4, $2 }' "$tmp/own.csv"; } >"$tmp/messy.csv"
awk -F, -v OFS=, 'NR > 1 { $2 = 1.8 * $2 + 32 } { print }' "$tmp/own.csv" >"$tmp/fahrenheit.csv"
cut -d, -f1,2,4 "$tmp/own.csv" >"$tmp/less.csv"
error() { # of the run on a table
    "$TAUT" eval "$1" --data "$2" --test --json >"$tmp/e.json" && json_get "$tmp/e.json" mse
}

# shellcheck disable=SC2086
check "a table" "$TAUT" train $small --set "data.source=$tmp/own.csv" --out "$tmp/run"
check "its names are in the recipe" grep -qx "columns = temp,load,c" "$tmp/run/recipe.ini"
check "its step too" grep -qx "step = 3600 s" "$tmp/run/recipe.ini"
check "and in the model" grep -qa "columns = temp,load,c" "$tmp/run/model.safetensors"
own=$(error "$tmp/run" "$tmp/own.csv")
check "an error: $own" less 0 "$own"
check "in another order, with semicolons, quotes, decimal commas, dd.mm.yyyy and a column of text" \
    [ "$(error "$tmp/run" "$tmp/messy.csv")" = "$own" ]
check "in other units the old scale stays: worse" less "$own" "$(error "$tmp/run" "$tmp/fahrenheit.csv")"
refuse "a missing column" "less.csv has no column 'load'" "$TAUT" eval "$tmp/run" --data "$tmp/less.csv"
sed 's/,load,/,temp,/' "$tmp/own.csv" >"$tmp/twice.csv"
refuse "a column twice" "columns 2 and 3 are both called 'temp'" "$TAUT" eval "$tmp/run" --data "$tmp/twice.csv"
awk 'NR == 1 || NR % 2' "$tmp/own.csv" >"$tmp/slow.csv"
refuse "another step" "a row every 7200 s, the model one every 3600 s" "$TAUT" eval "$tmp/run" --data "$tmp/slow.csv"
check "resumes" "$TAUT" train "$tmp/run/recipe.ini" --out "$tmp/run" --resume --set train.steps=8
# shellcheck disable=SC2086
check "the messy table trains" "$TAUT" train $small --set "data.source=$tmp/messy.csv" --set data.columns=temp,load,c --out "$tmp/again"
check "to the same bits" [ "$(error "$tmp/again" "$tmp/own.csv")" = "$own" ]

# some columns in, one forecast
# shellcheck disable=SC2086
check "mode MS" "$TAUT" train $small --set "data.source=$tmp/own.csv" --set data.targets=load --set constrain.method=normalise \
    --set constrain.cap=0.5 --set model.norm=none --out "$tmp/ms"
check "a head of one" grep -qx "targets = 1" "$tmp/ms/recipe.ini"
check "evaluates" "$TAUT" eval "$tmp/ms" --test --noise 0.01 --plot "$tmp/page.html"
check "its name is on the page" grep -q "Forecast of load" "$tmp/page.html"
check "and no other" [ ! -e "$tmp/forecast-column-1.svg" ]
check "certifies" "$TAUT" certify "$tmp/ms" --out "$tmp/c.json"
check "and checks" "$TAUT" check "$tmp/c.json" "$tmp/ms"
# shellcheck disable=SC2086
check "mode S" "$TAUT" train $small --set "data.source=$tmp/own.csv" --set data.columns=load --out "$tmp/s"
check "reads one" grep -qx "columns = 1" "$tmp/s/recipe.ini"

# holes
sed '20s/,[^,]*$/,/; 30d; 31d' "$tmp/own.csv" >"$tmp/holes.csv"
train_holes() { # KEY=VALUE...
    sets=
    for key; do sets="$sets --set $key"; done
    # shellcheck disable=SC2086
    set -- "$TAUT" train $small --set "data.source=$tmp/holes.csv" $sets --out "$tmp/holes"
    "$@"
}
refuse "an empty cell" "line 20: no value for c, and 1 empty cell in all (data.missing" train_holes
refuse "a gap" "1 gap in time: lines 29 and 30 are 10800 s apart, where most are 3600 s" train_holes data.missing=hold
refuse "no such rule" "data.missing = \"guess\" is not one of refuse, hold, interpolate" train_holes data.missing=guess
check "nothing was made" [ ! -e "$tmp/holes" ]
train_holes data.missing=hold data.gaps=join >"$tmp/said" 2>&1
rc=$?
check "held and joined" [ $rc = 0 ]
check "and says so" grep -q "the table  *1 empty cell held, 1 gap joined" "$tmp/said"
rm -rf "$tmp/holes"
check "filled" train_holes data.missing=interpolate data.gaps=fill
check "and says so" [ "$(json_get "$tmp/holes/summary.json" data)" = "1 empty cell interpolated, 1 gap filled with 2 rows" ]
sed '25{p;s/,[^,]*$/,5/}' "$tmp/own.csv" >"$tmp/holes.csv"
rm -rf "$tmp/holes"
refuse "a time twice" "line 26: .* (data.repeats = first or last" train_holes
check "the last is kept" train_holes data.repeats=last
"$TAUT" forecast "$tmp/holes" "$tmp/holes.csv" --json >"$tmp/next.json"
check "a forecast is none the wiser" sh -c '! grep -q repaired "$1"' - "$tmp/next.json"
sed 's/,[^,]*$/,7/; 1s/7/c/' "$tmp/own.csv" >"$tmp/flat.csv"
# shellcheck disable=SC2086
refuse "a constant column" "column c is constant" "$TAUT" train $small --set "data.source=$tmp/flat.csv" --out "$tmp/flat"
# shellcheck disable=SC2086
check "is kept where asked" "$TAUT" train $small --set "data.source=$tmp/flat.csv" --set data.constant=keep --out "$tmp/flat"

# what comes next
check "a forecast" "$TAUT" forecast "$tmp/ms" "$tmp/own.csv" --noise 0.01 --out "$tmp/future.csv"
cp "$tmp/check.log" "$tmp/said.txt"
check "says what it read" grep -q "read 12 rows up to 2016-07-09 07:00:00, one every 3600 s" "$tmp/said.txt"
check "says what is proved" grep -q "proved: each number stays within .* if no row that was read is off by more than 0.01" "$tmp/said.txt"
check "a table" [ "$(head -n 1 "$tmp/future.csv")" = "date,load,load low,load high" ]
check "of four rows" [ "$(wc -l <"$tmp/future.csv")" = 5 ]
check "dates go on" [ "$(sed -n '2s/,.*//p; 5s/,.*//p' "$tmp/future.csv" | tr '\n' ' ')" = "2016-07-09 08:00:00 2016-07-09 11:00:00 " ]
check "in its units, inside its band" awk -F, 'NR > 1 && !($3 < $2 && $2 < $4 && 300 < $2 && $2 < 700) { exit 1 }' "$tmp/future.csv"
check "of the messy table" "$TAUT" forecast "$tmp/ms" "$tmp/messy.csv" --noise 0.01 --out "$tmp/again.csv"
check "the same bytes" cmp "$tmp/future.csv" "$tmp/again.csv"
{ head -n 1 "$tmp/own.csv"; tail -n 12 "$tmp/own.csv"; } >"$tmp/newest.csv"
check "the newest rows are enough" "$TAUT" forecast "$tmp/ms" "$tmp/newest.csv" --noise 0.01 --out "$tmp/again.csv"
check "the same bytes again" cmp "$tmp/future.csv" "$tmp/again.csv"
sed '20s/,[^,]*$/,x/; 30d' "$tmp/own.csv" >"$tmp/old.csv"
check "older rows are not looked at" "$TAUT" forecast "$tmp/ms" "$tmp/old.csv" --json
cp "$tmp/check.log" "$tmp/f.json"
check "one object" json "$tmp/f.json"
check "without noise no band" sh -c '! grep -q low "$1"' - "$tmp/f.json"
refuse "fewer rows than it reads" "less than enough.csv: 11 rows" sh -c 'sed 2d "$1" >"$2"; "$TAUT" forecast "$3" "$2"' - "$tmp/newest.csv" "$tmp/less than enough.csv" "$tmp/ms"
sed 195d "$tmp/own.csv" >"$tmp/gap.csv"
refuse "a gap among the newest" "1 gap in time: lines 194 and 195 are 7200 s apart" "$TAUT" forecast "$tmp/ms" "$tmp/gap.csv"
refuse "a missing column" "no column 'load'" "$TAUT" forecast "$tmp/ms" "$tmp/less.csv"
refuse "the table itself" "would take the place of what is read" "$TAUT" forecast "$tmp/ms" "$tmp/own.csv" --out "$tmp/own.csv"
nan_weights "$tmp/ms/model.safetensors" "$tmp/nan.safetensors"
for option in "" --json "--noise 0.01" "--noise 0.01 --json"; do
    # shellcheck disable=SC2086
    refuse "weights of NaN $option" "a number of the forecast is not finite" "$TAUT" forecast "$tmp/nan.safetensors" "$tmp/own.csv" \
        --out "$tmp/never.csv" $option
done
check "no such file was written" [ ! -e "$tmp/never.csv" ]
refuse "no noise" "noise 0 moves nothing" "$TAUT" forecast "$tmp/ms" "$tmp/own.csv" --noise 0
refuse "no table" "nowhere.csv" "$TAUT" forecast "$tmp/ms" nowhere.csv
refuse "a table without an end" "missing MODEL CSV" "$TAUT" forecast "$tmp/ms"
# shellcheck disable=SC2086
check "clusters" "$TAUT" train $small --set "data.source=$tmp/own.csv" --set model.attention=clustered --set model.clusters=4 --out "$tmp/clusters"
check "have no constant" "$TAUT" forecast "$tmp/clusters" "$tmp/own.csv" --noise 0.01 --out "$tmp/inf.csv"
cp "$tmp/check.log" "$tmp/said.txt"
check "and say so" grep -q "nothing is proved of how far noise can move it: no finite constant: a key that changes its cluster" "$tmp/said.txt"
check "in numbers too" grep -q ",-inf,inf," "$tmp/inf.csv"
finish "tables       $checks checks"
