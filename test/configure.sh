#!/usr/bin/env bash
# Checks `configure` of scripts/build.sh: a folder that was configured before a package was installed sees the package, and
# keeps its objects.
set -euo pipefail
source <(sed -n '/^configure()/,/^}/p; /^is_whole()/p' "$(dirname "${BASH_SOURCE[0]}")/../scripts/build.sh")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "configure: $*" >&2; exit 1; }
installed=0
packages() { echo "$installed packages"; }

cat >meson.build <<'END'
project('configured', 'cpp')
executable('program', 'main.cpp')
if meson.get_compiler('cpp').has_header('package.h', args: '-I' + meson.current_source_dir() / 'installed')
  executable('with_package', 'main.cpp')
endif
END
echo 'int main() {}' >main.cpp
configure build >log
! grep -q 'package.h" : YES' log || fail "finds a header that is not there"
ninja -C build >log

configure build >log
[ ! -s log ] || fail "configures again although nothing has changed"
mkdir installed
touch installed/package.h
installed=1
configure build >log
ninja -C build program >log
grep -q 'no work to do' log || fail "compiles again what was there"
ninja -C build with_package >log || fail "does not see the package"

configure build -Dwarning_level=2 >log
ninja -C build with_package >log || fail "forgets the package when an option changes"
configure build >log
meson introspect build --buildoptions >log
grep -q '"name": "warning_level", "value": "1"' log ||
  fail "keeps an option that was taken back"
