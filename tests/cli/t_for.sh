#!/bin/sh
# taut certify --for K and taut attack --for K: radii for the program that runs, what they cost, which kernels are meant, what is refused.
. tests/cli/lib.sh
refused() { pattern=$1; shift; "$TAUT" "$@" >"$tmp/out" 2>"$tmp/err"; [ $? = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$pattern" "$tmp/err"; }
tolerance() { json_get "$tmp/$1.json" tolerance; }
run=$tmp/run
python=$(numpy) || python=

check "a model" "$TAUT" train recipes/mlp-shapes-small.ini --set train.steps=60 --set data.length=400 --out "$run"
for k in ref wide cpu cuda; do
    check "for $k" "$TAUT" certify "$run" --n-ex 8 --for $k --out "$tmp/$k.json"
    check "it says for whom" [ "$(json_get "$tmp/$k.json" for)" = $k ]
    check "taut check confirms it" "$TAUT" check "$tmp/$k.json" "$run"
    [ -z "$python" ] || check "so does the second checker" "$python" checker/check.py "$tmp/$k.json" "$run"
done
"$TAUT" check "$tmp/cpu.json" "$run" >"$tmp/out"
check "the checker says whose word E is" grep -q 'stated for the kernels cpu: that they are is not for a checker' "$tmp/out"
sed 's/"tolerance":[^,]*,//' "$tmp/cpu.json" >"$tmp/bent.json"
"$TAUT" check "$tmp/bent.json" "$run" >"$tmp/out" 2>&1
check "kernels without a tolerance" [ $? = 2 ]
if [ -n "$python" ]; then
    "$python" checker/check.py "$tmp/bent.json" "$run" >"$tmp/out" 2>&1
    check "nor by the second checker" [ $? = 2 ]
fi
check "wide is off by more than ref" less "$(tolerance ref)" "$(tolerance wide)"
check "cpu by more than wide" less "$(tolerance wide)" "$(tolerance cpu)"
check "by which some images stay certified" grep -q certified "$tmp/cpu.json"
"$TAUT" certify "$run" --n-ex 8 --for cpu >"$tmp/out"
check "the kernels are named" grep -q 'for what the kernels cpu compute' "$tmp/out"
check "what it costs is printed" grep -q 'examples  (.* % in real arithmetic)' "$tmp/out"
check "predictions on wide" "$TAUT" eval "$run" --kernels wide
check "an attack on the kernels that run" "$TAUT" attack "$run" --n-ex 8 --for cpu --attack pgd --norm L2 --eps 0.01,0.1
check "on wide" "$TAUT" attack "$run" --n-ex 8 --for wide --kernels wide --attack pgd --norm L2 --eps 0.1
check "a module without a rule" "$TAUT" train recipes/encoder-1lip.ini --set model.width=8 --set model.mlp=8 --set model.depth=1 \
    --set train.steps=1 --out "$tmp/lip"
"$TAUT" certify "$tmp/lip" --n-ex 4 --for cpu >"$tmp/out"
check "certifies nothing, and says so" grep -q 'nothing is certified for the kernels cpu' "$tmp/out"
cp "$tmp/cpu.json" "$run/certificate.json"
"$TAUT" eval "$run" --kernels ref >"$tmp/out" 2>"$tmp/err"
check "eval on other kernels says so: $(cat "$tmp/err")" grep -q "for the kernels cpu and say nothing of ref" "$tmp/err"
"$TAUT" eval "$run" --kernels cpu-base >"$tmp/out" 2>"$tmp/err"
check "and nothing on those: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
"$TAUT" eval "$run/model.safetensors" --kernels ref >"$tmp/out" 2>"$tmp/err"
check "nor of a file alone: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
rm "$run/certificate.json"
check "no such kernels of an attack" refused "no kernels are called .gpu." attack "$run" --n-ex 2 --for gpu --attack fgsm --norm L2 --eps 0.1
check "other kernels" refused "say nothing of cpu, which run here" attack "$run" --n-ex 2 --for wide --attack fgsm --norm L2 --eps 0.1
check "no such kernels" refused "no kernels are called .gpu." certify "$run" --n-ex 2 --for gpu
check "no examples" refused "--for is about examples" certify "$run" --for cpu
check "a tolerance beside it" refused "leave --tolerance" certify "$run" --n-ex 2 --for cpu --tolerance 1
check "no certificates" refused "--for is about certificates" attack "$run" --n-ex 2 --for cpu --no-certify
finish "for          four kernels, two checkers, what is refused"
