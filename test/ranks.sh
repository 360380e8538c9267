#!/usr/bin/env bash
# Ranks of MPI: the bits of one process, and jobs that end, with a status that is not 0, whatever a rank does.
set -euo pipefail
program=$1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

job() { timeout 60 mpirun --oversubscribe -np "$1" "$program" "$2" 2>&1; }
# Fails unless a job of four fails, in time, with a line that says why.
ends_with() {
  local output status=0
  output=$(job 4 "$1") || status=$?
  if [[ $status == 0 || $status == 124 || $output != *"$2"* ]]; then
    printf 'ranks %s: status %s, expected a failure with "%s":\n%s\n' "$1" "$status" "$2" "$output"
    exit 1
  fi
}

for count in 1 2 3 4; do job "$count" train; done
ends_with shape 'apply_gradients: variable "dense/kernel" f32[4] of checksum'
ends_with shape 'on rank 2 is variable "dense/kernel" f32[3] of checksum'
ends_with value 'apply_gradients: variable "dense/kernel" f32[3] of checksum'
ends_with throws 'ranks: rank 3 has failed: out of data'
ends_with misfit 'ranks: rank 3 has failed: apply_gradients: rank 3: the gradient does not fit variable "dense/kernel": gradient is f32[5], variable is f32[3]'
ends_with ends 'rank 2 calls this while rank 3 calls the end of run'
ends_with silent 'ranks: rank 2 has waited 2 s for rank 3 at "apply_gradients"'
ends_with dies ''

sleep 1
if ps -eo stat=,args= | awk -v program="$program" '$1 !~ /^Z/ && $2 == program { print "still there:", $0; left = 1 } END { exit !left }'; then exit 1; fi
