#!/usr/bin/env bash
# check.sh CONFORMANCE_TESTS: starts server.py and judges it by the store contract.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export STINT_KEY=for-the-check STINT_CONFORMANCE_STORE=do+http://127.0.0.1:$port
python3 -B "$here/server.py" "$port" "$folder/store.db" &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$folder"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
  kill -0 $server || exit 1
  sleep 0.05
done
"$1" --gtest_brief=1 --gtest_filter='*/do'
