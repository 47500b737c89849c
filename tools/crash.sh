#!/usr/bin/env bash
# crash.sh BUILD SEEDS: strikes every system call of acquire, renew and release - killed, stopped, failed -
# and prints how many points of each call were struck. SEEDS is not used: the sweep leaves nothing out.
set -eu
build=${1:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The tables as they come, and what failed, without the test runner's other lines.
set +e
STINT_SWEEP=full "$build/tests/fault_tests" --gtest_filter='*Sweep*' --gtest_color=no 2>&1 | tee "$log" |
  grep --line-buffered -v '^\[ *\(RUN\|OK\|PASSED\|[-=]*\) *\]\|^Note\|^Running\|^$'
code=${PIPESTATUS[0]}
set -e
awk '/ runs, .* missed, .* failed$/ { runs += $1; missed += $3; failed += $5 }
     END { printf "total: %d runs, %d missed, %d failed\n", runs, missed, failed; exit runs == 0 }' "$log" || code=1
exit "$code"
