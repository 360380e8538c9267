#!/usr/bin/env bash
# Checks docs/inside/tour.md: the files of its tables exist and contain the names that the page says to look for; the tour has at most
# 20 files and so many lines, and `x * y` at most 15 files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/inside/tour.md most_files=20 most_lines=3700 stops_of_gradient=10 most_of_gradient=15
failed=0 stops=0 lines=0 more=0
complain() { echo "tour: $1" >&2; failed=1; }

# check FILE NAMES: the file exists and contains each name in backquotes.
check() {
  [ -f "$1" ] || { complain "$1 does not exist"; return; }
  local name
  while read -r name; do
    grep -qF -- "${name##*::}" "$1" || complain "$1 has no $name"
  done < <(grep -o '`[^`]*`' <<<"$2" | tr -d '`')
}

while IFS='|' read -r _ _ file wanted part _; do
  file=$(tr -d '` ' <<<"$file")
  check "$file" "$wanted"
  stops=$((stops + 1))
  case $part in
    *all*) lines=$((lines + $(wc -l <"$file"))) ;;
    *) lines=$((lines + $(tr -dc 0-9 <<<"$part"))) ;;
  esac
done < <(grep -E '^\| [0-9]+ \|' $page)
while IFS='|' read -r _ file wanted _; do
  check "$(tr -d '` ' <<<"$file")" "$wanted"
  more=$((more + 1))
done < <(grep -E '^\| `(lib|include)/' $page)

[ $stops -ge 15 ] && [ $more -ge 1 ] || complain "the tables of $page were not found"
[ $stops -le $most_files ] || complain "$stops files; $most_files at most"
[ $lines -le $most_lines ] || complain "$lines lines; $most_lines at most"
[ $((stops_of_gradient + more)) -le $most_of_gradient ] || complain "x * y: $((stops_of_gradient + more)) files; $most_of_gradient at most"
echo "$page: $stops files, $lines lines; x * y: $((stops_of_gradient + more)) files"
exit $failed
