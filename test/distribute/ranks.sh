#!/usr/bin/env bash
# MPI ranks: results have the bits of one process, and whatever goes wrong on a rank, the job ends, with a nonzero status.
set -euo pipefail
program=$1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

job() { timeout 60 mpirun --oversubscribe -np "$1" "$program" "${@:2}" 2>&1; }
# ends_with WORDS TEXT…: fails unless a job of four ranks fails, in time, with lines that give the reason.
ends_with() {
  local output status=0 text
  output=$(job 4 $1) || status=$?
  for text in "${@:2}"; do
    if [[ $status == 0 || $status == 124 || $output != *"$text"* ]]; then
      printf 'ranks %s: status %s, expected a failure with "%s":\n%s\n' "$1" "$status" "$text" "$output"
      exit 1
    fi
  done
}

for count in 1 2 3 4; do job "$count" train; done
for count in 2 4; do job "$count" overlap; done
job 2 own_mpi
ends_with shape 'apply_gradients: variable "dense/kernel" f32[4] of checksum'
ends_with shape 'on rank 2 is variable "dense/kernel" f32[3] of checksum'
ends_with value 'apply_gradients: variable "dense/kernel" f32[3] of checksum'
ends_with bucket_bytes 'apply_gradients: rank 2 has the options bucket_bytes 200, reduction mean; rank 3 has bucket_bytes 100, reduction mean; use the same on all ranks'
ends_with reduction 'apply_gradients: rank 2 has the options bucket_bytes 100, reduction sum; rank 3 has bucket_bytes 100, reduction mean; use the same on all ranks'
ends_with throws 'ranks: rank 3 has failed: out of data'
ends_with throws_outside 'out of place'
ends_with misfit 'ranks: rank 3 has failed: apply_gradients: rank 3: the gradient does not fit variable "dense/kernel": gradient is f32[5], variable is f32[3]'
ends_with bool_sum 'ranks: rank 3 has failed: sum_over_replicas: rank 3: x is bool[3]; use astype'
ends_with ends 'rank 2 calls this while rank 3 calls the end of run'
ends_with silent 'ranks: rank 2 has waited 2 s for rank 3 at "apply_gradients"'
ends_with silent_in_step 'at "dense/kernel"; it may have ended'
ends_with dies ''
ends_with throws_in_pass 'ranks: rank 3 has failed: out of luck'
ends_with silent_in_pass 'ranks: rank 2 has waited 2 s for rank 3 at "apply_gradients"'
ends_with dies_in_pass ''

# A run that one rank saves and that continues in another job; and files that are damaged, missing, or missing on one rank.
file=$folder/checkpoint
job 4 save "$file"
job 4 restore "$file"
ends_with "restore $file 2" "rank "{0,1,3}" does not go on: ranks: rank 2 has failed: restore: $file.missing" "rank 2 does not go on: restore: $file.missing"
ends_with "restore $file.none" "rank "{0,1,2,3}" does not go on: restore: $file.none"
printf x | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 30)) conv=notrunc status=none
ends_with "restore $file" "rank "{0,1,2,3}" does not go on: restore: $file: tensor"

sleep 1
if ps -eo stat=,args= | awk -v program="$program" '$1 !~ /^Z/ && $2 == program { print "still there:", $0; left = 1 } END { exit !left }'; then exit 1; fi
