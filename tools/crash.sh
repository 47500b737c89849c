#!/usr/bin/env bash
# crash.sh BUILD SEEDS: strikes every system call on files and sockets of acquire, renew, release, write, publish, seal,
# run, once, cron run and the queue's verbs - killed, stopped, failed - and prints how many points of each call were
# struck. Kills workerd 200 times under 16 writers. Of run in a sandbox with another's /proc: the calls by which it could
# harm bystanders. Of push: the calls that tests/guard_git/crash_test.cc names, at both of its ends.
# SEEDS is not used: the sweep leaves nothing out.
set -eu
build=${1:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The tables as they come, and what failed, without the test runner's other lines.
set +e
code=0
for tests in fault_tests guard_tests guard_git/guard_git_tests sandbox_tests; do
  STINT_SWEEP=full STINT_PLAYS=1000 STINT_KILLS=200 "$build/tests/$tests" --gtest_filter='*Sweep*:GitCrash*:DoFault.Kill9*' --gtest_color=no 2>&1 | tee -a "$log" |
    grep --line-buffered -v '^\[ *\(RUN\|OK\|PASSED\|[-=]*\) *\]\|^Note\|^Running\|^$'
  [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
done
set -e
awk '/ runs, .* missed, .* failed$/ { runs += $1; missed += $3; failed += $5 }
     END { printf "total: %d runs, %d missed, %d failed\n", runs, missed, failed; exit runs == 0 }' "$log" || code=1
exit "$code"
