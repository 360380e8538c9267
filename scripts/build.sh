# Sourced by the scripts beside it: goes to the top of the sources, installs what is missing and offers `build`.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup

# Where ccache is installed, it finds what any clone of the sources has compiled: paths count from the top of the clone, and
# precompiled headers by what is in them, comments included, since that is how the compiler knows a header again.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_COMMENTS=1 CCACHE_INODECACHE=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# build FOLDER [meson options] [-- targets]: configures as asked and compiles; what meson and ninja say goes to standard error.
build() {
  local folder=$1 options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  targets=("${@:2}")
  [ -z "${CI:-}" ] || options+=(-Dwerror=true)
  configure "$folder" "${options[@]}" >&2
  ninja -C "$folder" "${targets[@]}" >&2
}

# build_sanitized [-- targets]: into build-sanitize, by the other compiler, and without precompiled headers, so that a file that
# does not include what it uses is seen.
build_sanitized() {
  scripts/setup clang libclang-rt-dev
  CXX="$(with_cache clang++)" build build-sanitize -Db_sanitize=address,undefined -Db_lundef=false -Db_pch=false -Doptimization=1 -Ddebug=true -Dcpp_args=-g1 -Db_ndebug=false -Dbench=disabled "$@"
}

# with_cache COMPILER: what CXX has to be; meson finds ccache by itself only for the compiler that it chooses itself.
with_cache() { if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi; }

# A folder that an interrupted run left half configured is made again.
configure() {
  local folder=$1 wanted
  shift
  wanted="$PWD $(meson --version) $*"
  if is_whole "$folder"; then
    [ "$(cat "$folder/configured-for" 2>/dev/null)" != "$wanted" ] || return 0
    meson setup --reconfigure "$folder" "$@" || rm -rf "$folder"
  fi
  is_whole "$folder" || { rm -rf "$folder"; meson setup "$folder" "$@"; }
  echo "$wanted" >"$folder/configured-for"
}
is_whole() { [ -f "$1/build.ninja" ] && [ -f "$1/meson-private/coredata.dat" ]; }
