#!/bin/sh
# taut recipe: every key of every recipe here is listed, with a meaning; types, defaults and users are those of the code that asks.
. tests/cli/lib.sh
check "the list" "$TAUT" recipe --json
"$TAUT" recipe --json >"$tmp/keys.json"
"$TAUT" recipe >"$tmp/keys.txt"
check "without an error" [ -s "$tmp/keys.txt" ]
cat >"$tmp/judge.py" <<'END'
import configparser, glob, json, sys
keys = {k["key"]: k for k in json.load(open(sys.argv[1]))["keys"]}
used = set()
for f in glob.glob("recipes/*.ini") + glob.glob("tests/golden/onnx/*.ini"):
    c = configparser.ConfigParser(inline_comment_prefixes=(";", "#"))
    c.read(f)
    used |= {f"{s}.{k}" for s in c.sections() for k in c[s]}
bad = [f"no key {k}" for k in sorted(used - set(keys))]
bad += [f"{k}: no meaning" for k in keys if not keys[k]["meaning"]]
said = [line.split('"')[1] for line in open("src/train/keys.def") if line.startswith("KEY(")]
bad += [f"keys.def: nobody asks for {k}" for k in said if k not in keys] + [f"{k} twice" for k in set(said) if said.count(k) > 1]
want = {("train.steps", "type"): "int", ("train.steps", "default"): "1000", ("model.patch", "used_by"): "model.arch = vit",
        ("train.optimiser", "wants"): "one of sgd, adamw, muon", ("model.plash_tau", "type"): "real",
        ("constrain.norm", "default"): "tokens", ("train.steps", "used_by"): "",
        ("model.cosformer_eps", "used_by"): "model.arch = encoder, vit, forecaster, classifier; model.attention = cosformer",
        ("model.window_size", "used_by"): "model.arch = gpt, encoder, vit, forecaster, classifier; model.attention = window"}
bad += [f"{k}: {keys[k][f]!r}, not {v!r}" for (k, f), v in want.items() if keys[k][f] != v]
bad += [] if "plash" in keys["model.plash_tau"]["used_by"] else ["who uses plash_tau?"]
print("\n".join(bad))
sys.exit(bool(bad))
END
command -v python3 >/dev/null && check "every key, with type, default, meaning and users" python3 "$tmp/judge.py" "$tmp/keys.json"
check "as text" grep -q '^target_lipschitz = 0' "$tmp/keys.txt"
"$TAUT" recipe recipes/tiny.ini --set train.steps=7 >"$tmp/tiny.ini"
check "a recipe resolved" grep -q '^steps = 7$' "$tmp/tiny.ini"
check "is a recipe" "$TAUT" recipe "$tmp/tiny.ini"
refuse "a misspelt key" "recipe: --set train.stepz: unknown key (did you mean train.steps?)" "$TAUT" recipe recipes/tiny.ini --set train.stepz=7
refuse "--set of nothing" "say which" "$TAUT" recipe --set train.steps=7
refuse "no such recipe" "nowhere.ini" "$TAUT" recipe nowhere.ini
finish "recipe       every key"
