#!/usr/bin/env bash
# fuzz.sh [SECONDS [FAMILY...]]: the readers of what strangers, people, files and servers say, under libFuzzer and the address
# and undefined-behaviour sanitizers (clang). Families: request (HTTP, JSON), text (names, durations, URLs, cron, TOML),
# wire (fence files, dir logs, records, RESP, etcd, do, git), state (journal rows, records, queue files, Redis, zones, answers),
# log (entries, rows and snapshots of a log: store).
# SECONDS each, default 20. Prints executions and coverage of each; exit 1 if one crashed, hung or ran out of memory.
# What crashed is left in build-fuzz/ as FAMILY-crash-*; put it into tests/fuzz/corpus/FAMILY, which `make test` replays.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
[ $# -gt 0 ] && shift
families=${*:-request text wire state log}
work=build-fuzz
mkdir -p "$work"
cxx="$(command -v ccache || true) $(command -v clang++-19 || command -v clang++)"
flags="-std=c++20 -O1 -g1 -Isrc -I. -ffunction-sections -fsanitize=address,undefined -fno-sanitize-recover=all"
# What the targets need, compiled once for all of them.
sources="$(ls src/base/*.cc src/core/*.cc src/api/*.cc src/service/*records.cc | grep -v _test)
  src/net/http/message.cc src/server/query.cc src/app/store_url.cc src/schedule/config.cc src/os/files.cc src/os/fd.cc
  src/os/directory.cc src/guard/fence_file.cc src/guard/git_fence.cc src/guard/git_porcelain.cc src/guard/git_target.cc
  src/probe/history.cc src/store/dir/log_file.cc src/store/dir/record.cc src/store/dir/bytes.cc src/store/etcd/wire.cc src/store/do/wire.cc
  src/store/redis/resp.cc src/store/redis/rows.cc src/store/redis/facts.cc src/store/redis/faults.cc src/store/sqlite/journal.cc src/store/sqlite/rows.cc
  src/queue/dir_files.cc src/holder/taking.cc src/store/append_key.cc
  src/store/row_bytes.cc src/os/block_file.cc src/store/log/entry.cc src/store/log/key_index.cc src/store/log/record.cc
  src/store/log/segment.cc src/store/log/snapshot.cc src/store/log/sorted_records.cc src/store/log/table.cc"
makefile() {
  printf 'all:'
  for source in $sources; do printf ' %s/%s.o' "$work" "$(echo "$source" | tr / _)"; done
  echo
  for source in $sources; do
    object=$work/$(echo "$source" | tr / _).o
    # Its headers as of the last time.
    printf '%s: %s\n\t@%s %s -fsanitize=fuzzer-no-link -MMD -c %s -o %s\n' "$object" "$source" "$cxx" "$flags" "$source" "$object"
    [ ! -f "${object%.o}.d" ] || echo "-include ${object%.o}.d"
  done
}
makefile >"$work/makefile"
make -s -f "$work/makefile" -j "${JOBS:-$(nproc)}" all
code=0
for family in $families; do
  # lld: what no target reaches may be missing.
  # shellcheck disable=SC2086
  $cxx $flags -fsanitize=fuzzer -fuse-ld=lld -Wl,--gc-sections -o "$work/$family" \
    "tests/fuzz/${family}_fuzz.cc" $(for source in $sources; do echo "$work/$(echo "$source" | tr / _).o"; done) \
    -lboost_json -lboost_container
  mkdir -p "$work/corpus/$family"
  result=ok
  # New inputs go to the first folder: the next run begins with them.
  "$work/$family" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$work/$family-" "$work/corpus/$family" "tests/fuzz/corpus/$family" >"$work/$family.log" 2>&1 || result=CRASHED
  done=$(grep -oE 'DONE +cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$work/$family.log" | tail -1 | sed 's/DONE *//' || true)
  runs=$(grep -oE 'number_of_executed_units: [0-9]+' "$work/$family.log" | grep -oE '[0-9]+' | tail -1 || true)
  echo "$family: $result, ${runs:-0} executions in $seconds s, ${done:-no coverage}"
  if [ "$result" != ok ]; then
    code=1
    grep -E 'SUMMARY|ERROR|Test unit' "$work/$family.log" || tail -30 "$work/$family.log"
  fi
done
exit $code
