#!/usr/bin/env bash
# Checks that a file with tapedeck.h compiles in at most 1.5 times what one with the same headers of the standard library takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=1.5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include <tapedeck/tapedeck.h>' >"$folder/tapedeck.cpp"
files=$(${CXX:-g++} -std=c++20 -Iinclude -MM "$folder/tapedeck.cpp" | grep -o 'include/[^ ]*')
grep -hoE '^#include <[a-z_]+>' $files | sort -u >"$folder/std.cpp"
for file in std tapedeck; do echo 'int main() {}' >>"$folder/$file.cpp"; done

TIMEFORMAT=%U
seconds() { { time ${CXX:-g++} -std=c++20 -O2 -Iinclude -c "$folder/$1.cpp" -o "$folder/$1.o"; } 2>&1; }
# Turn by turn, so that both meet the same machine. On a busy one it takes more turns until each has had a quiet moment.
std=999 own=999
for turn in {1..40}; do
  read -r std own within < <(echo "$std $own $(seconds std) $(seconds tapedeck) $limit" |
    awk '{ std = $1 < $3 ? $1 : $3; own = $2 < $4 ? $2 : $4; print std, own, own <= $5 * std }')
  [ "$turn" -lt 9 ] || [ "$within" = 0 ] || break
done
echo "include cost: $own s, the standard headers $std s, at most $limit times"
[ "$within" = 1 ]
