#!/usr/bin/env bash
# Checks that the files listed in docs/tour.md exist, that each contains the names that the tour gives for it, and that there
# are at most 12 files and 2,100 lines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0 files=0 lines=0
complain() { echo "tour: $1" >&2; failed=1; }
while IFS='|' read -r _ _ file wanted part _; do
  file=$(tr -d '` ' <<<"$file")
  [ -f "$file" ] || { complain "$file does not exist"; continue; }
  files=$((files + 1))
  case $part in
    *all*) lines=$((lines + $(wc -l <"$file"))) ;;
    *) lines=$((lines + $(tr -dc 0-9 <<<"$part"))) ;;
  esac
  while read -r name; do
    grep -qF -- "${name##*::}" "$file" || complain "$file has no $name"
  done < <(grep -o '`[^`]*`' <<<"$wanted" | tr -d '`')
done < <(grep -E '^\| [0-9]+ \|' docs/tour.md)

[ $files -ge 8 ] || complain "the table of stops was not found"
[ $files -le 12 ] || complain "$files files; 12 at most"
[ $lines -le 2100 ] || complain "$lines lines; 2100 at most"
echo "tour: $files files, $lines lines"
exit $failed
