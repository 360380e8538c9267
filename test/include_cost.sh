#!/usr/bin/env bash
# Checks that g++ needs at most 1.46 times as much memory for a file with tapedeck.h as for one with the same standard headers.
# Unlike time, memory is the same in every run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=1.46
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include <tapedeck/tapedeck.h>' >"$folder/tapedeck.cpp"
files=$(g++ -std=c++20 -Iinclude -MM "$folder/tapedeck.cpp" | grep -o 'include/[^ ]*')
grep -hoE '^#include <[a-z_]+>' $files | sort -u >"$folder/std.cpp"
for file in std tapedeck; do echo 'int main() {}' >>"$folder/$file.cpp"; done

# The megabytes that g++ allocates in its own heap for a file.
megabytes() {
  g++ -std=c++20 -O2 -Iinclude -ftime-report -c "$folder/$1.cpp" -o "$folder/$1.o" 2>&1 | sed -n 's/^ TOTAL .* \([0-9]*\)M$/\1/p'
}
std=$(megabytes std) own=$(megabytes tapedeck)
echo "include cost: $own MB, the standard headers $std MB, at most $limit times"
awk -v std="$std" -v own="$own" -v limit="$limit" 'BEGIN { exit !(std > 0 && own <= limit * std) }'
