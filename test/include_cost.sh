#!/usr/bin/env bash
# Checks that a file with tapedeck.h compiles in at most 1.5 times what one with the usual headers of the standard library takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

limit=1.5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include <%s>\n' memory span vector string string_view optional functional variant >"$folder/std.cpp"
echo '#include <tapedeck/tapedeck.h>' >"$folder/tapedeck.cpp"
for file in std tapedeck; do echo 'int main() {}' >>"$folder/$file.cpp"; done

TIMEFORMAT=%U
seconds() { { time ${CXX:-g++} -std=c++20 -O2 -Iinclude -c "$folder/$1.cpp" -o "$folder/$1.o"; } 2>&1; }
# Turn by turn, so that both meet the same machine.
for _ in 1 2 3 4 5 6 7 8 9; do echo "$(seconds std) $(seconds tapedeck)"; done | awk -v limit=$limit '
  NR == 1 || $1 < std { std = $1 }
  NR == 1 || $2 < own { own = $2 }
  END { printf "include cost: %.2f s, the standard headers %.2f s: %.2f times, at most %.1f\n", own, std, own / std, limit; exit own > limit * std }'
