"""Two machines with a wire between them, and what a store needs on them.

Machine a has the servers and a disk; machine b has nothing of its own. Addresses: ADDRESS[name].
"""
import json
import os
import subprocess
import sys
import tempfile
import time

from guest import Failed, Guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.realpath(os.environ.get("STINT_BUILD", f"{ROOT}/build"))
STINT = f"{BUILD}/stint"
KIT = f"{BUILD}/machines"
ADDRESS = {"a": "10.7.0.1", "b": "10.7.0.2"}
CLEAN = {"NO_COLOR": "1", "HOME": "/tmp/home", "XDG_STATE_HOME": "/tmp/state"}


def disk(folder, name="disk", megabytes=512):
    """An ext4 disk, empty."""
    path = f"{folder}/{name}"
    with open(path, "wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", path], check=True, stdin=subprocess.DEVNULL)
    return path


class Site:
    """Both machines, up and connected."""

    def __init__(self, names="ab"):
        self.folder = tempfile.TemporaryDirectory(prefix="stint-site-")
        self.guests = {}
        for name in names:
            self.guests[name] = Guest(name, KIT, more=self.devices(name))
        for name, guest in self.guests.items():
            guest.modprobe("virtio_net")
            guest.sh(f"ip link set lo up; ip link set eth0 up; ip addr add {ADDRESS[name]}/24 dev eth0")
        self.a, self.b = self.guests["a"], self.guests.get("b")
        self.a.modprobe("virtio_blk", "ext4")
        self.a.sh("mkdir -p /disk; mount -t ext4 /dev/vda /disk; chmod 755 /disk")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for guest in self.guests.values():
            guest.cut()
        self.folder.cleanup()

    def devices(self, name):
        other = "b" if name == "a" else "a"
        wire = [f"{end}.type=unix,{end}.path={self.folder.name}/wire-{which}"
                for end, which in (("local", name), ("remote", other))]
        more = ["-netdev", "dgram,id=wire," + ",".join(wire),
                "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{ord(name) - 96}"]
        if name == "a":
            more += ["-drive", f"file={disk(self.folder.name)},format=raw,if=virtio,cache=unsafe"]
        return more


class Stint:
    """The program, on a store, in a guest."""

    def __init__(self, guest, store, **env):
        self.guest, self.store = guest, store
        self.env = {**CLEAN, "STINT_STORE": store, **env}

    def __call__(self, *words, **more):
        return self.guest.run(STINT, *words, env=self.env, **more)

    def start(self, *words, **more):
        return self.guest.start(STINT, *words, env=self.env, **more)

    def show(self, resource):
        done = self("show", resource, "--json")
        if done.code != 0:
            raise Failed(f"show {resource}: {done.code}: {done.err}")
        return json.loads(done.out)

    def take(self, resource, ttl):
        done = self("acquire", resource, "--ttl", ttl)
        if done.code != 0:
            raise Failed(f"acquire {resource}: {done.code}: {done.err}")
        return int(done.out)

    def events(self, kind):
        out = self("events", "--json", "--limit", "100000").out
        return [event for event in map(json.loads, out.splitlines()) if event.get("kind") == kind]


# ---- Servers. Each returns the program; it is up.

def wait_for(what, why, seconds=90):
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            raise Failed(f"{why}: waited {seconds} s")
        time.sleep(0.1)


def redis(guest, folder, host):
    guest.sh(f"mkdir -p {folder}")
    server = guest.start("redis-server", "--bind", host, "--port", "6379", "--dir", folder, "--save",
                         "", "--appendonly", "yes", "--appendfsync", "always", "--protected-mode",
                         "no")
    wait_for(lambda: guest.run("redis-cli", "-h", host, "ping").out == "PONG\n", "redis")
    return server, f"redis://{host}:6379"


def etcd(guest, folder, host):
    client, peer = f"http://{host}:2379", f"http://{host}:2380"
    server = guest.start(
        "etcd", "--name", "n", "--data-dir", folder, "--listen-client-urls", client,
        "--advertise-client-urls", client, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", f"n={peer}", "--logger", "zap",
        "--log-level", "warn")
    wait_for(lambda: guest.run("curl", "-sf", "-m", "5", f"{client}/health").code == 0, "etcd")
    return server, f"etcd://{host}:2379"


def postgres(guest, folder, host):
    programs = guest.sh("ls -d /usr/lib/postgresql/*/bin | tail -1").strip()
    user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]
    guest.sh(f"mkdir -p {folder}; chown nobody:nogroup {folder}")
    if guest.run("test", "-e", f"{folder}/data").code != 0:
        guest.must(*user, f"{programs}/initdb", "-D", f"{folder}/data", "-A", "trust", "-U",
                   "postgres", "-E", "UTF8", "--locale=C", "--no-instructions", seconds=400)
        guest.sh(f"echo 'host all all 10.7.0.0/24 trust' >>{folder}/data/pg_hba.conf")
    server = guest.start(*user, f"{programs}/postgres", "-D", f"{folder}/data", "-c",
                         f"listen_addresses={host}", "-c", f"unix_socket_directories={folder}")
    wait_for(lambda: guest.run(f"{programs}/pg_isready", "-h", host).code == 0, "postgres")
    return server, f"postgres://postgres@{host}/postgres"


# ---- NFS

def export(guest, folder):
    """An NFS server, versions 3 and 4."""
    guest.modprobe("nfsd")
    guest.sh(f"""
        for name in _rpc statd; do
          grep -q "^$name:" /etc/passwd || echo "$name:x:99:65534::/run/rpcbind:/bin/false" >>/etc/passwd
        done
        mkdir -p {folder} /run/rpcbind /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
        touch /var/lib/nfs/etab /var/lib/nfs/rmtab
        mount -t nfsd nfsd /proc/fs/nfsd
        echo '{folder} 10.7.0.0/24(rw,sync,no_subtree_check,no_root_squash,fsid=0)' >/etc/exports
        rpcbind; exportfs -ra; rpc.mountd""")
    serve_nfs(guest)


def serve_nfs(guest, threads=8):
    guest.sh(f"rpc.nfsd -G 10 -L 10 {threads}", seconds=240)


def mount(guest, folder, at, version="4.2", options=""):
    new = version.startswith("4")
    guest.modprobe("nfsv4" if new else "nfsv3")
    guest.sh(f"mkdir -p {at}; mount -t nfs -o vers={version}{'' if new else ',nolock'}{options} "
             f"{ADDRESS['a']}:{'/' if new else folder} {at}", seconds=240)


# ---- What a play says

class Play:
    """Counts what was looked at; says what did not hold and goes on."""

    def __init__(self, name):
        self.name, self.looked, self.wrong = name, 0, 0

    def expect(self, holds, what):
        self.looked += 1
        if not holds:
            self.wrong += 1
            print(f"FAILED {self.name}: {what}", flush=True)
        return holds

    def line(self, text=""):
        print(f"{self.name}: {text}{', ' if text else ''}{self.looked} looked at, "
              f"{self.wrong} wrong", flush=True)


def main(plays):
    """Runs the plays named on the command line, or all; exit 1 if anything was wrong."""
    wrong = 0
    for name in sys.argv[1:] or list(plays):
        try:
            wrong += plays[name]()
        except Failed as why:
            print(f"FAILED {name}: {why}", flush=True)
            wrong += 1
    sys.exit(1 if wrong else 0)
