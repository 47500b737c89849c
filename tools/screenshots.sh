#!/usr/bin/env bash
# screenshots.sh [BUILD]: the pictures of the README, from `stint serve --demo`, into docs/images. Needs node, npm and
# Chromium.
set -eu
cd "$(dirname "$0")/.."
page/install.sh
mkdir -p docs/images
STINT_BINARY=$PWD/${1:-build}/stint exec node tests/page/screenshots.mjs docs/images
