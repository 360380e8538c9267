# Sourced by the other scripts: changes to the top folder of the sources, installs missing packages, and defines `build` and `run`.
# `source scripts/build.sh --library` installs those alone that the library and the examples need.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in --library) scripts/setup --library ;; *) scripts/setup ;; esac

# If ccache is installed, a clone of the sources shares compiled objects with others: paths are relative to the top of the clone,
# but for those in the messages of tests and in what meson writes to compile files together. Precompiled headers, which a build of
# single files has, are identified by their contents, comments included, because the compiler identifies a header by them, too.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_COMMENTS=1 CCACHE_INODECACHE=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# build FOLDER [meson options] [-- targets]: configures with these options and compiles; the output of meson and ninja goes to
# standard error.
build() {
  local folder=$1 options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  targets=("${@:2}")
  [ -z "${CI:-}" ] || options+=(-Dwerror=true)
  configure "$folder" "${options[@]}" >&2
  ninja -C "$folder" "${targets[@]}" >&2
}

# build_sanitized [-- targets]: builds in build-sanitize, with clang, for plain x86-64 (or aarch64), so that what needs other
# instructions than this machine's is tested, too.
build_sanitized() {
  scripts/setup clang libclang-rt-dev
  CXX="$(with_cache clang++)" build build-sanitize -Dcpu=baseline -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=true -Dcpp_args=-g1 -Db_ndebug=false -Dbench=disabled -Dexamples=disabled "$@"
}

# with_cache COMPILER: prints the value for CXX; meson uses ccache on its own only for a compiler that it has chosen itself.
with_cache() { if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi; }

# configure FOLDER [meson options]: again if the options, meson or the installed packages have changed. Then meson's memory is
# deleted, which holds the headers that it has not found; the objects stay. A folder left half configured by an interrupted run is
# deleted.
configure() {
  local folder=$1 wanted
  shift
  wanted="$PWD $(meson --version) $(packages) $*"
  if is_whole "$folder"; then
    [ "$(cat "$folder/configured-for" 2>/dev/null)" != "$wanted" ] || return 0
    rm -rf "$folder/meson-private"
  else
    rm -rf "$folder"
  fi
  meson setup "$folder" "$@" || { rm -rf "$folder"; meson setup "$folder" "$@"; }
  echo "$wanted" >"$folder/configured-for"
}
packages() { stat -c %Y /var/lib/dpkg/status 2>/dev/null || true; }   # when packages were last installed or removed
is_whole() { [ -f "$1/build.ninja" ] && [ -f "$1/meson-private/coredata.dat" ]; }

ubsan_options=halt_on_error=1:print_stacktrace=1:suppressions=$PWD/test/ubsan_suppressions.txt

passed=0 failed=0 skipped=0

# run FOLDER [options of meson test]: runs the tests, prints the log of those that fail, and adds to the counts. The limits of time
# are for tests that hang, not for machines that are slow or busy.
run() {
  local folder=$1 status=0 p f s
  shift
  rm -f "$folder"/cases.txt "$folder"/meson-logs/testlog*
  TAPEDECK_CASES_REPORT="$PWD/$folder/cases.txt" TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=$ubsan_options \
    meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 5 "$@" </dev/null >&2 || status=$?
  [ "$status" = 0 ] || grep -h -B 8 -A 12 ': FAILED:' "$folder"/meson-logs/testlog*.txt | tail -n 80 >&2 || true   # meson prints just the end of a log
  read -r p f s < <(awk -f test/count.awk "$folder"/meson-logs/testlog*.txt)
  [ "$status" = 0 ] || [ "$f" -gt 0 ] || f=1
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}
