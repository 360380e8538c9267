#!/usr/bin/env bash
# Checks the tables of stops in docs/inside/tour.md and docs/inside/compiled_functions.md: the files exist, each contains the names that the tour gives
# for it, and there are at most so many files and lines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() { echo "tour: $1" >&2; failed=1; }

# tour PAGE MOST_LINES
tour() {
  local page=$1 most=$2 files=0 lines=0 file wanted part name
  while IFS='|' read -r _ _ file wanted part _; do
    file=$(tr -d '` ' <<<"$file")
    [ -f "$file" ] || { complain "$page: $file does not exist"; continue; }
    files=$((files + 1))
    case $part in
      *all*) lines=$((lines + $(wc -l <"$file"))) ;;
      *) lines=$((lines + $(tr -dc 0-9 <<<"$part"))) ;;
    esac
    while read -r name; do
      grep -qF -- "${name##*::}" "$file" || complain "$page: $file has no $name"
    done < <(grep -o '`[^`]*`' <<<"$wanted" | tr -d '`')
  done < <(grep -E '^\| [0-9]+ \|' "$page")
  [ $files -ge 8 ] || complain "$page: the table of stops was not found"
  [ $files -le 12 ] || complain "$page: $files files; 12 at most"
  [ $lines -le "$most" ] || complain "$page: $lines lines; $most at most"
  echo "$page: $files files, $lines lines"
}

tour docs/inside/tour.md 2150
tour docs/inside/compiled_functions.md 1800
exit $failed
