#!/bin/sh
# README's commands as they are printed, from top to bottom, in an empty folder: each finds what those before it have made.
# The recipes are those of the repository but for their batches, of four examples, and their steps, 60: how well anything learns is
# tried elsewhere.
# Left out: what asks for files of others (a checkpoint, a text, photos), and the race with PyTorch.
. tests/cli/lib.sh
long
mkdir -p "$tmp/bin" "$tmp/here/recipes"
ln -s "$(cd "$(dirname "$TAUT")" && pwd)/taut" "$tmp/bin/taut"
for recipe in recipes/*.ini; do sed 's/^batch = .*/batch = 4/; s/^steps = .*/steps = 60/' "$recipe" >"$tmp/here/$recipe"; done
sed -n '/^## The commands/,/^## Using/p' README.md | sed -n 's/^    \(taut .*\)/\1/p' | sed 's/  .*//' |
    grep -v 'gpt2\|minilm\|photos\|bench' >"$tmp/commands"
check "there are commands" [ "$(wc -l <"$tmp/commands")" -ge 20 ]
while read -r command; do
    check "$command" sh -c "cd '$tmp/here' && PATH='$tmp/bin':\$PATH && $command" </dev/null
done <"$tmp/commands"
for made in runs/tiny/model.safetensors waves.html future.csv c.json report.html runs/lr; do
    check "$made" [ -e "$tmp/here/$made" ]
done
finish "readme       $(wc -l <"$tmp/commands") commands"
