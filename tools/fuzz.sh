#!/usr/bin/env bash
# fuzz.sh [SECONDS [FAMILY...]]: the readers of what strangers, people, files and servers say, under libFuzzer and the address
# and undefined-behaviour sanitizers (clang). Families: request (HTTP, JSON), text (names, durations, URLs, cron, TOML),
# wire (fence files, dir logs, records, RESP, etcd, git). SECONDS each, default 60. What crashes is left in the working
# directory as crash-*; put it into tests/fuzz/corpus/FAMILY, which `make test` replays.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
families=${*:-request text wire}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cxx="$(command -v ccache) $(command -v clang++-19 || command -v clang++)"
# What the targets need, compiled once for all of them: one object each, two at a time.
sources="$(ls src/base/*.cc src/core/*.cc src/api/*.cc | grep -v _test)
  src/net/http/message.cc src/server/query.cc src/app/store_url.cc src/schedule/config.cc src/os/files.cc src/os/fd.cc
  src/os/directory.cc src/guard/fence_file.cc src/guard/git_fence.cc src/guard/git_porcelain.cc src/probe/history.cc
  src/service/records.cc src/store/dir/log_file.cc src/store/dir/record.cc src/store/dir/bytes.cc src/store/etcd/wire.cc
  src/store/redis/resp.cc src/holder/taking.cc"
flags="-std=c++20 -O1 -g1 -Isrc -I. -ffunction-sections -fsanitize=address,undefined -fno-sanitize-recover=all"
mkdir "$work/objects"
export work flags cxx
printf '%s\n' $sources | xargs -P 2 -I{} sh -c '$cxx $flags -fsanitize=fuzzer-no-link -c {} -o "$work/objects/$(echo {} | tr / _).o"'
code=0
for family in $families; do
  mkdir -p "$work/$family"
  # What no target reaches may be missing; what one does reach and is missing shows as a crash.
  $cxx $flags -fsanitize=fuzzer -Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all -o "$work/$family/fuzz" "tests/fuzz/${family}_fuzz.cc" "$work"/objects/*.o \
    -lboost_json -lboost_container
  mkdir "$work/$family/corpus"
  cp tests/fuzz/corpus/"$family"/* "$work/$family/corpus/"
  "$work/$family/fuzz" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 -verbosity=0 "$work/$family/corpus" \
    2>"$work/$family/log" || code=1
  grep -E 'SUMMARY|ERROR|stat::number_of_executed_units|crash-|Test unit' "$work/$family/log" | sed "s/^/$family: /"
  [ "$code" = 0 ] || tail -30 "$work/$family/log"
done
exit $code
