#!/usr/bin/env bash
# consumer/run.sh pkg-config|cmake|meson BUILD: installs from a build folder, moves the installation, and builds a program
# against it.
# consumer/run.sh subproject: builds a program in build-levels with the sources as its subproject, and with it the libraries of
# two levels of x86-64, which `scripts/test --levels` runs.
# Exits with 77 if the tool is missing, which meson counts as skipped.
set -euo pipefail
way=$1
build=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tree=$folder/tree
version=$(sed -n "1s/.* version: '\([^']*\)'.*/\1/p" ../../meson.build)
series=${version%.*}

fail() { echo "consumer: $way: $*" >&2; exit 1; }
needs() { command -v "$1" >/dev/null || { echo "skipped: consumer by $way: there is no $1"; exit 77; }; }

# Sets `pc` and `library`, the folders where these files lie.
install() {
  DESTDIR=$folder/as-installed meson install -C "$build" --no-rebuild --quiet
  mv "$folder/as-installed" "$tree"
  pc=$(dirname "$(find "$tree" -name tapedeck.pc)")
  library=$(dirname "$(find "$tree" -name 'libtapedeck.so.0' -not -path '*/glibc-hwcaps/*')")
  export PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR=$tree
}

# All ways of building use the same program.
check() {
  local needed output
  needed=$(readelf -d "$1")
  grep -q 'NEEDED.*\[libtapedeck\.so\.0\]' <<<"$needed" || fail "the program does not ask for libtapedeck.so.0: $needed"
  output=$(LD_LIBRARY_PATH=${2:-} "$1")
  [ "$output" = "[2.0 4.0 6.0] by $version" ] || fail "the program prints \"$output\""
}

case $way in
  pkg-config)
    needs pkg-config
    install
    [ -z "$(pkg-config --print-requires-private tapedeck)" ] || fail "asks for other packages"
    for file in LICENSE README.md docs/start/first_programs.md; do
      [ -f "$(find "$tree" -path "*/share/doc/tapedeck/$file")" ] || fail "$file is not installed"
    done
    if [ -x /usr/bin/python3 ]; then
      echo '{"step": 1, "loss": 0.5}' >"$folder/log.jsonl"
      "$(find "$tree" -name tapedeck-report)" --html "$folder/report.html" "$folder/log.jsonl" || fail "tapedeck-report writes no page"
    fi
    for option in --keep-system-cflags --define-prefix; do
      read -r flags < <(PKG_CONFIG_SYSROOT_DIR='' pkg-config $option --cflags tapedeck)
      include=$(realpath "${flags#-I}")
      [ "$include" = "$(realpath "$(find "$tree" -path '*/include' -prune)")" ] || fail "with $option, headers are looked for in $include"
    done
    read -ra flags < <(pkg-config --cflags --libs tapedeck)
    ${CXX:-g++} -std=c++20 main.cpp "${flags[@]}" -o "$folder/program"
    check "$folder/program" "$library" ;;
  cmake)
    needs cmake
    install
    configure() { cmake -S . -B "$folder/build" -G Ninja -Dtapedeck_DIR="$library/cmake/tapedeck" -DWANTED="$1" >"$folder/log" 2>&1; }
    for unfit in "${series%.*}.$((${series#*.} + 1))" 99.0 "$series.99" "$series.99 EXACT" "0.0...<$version"; do
      ! configure "$unfit" || fail "$version is found by who asks for $unfit"
      grep -q "tapedeck-config.cmake, version: $version" "$folder/log" || { cat "$folder/log" >&2; fail "fails otherwise than by the version"; }
      rm -rf "$folder/build"
    done
    for fit in "$version EXACT" "0.0...$version" "$series"; do
      configure "$fit" || { cat "$folder/log" >&2; fail "$version is not found by who asks for $fit"; }
    done
    cmake --build "$folder/build"
    check "$folder/build/consumer" ;;
  meson)
    install
    meson setup "$folder/build" . --wrap-mode=nofallback
    ninja -C "$folder/build"
    check "$folder/build/consumer" "$library" ;;
  subproject)
    source ../../scripts/build.sh
    mkdir -p build-consumer/subprojects
    cp test/consumer/main.cpp test/consumer/meson.build build-consumer
    ln -sfn ../.. build-consumer/subprojects/tapedeck
    lib=subprojects/tapedeck/lib
    build build-levels build-consumer --wrap-mode=forcefallback -Doptimization=1 -Ddebug=false -Dtapedeck:cpu=all -- \
      consumer "$lib/libtapedeck.so.$version" "$lib/glibc-hwcaps/x86-64-v3/libtapedeck.so.$version"
    ! find build-levels -name '*_test' -o -name digits | grep . || fail "builds more than the library"
    check build-levels/consumer ;;
  *) fail "no such way" ;;
esac
