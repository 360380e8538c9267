#!/usr/bin/env bash
# Checks that every public header compiles alone, without warnings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../include"

compile() {
  echo "#include <$1>" | ${CXX:-g++} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Werror -I. -x c++ - ||
    { echo "headers: $1 does not compile alone" >&2; return 1; }
}
export -f compile
find tapedeck -name '*.h' | LC_ALL=C sort | xargs -P 2 -I{} bash -c 'compile {}'
