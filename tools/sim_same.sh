#!/usr/bin/env bash
# sim_same.sh BUILD [SEEDS]: the same seeds give the same timelines, bit by bit: on two runs, with any number of worker
# processes, and when everything is compiled by clang++ -O0 instead of g++ -O2. Exit 1 where they differ.
set -eu
build=${1:-build}
seeds=${2:-200}
source=$(cd "$(dirname "$0")/.." && pwd)
other=$build-clang
mkdir -p "$other"
cmake -S "$source" -B "$other" -G Ninja -DBUILD_TESTING=ON -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS='-O0 -w' -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
cmake --build "$other" --target sim -j "${JOBS:-$(nproc)}" 1>&2
"$build/tests/sim" "$seeds" --jobs "$(nproc)" >"$other/here.txt"
"$build/tests/sim" "$seeds" --jobs 1 >"$other/again.txt"
"$other/tests/sim" "$seeds" --jobs "$(nproc)" >"$other/there.txt"
tail -n 3 "$other/here.txt"
cmp "$other/here.txt" "$other/again.txt"
cmp "$other/here.txt" "$other/there.txt"
echo "the same on two runs, and of $(strings -a "$build/tests/sim" | grep -m1 '^GCC:') and $(clang++ --version | head -n 1)"
