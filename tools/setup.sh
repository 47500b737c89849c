#!/usr/bin/env bash
# setup.sh build [tests] [bench] [fuzz] [machines]: installs the Debian packages that are missing.
set -eu
build="g++ cmake ninja-build ccache libsqlite3-dev libboost-json1.81-dev libexpected-dev libtomlplusplus-dev
  libpq-dev libssl-dev libcurl4-openssl-dev"
tests="libgtest-dev librapidcheck-dev libbenchmark-dev strace faketime hyperfine sqlite3 util-linux procps
  clang clang-format clang-tidy git python3 pkg-config postgresql-15 pgbouncer redis-server etcd-server etcd-client
  curl openssl iproute2 nftables tzdata tmux chromium spin prometheus bubblewrap"
bench="nginx-light wrk"
fuzz="lld"
machines="qemu-system-x86 python3 e2fsprogs"
wanted=""
for group in "$@"; do
  wanted="$wanted ${!group}"
done
missing=""
for package in $wanted; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing" >&2
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# No service of a package is started: the tests start their own servers on loopback.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
  $sudo chmod +x $policy
  trap '$sudo rm -f $policy' EXIT
fi
install() { $sudo apt-get install -y --no-install-recommends $missing >"$log" 2>&1; }
install || { $sudo apt-get update >"$log" 2>&1 && install; } || { cat "$log" >&2; exit 1; }
rm -f "$log"
