#!/usr/bin/env bash
# Checks that every function that include/tapedeck/ops/F.h declares is defined in lib/ops/<group>/F.cpp, or in a file of a
# folder lib/ops/<group>/F, so that a family has one name everywhere, and that every op is in the table of its family.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Headers are read first. Relies on clang-format: declarations and definitions begin a line, and the end of a namespace has a
# comment.
find include/tapedeck/ops lib/ops \( -name '*.h' -path 'include/*' -o -name '*.cpp' \) | LC_ALL=C sort | xargs awk '
  FNR == 1 {
    parts = split(FILENAME, path, "/")
    family = path[parts > 3 ? 4 : 3]
    sub(/\.(h|cpp)$/, "", family)
    scope = ""
  }
  /^namespace .*{$/ { scope = scope ($2 == "{" ? "" : $2) "::" }
  /^}.*\/\/ namespace/ { sub(/[^:]*::$/, "", scope); if ($NF ~ /::/) scope = "" }

  FILENAME ~ /^include/ && /^TAPEDECK_EXPORT [^(]*[a-z0-9_]\(/ { home[name()] = family; ++count }
  FILENAME ~ /^lib/ && /^[A-Za-z][^(]*[ *&][a-z0-9_]+\(/ && name() in home {
    defined[name()] = 1
    if (home[name()] != family) complain(sprintf("%s:%d: %s is declared in include/tapedeck/ops/%s.h", FILENAME, FNR, name(), home[name()]))
  }

  END {
    for (f in home) if (!(f in defined)) complain(f " of include/tapedeck/ops/" home[f] ".h is defined in no file of lib/ops")
    if (!count) complain("no declarations were found")
    if (strays) printf "families: %d of %d functions\n", strays, count
    exit strays > 0
  }
  function complain(why) { print "families: " why; ++strays }
  # The word before the first parenthesis, with its namespaces.
  function name(  head) {
    head = substr($0, 1, index($0, "(") - 1)
    sub(/.*[^A-Za-z0-9_]/, "", head)
    return scope head
  }'

# A function that is defined without its declaration in sight would be hidden.
for source in lib/ops/*/*.cpp; do
  header=tapedeck/ops/$(basename "$source" .cpp).h
  [ ! -f "include/$header" ] || grep -qE "^#include \"($header|tapedeck/ops.h)\"" "$source" ||
    { echo "families: $source does not include $header"; exit 1; }
done

# The tests go through the tables: an op that is in none would have no test.
awk '
  /^constexpr Op k[A-Za-z0-9]+ = / { place[$3] = FILENAME ":" FNR; ++count }
  /^constexpr const Op\* [a-z0-9_]+_table\[\] = / { listing = 1 }
  listing {
    listing = !/;$/
    for (rest = $0; match(rest, /&k[A-Za-z0-9]+/); rest = substr(rest, RSTART + RLENGTH)) listed[substr(rest, RSTART + 1, RLENGTH - 1)]
  }
  END {
    for (op in place) if (!(op in listed)) { print "families: " place[op] ": " op " is not in the table"; ++missing }
    if (!count) { print "families: no ops were found"; ++missing }
    exit missing > 0
  }' lib/ops/*/*.cpp
