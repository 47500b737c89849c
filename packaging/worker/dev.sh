#!/usr/bin/env bash
# dev.sh PORT FOLDER: the Worker on this machine, with STINT_KEY (and STINT_KEY_NEXT) of the
# environment. The objects live in FOLDER. Prints "ready PORT" once it answers.
# dev.sh --install: only fetches what it needs from npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux-64 arch=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 arch=linux-arm64 ;;
  Darwin-x86_64) platform=darwin-64 arch=darwin-x64 ;;
  Darwin-arm64) platform=darwin-arm64 arch=darwin-arm64 ;;
  *) echo "dev.sh: there is no workerd for this machine" >&2; exit 69 ;;
esac
workerd=$here/node_modules/@cloudflare/workerd-$platform/bin/workerd
esbuild=$here/node_modules/@esbuild/$arch/bin/esbuild
installed() { [ -x "$workerd" ] && [ -x "$esbuild" ]; }
if ! installed; then
  # One at a time; no package's own script is run.
  exec 9>"$here/.install-lock"
  if command -v flock >/dev/null; then flock 9; fi
  installed || (cd "$here" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --fetch-retries=1) >&2
  exec 9>&-
fi
[ "${1:-}" != --install ] || exit 0

[ $# -eq 2 ] || { echo "usage: STINT_KEY=... dev.sh PORT FOLDER" >&2; exit 64; }
port=$1
: "${STINT_KEY:?dev.sh: set STINT_KEY to the secret that the Worker is to ask for}"
export STINT_KEY STINT_KEY_NEXT="${STINT_KEY_NEXT:-}"
mkdir -p "$2/disk"
folder=$(cd "$2" && pwd)
"$esbuild" "$here/worker.ts" --format=esm --target=es2022 --log-level=warning --outfile="$folder/worker.js"
cp "$here/workerd.capnp" "$folder/workerd.capnp"
(
  until (exec 3<>/dev/tcp/127.0.0.1/"$port") 2>/dev/null; do
    kill -0 $$ 2>/dev/null || exit 0
    sleep 0.02
  done
  echo "ready $port"
) &
exec "$workerd" serve "$folder/workerd.capnp" --socket-addr=http=127.0.0.1:"$port" \
  --directory-path=disk="$folder/disk"
