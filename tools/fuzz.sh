#!/usr/bin/env bash
# fuzz.sh [SECONDS]: the readers of what strangers send, under libFuzzer and the address sanitizer.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cxx=$(command -v clang++-19 || command -v clang++)
"$cxx" -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc -o "$work/fuzz" \
  tests/fuzz/request_fuzz.cc src/net/http/message.cc src/server/query.cc \
  $(ls src/api/*.cc src/core/*.cc src/base/*.cc | grep -v _test) -lboost_json -lboost_container
mkdir "$work/corpus"
printf '{"resource":"a","owner":"o","claim":"00112233445566778899aabbccddeeff","ttl_ms":5000,"token":1}' >"$work/corpus/json"
printf 'POST /v1/acquire?a=%%2f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n' >"$work/corpus/http"
"$work/fuzz" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 "$work/corpus"
