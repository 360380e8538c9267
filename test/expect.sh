# Sourced by tests that run programs as their users do. Defines `program`, a temporary folder, and `expect`; the tests end with
# `exit $failed`.
set -uo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect STATUS TEXT COMMAND…: checks the exit status, and that the output contains TEXT.
expect() {
  local status=$1 text=$2 output actual
  shift 2
  output=$("$@" 2>&1)
  actual=$?
  if [[ $actual != "$status" || $output != *"$text"* ]]; then
    printf '%s: expected status %s and "%s", got status %s:\n%s\n' "$*" "$status" "$text" "$actual" "$output"
    failed=1
  fi
}
