#!/usr/bin/env bash
# sim.sh BUILD SEEDS: the simulation over seeds 1..SEEDS. Same commit, same stdout; times on stderr.
set -eu
build=${1:-build}
seeds=${2:-1000}
exec "$build/tests/sim" "$seeds" --jobs "$(nproc)"
