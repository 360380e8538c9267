#!/usr/bin/env bash
# The digits program as one process, as replicas on threads, and as ranks of an MPI job: all reach the same accuracy, and the
# replicas give the same bits.
#   digits_replicas_test.sh PROGRAM
set -uo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# trained NAME [mpirun …] REPLICAS: trains, and writes NAME.out and NAME.weights. The replicas get 1, 2, 1 and 2 digits of a
# batch of 6, and 0, 1, 1 and 1 of the last batch.
trained() {
  local name=$1
  shift
  timeout 100 "${@:1:$#-1}" "$program" --epochs 2 --batch 6 --plot "$folder/$name.svg" --tape "$folder/$name.dot" --weights "$folder/$name.weights" --replicas "${!#}" > "$folder/$name.out" 2>&1 && return
  echo "$name:"; cat "$folder/$name.out"; failed=1
}
trained one 1
trained threads 4
trained ranks mpirun --oversubscribe -np 4 mpi
[ $failed = 0 ] || exit 1

# Threads and ranks give the same bits. Only rank 0 prints; it also draws a progress bar, since its output looks like a terminal
# under mpirun.
cmp "$folder/threads.weights" "$folder/ranks.weights" || failed=1
after_training() { sed '1,/^4 replicas, with the same bits in all weights$/d' "$folder/$1.out" | grep -v "$folder"; }
after_training threads | grep -q '^test accuracy' && diff <(after_training threads) <(after_training ranks) || failed=1
[ "$(grep -c '^1437 digits to learn from' "$folder/ranks.out")" = 1 ] || { echo "several ranks print"; failed=1; }

# One process sums in a different order. Different rounding may change the prediction for one or two of 360 digits. It changes
# the loss of the first epoch by less than a thousandth; giving unequal parts of a batch equal weights would change it by more.
near() { paste <(sed -n "$1" "$folder/one.out") <(sed -n "$1" "$folder/threads.out") | awk -v most="$2" '{ d = $1 - $2; far = d > most || d < -most } END { exit far || NR != 1 }'; }
for network in mlp cnn; do
  near "s/^$network epoch  1.*loss \([^ ]*\).*/\1/p" 0.001 && near "s/^test accuracy:.* $network \([^ ]*\).*/\1/p" 0.006 || { echo "$network: one process and four replicas train differently"; tail -n 1 "$folder"/{one,threads}.out; failed=1; }
done

# An error on rank 0 ends all ranks.
output=$(timeout 50 mpirun --oversubscribe -np 2 "$program" --replicas mpi --plot "$folder/none/loss.svg" 2>&1)
status=$?
[[ $status = 1 && $output == *"cannot write $folder/none/loss.svg"* ]] || { echo "rank 0 cannot write: status $status: $output"; failed=1; }
exit $failed
