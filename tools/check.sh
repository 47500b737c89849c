#!/usr/bin/env bash
# check.sh BUILD: format, rooms, house rules, clang's thread-safety analysis, clang-tidy, and that the benches build.
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
# Every file of src/ is seen by clang once, for its warnings and the thread-safety analysis: the tests and what
# clang-tidy cannot read here, the others there.
thread_safety() {
  git ls-files 'src/*.cc' | grep -e _test.cc -e config_file.cc |
    xargs -P "$(nproc)" -n 4 clang++ -std=c++20 -Isrc -Iinclude -I. -fsyntax-only -Wall -Wextra -Wthread-safety -Wshadow \
      -Werror
}
tidy() {
  cmake -S . -B "$build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || return
  python3 tools/clang_tidy.py "$build"
}
# What they print when all is well is nothing that anybody asked for.
benches() {
  local log
  log=$(mktemp)
  { cmake -S . -B "$build" -G Ninja -DBUILD_TESTING=ON && cmake --build "$build" --target benches; } >"$log" 2>&1 ||
    { cat "$log"; rm -f "$log"; return 1; }
  rm -f "$log"
}
step format format
step rooms python3 tools/check_rooms.py
step 'house rules' python3 tools/tidy.py
step 'thread safety' thread_safety
step clang-tidy tidy
step benches benches
exit $failed
