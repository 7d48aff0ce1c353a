#!/bin/sh
# taut paper: the list, what it refuses, and every figure at the tiny scale (seconds, built-in data): a table, published, ours and
# why in words, as text and as one JSON object; runs are kept only where their settings are the very same.
. tests/cli/lib.sh
long
unset TAUT_DATA # what the tiny scale reads is built in
"$TAUT" paper --list >"$tmp/list"
ids=$(awk '/^[a-z]+-[a-z0-9]+ / { print $1 }' "$tmp/list")
check "twenty-one figures" [ "$(echo "$ids" | wc -l)" = 21 ]
check "each with about how long it takes" [ "$(grep -c -E '^[a-z]+-[a-z0-9]+ +[0-9]+ (s|min) +[A-Za-z]' "$tmp/list")" = 21 ]
"$TAUT" paper --list --json >"$tmp/list.json"
check "the list as JSON" json "$tmp/list.json"
refuse "a table that is not there" "did you mean enforced-table1" "$TAUT" paper enforced-table2
refuse "a scale" "tiny, small or full" "$TAUT" paper enforced-table1 --scale middle
refuse "no figure" "which figure" "$TAUT" paper
refuse "a full size without a device" "its first network alone takes about [0-9]* [a-z]* (6000 steps of 32 examples on the kernels cpu.*): --yes" \
    "$TAUT" paper attlip-table2 --scale full --data brackets --out "$tmp/full"
check "which begins nothing" [ ! -e "$tmp/full" ]
"$TAUT" paper attlip-table2 --scale full --yes --data brackets --out "$tmp/full" >/dev/null 2>"$tmp/said" &
child=$!
for i in $(seq 600); do grep -q "first network takes about" "$tmp/said" && break || sleep 0.1; done
kill $child && wait $child 2>/dev/null
child=
check "which says how long its first network takes when it has begun" \
    grep -q "^taut paper: its first network takes about [0-9]* [a-z]* (6000 steps)$" "$tmp/said"
for id in $ids; do
    check "$id is written down" grep -q "taut paper $id" papers/*/README.md
    time=$(awk -v id="$id" '$1 == id { print $2, $3 }' "$tmp/list")
    check "$id is in the howto, with its time" grep -q "^| .$id. .* | $time |$" docs/howto/reproduce_a_paper.md
done

for id in $ids; do
    [ "$id" = castin-fig2 ] && continue # t_paper_castin.sh
    "$TAUT" paper "$id" --scale tiny --out "$tmp/$id" >"$tmp/table" 2>"$tmp/err"
    rc=$?
    check "$id: $(head -n 1 "$tmp/err")" [ $rc = 0 ]
    for word in published ours differ; do
        check "$id says $word" grep -q -E "^$word +[^ ]+ [^ ]+" "$tmp/table"
    done
    check "$id says its command" grep -q "^command    taut paper $id --scale tiny: " "$tmp/table"
    check "$id has rows" [ "$(sed '1,2d; /^$/q' "$tmp/table" | wc -l)" -gt 2 ]
done

# Three whole tables: what is published stands below or beside ours, and as JSON there is the same.
table() { # ID
    "$TAUT" paper "$1" --scale tiny --out "$tmp/$1" >"$tmp/table"
    "$TAUT" paper "$1" --scale tiny --out "$tmp/$1" --json >"$tmp/table.json"
    check "$1 as JSON" json "$tmp/table.json"
    for key in title published ours why command; do
        check "$1 as JSON has $key" [ -n "$(json_get "$tmp/table.json" $key)" ]
    done
}
table enforced-table1
check "two lines a network, ours and theirs" [ "$(grep -c "^published  *[124] x" "$tmp/table")" = 8 ]
check "a published bound" grep -q "1e+264" "$tmp/table"
rows() { grep "^[a-zA-Z].* [124] x  " "$tmp/table"; }
rows >"$tmp/before" && rm "$tmp/enforced-table1/"*/model.safetensors
table enforced-table1
rows >"$tmp/after"
check "rows are kept without their weights" cmp -s "$tmp/before" "$tmp/after"
check "nine rows, eight published" [ "$(wc -l <"$tmp/after")" = 17 ]
echo '[1, 2, 3, 4, 5]' >"$tmp/enforced-table1/ours/row.json"
refuse "a row of another training is not taken, and its weights are gone" "model.safetensors" \
    "$TAUT" paper enforced-table1 --scale tiny --out "$tmp/enforced-table1"
"$TAUT" paper enforced-table1 --scale tiny --only Modula --out "$tmp/only" >"$tmp/table"
check "a row by its name" [ "$(rows | wc -l)" = 2 ]
check "and no other is trained" [ "$(ls "$tmp/only")" = Modula ]
check "its command says so" grep -q "^command    taut paper enforced-table1 --scale tiny --only Modula: " "$tmp/table"
"$TAUT" paper enforced-fig2 --scale tiny --only muon,cap-1 --out "$tmp/only2" >"$tmp/table"
check "rows that hold both words" [ "$(grep -c '^muon *[a-z]*cap ' "$tmp/table")" = 2 ]
refuse "a row that is not there" "no row of enforced-table1 has a name with speedrun" \
    "$TAUT" paper enforced-table1 --scale tiny --only speedrun --out "$tmp/only"
