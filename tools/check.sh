#!/usr/bin/env bash
# check.sh BUILD: format, rooms, house rules, clang's thread-safety analysis, clang-tidy.
set -u
cd "$(dirname "$0")/.."
build=${1:-build}
failed=0
step() {
  local name=$1 start
  shift
  start=$(date +%s)
  if "$@"; then echo "ok    $name ($(($(date +%s) - start)) s)"; else echo "FAIL  $name"; failed=1; fi
}
format() { git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror; }
# Every file of src/, compiled by clang for its warnings and the thread-safety analysis alone.
thread_safety() {
  git ls-files 'src/*.cc' | xargs -P "$(nproc)" -n 4 clang++ -std=c++20 -Isrc -Iinclude -I. -DSTINT_VERSION='"0"' -DSTINT_PREFIX='"/"' \
    -DSTINT_LIBDIR='"lib"' \
    -fsyntax-only -Wall -Wextra -Wthread-safety -Wshadow -Werror
}
tidy() {
  cmake -S . -B "$build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null &&
    git ls-files 'src/*.cc' | grep -v -e _test.cc -e config_file.cc |
    xargs -P "$(nproc)" -n 3 clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
}
step format format
step rooms python3 tools/check_rooms.py
step 'house rules' python3 tools/tidy.py
step 'thread safety' thread_safety
step clang-tidy tidy
exit $failed
