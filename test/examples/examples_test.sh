#!/usr/bin/env bash
# Common to all examples: the list of examples, their options, and the picture.
#   examples_test.sh PROGRAM TRAINS     two of them, newton_logistic and neural_ode, which takes training steps
trains=$2
source "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"
sources=$(dirname "${BASH_SOURCE[0]}")/../..

demo=$sources/scripts/demo
for main in "$sources"/examples/*/main.cpp; do
  name=$(basename "$(dirname "$main")")
  expect 0 "$name: " "$demo" --list
  readme=$(dirname "$main")/README.md
  [ -f "$readme" ] || { echo "examples/$name has no README.md"; failed=1; }
  for picture in $(sed -n 's/^!\[.*\](\(.*\))$/\1/p' "$readme"); do
    [ -f "$(dirname "$main")/$picture" ] || { echo "examples/$name has no $picture, which its README shows"; failed=1; }
  done
done
[ "$("$demo" --list | wc -l)" = "$(ls "$sources"/examples/*/main.cpp | wc -l)" ] || { echo "scripts/demo --list has lines of no example"; failed=1; }
expect 2 'there is no example "no_such"; scripts/demo --list shows them' "$demo" no_such

expect 0 "--out FOLDER" "$program" --help
expect 2 "there is no option --shirt; see --help" "$program" --shirt
expect 2 "a folder is missing after --out; see --help" "$program" --out
touch "$folder/file"
expect 1 "$folder/file" "$program" --short --out "$folder/file"
expect 0 "picture: $folder/a/b/newton_logistic.svg" "$program" --short --out "$folder/a/b"
grep -q '^<polyline' "$folder/a/b/newton_logistic.svg" && tail -n 1 "$folder/a/b/newton_logistic.svg" | grep -q '^</svg>$' || { echo "newton_logistic.svg is not whole"; failed=1; }
expect 0 "seconds of a step: " "$trains" --short --time
exit $failed
