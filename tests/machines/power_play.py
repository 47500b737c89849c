"""The power of the machine that a store lives on is cut, again and again (G11). power_play.py [KIND...]

Store and clients are in one machine, on ext4 on a disk that loses what was not flushed (disk.py). The host
writes down what the clients were told, cuts the power at a random moment, boots the machine from the same
disk and compares. STINT_CUTS: how often for each store.
"""
import json
import os
import random
import tempfile
import time

from disk import LosingDisk
from guest import Guest
from place import BUILD, CLEAN, KIT, Play, Stint, disk, etcd, main, postgres, redis, wait_for

PLAYER = f"{BUILD}/machines_player"
CUTS = int(os.environ.get("STINT_CUTS", "10"))
RESOURCES = 6
TTL_MS = 60_000
MOVING = ("acquire", "transfer", "revoke")
WRITER = f"""while :; do
  token=$({BUILD}/stint acquire g --ttl 60s) || continue
  printf $token | {BUILD}/stint write /disk/guarded --resource g --token $token && echo wrote $token
  {BUILD}/stint release g --token $token
done 2>/dev/null"""


class Told:
    """What the clients were told, of each resource."""

    def __init__(self):
        self.open = {}     # operations without an answer
        self.highest = {}  # the highest token that was acknowledged
        self.holds = {}    # the token of a grant that nobody has begun to end
        self.grants = self.operations = 0
        self.guarded = 0

    def __call__(self, program, line):
        if line.startswith("wrote "):
            self.guarded = max(self.guarded, int(line.split()[1]))
            return True
        if not line.startswith("history "):
            return False
        event = json.loads(line[len("history "):])
        resource, verb, token = event["resource"], event["verb"], int(event.get("token", 0))
        if event["phase"] == "invoke":
            self.open[event["op"]] = event
            if verb in ("release", "transfer", "revoke") or event.get("ends"):
                self.holds.pop(resource, None)
        else:
            self.operations += 1
            self.open.pop(event["op"], None)
            if event["phase"] == "info":
                self.open[event["op"]] = event
            if event["phase"] == "ok" and verb in MOVING:
                self.highest[resource] = max(self.highest.get(resource, 0), token)
                self.grants += verb == "acquire"
                if verb == "acquire":
                    self.holds[resource] = token
        program.say("ok")
        return True

    def may_have_moved(self, resource):
        return any(e["resource"] == resource and e["verb"] in MOVING for e in self.open.values())


def store_in(kind, guest):
    if kind == "sqlite":
        return "sqlite:/disk/s.db"
    if kind in ("log", "dir"):
        return f"{kind}:/disk/{kind}"
    make = {"etcd": etcd, "postgres": postgres, "redis": redis}[kind]
    return make(guest, f"/disk/{kind}", "127.0.0.1")[1]


def boot(folder):
    guest = Guest("p", KIT, more=[
        "-drive", f"file=nbd+unix:///?socket={folder}/nbd,format=raw,if=virtio,cache=writeback"])
    guest.modprobe("virtio_blk", "ext4")
    guest.sh("ip link set lo up; mkdir -p /disk; mount -t ext4 /dev/vda /disk; chmod 755 /disk")
    return guest


def compare(play, stint, told, kind):
    """After the boot: what was acknowledged is there, and the next token is higher."""
    stay = stint.show("stay")
    play.expect(stay["held"], f"an acknowledged grant is gone: {stay}")
    if kind in ("sqlite", "log"):
        play.expect(90_000 < stay["remaining_ms"] <= 100_000,
                    f"what ran has its full ttl again: {stay}")
        play.expect(len(stint.events("prolonged")) >= 1, "event prolonged")

    for resource, highest in sorted(told.highest.items()):
        shown = stint.show(resource)
        unsure = told.may_have_moved(resource)
        play.expect(shown["token"] == highest or (unsure and shown["token"] > highest),
                    f"{resource}: token {shown['token']}, acknowledged {highest}")
        if resource in told.holds and not unsure:
            play.expect(shown["held"] and shown["token"] == told.holds[resource],
                        f"{resource}: an acknowledged grant is gone: {shown}")
        if shown["held"]:
            play.expect(0 < shown["remaining_ms"] <= TTL_MS, f"{resource}: {shown['remaining_ms']} ms")
        if stint("revoke", resource, "--token", str(shown["token"]), "--why", "play").code == 0:
            play.expect(stint.take(resource, "100ms") > shown["token"], f"{resource}: a higher token")
    if told.guarded:
        text = stint.guest.sh("cat /disk/guarded")
        play.expect(text.isdigit() and int(text) >= told.guarded,
                    f"the guarded file: '{text}', acknowledged {told.guarded}")
        if told.guarded > 1:
            late = stint("write", "/disk/guarded", "--resource", "g", "--token",
                         str(told.guarded - 1), text="0")
            play.expect(late.code == 13, f"an older token is refused: {late}")
    play.expect(not stint.show("over")["held"], "what had run out does not come back")


def before(stint):
    """A lease that has run out, and one that runs."""
    stint("revoke", "stay", "--token", str(stint.show("stay")["token"]), "--why", "play")
    stint.take("over", "100ms")
    stint.take("stay", "100s")
    wait_for(lambda: not stint.show("over")["held"], "over runs out")
    time.sleep(8)  # So that a full ttl can be told from what is left of it.


def play_of(kind):
    def play():
        looked = Play(f"power of {kind}")
        grants = operations = 0
        with tempfile.TemporaryDirectory(prefix="stint-power-") as folder:
            losing = LosingDisk(disk(folder), f"{folder}/nbd")
            told = None
            for nth in range(CUTS + 1):
                guest = boot(folder)
                try:
                    stint = Stint(guest, store_in(kind, guest))
                    if told is not None:
                        compare(looked, stint, told, kind)
                    if nth == CUTS:
                        break
                    before(stint)
                    told = Told()
                    guest.sh("mkdir -p /tmp/player")
                    guest.start(PLAYER, "play", stint.store, "/tmp/player", str(nth), "4",
                                str(RESOURCES), str(TTL_MS), env=CLEAN, on_line=told)
                    if kind != "log":  # one process at a time
                        guest.start("sh", "-c", WRITER, env=stint.env, on_line=told)
                    wait_for(lambda t=told: t.grants > 3, "grants")
                    time.sleep(random.uniform(0, 4))
                finally:
                    losing.cut()
                    guest.cut()
                grants += told.grants
                operations += told.operations
        looked.line(f"{CUTS} cuts under {operations} operations with {grants} acknowledged grants; "
                    f"{losing.flushes} flushes, {losing.lost} unflushed sectors lost, "
                    f"{losing.kept} kept")
        return looked.wrong
    return play


main({kind: play_of(kind) for kind in ("sqlite", "log", "dir", "redis", "postgres", "etcd")})
