"""The clock of the machine that a store lives on is set, by an hour, ahead and back (G4).

Machine a has the store, machine b the holder, those who wait for it and a guarded file; sqlite:
lives where its clients do. clock_play.py [KIND...]
"""
import time

from place import Play, Site, Stint, etcd, export, main, mount, postgres, redis, wait_for

HOUR = 3600
LATE = 4.0  # seconds: how long a command or two of these slow machines may take
WALL = ("postgres", "redis", "dir")


def writes(stint, text, resource, token):
    return stint("write", "/tmp/guarded", "--resource", resource, "--token", str(token), text=text)


class Scene:
    """A holder at work, one who waits for it, and a lease of a minute with a guarded file."""

    def __init__(self, play, stint, by):
        self.play, self.stint = play, stint
        # Names of its own: the leases of the scene before still run.
        self.name = n = lambda name: f"{name}{by:+d}"
        stint.guest.sh("rm -rf /tmp/guarded /tmp/.guarded* /tmp/stop /tmp/turns")
        play.expect(stint("run", n("r"), "--", "true").code == 0, "a first run")
        self.before = stint.show(n("r"))["token"]
        self.holder = stint.start(
            "run", n("r"), "--ttl", "6s", "--grace", "200ms", "--", "sh", "-c",
            "echo $STINT_TOKEN >>/tmp/turns; while [ ! -e /tmp/stop ]; do sleep 0.2; done")
        wait_for(lambda: stint.show(n("r"))["held"], "the holder holds")
        self.waiter = stint.start("run", n("r"), "--ttl", "6s", "--on-held", "wait=300s", "--", "sh",
                                  "-c", "echo $STINT_TOKEN >>/tmp/turns")
        self.long = stint.take(n("q"), "60s")
        play.expect(writes(stint, "old", n("q"), self.long).code == 0, "the holder of q writes")
        play.expect(stint("acquire", n("q")).code == 11, "q is held")

    def stepped(self):
        return [e for e in self.stint.events("store_clock_stepped") if e["resource"] == self.name("r")]

    def expect_step(self, by):
        found = self.stepped()
        self.play.expect(len(found) == 1 and abs(found[0]["by_ms"] - by * 1000) < 15_000,
                         f"store_clock_stepped once, by {by} s: {found}")
        self.play.expect(any("clock" in line for line in self.holder.lines),
                         f"the holder says it: {self.holder.lines}")

    def turns(self):
        return [int(x) for x in self.stint.guest.sh("cat /tmp/turns").split()]

    def finish(self, code):
        """Ends the holder if it is not ended; then the waiter has its turn."""
        self.stint.guest.sh("touch /tmp/stop")
        self.play.expect(self.holder.wait() == code, f"the holder's end: {self.holder.lines}")
        self.play.expect(self.waiter.wait() == 0, f"the waiter's end: {self.waiter.lines}")
        turns = self.turns()
        self.play.expect(len(turns) == 2 and self.before < turns[0] < turns[1],
                         f"turns with growing tokens: {turns}")

    def taken_over(self, old):
        """After a newer token has sealed the file, the older one is refused, whatever any clock says."""
        resource = self.name("q")
        new = self.stint.take(resource, "60s")
        self.play.expect(new > old, f"{resource}: token {new} after {old}")
        self.play.expect(writes(self.stint, "new", resource, new).code == 0, "the newer one writes")
        refused = writes(self.stint, "stale", resource, old)
        self.play.expect(refused.code == 13, f"the older one is refused: {refused}")
        self.play.expect(self.stint.guest.sh("cat /tmp/guarded") == "new", "nothing stale landed")
        return new


def ends_late(stint, by):
    """etcd before 3.5 orders its leases by the wall clock (etcd#12291)."""
    if by > 0 or not stint.store.startswith("etcd"):
        return False
    return '"etcdserver":"3.4.' in stint.guest.sh("curl -sf http://10.7.0.1:2379/version")


def nothing_changes(play, stint, server, by):
    """A monotonic clock: no step of any clock changes anything."""
    scene = Scene(play, stint, by)
    n = scene.name
    sent = stint.guest.clock()["boot"]
    short = stint.take(n("s"), "5s")
    granted = stint.guest.clock()["boot"]
    server.clock(step=by)
    left = stint.show(n("q"))["remaining_ms"]
    now = stint.guest.clock()["boot"]
    play.expect(0 < left <= 60_000, f"q has {left} ms left")
    play.expect(stint("acquire", n("q")).code == 11, "q is not free")
    play.expect(stint("renew", n("q"), "--token", str(scene.long)).code == 0, "q is renewed")
    play.expect(55_000 < stint.show(n("q"))["remaining_ms"] <= 60_000, "for its ttl, and no more")
    late = 12 if stint.store.startswith("etcd") else 1  # etcd: a second or so, and in whole ones
    play.expect(now - granted < 5, "the machine was too slow to see anything")
    if ends_late(stint, by):
        held = stint("acquire", n("s"), "--wait", f"{5 + late}s")
        play.expect(held.code == 11, f"etcd#12291: s is late, as documented: {held}")
        play.expect(stint("revoke", n("s"), "--token", str(short), "--why", "play").code in (0, 1),
                    "s is revoked")
        sent = stint.guest.clock()["boot"]
        short = stint.take(n("s"), "5s")
        granted = stint.guest.clock()["boot"]
    taken = stint("acquire", n("s"), "--wait", "60s", "--ttl", "60s")
    at = stint.guest.clock()["boot"]
    play.expect(taken.code == 0 and int(taken.out) > short, f"s is taken over: {taken}")
    play.expect(at - sent >= 5, f"s ran out early: after {at - sent:.1f} s")
    play.expect(at - granted <= 5 + late + LATE, f"s ran out late: after {at - granted:.1f} s")
    # The holder for more than a ttl after the step.
    wait_for(lambda: stint.guest.clock()["boot"] > now + 8, "time passes")
    play.expect(scene.holder.code is None and len(scene.turns()) == 1, "the holder still works")
    play.expect(0 < stint.show(n("r"))["remaining_ms"] <= 8_000, "r has at most its ttl left")
    play.expect(scene.stepped() == [], "no step is reported: there was none for the store")
    scene.finish(0)
    play.expect(stint("revoke", n("q"), "--token", str(scene.long), "--why", "play").code in (0, 1),
                "q is revoked")
    scene.taken_over(scene.long)


