#!/usr/bin/env bash
# Run by scripts/packages as root of a minimal Debian, beside the packages: installs them, builds and runs programs in every
# documented way, follows the links of the documentation, and purges them. Nothing may be left.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
fail() { echo "packages: $*" >&2; exit 1; }
names=(libtapedeck0 libtapedeck-dev tapedeck-doc)
version=$(dpkg-deb -f libtapedeck0_*.deb Version)

# What they depend on comes first, so that dpkg alone installs them, and what is left of them stands out.
needs=$(for deb in *.deb; do dpkg-deb -f "$deb" Pre-Depends Depends | sed 's/^[^:]*: //'; done | tr ',' '\n' | grep -v tapedeck)
apt-get satisfy -q -y --no-install-recommends "$(paste -sd, <<<"$needs")" >/dev/null
all_files() { find / -xdev \( -path /proc -o -path /sys -o -path /packages -o -path /tmp \) -prune -o -print | sort; }
all_files >/tmp/before
dpkg -i ./*.deb >/dev/null
dpkg --audit

# Programs.
check() {
  local output
  output=$("$@") || fail "$* fails"
  [ "$output" = "[2.0 4.0 6.0] by $version" ] || fail "$* prints \"$output\""
}
# shellcheck disable=SC2046
g++ -std=c++20 consumer/main.cpp $(pkg-config --cflags --libs tapedeck) -o /tmp/by_pkg_config
check /tmp/by_pkg_config
cmake -S consumer -B /tmp/by_cmake -G Ninja >/dev/null
cmake --build /tmp/by_cmake >/dev/null
check /tmp/by_cmake/consumer
meson setup /tmp/by_meson consumer --wrap-mode=nofallback >/dev/null
ninja -C /tmp/by_meson >/dev/null
check /tmp/by_meson/consumer

# Each level of x86-64 that this processor has, of which the loader takes the best by itself.
loader=/lib64/ld-linux-x86-64.so.2 best=
for level in x86-64-v4 x86-64-v3; do
  $loader --help | grep "$level (supported" >/dev/null || { echo "skipped: packages on $level: this processor does not have it"; continue; }
  best=${best:-$level}
  check $loader --glibc-hwcaps-mask $level /tmp/by_pkg_config
done
check $loader --glibc-hwcaps-mask none /tmp/by_pkg_config
[ -z "$best" ] || ldd /tmp/by_pkg_config | grep "glibc-hwcaps/$best/libtapedeck" >/dev/null || fail "the loader does not take the library for $best"

# Documentation: every link between its files leads to a file, and an example is built from what is there.
folder=/usr/share/doc/tapedeck links=0
while read -r page; do
  while read -r link; do
    links=$((links + 1))
    [ -e "$(dirname "$page")/$link" ] || fail "$page links to $link, which is not there"
  done < <(sed '/^```/,/^```/d; s/`[^`]*`//g' "$page" | grep -oE '\]\([^)# ]+' | cut -c3- | grep -v '^http' || true)
done < <(find $folder -name '*.md')
[ "$links" -gt 50 ] || fail "the documentation has $links links"
for file in docs/start/first_programs.md docs/reference/ops.md docs/pictures/layers.svg examples/data/digits.csv.gz LICENSE; do
  [ -s $folder/$file ] || fail "there is no $folder/$file"
done
# shellcheck disable=SC2046
g++ -std=c++20 $folder/examples/greeks/main.cpp $folder/examples/common/{example,picture}.cpp $(pkg-config --cflags --libs tapedeck fmt) -o /tmp/greeks
/tmp/greeks --short --out /tmp >/dev/null
[ -s /tmp/greeks.svg ] || fail "the example draws nothing"

dpkg --purge "${names[@]}" >/dev/null
all_files >/tmp/after
left=$(comm -13 /tmp/before /tmp/after)
[ -z "$left" ] || fail "these files are left: $left"
! /tmp/by_pkg_config 2>/dev/null || fail "the program runs without the library"
echo "packages: $(wc -w <<<"${names[*]}") of version $version were installed, used and purged; $links links"
