#!/bin/sh
# --kernels cuda of a command that computes nothing with kernels: it is done, where no device is and where one is that would say
# that it was asked.  One that computes with them asks, and ends with what it was told.
. tests/cli/lib.sh
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null; then
    echo "skipped: no compiler"
    exit 77
fi
mkdir "$tmp/asked" "$tmp/empty"
check "compiles" compile -std=c11 -fPIC -shared -Isrc -Iinclude tests/cli/refusing.c -o "$tmp/asked/libtaut_cuda.so"
text=$tmp/text images=$tmp/images series=$tmp/series
# shellcheck disable=SC2086
check "a text" "$TAUT" train $small --out "$text"
check "images" "$TAUT" train recipes/mlp-shapes-small.ini --set train.steps=2 --set train.eval_every=0 --set data.length=600 --out "$images"
check "a series" "$TAUT" train recipes/forecast-waves.ini --set train.steps=2 --set train.eval_every=0 --set data.length=1500 --out "$series"
check "a proof" "$TAUT" certify "$text" --out "$tmp/c.json"
printf '\211PNG' >"$tmp/none.png"
printf '#!/bin/sh\necho 7\n' >"$tmp/sbatch" && chmod +x "$tmp/sbatch"

for place in empty asked; do
    # The library beside the program, if one was built, is behind this one.
    LD_LIBRARY_PATH=$tmp/$place${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    for k in cuda cuda64; do
        done_with() { check "$place, $k: $1" "$TAUT" "$@" --kernels $k; }
        done_with check "$tmp/c.json" "$text"
        done_with plan --target 2
        done_with info "$text" --bound
        done_with report "$text" --out "$tmp/page.html"
        done_with recipe recipes/tiny.ini
        done_with convert tests/golden/hf_vit --out "$tmp/converted.safetensors"
        done_with forecast "$series" waves --noise 0.01 --out "$tmp/future.csv"
        done_with paper --list
        done_with man
        refuse "$place, $k: predict" "none.png" "$TAUT" predict "$images" "$tmp/none.png" --kernels $k
        check "$place, $k: a job" env PATH="$tmp:$PATH" "$TAUT" sweep recipes/tiny.ini --grid train.lr=0.1,0.2 --out "$tmp/sweep" \
            --slurm "$tmp/job" --kernels $k
    done
done
asks() { refuse "$1 asks" "the library was asked" "$TAUT" "$@" --kernels cuda; }
asks info
asks eval "$text"
asks sample "$text"
asks embed "$text" recipes/tiny.ini
asks measure "$text" --layer 0
asks certify "$text"
asks attack "$images" --attack fgsm --norm L2 --eps 0.1
asks train recipes/tiny.ini --out "$tmp/never"
asks sweep recipes/tiny.ini --grid train.lr=0.1,0.2 --out "$tmp/never"
asks paper castin-fig1 --out "$tmp/never"
check "nothing was written" [ ! -e "$tmp/never" ]
refuse "a name that is none" "did you mean cuda" "$TAUT" check "$tmp/c.json" "$text" --kernels cudo
finish "no device    for what computes nothing on one"
