#!/usr/bin/env bash
# Checks that the library exports exactly the names that the public headers mark with TAPEDECK_EXPORT.
#   symbols.sh LIBRARY
set -euo pipefail
library=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../include/tapedeck"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Qualified names without parameters and template arguments: gradients, Tensor::item, random::Key::split.
nm -DC --defined-only "$library" | cut -d' ' -f3- |
  sed -E 's/^(typeinfo|typeinfo name|vtable) for //; s/\(.*//; s/\[abi:.*//; s/ const$//' |
  sed -E ':again; s/<[^<>]*>//; t again; s/operator ([a-z]+)$/operator_\1/; s/^.* //' | sort -u >"$work/exported"
grep -v '^tapedeck::' "$work/exported" >"$work/foreign" || true

# Names that headers mention, and those that they mark with TAPEDECK_EXPORT.
cat $(find . -name '*.h') | sed 's,//.*,,; /^#/d' >"$work/text"
grep -oE '~?[A-Za-z_][A-Za-z_0-9]*' "$work/text" | sort -u >"$work/words"
tr '\n' ' ' <"$work/text" | grep -oE 'TAPEDECK_EXPORT [^;{(]*[;{(]' |
  sed -nE 's/.*[ *&]([a-z_][A-Za-z_0-9]*) *\($/\1/p' | sort -u >"$work/marked"

failed=0
complain() { echo "symbols: $1: $2" >&2; failed=1; }
while read -r name; do complain "not of this library" "$name"; done <"$work/foreign"
while read -r name; do
  for part in ${name//::/ }; do
    [[ $part == operator* ]] || grep -qx -- "$part" "$work/words" || complain "in no public header" "$name"
  done
done < <(grep '^tapedeck::' "$work/exported")
sed 's/.*:://' "$work/exported" | sort -u >"$work/last"
while read -r name; do complain "marked, but not exported" "$name"; done < <(comm -23 "$work/marked" "$work/last")
echo "symbols: $(wc -l <"$work/exported") names exported, $(wc -l <"$work/marked") functions marked"
exit $failed
