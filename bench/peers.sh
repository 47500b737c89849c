#!/usr/bin/env bash
# peers.sh [BUILD]: the same two faults against `etcdctl lock` and `stint run`, on one etcd of Debian's package (started here, on
# free ports) and on sqlite: the lease is revoked while its holder works, and the holder's process is stopped past the ttl.
# Looks whether the children of two holders were alive side by side, and for how long. Exit 0: etcdctl lock leaves two,
# stint run never does; anything else exits 1.
set -eu
cd "$(dirname "$0")/.."
export STINT=$PWD/${1:-build}/stint
exec python3 -B - <<'PYTHON'
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

STINT = os.environ["STINT"]
TTL = 2
WORK = tempfile.mkdtemp(prefix="stint-peers-")
# What the holder runs: says who it is, and stays.
CHILD = 'echo $$ > "$0.new" && mv "$0.new" "$0" && exec sleep 60'


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


def alive(path):
    try:
        pid = int(open(path).read())
        os.kill(pid, 0)
        state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        return state != "Z"
    except (OSError, ValueError):
        return False


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True, env=ENV).stdout


def start(argv):
    return subprocess.Popen(argv, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def kill_session(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Etcdctl:
    name = "etcdctl lock"

    def __init__(self, number):
        self.lock = f"lock-{number}"

    def holder(self, child):
        return ["etcdctl", f"--endpoints={ETCD}", "lock", f"--ttl={TTL}", self.lock, "--", "sh", "-c", CHILD, child]

    def revoke(self):
        leases = re.findall(r"^[0-9a-f]{8,}$", output("etcdctl", f"--endpoints={ETCD}", "lease", "list"), re.M)
        # The waiter has a lease of its own: the holder's is the one with the key of the lowest revision.
        keys = output("etcdctl", f"--endpoints={ETCD}", "get", "--prefix", self.lock, "--keys-only",
                      "--sort-by=CREATE", "--limit=1").split()
        holder = keys[0].rsplit("/", 1)[1]
        assert any(int(lease, 16) == int(holder, 16) for lease in leases)
        output("etcdctl", f"--endpoints={ETCD}", "lease", "revoke", holder)


class Stint:
    def __init__(self, number, store, name):
        self.resource = f"lock-{number}"
        self.store = store
        self.name = name

    def holder(self, child):
        # --cooldown: the next holder waits that long after an unclean end, also after a revoke.
        return [STINT, "run", self.resource, "--store", self.store, "--ttl", f"{TTL}s", "--cooldown", "3s", "--on-held",
                "wait=60s", "--", "sh", "-c", CHILD, child]

    def revoke(self):
        token = re.search(r'"token":\s*"?(\d+)', output(STINT, "show", self.resource, "--store", self.store, "--json"))
        output(STINT, "revoke", self.resource, "--store", self.store, "--why", "peers.sh", "--token", token.group(1))


def play(peer, fault, number):
    """(seconds side by side, first child ended by itself)"""
    first, second = (os.path.join(WORK, f"{number}.{who}") for who in "ab")
    a = start(peer.holder(first))
    b = None
    try:
        wait_for(f"{peer.name}: the first child", lambda: alive(first))
        b = start(peer.holder(second))
        time.sleep(0.5)
        if os.path.exists(second):
            raise SystemExit(f"{peer.name}: granted twice before any fault")
        if fault == "revoke":
            peer.revoke()
        else:
            os.kill(a.pid, signal.SIGSTOP)
        wait_for(f"{peer.name}: the second child", lambda: alive(second))
        granted = time.monotonic()
        together = 0.0
        while time.monotonic() - granted < 3 * TTL and alive(first) and alive(second):
            together = time.monotonic() - granted
            time.sleep(0.02)
        return together, not alive(first)
    finally:
        for process in (a, b):
            if process:
                kill_session(process)
        # A child that its watchers left behind.
        for path in (first, second):
            if alive(path):
                os.kill(int(open(path).read()), signal.SIGKILL)


ENV = dict(os.environ, ETCDCTL_API="3", XDG_STATE_HOME=WORK)
for name in ("STINT_STORE", "STINT_STORE_FILE"):
    ENV.pop(name, None)
client, peer_port = free_port(), free_port()
ETCD = f"http://127.0.0.1:{client}"
etcd = start(["etcd", "--name", "a", "--data-dir", os.path.join(WORK, "etcd"), "--listen-client-urls", ETCD,
              "--advertise-client-urls", ETCD, "--listen-peer-urls", f"http://127.0.0.1:{peer_port}",
              "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer_port}", "--initial-cluster",
              f"a=http://127.0.0.1:{peer_port}", "--log-level", "error"])
wrong = 0
try:
    wait_for("etcd", lambda: subprocess.run(["etcdctl", f"--endpoints={ETCD}", "endpoint", "health"], env=ENV,
                                            capture_output=True, check=False).returncode == 0)
    print(f"ttl {TTL} s; {output('etcdctl', 'version').splitlines()[0]}; {output(STINT, 'version').splitlines()[0]}")
    print(f"{'holder':22} {'fault':26} {'two children side by side':28} expected")
    number = 0
    for fault, words in (("revoke", "lease revoked"), ("stop", "holder stopped past the ttl")):
        for make in (Etcdctl, lambda n: Stint(n, f"etcd://127.0.0.1:{client}", "stint run, etcd"),
                     lambda n: Stint(n, f"sqlite:{WORK}/peers.db", "stint run, sqlite")):
            number += 1
            holder = make(number)
            together, gone = play(holder, fault, number)
            two = together > 0
            right = two == isinstance(holder, Etcdctl)
            wrong += not right
            seen = f"YES, for {together:.1f} s{'' if gone else ' and on'}" if two else "no"
            print(f"{holder.name:22} {words:26} {seen:28} {'as expected' if right else 'NOT as expected'}", flush=True)
finally:
    kill_session(etcd)
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(1 if wrong else 0)
PYTHON
