#!/usr/bin/env bash
# Checks that test/fuzz/calls_table.cpp names every public function of tapedeck/ops/, as often as it has forms; those that
# only pass their arguments on, and are not exported, do not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
declared=$(cat include/tapedeck/ops/*.h | sed 's,//.*,,; /^#/d' | tr '\n' ' ' | grep -oE 'TAPEDECK_EXPORT [^;{(]*\(' |
  sed -E 's/.*[ *&]([a-z_][a-z_0-9]*) *\($/\1/' | sort)
called=$(grep -oE '^ *add\("[a-z_0-9]+"' test/fuzz/calls_table.cpp | sed -E 's/.*"(.*)"/\1/' | sort)
if ! diff <(echo "$declared") <(echo "$called") | sed -n 's/^< /calls: not called: /p; s/^> /calls: not declared: /p' | tee /dev/stderr | wc -l | grep -qx 0; then exit 1; fi
echo "calls: all $(echo "$declared" | wc -l) public functions are called"
