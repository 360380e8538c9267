#!/usr/bin/env bash
# threads.sh FILE…: fails unless these, below test/, are all files of unit tests that start threads or use several; and they must
# exist. The tests for the thread sanitizer consist of them, and of test/compile_test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

listed=$(printf '%s\n' "$@" | sort)
missing=$(grep -rlE 'std::j?thread|std::async|set_num_threads|DataLoader|Replicas' --include='*_test.cpp' . | sed 's,^\./,,' |
  grep -vE '^faults/|^compile/(group|machine_code)_test|^life/' | sort | comm -23 - <(echo "$listed"))
[ -z "$missing" ] || { echo "threads: these use threads; add them to the list 'threaded' in test/meson.build:" $missing >&2; exit 1; }
ls "$@" >/dev/null
