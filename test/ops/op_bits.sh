#!/usr/bin/env bash
# op_bits.sh PROGRAM FOLDER OTHER…: fails, and names the ops, if PROGRAM, which is op_bits, prints something else with the library in
# an OTHER folder than with that in FOLDER. SLEEF's functions of vectors of 64 bytes have other bits than those of 32; ops that call
# them are left out if this processor has such vectors.
set -euo pipefail
program=$1 first=$2
shift 2
by_sleef='^(asin|acos|atan|asinh|acosh|atanh|atan2|cbrt|log2|log10|erf|erfc|hypot|pow|gelu|normal|erfinv|erfcinv|ndtri|log_ndtr|ndtr)'
grep -q avx512f /proc/cpuinfo && left_out=$by_sleef || left_out='^$'
bits() { LD_LIBRARY_PATH=$1 "$program" | grep -vE "$left_out"; }

wanted=$(bits "$first")
failed=0
for folder in "$@"; do
  found=$(bits "$folder")
  differ=$(diff <(echo "$wanted") <(echo "$found") | sed -n 's/^[<>] \([a-z0-9_]*\) .*/\1/p' | sort -u | tr '\n' ' ') || true
  [ -z "$differ" ] || { echo "op_bits: $folder has other bits than $first: $differ"; failed=1; }
done
echo "op_bits: $(wc -l <<<"$wanted") results, $# other libraries"
exit $failed
