#!/usr/bin/env bash
# op_bits.sh PROGRAM FOLDER OTHER…: fails, and names the ops, if PROGRAM, which is op_bits, prints something else with the library in
# an OTHER folder than with that in FOLDER. Left out are ops that multiply complex numbers one by one, since GCC 12 makes vfmaddsub of
# that in spite of -ffp-contract=off; and, if this processor has vectors of 64 bytes, ops that call SLEEF, whose functions of these
# have other bits than those of 32, and ops with sums or products along a row, whose trees are as wide as a vector.
set -euo pipefail
program=$1 first=$2
shift 2
by_sleef='^(asin|acos|atan|asinh|acosh|atanh|atan2|cbrt|log2|log10|erf|erfc|hypot|pow|gelu|normal_cdf|erfinv|erfcinv|ndtri|log_ndtr|ndtr) '
by_tree='^(sum|mean|prod|prod_of_others|trace|euclidean_norm|l2_loss|logsumexp|logsumexp_and_softmax|softmax|softmax_derivative|log_softmax|softmax_cross_entropy|sparse_softmax_cross_entropy|layer_norm|layer_norm_gradient|segment_sum|segment_mean|segment_prod|ctc_loss_gradient|dot_product_attention|dot_product_attention_gradient|parameterized_truncated_normal) '
left_out='^(fft|ifft|rfft|irfft|eig|banded_triangular_solve|tridiagonal_solve) '
if grep -q avx512f /proc/cpuinfo; then left_out="$left_out|$by_sleef|$by_tree"; fi
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
