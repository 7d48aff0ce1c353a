#!/bin/sh
# Bad input gets one clear line on stderr, exit code 1, nothing on stdout, and loses nothing.
. tests/cli/lib.sh
good=$tmp/good

train() { # shellcheck disable=SC2086
    "$TAUT" train $small "$@"
}
print_of() { cat "$1"/* | cksum; ls "$1"; }
kept() { # WHAT COMMAND...: the good run is as it was before the command
    what=$1; shift
    before=$(print_of "$good")
    "$@"
    check "$what: the run is untouched" [ "$(print_of "$good")" = "$before" ]
}

check "a good run" train --out "$good"
fresh=$tmp/fresh

# ---- the command line
refuse "unknown command" "did you mean train" "$TAUT" trian recipes/tiny.ini
refuse "command nobody would guess" "zzzzzzzz" "$TAUT" zzzzzzzz
refuse "unknown option" "did you mean --resume" train --out "$fresh" --resum
refuse "missing recipe" "RECIPE" "$TAUT" train
refuse "missing value" "--out needs a value" "$TAUT" train recipes/tiny.ini --out
refuse "value for a flag" "--json takes no value" train --out "$fresh" --json=yes
refuse "too many arguments" "too many" "$TAUT" info a b
refuse "no --out" "--out" train
refuse "not a number" "--threads.*abc" "$TAUT" eval "$good" --threads abc
refuse "number out of range" "--temperature" "$TAUT" sample "$good" --temperature -1
refuse "unknown kernels" "did you mean cpu" train --out "$fresh" --kernels cpy
refuse "unknown kernels of a plan" "did you mean cpu" "$TAUT" plan --target 2 --kernels cpy
mkfifo "$tmp/pipe"
refuse "a pipe in the place of a model" "no regular file" timeout 20 "$TAUT" certify "$tmp/pipe"
refuse "a norm that is none" "not linf; docs/howto/choose_a_norm.md" "$TAUT" certify "$good" --norm linf
refuse "unknown figure" "did you mean attention" "$TAUT" bench atention
refuse "no figure" "missing" "$TAUT" bench
refuse "half an override" "section.key=value" train --out "$fresh" --set train.steps
refuse "bad seed" "--seed" train --out "$fresh" --seed minus
refuse "a name with a newline" "no?such" "$TAUT" info "no
such"
check "none of these made a folder" [ ! -e "$fresh" ]

if command -v flock >/dev/null; then
    # shellcheck disable=SC2086 # $small is many words
    kept "two at once" refuse "two at once" "another process" flock "$good" "$TAUT" train $small --out "$good" --overwrite
fi
refuse "an unknown short option" "unknown option -x" train -x 1

# ---- the recipe
recipe() { printf '%s\n' "$1" >"$tmp/recipe.ini"; }
refuse "missing recipe file" "nowhere.ini" "$TAUT" train nowhere.ini --out "$fresh"
refuse "a folder as recipe" "folder" "$TAUT" train recipes --out "$fresh"
refuse "a binary as recipe" "$TAUT" "$TAUT" train "$TAUT" --out "$fresh"
recipe "[train]
stepz = 5"
refuse "unknown key" "recipe.ini.*train.stepz.*did you mean train.steps" "$TAUT" train "$tmp/recipe.ini" --out "$fresh"
recipe "[trian]
steps = 5"
refuse "unknown section" "trian.steps.*train.steps" "$TAUT" train "$tmp/recipe.ini" --out "$fresh"
recipe "once upon a time"
refuse "not a recipe" "line 1" "$TAUT" train "$tmp/recipe.ini" --out "$fresh"
refuse "unknown key on the command line" "train: --set train.stepz: unknown key (did you mean train.steps" train --out "$fresh" --set train.stepz=5
refuse "a key of another attention" "model.window_size: unknown key here, it belongs to model.attention = window" train --out "$fresh" --set model.window_size=2
refuse "unknown value" "did you mean layernorm" train --out "$fresh" --set model.norm=layernrom
refuse "unknown optimiser" "adamw" train --out "$fresh" --set train.optimiser=adam
refuse "word for a number" "model.width.*abc" train --out "$fresh" --set model.width=abc
refuse "number out of range" "train.lr" train --out "$fresh" --set train.lr=1e30
refuse "infinite number" "train.lr" train --out "$fresh" --set train.lr=inf
refuse "heads that do not divide" "model.heads" train --out "$fresh" --set model.heads=3
refuse "odd heads for rope" "rope" train --out "$fresh" --set model.positions=rope --set model.heads=16
check "none of these made a folder" [ ! -e "$fresh" ]

# ---- the text
refuse "missing data" "nowhere.txt" train --out "$fresh" --set data.source=nowhere.txt
refuse "missing data, whole path" "/nowhere/x.txt" train --out "$fresh" --set data.source=/nowhere/x.txt
: >"$tmp/empty.txt"
refuse "empty text" "empty.txt.*empty" train --out "$fresh" --set data.source="$tmp/empty.txt"
head -c 4000 "$good/model.safetensors" >"$tmp/binary.txt"
refuse "binary text" "binary.txt.*bytes" train --out "$fresh" --set data.source="$tmp/binary.txt"
printf 'caf\351 au lait, again and again and again' >"$tmp/latin1.txt"
refuse "text that is not UTF-8" "latin1.txt" train --out "$fresh" --set data.source="$tmp/latin1.txt"
printf 'only a few words' >"$tmp/short.txt"
refuse "text shorter than the context" "short.txt.*16" train --out "$fresh" --set data.source="$tmp/short.txt"
head -c 100 recipes/tiny.ini >"$tmp/short.txt"
refuse "validation part shorter than the context" "short.txt.*validation" train --out "$fresh" \
    --set data.source="$tmp/short.txt"
refuse "a folder without a tokenizer" "recipes.*no tokenizer" train --out "$fresh" --set data.tokenizer=recipes
refuse "tokens of two kinds" "data.tokenizer" train --out "$fresh" --set data.tokens=bytes --set data.tokenizer=tests/golden/tokens/bpe
refuse "fewer rows than tokens" "data.rows = 3 is less than" train --out "$fresh" --set data.rows=3
refuse "a folder as text" "folder" train --out "$fresh" --set data.source=recipes
check "none of these made a folder" [ ! -e "$fresh" ]
check "but any bytes can be trained on as bytes" train --out "$tmp/bytes" --set data.source="$tmp/binary.txt" \
    --set data.tokens=bytes

# ---- memory: said before anything starts, also where 64 bits overflow
for huge in "65536 16384 8" "4194304 65536 1048576" "1 1048576 1048576"; do
    # shellcheck disable=SC2086 # three numbers
    set -- $huge
    refuse "width $1, context $2, batch $3" "needs [0-9.]* GB of memory.* available" train --out "$fresh" \
        --set model.width="$1" --set model.heads=1 --set model.depth=128 --set model.mlp=16777216 \
        --set model.context="$2" --set train.batch="$3" --set data.length=12000000
done
check "none of these made a folder" [ ! -e "$fresh" ]

# ---- folders and runs
kept "a second run" refuse "existing run" "$good already holds a run.*--resume.*--overwrite" train --out "$good"
kept "bad key" refuse "bad key with --overwrite" "stepz" train --out "$good" --overwrite --set train.stepz=5
kept "bad key" refuse "bad key with --resume" "stepz" train --out "$good" --resume --set train.stepz=5
kept "no data" refuse "no data with --overwrite" "nowhere" train --out "$good" --overwrite --set data.source=nowhere
refuse "--resume without a checkpoint" "nothing to resume" train --out "$fresh" --resume
check "it made no folder" [ ! -e "$fresh" ]
kept "width" refuse "--resume with another width" "begun with model.width = 16, now it is 32" train --out "$good" --resume --set model.width=32
kept "depth" refuse "--resume with another depth" "model.depth = 1, now it is 2" train --out "$good" --resume --set model.depth=2
kept "mlp" refuse "--resume with another mlp" "model.mlp = 64, now it is 20" train --out "$good" --resume --set model.mlp=20
kept "optimiser" refuse "--resume with another optimiser" "train.optimiser = adamw, now it is sgd" train --out "$good" --resume \
    --set train.optimiser=sgd
kept "tokens" refuse "--resume with other tokens" "data.tokens = chars, now it is bytes" train --out "$good" --resume --set data.tokens=bytes
refuse "a folder below a file" "empty.txt" train --out "$tmp/empty.txt/run"
if [ "$(id -u)" != 0 ]; then
    mkdir "$tmp/locked" && chmod 555 "$tmp/locked"
    refuse "a folder that may not be written" "locked" train --out "$tmp/locked/run"
fi

# ---- models
refuse "missing model" "nowhere" "$TAUT" info "$tmp/nowhere"
refuse "a folder without a model" "model.safetensors" "$TAUT" eval recipes
refuse "not a model" "tiny.ini" "$TAUT" sample recipes/tiny.ini
refuse "the state is no model" "state.safetensors.*not a taut model" "$TAUT" info "$good/state.safetensors"
size=$(wc -c <"$good/model.safetensors")
for cut in 0 7 8 100 $((size / 2)) $((size - 1)); do
    head -c "$cut" "$good/model.safetensors" >"$tmp/cut.safetensors"
    refuse "a model cut after $cut bytes" "cut.safetensors" "$TAUT" info "$tmp/cut.safetensors"
done
flip() { # FROM TO BYTE: one byte xor 128, which no header survives as text
    byte=$(od -An -tu1 -j "$3" -N 1 "$1" | tr -d ' ')
    cp "$1" "$2"
    # shellcheck disable=SC2059 # an octal escape
    printf "\\$(printf %o $((byte ^ 128)))" | dd of="$2" bs=1 seek="$3" conv=notrunc 2>/dev/null
}
for at in 0 3 7 8 9 60 500; do
    flip "$good/model.safetensors" "$tmp/flip.safetensors" $at
    refuse "a model with byte $at flipped" "flip.safetensors" "$TAUT" eval "$tmp/flip.safetensors"
done
cp -r "$good" "$tmp/hurt"
head -c 5000 "$good/state.safetensors" >"$tmp/hurt/state.safetensors"
before=$(print_of "$tmp/hurt")
refuse "--resume from half a state" "state.safetensors" train --out "$tmp/hurt" --resume
check "it changed nothing" [ "$(print_of "$tmp/hurt")" = "$before" ]

# a header that claims one character more than there are embeddings, of the same length
check "an encoder" train --out "$tmp/encoder" --set model.arch=encoder
sed 's/,3c-3e,/,3b-3e,/' "$tmp/encoder/model.safetensors" >"$tmp/more.safetensors"
check "the vocabulary was changed" grep -q '"chars:[^"]*,3b-3e,' "$tmp/more.safetensors"
refuse "more characters than embeddings" "more.safetensors: its embedding has" "$TAUT" eval "$tmp/more.safetensors"
sed 's/,3c-3e,/,3e-3c,/' "$tmp/encoder/model.safetensors" >"$tmp/less.safetensors"
refuse "a vocabulary that is none" "less.safetensors.*vocabulary" "$TAUT" eval "$tmp/less.safetensors"
refuse "an encoder writes no text" "encoder" "$TAUT" sample "$tmp/encoder"

# weights that are not finite: nothing that such a model says is printed as if it were something
nan_weights "$good/model.safetensors" "$tmp/nan.safetensors"
nan_weights "$tmp/encoder/model.safetensors" "$tmp/nan-encoder.safetensors"
printf '(())\n' >"$tmp/line"
for json in "" --json; do
    refuse "eval of NaN $json" "the loss is not finite" "$TAUT" eval "$tmp/nan.safetensors" $json
    refuse "sample of NaN $json" "token 2: a logit is not finite" "$TAUT" sample "$tmp/nan.safetensors" $json
    refuse "sample of NaN, the likeliest $json" "not finite" "$TAUT" sample "$tmp/nan.safetensors" --temperature 0 $json
    refuse "features of NaN $json" "line:1: a feature is not finite" "$TAUT" embed "$tmp/nan-encoder.safetensors" "$tmp/line" $json
done
refuse "features in a file" "not finite" "$TAUT" embed "$tmp/nan-encoder.safetensors" "$tmp/line" --unit --out "$tmp/never.csv"
check "no such file was written" [ ! -e "$tmp/never.csv" ]

refuse "prompt with unknown characters" "U+00E9" "$TAUT" sample "$good" --prompt "caf$(printf '\303\251')"
refuse "prompt that is not UTF-8" "sample" "$TAUT" sample "$good" --prompt "$(printf '\377')"
refuse "empty prompt" "prompt" "$TAUT" sample "$good" --prompt ""
printf 'Ein ganz anderer Text mit Umlauten: \303\244\303\266\303\274, und lang genug dazu.\n' >"$tmp/other.txt"
refuse "a text with unknown characters" "other.txt.*vocabulary" "$TAUT" eval "$good" --data "$tmp/other.txt"
printf ' ' >"$tmp/one.txt"
refuse "a text of one character" "nothing to predict" "$TAUT" eval "$good" --data "$tmp/one.txt"

# ---- a loss that is not finite: stops, says when, and the last good checkpoint stays
refuse "not finite, no checkpoint" "step [0-9]*.*not finite.*no checkpoint" train --out "$tmp/nan0" --set train.lr=1e6 \
    --set train.optimiser=sgd --set train.clip=0 --set train.warmup=0 --set model.norm=none --set train.steps=50
check "it left no model" [ ! -e "$tmp/nan0/model.safetensors" ]
check "and no state" [ ! -e "$tmp/nan0/state.safetensors" ]
refuse "not finite" "step [0-9]*.*not finite; the checkpoint of step [0-9]* is kept" train --out "$tmp/nan1" \
    --set train.lr=1e6 --set train.optimiser=sgd --set train.clip=0 --set train.warmup=0 --set train.steps=50 \
    --set train.checkpoint_every=1
check "the checkpoint opens" "$TAUT" info "$tmp/nan1"
split_state "$tmp/nan1/model.safetensors" "$tmp/header" "$tmp/numbers"
check "all its weights are finite" [ "$(od -An -v -tx4 "$tmp/numbers" | tr ' ' '\n' | grep -c '^[7f]f[89a-f]')" = 0 ]
check "no summary claims that it is done" [ ! -e "$tmp/nan1/summary.json" ]

# ---- no room for a file: the old checkpoint stays whole and the run can go on later
# (room is given in blocks of 512 bytes: enough for the log, too little for a checkpoint)
with_room() { (ulimit -f "$1" && shift && train "$@"); }
refuse "no room" "state.safetensors" with_room 16 --out "$tmp/room"
check "nothing half is left: $(ls "$tmp/room")" [ "$(find "$tmp/room" -name '*safetensors*' | wc -l)" = 0 ]
cp -r "$good" "$tmp/grow"
cksum "$tmp/grow"/*.safetensors >"$tmp/before"
refuse "no room to go on" "safetensors.*the old file is kept" with_room 16 --out "$tmp/grow" --resume \
    --set train.steps=12
cksum "$tmp/grow"/*.safetensors >"$tmp/after"
check "the old checkpoint is whole, no temporary is left" cmp "$tmp/before" "$tmp/after"
check "it can go on" train --out "$tmp/grow" --resume --set train.steps=12
full="no small disk to fill here"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    full="and a full disk"
    cat >"$tmp/full.sh" <<'EOF'
mount -t tmpfs -o size=256k none "$1" && "$TAUT" train $3 --out "$1/run" || exit 7
cp "$1"/run/*.safetensors "$2" && dd if=/dev/zero of="$1/filler" bs=4096 2>/dev/null
"$TAUT" train $3 --out "$1/run" --resume --set train.steps=12
rc=$?
cmp "$1/run/model.safetensors" "$2/model.safetensors" && cmp "$1/run/state.safetensors" "$2/state.safetensors" || exit 8
ls "$1"/run/*.tmp-* 2>/dev/null && exit 9
rm "$1/filler"
"$TAUT" train $3 --out "$1/run" --resume --set train.steps=12 || exit 10
exit $rc
EOF
    mkdir "$tmp/disk" "$tmp/copy"
    unshare -m sh "$tmp/full.sh" "$tmp/disk" "$tmp/copy" "$small" >"$tmp/out" 2>"$tmp/err"
    check "a full disk: refused, old files whole, goes on later" [ $? = 1 ]
    check "a full disk: one line, '$(cat "$tmp/err")'" [ "$(grep -c 'No space left' "$tmp/err")" = "$(wc -l <"$tmp/err")" ]
fi
if [ -e /dev/full ]; then
    lost() { "$@" >/dev/full; }
    refuse "a full disk behind stdout" "stdout" lost "$TAUT" info "$good"
    refuse "a full disk behind stdout, JSON" "stdout" lost "$TAUT" info "$good" --json
fi

check "after all this the good run still opens" "$TAUT" eval "$good"
# ---- the reason, not the keys that were not read because of it
refuse "AttLip with ALiBi" "attlip_near in the place of" "$TAUT" train recipes/mlm-attlip-small.ini --set model.positions=alibi \
    --out "$tmp/alibi"
finish "bad input    $checks checks, $full"
