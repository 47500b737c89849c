#!/usr/bin/env bash
# build.sh [FOLDER]: the page from its sources, into page/built (or FOLDER). The same sources give the same bytes: the
# versions stand in package-lock.json. Needs node and npm; the build of the program does not.
set -eu
cd "$(dirname "$0")"
./install.sh
node_modules/.bin/tsc --noEmit -p .
node_modules/.bin/vite build --logLevel warn --outDir "${1:-built}" --emptyOutDir
