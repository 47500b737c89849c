#!/usr/bin/env bash
# crash.sh BUILD SEEDS: strikes every system call of acquire, renew and release - killed, stopped, failed -
# and prints how many points of each call were struck. SEEDS is not used: the sweep leaves nothing out.
set -eu
build=${1:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
STINT_SWEEP=full "$build/tests/fault_tests" --gtest_filter='*Sweep*' --gtest_color=no >"$log" 2>&1 || code=$?
# The tables and what failed, without the test runner's own lines; those only when something is wrong.
if [ "$code" -eq 0 ]; then grep -v '^\[\|^Note\|^Running\|^$' "$log"; else cat "$log"; fi
awk '/ runs, .* missed, .* failed$/ { runs += $1; missed += $3; failed += $5 }
     END { printf "total: %d runs, %d missed, %d failed\n", runs, missed, failed; exit runs == 0 }' "$log" || code=1
exit "$code"
