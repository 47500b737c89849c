#!/usr/bin/env bash
# run.sh BUILD: all comparisons in one table, on stdout and in docs/benchmarks.md with machine and date; then the scaling
# curves, as numbers and as a picture.
set -u
cd "$(dirname "$0")/.."
build=$1
table=$(mktemp)
"$build/tests/lease_bench" "$build/stint" | tee "$table"
code=${PIPESTATUS[0]}
for bench in command schedule; do
  "$build/tests/${bench}_bench" "$build/stint" | tail -n +3 | tee -a "$table"
  [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
done
for bench in cron dir guard postgres redis etcd do handoff queue sql git http; do
  "$build/tests/${bench}_bench" | tail -n +3 | tee -a "$table"
  [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
done
"$build/tests/server_bench" "$build/stint" | tail -n +3 | tee -a "$table"
[ "${PIPESTATUS[0]}" -eq 0 ] || code=1
curves=$(mktemp)
"$build/tests/scaling_bench" docs/images/scaling.svg | tee "$curves" || code=1
{
  sed -n '1,/<!-- results -->/p' docs/benchmarks.md
  echo
  echo "Last run: $(date -u +%Y-%m-%d), commit $(git rev-parse --short HEAD), by \`make bench\`."
  echo "Machine: $(nproc) CPUs ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), $(findmnt -no FSTYPE -T "${TMPDIR:-/tmp}") on ${TMPDIR:-/tmp}, Linux $(uname -r), load $(cut -d' ' -f1-3 /proc/loadavg) at the end."
  echo "Median [least..most] of the rounds; both sides take turns within a round; the ratio is per round. A hand-off has no other side: p50 [least..most]."
  echo
  cat "$table"
  printf '\n![pairs a second by clients; microseconds a call by leases](images/scaling.svg)\n\n'
  printf '| store | at | measured |\n|---|---|---|\n'
  cat "$curves"
} >"$table.md" && mv "$table.md" docs/benchmarks.md
rm -f "$table" "$curves"
exit "$code"
