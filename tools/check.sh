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
# Every file of src/ is seen by clang once, for its warnings and the thread-safety analysis: the tests and what
# clang-tidy cannot read here, the others there.
warnings=(-Wall -Wextra -Wthread-safety -Wshadow)
# The analyzer gives up on a function after so many states instead of 225,000: a quarter of the time.
analyzer=(-Xclang -analyzer-config -Xclang max-nodes=20000)
tidied() { git ls-files 'src/*.cc' | grep -v -e _test.cc -e config_file.cc; }
thread_safety() {
  git ls-files 'src/*.cc' | grep -v -x -F -f <(tidied) |
    xargs -P "$(nproc)" -n 4 clang++ -std=c++20 -Isrc -Iinclude -I. -fsyntax-only "${warnings[@]}" -Werror
}
# clang 14's analyzer takes the frames of Asio's coroutines for uninitialised memory.
coroutines() { git grep -l co_await -- 'src/*.cc'; }
clang_tidy() {
  xargs -P "$(nproc)" -n 3 clang-tidy -p "$build" --quiet "${warnings[@]/#/--extra-arg=}" \
    --extra-arg=-Wno-unknown-warning-option "${analyzer[@]/#/--extra-arg=}" "$@" 2>/dev/null
}
tidy() {
  cmake -S . -B "$build" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null || return
  local clean=0
  tidied | grep -v -x -F -f <(coroutines) | clang_tidy || clean=1
  coroutines | clang_tidy --checks='-clang-analyzer-*' || clean=1
  return $clean
}
step format format
step rooms python3 tools/check_rooms.py
step 'house rules' python3 tools/tidy.py
step 'thread safety' thread_safety
step clang-tidy tidy
exit $failed
