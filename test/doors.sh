#!/usr/bin/env bash
# Checks who reaches the memory of tensors. A recording hears of numbers that are read by HostView, and of those that an op's
# kernel reads; so core/bytes.h, the way to the memory, is for kernels, and for the files that are listed here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find lib include \( -name '*.h' -o -name '*.cpp' \) -print | LC_ALL=C sort | xargs awk '
  function allow(why, list,   n, files, i) {
    n = split(list, files)
    for (i = 1; i <= n; i++) allowed[files[i]] = why
  }
  BEGIN {
    allow("defines it, and makes, converts and fills tensors",
          "lib/core/bytes.h lib/core/cast.cpp lib/core/creation.cpp lib/core/storage.cpp lib/core/tensor.cpp")
    allow("a step of an optimizer, which a recording repeats as one action", "lib/optim/master.cpp lib/optim/update_rows.cpp")
    allow("gives the values of programs memory, and compares and looks at constants",
          "lib/compile/fuse/memory.cpp lib/compile/fuse/fusible.cpp lib/compile/fuse/lower.cpp lib/compile/record/compiled.cpp lib/compile/replay/replay.cpp")
    allow("runs programs on the memory of operands, and gives values zeros while branches and loops are recorded",
          "lib/compile/record/branch.cpp lib/compile/record/inner.cpp lib/compile/record/loop_program.cpp lib/compile/record/taped.cpp lib/compile/record/tracer.cpp")
    allow("looks for NaN in what ops give, and changes no value", "lib/debug/anomaly.cpp")
  }
  function complain(why) { printf "doors: %s:%d: %s: %s\n", FILENAME, FNR, why, $0; bad = 1 }
  FILENAME ~ /^lib\/kernels\// { next }
  /#include "core\/bytes\.h"|[.>]raw\(\)|[^a-z_]elements<|visit_indices|Bytes::of/ {
    if (FILENAME in allowed) seen[FILENAME]
    else complain("read numbers by HostView (core/host_view.h), or in a kernel of lib/kernels")
  }
  END {
    for (f in allowed) if (!(f in seen)) { print "doors: this file is not there, or needs no door: " f; bad = 1 }
    exit bad
  }'
