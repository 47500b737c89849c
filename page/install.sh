#!/usr/bin/env bash
# install.sh: page/node_modules as package-lock.json says; done once for each lock.
set -eu
cd "$(dirname "$0")"
exec 9>.install-lock
flock 9
cmp -s package-lock.json node_modules/.stint-lock && exit 0
for try in 1 2; do
  # Not "npm ci": it wants the binaries of every other system in the lock, and not every registry has them all.
  timeout 180 npm install --fetch-timeout=60000 --fetch-retries=1 --no-save --no-audit --no-fund --loglevel=error >&2 && break
  [ $try -lt 2 ] || exit 1
done
cp package-lock.json node_modules/.stint-lock
