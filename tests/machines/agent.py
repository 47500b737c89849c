"""What runs in a guest: takes orders from the host over a serial line and answers them.

Each order is one line of JSON with a number; each answer repeats the number. Programs that are started
in the background send their output line by line, in order; what the host says goes to their input.
"""
import glob
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time

KIT = sys.argv[1]


def line_to_host():
    subprocess.run(["modprobe", "-d", KIT, "virtio_console"], check=True)
    while True:
        for place in glob.glob("/sys/class/virtio-ports/*/name"):
            with open(place) as file:
                if file.read().strip() == "agent":
                    return os.open("/dev/" + place.split("/")[-2], os.O_RDWR)
        time.sleep(0.01)


class Agent:
    def __init__(self):
        self.line = line_to_host()
        self.lock = threading.Lock()
        self.children = {}

    def say(self, **what):
        rest = (json.dumps(what) + "\n").encode()
        with self.lock:
            while rest:
                rest = rest[os.write(self.line, rest):]

    def orders(self):
        buffer = b""
        while True:
            got = os.read(self.line, 65536)
            if not got:  # The host's end is not open yet.
                select.select([], [], [], 0.01)
                continue
            buffer += got
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                yield json.loads(line)

    def serve(self):
        self.say(id=0, ready=True)
        for order in self.orders():
            if order["do"] == "tell":  # In order, so not in a thread of its own.
                self.tell(order)
            else:
                threading.Thread(target=self.obey, args=(order,), daemon=True).start()

    def obey(self, order):
        try:
            answer = getattr(self, "do_" + order["do"])(order)
        except Exception as error:  # The host raises it.
            answer = {"error": repr(error)}
        self.say(id=order["id"], **answer)

    def do_run(self, order):
        env = {**os.environ, **order.get("env", {})}
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            done = subprocess.run(order["argv"], env=env, input=order.get("input", ""), text=True,
                                  capture_output=True, timeout=order.get("timeout", 120))
        except subprocess.TimeoutExpired as late:
            return {"code": -1, "out": str(late.stdout), "err": f"still running: {late.stderr}"}
        took = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "took": took}

    def do_start(self, order):
        env = {**os.environ, **order.get("env", {})}
        child = subprocess.Popen(order["argv"], env=env, stdin=subprocess.PIPE, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1,
                                 start_new_session=True)
        self.children[order["id"]] = child
        threading.Thread(target=self.follow, args=(order["id"], child), daemon=True).start()
        return {"pid": child.pid}

    def follow(self, number, child):
        for line in child.stdout:
            self.say(of=number, line=line.rstrip("\n"))
        self.say(of=number, ended=child.wait())

    def tell(self, order):
        try:
            child = self.children[order["of"]]
            child.stdin.write(order["text"] + "\n")
            child.stdin.flush()
        except (OSError, KeyError):
            pass  # It is gone: its end is told.

    def do_close(self, order):
        self.children[order["of"]].stdin.close()
        return {}

    def do_signal(self, order):
        try:
            os.killpg(order["pid"], getattr(signal, order["name"]))
        except ProcessLookupError:
            return {"there": False}
        return {"there": True}

    def do_clock(self, order):
        if "step" in order:
            now = time.clock_gettime(time.CLOCK_REALTIME)
            time.clock_settime(time.CLOCK_REALTIME, now + order["step"])
        return {"wall": time.clock_gettime(time.CLOCK_REALTIME),
                "boot": time.clock_gettime(time.CLOCK_BOOTTIME)}


Agent().serve()
