#!/usr/bin/env bash
# soak.sh BUILD: random verbs against the law, forty runs at once, frozen and killed watchers, and 64 clients on each store while its servers are
# killed, stopped and cut off (STINT_HISTORY_SECONDS each, default 20), again and again for STINT_SOAK_MINUTES
# (default 10). Prints the histories' numbers, rounds and failures; exit 1 if there was a failure.
set -u
build=${1:-build}
minutes=${STINT_SOAK_MINUTES:-10}
export STINT_HISTORY_SECONDS=${STINT_HISTORY_SECONDS:-20}
tests='FortyRuns.*:WholeTreeFrozen*.*:Supervisor*.*:Guardian*.*:Child*.*:StoreGone.*:Revoked.*:Transferred.*:HeldUp.*:Suspend.*'
end=$(($(date +%s) + minutes * 60))
rounds=0
failures=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
play() { # play BINARY FILTER
  "$build/tests/$1" --gtest_filter="$2" --gtest_color=no >"$log" 2>&1 && return
  failures=$((failures + 1))
  echo "round $rounds failed:"
  grep -v '^\[ *\(RUN\|OK\|----*\) *\]' "$log"
}
while [ "$(date +%s)" -lt "$end" ]; do
  rounds=$((rounds + 1))
  RC_PARAMS=max_success=5000 play unit_tests '*Property*'  # other seeds every time
  play cli_tests "$tests"
  STINT_BINARY=$build/stint STINT_KILLS=${STINT_KILLS:-50} STINT_LOAD=64 python3 -B tests/server/crash_test.py Crash >"$log" 2>&1 ||
    { failures=$((failures + 1)); cat "$log"; }
  grep ' kills under ' "$log"
  play fault_tests '*ServerHistory*'
  grep ' operations, ' "$log"
done
# The page: 5,000 leases with 500 renewals a second, no task of its main thread over 50 ms, memory flat.
STINT_BINARY=$PWD/$build/stint STINT_PAGE_MINUTES=${STINT_PAGE_MINUTES:-$minutes} tests/page/run.sh --long >"$log" 2>&1 ||
  { [ $? -eq 77 ] || failures=$((failures + 1)); cat "$log"; }
grep 'after load' "$log"
# Schedulers with wrong clocks, killed at random: ten real minutes on each store.
export STINT_SCHEDULE_SECONDS=${STINT_SCHEDULE_SECONDS:-600}
STINT_DAYS=30 play schedule_tests 'SimMonth.*'
grep ' days: ' "$log"
play schedule_tests '*ThreeSchedulers*'
grep -E ' kills in | starts;' "$log"
# The store's whole contract on a cluster.
STINT_ETCD_NODES=3 play conformance_tests '*/etcd'
echo "$rounds rounds in $minutes minutes, $failures failures"
[ "$rounds" -gt 0 ] && [ "$failures" -eq 0 ]
