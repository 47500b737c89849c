"""Whole machines: a kernel of its own in qemu, with the host's programs and files of its own.

    with Guest("a", kit) as guest:
        guest.run("uname", "-n").out
        guest.stop(); guest.go_on()      # as a hypervisor does it
        guest.cut()                      # the power is gone

One object belongs to one thread; `run` and `start` may be called from several.
"""
import json
import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_SECONDS = 120


class Failed(Exception):
    """A guest, or a program in it, did not do what a play needs."""


@dataclass
class Done:
    code: int
    out: str
    err: str
    took: float


@dataclass
class Program:
    """One in the background of a guest."""
    guest: "Guest"
    number: int
    pid: int = 0
    lines: list = field(default_factory=list)
    code: int | None = None
    on_line: object = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, message):
        line = message.get("line")
        if line is not None and self.on_line is not None and self.on_line(self, line):
            return
        with self.changed:
            if line is not None:
                self.lines.append(line)
            else:
                self.code = message["ended"]
            self.changed.notify_all()

    def wait(self, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: self.code is not None, seconds):
                raise Failed(f"{self.guest.name}: still running: {self.lines[-5:]}")
        return self.code

    def wait_line(self, text, seconds=120):
        def found():
            return next((line for line in self.lines if text in line), None)
        with self.changed:
            self.changed.wait_for(lambda: found() or self.code is not None, seconds)
            if found() is None:
                raise Failed(f"{self.guest.name}: no line with '{text}': {self.lines[-9:]}")
            return found()

    def say(self, text):
        try:
            self.guest.send({"do": "tell", "of": self.number, "text": text, "id": -1})
        except Failed:
            pass  # What it has said before the guest was gone is still listened to.

    def signal(self, name):
        return self.guest.ask({"do": "signal", "pid": self.pid, "name": name})["there"]


class Guest:
    def __init__(self, name, kit, *, memory=1024, more=()):
        self.name, self.kit = name, kit
        self.folder = tempfile.TemporaryDirectory(prefix=f"stint-guest-{name}-")
        self.lock = threading.Lock()
        self.answers = {}
        self.programs = {}
        self.last = 0
        self.gone = False
        self.ready = threading.Event()
        self.listener = None
        command = [
            "qemu-system-x86_64", "-name", name, "-accel", os.environ.get("STINT_ACCEL", "tcg"),
            "-cpu", "max,la57=off", "-smp", "1", "-m", str(memory), "-nodefaults", "-no-reboot",
            "-display", "none", "-kernel", f"{kit}/vmlinuz", "-initrd", f"{kit}/initramfs",
            "-append", f"console=ttyS0 panic=-1 quiet mitigations=off random.trust_cpu=on "
            f"stint.name={name} stint.kit={kit} stint.agent={HERE}/agent.py",
            "-serial", f"file:{self.path('console')}",
            "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self.path('agent')},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=agent",
            "-qmp", f"unix:{self.path('qmp')},server=on,wait=off",
            "-rtc", "base=utc", *more]
        self.errors = open(self.path("qemu"), "w")
        self.qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.errors,
                                     stderr=self.errors)
        try:
            self.monitor = self.connect("qmp").makefile("rw")
            self.monitor.readline()
            self.order("qmp_capabilities")
            self.line = self.connect("agent")
            self.listener = threading.Thread(target=self.listen, daemon=True)
            self.listener.start()
            until = time.monotonic() + BOOT_SECONDS
            while not self.ready.wait(0.1):
                if self.qemu.poll() is not None or time.monotonic() > until:
                    raise Failed("it does not come up")
        except Exception as why:
            self.cut()
            raise Failed(f"{name}: {why}\n{self.console()}") from why

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def path(self, name):
        return f"{self.folder.name}/{name}"

    def console(self):
        text = ""
        for name in ("qemu", "console"):
            with open(self.path(name), errors="replace") as file:
                text += file.read()[-3000:]
        return text

    def connect(self, name):
        line = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + 20
        while True:
            try:
                line.connect(self.path(name))
                return line
            except OSError:
                if self.qemu.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    # ---- As a hypervisor

    def order(self, what):
        self.monitor.write(json.dumps({"execute": what}) + "\n")
        self.monitor.flush()
        while "return" not in (answer := json.loads(self.monitor.readline())):
            if "error" in answer:
                raise Failed(f"{self.name}: {what}: {answer}")

    def stop(self):
        self.order("stop")

    def go_on(self):
        self.order("cont")

    def cut(self):
        """The power is gone: nothing in the guest is told, its memory is lost."""
        self.qemu.kill()
        self.qemu.wait()
        if self.listener is not None:  # To the last word that was on its way.
            self.listener.join()
        with self.lock:
            self.gone = True
            waiting = list(self.answers.values())
        for box in waiting:
            box.put({"error": "the guest is gone"})
        self.errors.close()

    # ---- Orders to the agent

    def listen(self):
        for line in self.line.makefile("rb"):
            if not line.endswith(b"\n"):
                return  # Cut off in the middle of a word.
            message = json.loads(line)
            if "of" in message:
                self.programs[message["of"]].take(message)
            elif message["id"] == 0:
                self.ready.set()
            else:
                with self.lock:
                    box = self.answers.pop(message["id"], None)
                if box is not None:
                    box.put(message)

    def send(self, order):
        with self.lock:
            try:
                self.line.sendall((json.dumps(order) + "\n").encode())
            except OSError as why:
                raise Failed(f"{self.name} is gone") from why

    def number(self, box):
        with self.lock:
            if self.gone:
                raise Failed(f"{self.name} is gone")
            self.last += 1
            self.answers[self.last] = box
            return self.last

    def ask(self, order, seconds=180, number=None):
        box = queue.Queue()
        order["id"] = number or self.number(box)
        if number:
            with self.lock:
                self.answers[number] = box
        self.send(order)
        try:
            answer = box.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"{self.name}: no answer to {order}\n{self.console()}") from None
        if "error" in answer:
            raise Failed(f"{self.name}: {order}: {answer['error']}")
        return answer

    def run(self, *argv, env=None, text="", seconds=120):
        answer = self.ask({"do": "run", "argv": list(argv), "env": env or {}, "input": text,
                           "timeout": seconds}, seconds + 60)
        return Done(answer["code"], answer["out"], answer["err"], answer.get("took", seconds))

    def must(self, *argv, **more):
        done = self.run(*argv, **more)
        if done.code != 0:
            raise Failed(f"{self.name}: {argv}: {done.code}: {done.out}{done.err}")
        return done.out

    def sh(self, script, **more):
        return self.must("sh", "-ec", script, **more)

    def start(self, *argv, env=None, on_line=None):
        number = self.number(queue.Queue())
        program = Program(self, number, on_line=on_line)
        self.programs[number] = program
        program.pid = self.ask({"do": "start", "argv": list(argv), "env": env or {}},
                               number=number)["pid"]
        return program

    def clock(self, step=None):
        return self.ask({"do": "clock", **({} if step is None else {"step": step})})

    def modprobe(self, *names):
        for name in names:
            self.must("modprobe", "-d", self.kit, name)
