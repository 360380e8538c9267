#!/usr/bin/env bash
# Checks that every public header compiles alone, without warnings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../include"

compile=(${CXX:-g++} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror -I. -x c++ -)
status=0
while read -r header; do
  echo "#include <$header>" | "${compile[@]}" || { echo "headers: $header does not compile alone" >&2; status=1; }
done < <(find tapedeck -name '*.h' | LC_ALL=C sort)
exit $status
