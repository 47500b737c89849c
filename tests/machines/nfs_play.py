"""`dir:` on real NFS between two machines, versions 4.2 and 3. nfs_play.py [VERSION...]

Machine a has the disk, the NFS server and clients of its own through a mount; machine b has clients.
"""
import json
import os
import random
import subprocess
import tempfile
import threading
import time

from place import BUILD, CLEAN, Play, Site, Stint, export, main, mount, serve_nfs, wait_for

PLAYER = f"{BUILD}/machines_player"
SECONDS = int(os.environ.get("STINT_MACHINES_SECONDS", "90"))
TTL_MS = 2500
RESOURCES = 4


class Record:
    """The one history of all machines: a client goes on when its line stands here."""

    def __init__(self, path):
        self.file = open(path, "a")
        self.path = path
        self.lock = threading.Lock()
        self.lines = 0

    def __call__(self, program, line):
        if not line.startswith("history "):
            return False
        with self.lock:
            self.file.write(line[len("history "):] + "\n")
            self.file.flush()
            self.lines += 1
        program.say("ok")
        return True

    def note(self, verb, number):
        with self.lock:
            self.file.write(json.dumps({"op": f"{verb}/{number}", "phase": "ok", "client": "play",
                                        "verb": verb, "resource": ""}) + "\n")
            self.file.flush()


class Crowd:
    """Client processes on both machines; each may be stopped, killed and replaced."""

    def __init__(self, site, record, url):
        self.site, self.record, self.url = site, record, url
        self.number = 0
        self.running = []
        self.ended = []

    def add(self, guest, threads=3):
        self.number += 1
        guest.sh("mkdir -p /tmp/player")
        program = guest.start(PLAYER, "play", self.url, "/tmp/player", str(self.number), str(threads),
                              str(RESOURCES), str(TTL_MS), env=CLEAN, on_line=self.record)
        self.running.append(program)
        return program

    def goes_on(self, seconds=120, lines=40):
        before = self.record.lines
        wait_for(lambda: self.record.lines >= before + lines, "the clients go on", seconds)

    def kill(self, program):
        program.signal("SIGKILL")
        program.wait()
        self.running.remove(program)
        self.add(program.guest)

    def stop(self, play):
        for program in self.running:
            program.signal("SIGCONT")
            program.say("stop")
        for program in self.running:
            play.expect(program.wait(180) == 0, f"a client ends well: {program.lines[-3:]}")
        for guest in self.site.guests.values():
            said = guest.sh("cat /tmp/player/complaints 2>/dev/null; rm -rf /tmp/player")
            play.expect(said == "", f"{guest.name}: complaints: {said}")


FAULTS = ("freeze", "freeze_past", "kill", "machine", "server")


def strike(what, site, crowd, chance):
    victim = chance.choice(crowd.running)
    if what in ("freeze", "freeze_past"):
        victim.signal("SIGSTOP")
        time.sleep(chance.uniform(0.1, 0.8) if what == "freeze" else TTL_MS / 1000 * 1.6)
        victim.signal("SIGCONT")
    elif what == "kill":
        crowd.kill(victim)
    elif what == "machine":  # b as a whole, past the ttl of everything that it holds
        site.b.stop()
        time.sleep(TTL_MS / 1000 * 1.6)
        site.b.go_on()
    else:  # the NFS server: all threads gone, started again; its grace period follows
        site.a.sh("rpc.nfsd 0", seconds=240)
        time.sleep(1)
        serve_nfs(site.a)


