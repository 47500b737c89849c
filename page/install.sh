#!/usr/bin/env bash
# install.sh: page/node_modules as package-lock.json says; done once for each lock.
set -eu
cd "$(dirname "$0")"
exec 9>.install-lock
flock 9
cmp -s package-lock.json node_modules/.stint-lock && exit 0
npm ci --no-audit --no-fund --loglevel=error >&2
cp package-lock.json node_modules/.stint-lock
