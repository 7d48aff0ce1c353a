#!/bin/sh
# The second checker (checker/, in Python) against taut certify and taut check: one model of every architecture, in both norms.
# True certificates are confirmed by both, bent numbers and flipped bits refused by both, scribbled files never more than refused.
. tests/cli/lib.sh
python=$(numpy) || { echo "skipped: no python3 with numpy"; exit 77; }
runs=$tmp/runs
mkdir "$runs"
brief="--set train.steps=2 --set train.batch=4 --set train.warmup=1"
text="recipes/tiny-free.ini $brief --set data.length=2000 --set train.mask_rate=0.6 --set model.width=8 --set model.heads=2
 --set model.context=5 --set model.mlp=6"
images="recipes/vit-shapes-small.ini $brief --set data.length=200 --set model.width=8 --set model.depth=1 --set model.heads=2
 --set model.mlp=12"
series="recipes/forecast-waves.ini $brief --set data.length=300 --set model.width=8 --set model.heads=2 --set model.mlp=6
 --set model.seq=5 --set model.ahead=2"
make() { # NAME RECIPE KEY=VALUE...: of [model]
    name=$1 recipe=$2; shift 2
    for pair; do recipe="$recipe --set model.$pair"; done
    # shellcheck disable=SC2086
    check "train $name" "$TAUT" train $recipe --out "$runs/$name"
}
make text-layernorm "$text" norm=layernorm
make text-rope "$text" norm=rmsnorm norm_place=post positions=rope activation=silu tied=false
make text-alibi "$text" norm=none activation=abs residual=convex positions=alibi logit_scale=0.5
make encoder-cosine "$text" arch=encoder norm=centernorm activation=maxmin attention=cosine cosine_eps=0.1
make text-cosine "$text" norm=none attention=cosine cosine_values=true cosine_eps=0.1 residual=channel droppath=0.1
make text-potential "$text" norm=none activation=relu mlp_block=potential
make text-sll "$text" norm=none activation=tanh mlp_block=sll
make text-position "$text" norm=none attention=position activation=gelu_tanh
make text-fade "$text" norm=none attention=position fade=0.25 depth=2
make encoder-fade "$text" arch=encoder norm=none attention=position fade=1 depth=2
make encoder-l2 "$text" arch=encoder norm=centernorm norm_place=post attention=l2
make encoder-attlip "$text" arch=encoder norm=none attention=attlip attlip_head_width=3 attlip_learned=true positions=rope \
    attlip_near=0.5
words="recipes/classifier-animals.ini $brief --set data.length=200 --set model.width=8 --set model.heads=2 --set model.context=5
 --set model.mlp=6"
make words-layernorm "$words" norm=layernorm residual=plain residual_alpha=0 attention=softmax first_residual=true mlp_residual=true
make words-position "$words" head_hidden=5 logit_scale=0.5
make words-bert "$words" norm=layernorm norm_place=post embed_norm=true residual=plain residual_alpha=0 attention=softmax \
    first_residual=true mlp_residual=true pool=class head_hidden=5 head_activation=tanh activation=gelu
make image-class "$images" norm=none pool=class
make image-l2 "$images" norm=none attention=l2 residual=convex
make image-attlip "$images" norm=none attention=attlip attlip_reflected=true attlip_turn=true attlip_eta=0.25 mlp_block=sll \
    activation=relu pool=mean
make image-layernorm "$images" norm=layernorm pool=mean positions=none
make image-torus "$images" norm=none residual=convex attention=position torus=true pool=concat activation=relu head_hidden=5
make image-bare "$images" norm=none residual=convex residual_alpha=1 attention=position torus=true pool=l2 mlp_block=fold \
    activation=abs first_fold=false init=orthogonal
make image-fold "$images" norm=none residual=convex residual_alpha=1 attention=position torus=true pool=l2 mlp_block=fold \
    activation=abs unit_head=true init=orthogonal
# shellcheck disable=SC2086
make image-mlp "recipes/mlp-shapes-small.ini $brief --set data.length=200" hidden=6 activation=relu
make series-softmax "$series" label=2 depth=1 norm_eps=0.1
make series-l2 "$series" label=2 depth=3 attention=l2 distil=true bias=false norm_eps=0.1
make series-position "$series" label=5 depth=1 decoder_depth=2 norm=none attention=position activation=abs residual=convex
make series-attlip "$series" label=1 depth=2 norm=none attention=attlip attlip_head_width=3 logit_scale=0.5
make series-cosine "$series" label=0 depth=1 attention=cosine cosine_eps=0.1 norm=rmsnorm norm_eps=0.1 activation=maxmin
make text-window "$text" norm=layernorm attention=window window_size=2
make words-window "$words" norm=none attention=window window_size=1 bias=false
make image-longformer "$images" norm=none attention=window window_size=1 window_global=1
make image-cosformer "$images" norm=none attention=cosformer cosformer_eps=0.1
make series-cosformer "$series" label=2 depth=2 distil=true attention=cosformer norm_eps=0.1
make words-performer "$words" norm=none attention=performer performer_features=7
make series-performer "$series" label=2 depth=1 attention=performer norm_eps=0.1
make jumping-nystrom "$images" norm=none attention=nystrom nystrom_landmarks=3 nystrom_steps=2
make series-clustered "$series" label=1 depth=1 attention=clustered clusters=2 cluster_first=true norm_eps=0.1
make jumping-clustered "$images" norm=none attention=clustered clusters=2
make series-probsparse "$series" label=2 depth=1 attention=probsparse norm_eps=0.1
make image-plash "$images" norm=none attention=plash plash_groups=3 plash_mixers=0 plash_floor=1 plash_sizes=16
make encoder-plash "$text" arch=encoder attention=plash plash_groups=2 plash_hash=fixed plash_sizes=16 plash_pair=qk \
    plash_norm_eps=1 plash_floor=1 bias=false
make series-plash "$series" label=2 depth=1 attention=plash plash_groups=2 plash_features=5 plash_tau=0.5 plash_degrees=3 \
    plash_sizes=8 plash_norm_eps=1 plash_floor=1 norm_eps=0.1
check "42 models" [ "$(find "$runs" -mindepth 1 -maxdepth 1 | wc -l)" = 42 ]
check "gains are listed" grep -aq '"gain' "$runs/text-fade/model.safetensors"
check "but not where they are roots" [ "$(grep -ac '"gain' "$runs/text-position/model.safetensors")" = 0 ]
"$python" tests/checker/second.py "$runs" "$TAUT" "${TAUT_EFFORT:-1}" || fails=$((fails + 1))
"$python" tests/checker/slopes.py "$(awk "BEGIN { print int(9 * ${TAUT_EFFORT:-1}) + 1 }")" || fails=$((fails + 1))
"$python" tests/checker/hostile.py "$tmp" "$TAUT" || fails=$((fails + 1))
# what is no file
refuse "no file" "no such file" "$python" checker/check.py "$tmp/none.json" "$runs/image-plash"
refuse "no JSON" "check.py" "$python" checker/check.py tests/checker/t_second.sh "$runs/image-plash"
refuse "no arguments" "usage" "$python" checker/check.py
for machine in x86_64 aarch64; do
    for model in text position image forecast; do
        check "$model of $machine" "$python" checker/check.py tests/golden/certificates/$machine/$model.json \
            tests/golden/certificates/$machine/$model.safetensors
    done
done
finish "second checker"