def histories(site, version, folder):
    play = Play(f"nfs {version}, histories")
    record = Record(f"{folder}/history.jsonl")
    crowd = Crowd(site, record, f"dir:/mnt{version}/h?timeout=20s")
    chance = random.Random(time.time_ns())
    for guest in (site.b, site.b, site.a):
        crowd.add(guest)
    crowd.goes_on()
    counts = dict.fromkeys(FAULTS, 0)
    until = time.monotonic() + SECONDS
    turn = 0
    while time.monotonic() < until or min(counts.values()) == 0:
        what = FAULTS[turn % 3] if turn % 6 else FAULTS[3 + turn // 6 % 2]
        turn += 1
        strike(what, site, crowd, chance)
        counts[what] += 1
        crowd.goes_on()
    crowd.stop(play)
    step = next(line.split()[-1] for line in crowd.running[0].lines if line.startswith("grants"))
    checked = subprocess.run([PLAYER, "check", record.path, str(TTL_MS), step], capture_output=True,
                             text=True)
    play.expect(checked.returncode == 0, checked.stdout + checked.stderr)
    if checked.returncode != 0:
        kept = f"{BUILD}/machines/failed-{version}-{int(time.time())}.jsonl"
        os.rename(record.path, kept)
        print("kept:", kept)
    struck = ", ".join(f"{n} {name}" for name, n in counts.items())
    play.line(f"{checked.stdout.splitlines()[0]}; struck: {struck}")
    return play.wrong


def hand_off(site, version):
    """From a holder on the one machine to a waiter on the other: by the look every second."""
    play = Play(f"nfs {version}, hand-off")
    url = f"dir:/mnt{version}/w"
    here, there = Stint(site.a, url), Stint(site.b, url)
    took = []
    for nth in range(10):
        holder, waiter = (here, there) if nth % 2 else (there, here)
        token = holder.take("r", "60s")
        program = waiter.start("run", "r", "--on-held", "wait=60s", "--", "echo", "got it")
        program.wait_line("waiting")
        time.sleep(random.uniform(0, 1))
        play.expect(holder("release", "r", "--token", str(token)).code == 0, "released")
        released = time.monotonic()
        program.wait_line("got it")
        took.append(time.monotonic() - released)
        play.expect(program.wait() == 0, f"the waiter ends well: {program.lines}")
    took.sort()
    play.expect(took[-1] < 4, f"the longest hand-off took {took[-1]:.2f} s")
    play.line(f"{len(took)} hand-offs, p50 {took[len(took) // 2]:.2f} s, longest {took[-1]:.2f} s")
    return play.wrong


def write(stint, path, resource, token, text):
    return stint("write", path, "--resource", resource, "--token", str(token), text=text)


def guarded_file(site, version):
    """The guarded file lies on NFS: a writer on each machine, one of them frozen inside its write."""
    play = Play(f"nfs {version}, guarded file")
    url, path = f"dir:/mnt{version}/g", f"/mnt{version}/report"
    here, there = Stint(site.a, url), Stint(site.b, url)
    refused = frozen = 0
    older = None
    for nth in range(6):
        one, two = (here, there) if nth % 2 else (there, here)
        token = one.take("f", "60s")
        play.expect(write(one, path, "f", token, f"{nth} one").code == 0, "the holder writes")
        if older is not None:
            late = write(two, path, "f", older, "stale")
            refused += play.expect(late.code == 13, f"an older token is refused: {late}")
        # Its body is read from a pipe: it has begun, and is stopped before it can end.
        slow = one.start("write", path, "--resource", "f", "--token", str(token))
        slow.say(f"{nth} slow")
        time.sleep(0.5)
        slow.signal("SIGSTOP")
        play.expect(two("revoke", "f", "--token", str(token), "--why", "play").code in (0, 1),
                    "revoked on the other machine")
        newer = two.take("f", "60s")
        play.expect(newer > token, "a higher token")
        play.expect(two("seal", f"file:{path}", "--resource", "f", "--token", str(newer)).code == 0,
                    "sealed on the other machine")
        play.expect(write(two, path, "f", newer, f"{nth} two").code == 0, "the newer one writes")
        slow.signal("SIGCONT")
        one.guest.ask({"do": "close", "of": slow.number})
        code = slow.wait()
        frozen += play.expect(code == 13, f"the frozen one is refused: {code}: {slow.lines}")
        for look in (here, there):
            wait_for(lambda g=look.guest: g.sh(f"cat {path}") == f"{nth} two", "what was written", 10)
        play.expect(two("release", "f", "--token", str(newer)).code == 0, "released")
        older = token
    play.line(f"{refused} older writes and {frozen} frozen ones refused")
    return play.wrong


def frozen_machine(site, version):
    """A whole machine with a run in it stands still past the ttl; its work is stopped when it goes on."""
    play = Play(f"nfs {version}, frozen machine")
    url = f"dir:/mnt{version}/m"
    here, there = Stint(site.a, url), Stint(site.b, url)
    took = []
    for _ in range(3):
        there.guest.sh(f": >/mnt{version}/out")
        run = there.start("run", "m", "--ttl", "3s", "--grace", "200ms", "--", "sh", "-c",
                          "while :; do sleep 0.1; done")
        wait_for(lambda: here.show("m")["held"], "the run holds")
        token = here.show("m")["token"]
        play.expect(write(there, f"/mnt{version}/out", "m", token, "old").code == 0, "it writes")
        site.b.stop()
        began = time.monotonic()
        taken = here("acquire", "m", "--wait", "60s", "--ttl", "60s")
        waited = time.monotonic() - began
        play.expect(taken.code == 0 and int(taken.out) > token, f"taken over: {taken}")
        # Version 4: the server calls back what the frozen machine was delegated, and waits for it up
        # to its lease time (10 s here, 90 s by default); several times if several files are.
        longest = 12 if version == "3" else 45
        play.expect(waited < longest, f"taken over after {waited:.1f} s")
        took.append(waited)
        new = int(taken.out)
        play.expect(write(here, f"/mnt{version}/out", "m", new, "new").code == 0, "the next writes")
        site.b.go_on()
        late = write(there, f"/mnt{version}/out", "m", token, "stale")
        play.expect(late.code == 13, f"what it writes now is refused: {late}")
        play.expect(run.wait(60) == 75, f"its work is stopped: {run.lines}")
        play.expect(here.guest.sh(f"cat /mnt{version}/out") == "new", "nothing stale landed")
        play.expect(here("release", "m", "--token", str(new)).code == 0, "released")
    play.line(f"3 times, taken over after {', '.join(f'{t:.1f}' for t in took)} s of a ttl of 3 s")
    return play.wrong


def first_use(site, version):
    """Both machines use a store that is not there yet, at the same moment."""
    play = Play(f"nfs {version}, first use")
    for nth in range(12):
        runs = [Stint(guest, f"dir:/mnt{version}/first{nth}").start("run", "r", "--on-held", "wait=60s",
                                                                     "--", "true")
                for guest in (site.a, site.b)]
        for run in runs:
            play.expect(run.wait() == 0, f"{run.guest.name}: {run.lines}")
        tokens = [Stint(guest, f"dir:/mnt{version}/first{nth}").show("r")["token"]
                  for guest in (site.a, site.b)]
        play.expect(tokens == [2, 2], f"one store, two grants: {tokens}")
    play.line("12 stores")
    return play.wrong


def doctor(site, version):
    play = Play(f"nfs {version}, doctor")
    for guest in (site.a, site.b):
        done = Stint(guest, f"dir:/mnt{version}/d")("doctor", seconds=300)
        play.expect(done.code == 0, f"dir: on NFS can carry leases: {done.out}{done.err}")
    refused = Stint(site.b, f"sqlite:/mnt{version}/s.db")("acquire", "r")
    play.expect(refused.code == 69 and "nfs" in refused.err.lower(), f"sqlite: {refused}")
    play.line("sqlite: is refused: " + refused.err.strip())
    return play.wrong


def play_of(version):
    def play():
        with Site() as site, tempfile.TemporaryDirectory(prefix="stint-nfs-") as folder:
            export(site.a, "/disk/shared")
            for guest in (site.a, site.b):
                mount(guest, "/disk/shared", f"/mnt{version}", version)
            wrong = 0
            for part in (first_use, doctor, hand_off, guarded_file, frozen_machine):
                wrong += part(site, version)
            return wrong + histories(site, version, folder)
    return play


main({version: play_of(version) for version in ("4.2", "3")})
