"""A disk with a cache that a power cut loses: what was not flushed is there, or not, sector by sector.

Serves a raw image over the NBD protocol on a Unix socket. A write stays in memory until the guest flushes
(or asks for it with the write, FUA). cut() throws a coin for every sector that is still in memory. So it is
stricter than killing qemu on a plain file, where the host keeps every write that the guest has issued.
"""
import os
import random
import socket
import struct
import threading

SECTOR = 512
READ, WRITE, END, FLUSH = 0, 1, 2, 3
FUA = 1
OPTION_MAGIC, REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
OPTION_NAME, OPTION_ABORT, OPTION_INFO, OPTION_GO = 1, 2, 6, 7
ACK, INFO, UNSUPPORTED = 1, 3, 0x80000001


def read_exactly(line, size):
    parts = []
    while size > 0:
        got = line.recv(min(size, 1 << 20))
        if not got:
            raise EOFError
        parts.append(got)
        size -= len(got)
    return b"".join(parts)


class LosingDisk:
    def __init__(self, image, path):
        self.image = os.open(image, os.O_RDWR)
        self.size = os.fstat(self.image).st_size
        self.lock = threading.Lock()
        self.unflushed = {}
        self.off, self.armed = threading.Event(), threading.Event()
        self.flushes = self.lost = self.kept = 0
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(path)
        self.door.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            line, _ = self.door.accept()
            self.off.clear()
            try:
                if self.greet(line):
                    self.work(line)
            except (EOFError, OSError):
                pass  # The machine is gone.
            line.close()

    def greet(self, line):
        line.sendall(b"NBDMAGIC" + struct.pack(">QH", OPTION_MAGIC, 3))
        read_exactly(line, 4)
        facts = struct.pack(">QH", self.size, 1 | 4 | 8)  # has flags: flush, FUA
        while True:
            _, option, size = struct.unpack(">QII", read_exactly(line, 16))
            read_exactly(line, size)

            def reply(kind, data=b""):
                line.sendall(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data)
            if option == OPTION_NAME:
                line.sendall(facts)
                return True
            if option in (OPTION_GO, OPTION_INFO):
                reply(INFO, struct.pack(">H", 0) + facts)
                reply(ACK)
                if option == OPTION_GO:
                    return True
            elif option == OPTION_ABORT:
                reply(ACK)
                return False
            else:
                reply(UNSUPPORTED)

    def work(self, line):
        while True:
            _, flags, kind, handle, offset, size = struct.unpack(">IHHQQI", read_exactly(line, 28))
            answer = b""
            if kind == END:
                return
            if kind == FLUSH and self.unflushed and self.armed.is_set():
                self.lose()
                return
            with self.lock:
                if self.off.is_set():
                    return
                if kind == READ:
                    answer = self.read(offset, size)
                elif kind == WRITE:
                    self.write(offset, read_exactly(line, size), flags & FUA)
                elif kind == FLUSH:
                    self.flush()
            line.sendall(struct.pack(">IIQ", 0x67446698, 0, handle) + answer)

    def read(self, offset, size):
        data = bytearray(os.pread(self.image, size, offset))
        for at in range(offset, offset + size, SECTOR):
            if at in self.unflushed:
                data[at - offset:at - offset + SECTOR] = self.unflushed[at]
        return bytes(data)

    def write(self, offset, data, through):
        if offset % SECTOR or len(data) % SECTOR:
            raise OSError("not whole sectors")
        for at in range(0, len(data), SECTOR):
            self.unflushed.pop(offset + at, None)
            if not through:
                self.unflushed[offset + at] = data[at:at + SECTOR]
        if through:
            os.pwrite(self.image, data, offset)

    def flush(self):
        self.flushes += 1
        for at, data in self.unflushed.items():
            os.pwrite(self.image, data, at)
        self.unflushed.clear()

    def cut(self):
        """Nothing is answered any more until the next machine is connected. Three times of four in the
        worst moment: when the guest waits for a flush."""
        if random.random() < 0.75:
            self.armed.set()
            self.off.wait(10)
        self.lose()
        self.armed.clear()

    def lose(self):
        with self.lock:
            self.off.set()
            for at, data in self.unflushed.items():
                if random.random() < 0.5:
                    self.lost += 1
                else:
                    self.kept += 1
                    os.pwrite(self.image, data, at)
            self.unflushed.clear()
