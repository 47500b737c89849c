#!/usr/bin/env bash
# demo.sh STINT: the story of the README, played live on a store of its own. Under a minute.
set -eu
stint=$(realpath "$1")
scene=$(mktemp -d)
export XDG_STATE_HOME=$scene
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$scene"' EXIT
bold=''; plain=''
if [ -t 1 ]; then bold=$'\033[1m'; plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '  $ %s\n' "$*"; }
run() { show "stint $*"; "$stint" "$@" 2>&1 | sed 's/^/    /'; }

say '1. Two runs of one agent, moments apart, in two sandboxes. One runs; the other is waved off, quietly.'
show 'stint run blog-repo --owner sandbox-a -- ./publish   &   (a second later: sandbox-b)'
"$stint" run blog-repo --owner sandbox-a --note publish -- sh -c 'echo "a: publishing with token $STINT_TOKEN"; sleep 2; echo "a: done"' | sed -u 's/^/    /' &
sleep 1
set +e
"$stint" run blog-repo --owner sandbox-b -- echo 'b: never printed' 2>&1 | fold -s -w 96 | sed 's/^/    /'
echo "    exit ${PIPESTATUS[0]}: a skip is no failure"
set -e
wait

say '2. A run is frozen past its lease. Another takes over. The first wakes up: it is stopped, exit 75.'
show 'stint run site --ttl 2s --owner zombie -- ./agent      (then: SIGSTOP to all of it)'
"$stint" run site --ttl 2s --owner zombie -- sh -c 'while sleep 0.2; do echo "zombie writes with token $STINT_TOKEN" >>"$1"; done' sh "$scene/writes" 2>"$scene/zombie" &
zombie=$!
until [ -s "$scene/writes" ]; do sleep 0.05; done
tree() { local p; echo "$1"; for p in $(cat /proc/"$1"/task/*/children 2>/dev/null); do tree "$p"; done; }
frozen=$(tree $zombie)
kill -STOP $frozen
run run site --owner successor --on-held wait=10s -q -- sh -c 'echo "successor works with token $STINT_TOKEN"'
before=$(wc -l <"$scene/writes")
kill -CONT $frozen
set +e
wait $zombie
code=$?
set -e
sed 's/^/    /' "$scene/zombie" | fold -s -w 96
echo "    the zombie exited $code; its writes after waking: $(($(wc -l <"$scene/writes") - before))"

say '3. An operator takes the work away at 3 a.m. The same law holds: the token moves, the reason is on record.'
"$stint" run deploy --owner night-agent -- sleep 60 2>"$scene/night" &
night=$!
until "$stint" show deploy --json | grep -q '"held":true'; do sleep 0.05; done
run revoke deploy --token 1 --why 'wrong branch' --by ops
set +e
wait $night
echo "    the agent's run exited $?"
set -e
run history deploy

say '4. A worker is alive but wedged. Progress is a sign of its own; the successor gets the last marker.'
set +e
show 'stint run crawl --progress-timeout 1s -- ./crawl'
"$stint" run crawl --progress-timeout 1s -- sh -c '"$0" progress "page 40 of 200"; exec sleep 60' "$stint" 2>&1 | sed 's/^/    /'
set -e
run run crawl -- sh -c 'echo "going on after: $STINT_PREVIOUS_PROGRESS"'

say '5. A late write bounces at the file itself, whatever its writer believes.'
page=$scene/page.html
token=$("$stint" acquire page --owner early)
show "stint write page.html --resource page --token $token"
echo 'early draft' | "$stint" write "$page" --resource page --token "$token"
"$stint" release page --token "$token"
show 'stint run page --owner late --seal file:page.html -- sh -c "... | stint write page.html"'
"$stint" run page --owner late --seal "file:$page" -- sh -c 'echo "final text, token $STINT_TOKEN" | "$1" write "$2"' sh "$stint" "$page" 2>&1 | sed 's/^/    /'
show "stint write page.html --resource page --token $token      (the first one wakes up)"
set +e
echo 'early draft, again' | "$stint" write "$page" --resource page --token "$token" 2>&1 | fold -s -w 96 | sed 's/^/    /'
echo "    exit ${PIPESTATUS[1]}; the page says: $(cat "$page")"
set -e

say '6. A job every second, two schedulers, one run that takes three: it never overtakes itself, and skips are on record.'
cat >"$scene/stint.toml" <<'TOML'
[job.digest]
schedule = "* * * * * *"
command = "[ -e $XDG_STATE_HOME/slow ] || { touch $XDG_STATE_HOME/slow; sleep 3; }"
TOML
show 'stint cron stint.toml &      (twice)'
"$stint" cron -q "$scene/stint.toml" &
first=$!
"$stint" cron -q "$scene/stint.toml" &
second=$!
until "$stint" slots digest --json 2>/dev/null | grep -q '"state":"ran".*"state":"ran"'; do sleep 0.2; done
kill $first $second
wait $first $second || true
show 'stint slots digest'
"$stint" slots digest | cut -c1-110 | sed 's/^/    /'

say 'The ledger of it all:'
run events
