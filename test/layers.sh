#!/usr/bin/env bash
# Checks that every file of lib/ and include/ includes only what its layer may; docs/design.md has the layers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find lib include -path lib/pch -prune -o \( -name '*.h' -o -name '*.cpp' \) -print | LC_ALL=C sort | xargs awk '
  BEGIN {
    split("core kernels op tape ops transforms debug optim minimize distribute", names)
    for (i in names) rank[names[i]] = i + 0
    rank["io"] = rank["optim"]
  }
  function complain(why) { printf "layers: %s:%d: %s: %s\n", FILENAME, FNR, why, $0; bad = 1 }

  /^#include [<"]xtensor/ && FILENAME !~ /^lib\/(kernels|ops)\/.*\.cpp$/ && FILENAME != "include/tapedeck/xtensor.h" {
    complain("xtensor belongs into .cpp files of lib/kernels and lib/ops, and into the public xtensor.h")
  }
  /^#include (<fmt|"core\/format\.h")/ && FILENAME !~ /\.cpp$/ && FILENAME != "lib/core/format.h" {
    complain("fmt belongs into .cpp files")
  }
  FILENAME ~ /^include/ && /^#include "/ && !/^#include "tapedeck\// {
    complain("a public header includes only the standard library and other public headers")
  }
  FILENAME ~ /^include/ && /^#include <[^>]*[.\/]/ && FILENAME != "include/tapedeck/xtensor.h" && FILENAME != "include/tapedeck/simd/elementary.h" {
    complain("a public header includes only the standard library and other public headers")
  }
  FILENAME ~ /^lib/ && /^#include "/ {
    split(FILENAME, path, "/")
    layer = path[2]
    split($0, part, /["\/]/)
    used = part[2]
    if (!(layer in rank)) complain("this folder is no layer")
    if (used == "tapedeck") next
    if (!(used in rank)) complain("include files of lib/ as \"layer/file.h\"")
    else if (used != layer && rank[used] >= rank[layer]) complain(layer " may not include " used ", which does not lie below it")
    else if (used == "kernels" && layer !~ /^(kernels|ops|optim)$/ && FILENAME !~ /^lib\/op\/(elementwise|rules)\./)
      complain("kernels are for ops, optim, op/elementwise and op/rules")
  }
  END { exit bad }'
