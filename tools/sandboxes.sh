#!/usr/bin/env bash
# sandboxes.sh BUILD: `stint run` in every kind of sandbox (tests/sandbox): its tree is ended when the lease is lost,
# or nothing is started; nobody else is harmed. Prints one line a sandbox, and what failed.
set -u
build=${1:-build}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
# They sleep most of the time: several at once.
shards=6
for shard in $(seq 0 $((shards - 1))); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard timeout 300 "$build/tests/sandbox_tests" --gtest_color=no \
    >"$log/$shard" 2>&1 || echo "$shard" >>"$log/failed" &
done
wait
grep -h '^\[ *\(OK\|FAILED\|SKIPPED\) *\].* ([0-9]* ms)$' "$log"/[0-9]* | sed 's/, where GetParam.* (/ (/' |
  awk '{ state = $2 == "OK" ? "OK" : $1 == "[" ? $2 : $1; name = $0; sub(/^\[[^]]*\] */, "", name); sub(/ \(.*/, "", name)
         at = split(name, part, "/"); place = at > 1 ? part[at] : name
         if (name ~ /^Each\/BystanderSweep/) place = "sweep: " place
         total[place]++; if (state == "OK") ok[place]++; if (state == "SKIPPED") skipped[place]++ }
       END { for (place in total) printf "%-42s %d of %d%s\n", place, ok[place], total[place],
               skipped[place] ? " (" skipped[place] " skipped)" : "" }' | sort
grep -h -A1 'Skipped$' "$log"/[0-9]* | grep -v '^--\|Skipped$' | sort | uniq -c | sed 's/^ */skipped: /' || true
if [ -e "$log/failed" ]; then
  grep -h -A8 'Failure$\|exited\|terminate' "$log"/[0-9]*
  echo "FAIL  sandboxes" >&2
  exit 1
fi