refuse "a row of what has none" "made as a whole" "$TAUT" paper castin-fig3 --only text
refuse "no word" "no word" "$TAUT" paper enforced-fig2 --only ,
refuse "data for what reads none" "reads no data" "$TAUT" paper jasmin-fig3 --data alice
refuse "a folder without a name" "has no name" "$TAUT" paper jasmin-fig3 --out ""
refuse "a full size that trains nothing" "at full size it takes .* min on two cores: --yes" "$TAUT" paper plash-fig4 --scale full
refuse "a full size without its data" "tinyshakespeare/input.txt" "$TAUT" paper enforced-fig2 --scale full --yes --out "$tmp/full"
if (ulimit -v 300000 && timeout 20 "$TAUT" --version) >/dev/null 2>&1; then # not where a sanitizer has taken all addresses
    # shellcheck disable=SC2016
    refuse "a full size that does not fit" "plash-fig4 needs 0.5 GB of memory, 0.[0-4] GB are available" sh -c \
        'ulimit -v 550000 && OMP_NUM_THREADS=1 exec "$@"' - "$TAUT" paper plash-fig4 --scale full
    # shellcheck disable=SC2016
    refuse "no room for threads" "MB of addresses are left (ulimit -v), and 2 threads" timeout 60 sh -c \
        'ulimit -v 300000 && OMP_NUM_THREADS=2 exec "$@"' - "$TAUT" paper plash-fig4 --scale full
fi
refuse "a folder that cannot be, before the work" "cannot make the folder" "$TAUT" paper plash-fig4 --scale tiny --out /proc/none
table jasmin-table2
check "two lines a method" [ "$(grep -c "^published  *9[68]\." "$tmp/table")" = 7 ]
table attlip-table2
check "two lines an attention" [ "$(grep -c "^published .* [0-9n]" "$tmp/table")" -ge 4 ]
check "published figures" grep -q "141 *1 *141" "$tmp/table"
check "every constant is proved" [ "$(grep -c inf "$tmp/table")" = 0 ]
"$TAUT" paper castin-fig3 >"$tmp/table"
check "a number of a figure's own is printed below its table" grep -q '^exponent 1\.999' "$tmp/table"

# Runs are kept, and only where nothing differs: not those of another scale, data set or an older figure.
run=$tmp/attlip-table2/softmax
kept() { json_get "$tmp/table.json" runs_kept; }
check "all four were kept" [ "$(kept)" = 4 ]
cp "$run/recipe.ini" "$tmp/recipe.ini"
sed 's/^steps = 3$/steps = 1000/' "$tmp/recipe.ini" >"$run/recipe.ini"
refuse "a run with other settings is left alone" "softmax holds another run, with train.steps = 1000 where this one has 3" \
    "$TAUT" paper attlip-table2 --scale tiny --out "$tmp/attlip-table2"
cp "$tmp/recipe.ini" "$run/recipe.ini"
mkdir -p "$tmp/foreign/softmax" && cp "$run/model.safetensors" "$tmp/foreign/softmax"
refuse "a model that is nobody's run is left alone" "holds a model that is not of this table" \
    "$TAUT" paper attlip-table2 --scale tiny --out "$tmp/foreign"
"$TAUT" paper attlip-table2 --scale tiny --out "$tmp/again" --json >"$tmp/fresh.json"
check "a fresh folder keeps none" [ "$(json_get "$tmp/fresh.json" runs_kept)" = 0 ]
cp "$run/log.jsonl" "$tmp/log" && rm "$run/summary.json" # as if it had been killed before its end
table attlip-table2
check "one that was interrupted goes on" cmp -s "$run/log.jsonl" "$tmp/log"
check "to its end" [ -e "$run/summary.json" ]

# A signal saves the network that is being trained, and the same command goes on with it.
"$TAUT" paper enforced-fig2 --scale small --only muon,filled,2 --out "$tmp/stopped" >/dev/null 2>"$tmp/said" &
child=$!
for i in $(seq 600); do grep -q '"step"' "$tmp/stopped/muon-filled-2/log.jsonl" 2>/dev/null && break || sleep 0.1; done
kill $child
wait $child
check "a signal is the exit code" [ $? = 143 ]
child=
check "and it says what is next" grep -q "stopped; the same command goes on with .*muon-filled-2" "$tmp/said"
check "what was trained is saved" [ -e "$tmp/stopped/muon-filled-2/state.safetensors" ]
before=$(wc -l <"$tmp/stopped/muon-filled-2/log.jsonl")
"$TAUT" paper enforced-fig2 --scale small --only muon,filled,2 --out "$tmp/stopped" --json >"$tmp/table.json"
check "a stopped network is not kept as it is" [ "$(kept)" = 0 ]
check "but goes on" [ "$(wc -l <"$tmp/stopped/muon-filled-2/log.jsonl")" -gt "$before" ]
finish "paper        every figure, the list, kept runs"
