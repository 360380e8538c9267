#!/usr/bin/env bash
# cases.sh TEST_PROGRAM CASES MISSING UNRECORDED: fails if the tests do not run every case of the file CASES. Those in MISSING, each
# with its reason on the same line, must not run. Those in UNRECORDED must be tried and fail as compiled functions.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ids() { sort "$@" | uniq; }
TAPEDECK_CASES_REPORT=$work/report "$1" '[cases]' >/dev/null
sed -n 's/^  "id": "\(.*\)",$/\1/p' "$2" | ids >"$work/all"
cut -d ' ' -f 1 "$work/report" | ids >"$work/run"
listed() { sed -n 's/^\([^# ]*\) ..*/\1/p' "$1" | ids; }
listed "$3" >"$work/missing"

[ "$(grep -c '"id":' "$2")" = "$(wc -l <"$work/all")" ] || { echo "cases: an id of $2 is twice there, or not on a line of its own" >&2; exit 1; }
unrun=$(comm -23 "$work/all" "$work/run" | comm -23 - "$work/missing")
stale=$(comm -12 "$work/run" "$work/missing"; comm -13 "$work/all" "$work/missing")
[ -z "$unrun" ] || echo "cases: no test runs: $unrun; write one, or name the case and the reason in $3" >&2
[ -z "$stale" ] || echo "cases: these run, or do not exist; remove them from $3: $stale" >&2
unrecorded=$(comm -13 <(sed -n 's/^\([^ ]*\) .* not recorded: .*/\1/p' "$work/report" | ids) <(listed "$4"))
[ -z "$unrecorded" ] || echo "cases: these are recorded, give no tensors, or do not exist; remove them from $4: $unrecorded" >&2
[ -z "$unrun$stale$unrecorded" ]
