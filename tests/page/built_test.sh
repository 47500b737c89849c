#!/usr/bin/env bash
# Is page/built what the sources give? Without npm it says so and is skipped (exit 77).
set -eu
page=$(cd "$(dirname "$0")/../../page" && pwd)
command -v npm >/dev/null || { echo "skipped: no npm on this machine"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if ! "$page/install.sh"; then
  timeout 20 npm ping >/dev/null 2>&1 && { echo "npm install failed"; exit 1; }
  echo "skipped: no npm registry can be reached from here"
  exit 77
fi
"$page/build.sh" "$out"
diff -r "$page/built" "$out" || { echo "page/built is not what page/src gives: run page/build.sh and commit it"; exit 1; }
size=$(find "$page/built" -type f -exec gzip -9nc {} + | wc -c)
echo "page/built is what its sources give: $size bytes packed"
[ "$size" -lt $((250 * 1024)) ] || { echo "more than 250 KiB"; exit 1; }
