#!/usr/bin/env bash
# Prepares the C++ side: Emscripten and the header-only libraries. Says what it does; does nothing twice.
#   tests/setup/toolchain.sh          prepare
#   source tests/setup/toolchain.env  afterwards: WASMQUANT_EMSCRIPTEN, WASMQUANT_INCLUDE and more
# Emscripten: emcc 4 or newer from EMSDK or PATH when there; otherwise Debian's packages of a newer release are unpacked
# into .toolchain/, without root and without touching the system. The same folder gives xsimd, doctest, RapidJSON.
# g++ and cmake come from the system and are installed when this is root on Debian; so is Ninja, which is unpacked without root.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dest=$root/.toolchain
suite=forky
patchelf_suite=bookworm  # patchelf 0.14; 0.18, which later releases have, breaks the Python interpreter
headers="libxsimd-dev doctest-dev rapidjson-dev"
# What Debian's Emscripten depends on and this build does not use: another Node, the native compiler's libraries.
unused='^(nodejs|libnode|libgcc-[0-9]+-dev|libstdc\+\+-[0-9]+-dev|libc6-dev|libc-dev-bin|linux-libc-dev|lib(a|hwa|l|t|ub)san|libgprofng|libobjc|gcc|g\+\+|cpp)'

say() { echo "set-up: $*" >&2; }