def ahead(play, stint, server):
    """A wall clock ahead: leases end early; tokens and guards do not care."""
    scene = Scene(play, stint, HOUR)
    n = scene.name
    server.clock(step=HOUR)
    new = scene.taken_over(scene.long)
    play.expect(stint("renew", n("q"), "--token", str(scene.long)).code == 12, "q is lost")
    play.expect(0 < stint.show(n("q"))["remaining_ms"] <= 60_000, "q has at most its ttl left")
    play.expect(stint("renew", n("q"), "--token", str(new)).code == 0, "the new q is renewed")
    scene.holder.wait(30)
    scene.expect_step(HOUR)
    scene.finish(75)


def back(play, stint, server):
    """A wall clock back: nothing ended comes back, nothing gets more than its ttl."""
    scene = Scene(play, stint, -HOUR)
    n = scene.name
    ended = stint.take(n("ended"), "60s")
    play.expect(stint("release", n("ended"), "--token", str(ended)).code == 0, "released")
    over = stint.take(n("over"), "100ms")
    wait_for(lambda: not stint.show(n("over"))["held"], "over runs out")
    play.expect(stint("run", n("over"), "--", "true").code == 0, "its end is written")
    server.clock(step=-HOUR)
    play.expect(0 < stint.show(n("q"))["remaining_ms"] <= 60_000, "q has at most its ttl left")
    play.expect(stint("acquire", n("q")).code == 11, "q is not free")
    play.expect(stint("renew", n("q"), "--token", str(scene.long)).code == 0, "q is renewed")
    play.expect(0 < stint.show(n("q"))["remaining_ms"] <= 60_000, "for its ttl, and no more")
    for name, token in (("ended", ended), ("over", over)):
        play.expect(not stint.show(n(name))["held"], f"{name} does not come back")
        play.expect(stint("renew", n(name), "--token", str(token)).code == 12, f"{name} is lost")
        play.expect(stint.take(n(name), "60s") > token, f"{name}: a higher token")
    sent = stint.guest.clock()["boot"]
    stint.take(n("new"), "3s")
    granted = stint.guest.clock()["boot"]
    play.expect(stint("acquire", n("new"), "--wait", "60s").code == 0, "a new lease runs out")
    at = stint.guest.clock()["boot"]
    play.expect(at - sent >= 3, f"new ran out early: after {at - sent:.1f} s")
    play.expect(at - granted <= 3 + 1 + LATE, f"new ran out late: after {at - granted:.1f} s")
    wait_for(lambda: stint.guest.clock()["boot"] > sent + 9, "time passes")
    play.expect(scene.holder.code is None and len(scene.turns()) == 1, "the holder still works")
    play.expect(0 < stint.show(n("r"))["remaining_ms"] <= 6_000, "r has at most its ttl left")
    scene.expect_step(-HOUR)
    scene.finish(0)
    play.expect(stint("revoke", n("q"), "--token", str(scene.long), "--why", "play").code in (0, 1),
                "q is revoked")
    scene.taken_over(scene.long)


def store_of(kind, site, nth):
    """The store, its server's machine and the machine of its clients."""
    a, b = site.a, site.b
    if kind == "sqlite":
        return f"sqlite:/disk/s{nth}.db", a, a
    if kind == "dir":
        if nth == 0:
            export(a, "/disk/shared")
            mount(b, "/disk/shared", "/mnt")
        return f"dir:/mnt/s{nth}", a, b
    if nth == 0:
        make = {"etcd": etcd, "postgres": postgres, "redis": redis}[kind]
        _, site.url = make(a, f"/disk/{kind}", "10.7.0.1")
    return site.url, a, b


def play_of(kind):
    def play():
        looked = Play(f"clock of {kind}")
        with Site("a" if kind == "sqlite" else "ab") as site:
            for nth, by in enumerate((HOUR, -HOUR)):
                url, server, clients = store_of(kind, site, nth)
                stint = Stint(clients, url)
                before = server.clock()
                if kind not in WALL:
                    nothing_changes(looked, stint, server, by)
                elif by > 0:
                    ahead(looked, stint, server)
                else:
                    back(looked, stint, server)
                after = server.clock()
                really = after["wall"] - before["wall"] - (after["boot"] - before["boot"])
                looked.expect(abs(really - by) < 1, f"the clock was stepped by {really:.0f} s")
        looked.line("+1 h and -1 h")
        return looked.wrong
    return play


main({kind: play_of(kind) for kind in ("sqlite", "etcd", "postgres", "redis", "dir")})
