#!/usr/bin/env bash
# soak.sh BUILD: forty runs at once, and frozen and killed watchers, again and again for
# STINT_SOAK_MINUTES (default 10). Prints rounds and failures; exit 1 if there was a failure.
set -u
build=${1:-build}
minutes=${STINT_SOAK_MINUTES:-10}
tests='FortyRuns.*:WholeTreeFrozen*.*:Supervisor*.*:Guardian*.*:Child*.*:StoreGone.*:Revoked.*:Transferred.*:HeldUp.*:Suspend.*'
end=$(($(date +%s) + minutes * 60))
rounds=0
failures=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while [ "$(date +%s)" -lt "$end" ]; do
  rounds=$((rounds + 1))
  if ! "$build/tests/cli_tests" --gtest_filter="$tests" --gtest_color=no >"$log" 2>&1; then
    failures=$((failures + 1))
    echo "round $rounds failed:"
    grep -v '^\[ *\(RUN\|OK\|----*\) *\]' "$log"
  fi
done
echo "$rounds rounds in $minutes minutes, $failures failures"
[ "$rounds" -gt 0 ] && [ "$failures" -eq 0 ]