install_tools() { # COMMAND:PACKAGE...: system programs that are missing
  local pair missing=()
  for pair in "$@"; do command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}"); done
  [ ${#missing[@]} = 0 ] && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    apt-get -qq -o Acquire::Retries=5 update >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=5 install -y --no-install-recommends "${missing[@]}" >&2
  else
    say "missing: ${missing[*]}; install them and run this again"
    exit 1
  fi
}

emcc_is_new() { # COMMAND
  local version
  version=$("$1" --version 2>/dev/null | sed -nE '1s/.* ([0-9]+)\.[0-9]+\.[0-9]+.*/\1/p')
  [ -n "$version" ] && [ "$version" -ge 4 ]
}

system_emcc() { # prints the path of an emcc that is new enough, or nothing
  local found
  if [ -n "${EMSDK:-}" ] && [ -x "$EMSDK/upstream/emscripten/emcc" ] && emcc_is_new "$EMSDK/upstream/emscripten/emcc"; then
    echo "$EMSDK/upstream/emscripten/emcc"
  elif found=$(command -v emcc) && [ "$(readlink -f "$found")" != "$dest/usr/share/emscripten/emcc" ] && emcc_is_new emcc; then
    readlink -f "$found"
  fi
}

in_parallel() { # SCRIPT: runs it with each file of stdin as $1, one on each core; fails when it fails for any
  xargs -0 -n 1 -P "$(nproc)" sh -ec "$1" sh
}

private_apt() { # apt-get that knows only the other release and keeps its state in .toolchain/.apt
  local state=$dest/.apt
  apt-get -qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Install-Recommends=false -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o Acquire::Retries=3 -o DPkg::Post-Invoke::= -o APT::Update::Post-Invoke::= "$@"
}

# The unpacked programs run on their own C library: interpreter and library path of each point into .toolchain.
relocate_programs() {
  local lib=$dest/usr/lib/x86_64-linux-gnu path
  path=$lib:$(find "$dest"/usr/lib -name '*.so*' -printf '%h\n' | grep -vE '/(gconv|perl|python[0-9.]*|engines|ossl-modules|ccache|sasl2|security|krb5|gcc)' | sort -u | grep -vx "$lib" | paste -sd: || true)
  export patchelf=$dest/.patchelf/usr/bin/patchelf path interpreter=$lib/ld-linux-x86-64.so.2
  # patchelf tells programs, libraries and other files apart by itself.
  find "$dest"/usr/bin "$dest"/usr/lib/llvm-*/bin -type f -print0 | in_parallel 'if "$patchelf" --print-interpreter "$1" >/dev/null 2>&1; then "$patchelf" --set-interpreter "$interpreter" --force-rpath --set-rpath "$path" "$1"; fi'
  find "$dest"/usr/lib -name '*.so*' -type f -print0 | in_parallel 'if [ -n "$("$patchelf" --print-rpath "$1" 2>/dev/null || true)" ]; then "$patchelf" --force-rpath --set-rpath "$path" "$1"; fi'
  rm -rf "$dest/.patchelf"
}

write_emscripten_config() {
  local llvm
  llvm=$(printf '%s\n' "$dest"/usr/lib/llvm-*/bin/clang | sort -V | tail -1)
  cat >"$dest/emscripten.config" <<CONFIG
LLVM_ROOT = '$(dirname "$llvm")'
BINARYEN_ROOT = '$dest/usr'
NODE_JS = '$(command -v node)'
CACHE = '$dest/cache'
CLOSURE_COMPILER = 'closure-compiler'
CONFIG
}

unpack() { # PACKAGE...
  if [ "$(uname -m)" != x86_64 ] || ! command -v apt-get >/dev/null; then
    say "no emcc >= 4 here, and Debian's packages need an x86-64 system with apt-get: install Emscripten (https://emscripten.org) and put emcc on PATH"
    exit 1
  fi
  say "unpacking $* (Debian $suite) into .toolchain"
  rm -rf "$dest"
  local state=$dest/.apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg name mirror packages
  mkdir -p "$state"/{lists/partial,cache/archives/partial} "$dest/include"
  # The machine's own mirror.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | head -1)
  printf "deb [signed-by=$keyring] $mirror %s main\n" "$suite" "$patchelf_suite" >"$state/sources.list"
  : >"$state/status"
  private_apt update
  mapfile -t packages < <(private_apt -s install "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vE "$unused")
  (cd "$state/cache/archives" && private_apt download "${packages[@]}")
  export dest
  printf '%s\0' "$state"/cache/archives/*.deb | in_parallel 'dpkg-deb -x "$1" "$dest"'
  (cd "$state" && private_apt download "patchelf/$patchelf_suite" && dpkg-deb -x patchelf_*.deb "$dest/.patchelf")
  rm -rf "$state" "$dest/usr/share/doc" "$dest/usr/share/man" "$dest/usr/share/locale"
  # Debian's Node makes this link; by it Emscripten's scripts find what they import.
  ln -sfn nodejs "$dest/usr/share/node_modules"
  # Headers apart from the foreign C library's, so that the native compiler sees only these.
  for name in xsimd doctest rapidjson; do ln -sfn "../usr/include/$name" "$dest/include/$name"; done
}

install_tools cmake:cmake g++:g++
emcc=$(system_emcc)
tools=emscripten
if [ "$(id -u)" = 0 ] || [ -n "$emcc" ]; then
  install_tools ninja:ninja-build
  ninja=$(command -v ninja)
elif ! ninja=$(command -v ninja); then
  tools="emscripten ninja-build" ninja=$dest/usr/bin/ninja
fi
# What .toolchain holds and the place it was unpacked for: another checkout folder means another unpacking.
stamp=$dest/.ready-5
if [ -n "$emcc" ]; then
  content=headers
  command -v apt-get >/dev/null || content=""  # CMake then fetches the headers
else
  content=everything
fi
if [ -n "$content" ] && { ! grep -qsxE "(everything|$content) $dest" "$stamp" || [ ! -x "$ninja" ]; }; then
  if [ "$content" = headers ]; then
    # shellcheck disable=SC2086
    unpack $headers
  else
    say "no emcc >= 4 on PATH: Emscripten is unpacked privately, about 200 MB to fetch, a minute or two"
    # shellcheck disable=SC2086
    unpack $tools $headers
    relocate_programs
    write_emscripten_config
    # Emscripten's scripts are CommonJS; without this they would inherit "type": "module" from the project's package.json.
    echo '{ "type": "commonjs" }' >"$dest/package.json"
  fi
  echo "$content $dest" >"$stamp"
fi

{
  echo "export WASMQUANT_INCLUDE='$dest/include' WASMQUANT_NINJA='$ninja'"
  echo "export WASMQUANT_FUZZ_CXX='${WASMQUANT_FUZZ_CXX:-$(command -v clang++ || command -v clang++-14 || echo clang++)}'"
  if [ -n "$emcc" ]; then
    echo "export WASMQUANT_EMSCRIPTEN='$(dirname "$emcc")'"
  else
    echo "export WASMQUANT_EMSCRIPTEN='$dest/usr/share/emscripten' EM_CONFIG='$dest/emscripten.config'"
    echo "export EMSDK_PYTHON='$dest/usr/bin/python3' EM_PYTHON_HOME='$dest/usr'"
  fi
} >"$root/tests/setup/toolchain.env.$$"
mv "$root/tests/setup/toolchain.env.$$" "$root/tests/setup/toolchain.env"
