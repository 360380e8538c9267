#!/usr/bin/env bash
# What the examples have in common: the list of them, their options, and the picture.
#   examples_test.sh PROGRAM     one of them, newton_logistic
set -uo pipefail
program=$1
sources=$(dirname "${BASH_SOURCE[0]}")/..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect STATUS TEXT COMMAND…: the exit status, and a piece of what is printed.
expect() {
  local status=$1 text=$2 output actual
  shift 2
  output=$("$@" 2>&1)
  actual=$?
  if [[ $actual != "$status" || $output != *"$text"* ]]; then
    printf '%s: expected status %s and "%s", got status %s:\n%s\n' "$*" "$status" "$text" "$actual" "$output"
    failed=1
  fi
}

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
exit $failed
