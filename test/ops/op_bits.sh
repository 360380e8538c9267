#!/usr/bin/env bash
# op_bits.sh PROGRAM FOLDER OTHER…: fails, and names the ops, if PROGRAM, which is op_bits, prints something else with the library in
# an OTHER folder than with that in FOLDER. The OTHER ones are for vectors of 32 bytes. Left out are ops that multiply complex numbers
# one by one, since GCC 12 makes vfmaddsub of that in spite of -ffp-contract=off; and, beside FOLDER alone if this processor has
# vectors of 64 bytes, ops that call SLEEF, whose functions of these have other bits than those of 32, and ops with sums or products
# along a row, whose trees are as wide as a vector.
set -euo pipefail
program=$1 first=$2
shift 2
by_sleef='^(asin|acos|atan|asinh|acosh|atanh|atan2|cbrt|log2|log10|erf|erfc|hypot|pow|gelu|normal_cdf|erfinv|erfcinv|ndtri|log_ndtr|ndtr) '
by_tree='^(sum|mean|prod|prod_of_others|trace|euclidean_norm|l2_loss|logsumexp|logsumexp_and_softmax|softmax|softmax_derivative|log_softmax|softmax_cross_entropy|sparse_softmax_cross_entropy|layer_norm|layer_norm_gradient|segment_sum|segment_mean|segment_prod|ctc_loss_gradient|dot_product_attention|dot_product_attention_gradient|parameterized_truncated_normal) '
left_out='^(fft|ifft|rfft|irfft|eig|banded_triangular_solve|tridiagonal_solve) '
of_width=''
if grep -q avx512f /proc/cpuinfo; then of_width="|$by_sleef|$by_tree"; fi
bits() { LD_LIBRARY_PATH=$1 "$program" | grep -vE "$left_out$2"; }

failed=0
# compare FOLDER OTHER MORE: MORE is left out, too.
compare() {
  local differ
  differ=$(diff <(bits "$1" "$3") <(bits "$2" "$3") | sed -n 's/^[<>] \([a-z0-9_]*\) .*/\1/p' | sort -u | tr '\n' ' ') || true
  [ -z "$differ" ] || { echo "op_bits: $2 has other bits than $1: $differ"; failed=1; }
}
for folder in "$@"; do compare "$first" "$folder" "$of_width"; done
for folder in "${@:2}"; do compare "$1" "$folder" ''; done
echo "op_bits: $(bits "$first" "$of_width" | wc -l) results, $# other libraries"
exit $failed
