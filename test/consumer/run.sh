#!/usr/bin/env bash
# consumer/run.sh BUILD: installs the library of a build folder and builds a program against what was installed.
set -euo pipefail
build=$1
cd "$(dirname "${BASH_SOURCE[0]}")"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root meson install -C "$build" --no-rebuild --quiet

pc=$(find "$root" -name tapedeck.pc)
library=$(find "$root" -name libtapedeck.so.0)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=${library%/*}
read -ra flags < <(pkg-config --cflags --libs tapedeck)
${CXX:-g++} main.cpp "${flags[@]}" -o "$root/consumer"

needed=$(readelf -d "$root/consumer")
grep -q 'NEEDED.*\[libtapedeck\.so\.0\]' <<<"$needed" || { echo "consumer: does not ask for libtapedeck.so.0: $needed" >&2; exit 1; }
output=$("$root/consumer")
[ "$output" = "[2.0 4.0 6.0]" ] || { echo "consumer: prints \"$output\", not \"[2.0 4.0 6.0]\"" >&2; exit 1; }
