# SPDX-License-Identifier: Apache-2.0
"""Traffic of another process at live ports: a source that counts what it sent, and a capture of what left the chain.

Both are outside of the chain, at the far ends of two cables (veth). Packet i is one of flow i modulo the number of
flows, and its last eight bytes are i.
"""

import ctypes
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time

BATCH = 50  # packets in one call of the kernel
NUMBER = struct.Struct("!Q")  # at the end of each packet
SETTLE_S = 0.3  # in which the last packets leave
LIMIT_S = 240  # of what takes seconds on an idle machine
PACKET_QDISC_BYPASS = 20
SOL_PACKET = 263


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


class Cable:
    """A cable between the chain (`inside`) and the rest of the world (`outside`), on which nobody else says anything."""

    def __init__(self, name):
        self.inside, self.outside = f"{name}i", f"{name}o"
        run("ip", "link", "add", self.inside, "type", "veth", "peer", "name", self.outside)
        for end in (self.inside, self.outside):
            # where the kernel has no IPv6, there is no such key
            subprocess.run(["sysctl", "-q", "-w", f"net.ipv6.conf.{end}.disable_ipv6=1"], stderr=subprocess.DEVNULL, check=False)
            run("ip", "link", "set", end, "arp", "off", "up")

    def remove(self):
        subprocess.run(["ip", "link", "del", self.inside], check=False)


def reason_for_none():
    """Why there are no cables here; None: there are."""
    if os.geteuid() != 0:
        return "not root"
    try:
        Cable("lcprobe").remove()
    except OSError as error:
        return str(error)
    return None


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint32), ("vectors", ctypes.POINTER(_Vector)),
                ("vector_count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_bytes", ctypes.c_size_t),
                ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]


class _Batch:
    """BATCH packets of the flows, in turn, sent by one call."""

    def __init__(self, interface, frames):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind((interface, 0))
        self.socket.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        self.frames = frames
        self.bytes = len(frames[0])
        self.memory = ctypes.create_string_buffer(BATCH * self.bytes)
        self.view = memoryview(self.memory).cast("B")
        self.vectors = (_Vector * BATCH)()
        self.messages = (_Message * BATCH)()
        for at, (vector, message) in enumerate(zip(self.vectors, self.messages)):
            vector.base, vector.bytes = ctypes.addressof(self.memory) + at * self.bytes, self.bytes
            message.vectors, message.vector_count = ctypes.pointer(vector), 1
        self.call = ctypes.CDLL(None, use_errno=True).sendmmsg

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, first):
        """The packets from number `first` on; the kernel has taken all of them."""
        for at in range(BATCH):
            number, start = first + at, at * self.bytes
            end = start + self.bytes
            self.view[start:end] = self.frames[number % len(self.frames)]
            NUMBER.pack_into(self.view, end - NUMBER.size, number)
        taken = 0
        while taken < BATCH:
            done = self.call(self.socket.fileno(), ctypes.byref(self.messages, taken * ctypes.sizeof(_Message)),
                             BATCH - taken, 0)
            if done > 0:
                taken += done
            elif ctypes.get_errno() not in (11, 105):  # EAGAIN, ENOBUFS: the cable is full, as a NIC's ring may be
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Source:
    """A process that sends `rate` packets a second until it is ended, and counts them.

    It never sends faster, even where it was late: no wire brings bursts of the kernel's own making. TCP and UDP checksums are wrong for the number at the end;
    no NF judges them.
    """

    def __init__(self, interface, frames, rate):
        self.read_end, write_end = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(self.read_end)
            status = 1
            try:
                os.write(write_end, struct.pack("!Q", self._send(interface, frames, rate)))
                status = 0
            finally:
                os._exit(status)
        os.close(write_end)

    @staticmethod
    def _send(interface, frames, rate):
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
        with _Batch(interface, frames) as batch:
            sent, due = 0, time.monotonic()
            while not ended:
                batch.send(sent)
                sent += BATCH
                now = time.monotonic()
                due = max(due + BATCH / rate, now)
                time.sleep(due - now)
        return sent

    def end(self):
        """The number of packets that it has sent."""
        os.kill(self.child, signal.SIGTERM)
        with os.fdopen(self.read_end, "rb") as answer:
            data = answer.read()
        _, status = os.waitpid(self.child, 0)
        if status != 0:
            raise OSError(f"the source ended with status {status}")
        return struct.unpack("!Q", data)[0]


class Capture:
    """What arrives at an interface, by dumpcap, in a file."""

    def __init__(self, interface, path):
        self.path = pathlib.Path(path)
        with open(f"{path}.log", "wb") as log:
            self.process = subprocess.Popen(["dumpcap", "-q", "-P", "-B", "256", "-i", interface, "-w", str(path)],
                                            stdout=log, stderr=log)
        end = time.monotonic() + LIMIT_S
        while not self.path.exists() or self.path.stat().st_size < 24:
            if self.process.poll() is not None or time.monotonic() > end:
                raise OSError(f"dumpcap does not start: {pathlib.Path(f'{path}.log').read_text()}")
            time.sleep(0.02)

    def end(self):
        """Waits for the last packets. An OSError if dumpcap could not keep up."""
        time.sleep(SETTLE_S)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(LIMIT_S)
        log = pathlib.Path(f"{self.path}.log").read_text()
        lost = re.search(r"received/dropped on interface '.*': \d+/(\d+)", log)
        if not lost or int(lost[1]):
            raise OSError(f"the capture is not whole: {log}")
