#!/usr/bin/env bash
# run.sh [--long]: the page in a real Chromium, against real servers and runs. --long: 5,000 leases with 500 renewals a
# second for STINT_PAGE_MINUTES (default 10), with bounds on the main thread and on memory.
# Without npm or Chromium it says so and is skipped (exit 77).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for needed in node npm "${STINT_CHROMIUM:-chromium}"; do
  command -v "$needed" >/dev/null || { echo "skipped: no $needed on this machine"; exit 77; }
done
if ! "$here/../../page/install.sh"; then
  timeout 20 npm ping >/dev/null 2>&1 && { echo "npm install failed"; exit 1; }
  echo "skipped: no npm registry can be reached from here"
  exit 77
fi
if [ "${1:-}" = --long ]; then
  export STINT_PAGE_MINUTES=${STINT_PAGE_MINUTES:-10}
  exec node --test --test-reporter=spec "$here/load_test.mjs"
fi
exec node --test --test-concurrency=1 --test-reporter=spec "$here"/*_test.mjs
