# SPDX-License-Identifier: Apache-2.0
"""Runs programs on a stack for the tests of this folder, with the kernel's TCP as peer.

Environment: CATENA_BIN, the program; PYTHONPATH, the folder tests/.
"""

import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from command import descendants_of, name_of

BIN = pathlib.Path(os.environ["CATENA_BIN"]).resolve()
STACK = ("10.123.0.2", "fd00:ca7e::2")
LIMIT_S = 60  # of what takes a second on an idle machine
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def enter_namespace():
    """Moves this process into a new network namespace with a loopback interface, or skips the tests of the module."""
    clone_newnet = 0x40000000
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
        raise unittest.SkipTest("a network namespace of its own needs root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def connect(address, port, patience=0):
    """A connected socket; tries again for `patience` seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection((address, port), timeout=LIMIT_S)
        except OSError:  # refused, or no interface yet
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


class StackRun:
    """`catena stack run` with a program, until the end of `with`. `port`: begins when the program serves there."""

    def __init__(self, *program, options=(), port=None):
        self.words = [BIN, "stack", "run", "--json", *options, "--", *program]
        self.port = port
        self.output = None  # of the command and its program, after stop()

    def __enter__(self):
        self.file = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.STDOUT,
                                        env={**os.environ, "PATH": PATH})
        end = time.monotonic() + LIMIT_S
        while self.port is not None:
            try:
                connect(STACK[0], self.port).close()
                break
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise AssertionError(self.output) from error
                time.sleep(0.02)
        return self

    def processes(self, name):
        """Numbers of the command's descendants with this name."""
        return [pid for pid in descendants_of(self.process.pid) if name_of(pid) == name[:15]]

    def stop(self):
        if self.output is not None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(LIMIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.file.seek(0)
            self.output = self.file.read()
            self.file.close()

    def report(self):
        """The stack's counters at the end of the run."""
        if self.output is None:
            time.sleep(0.5)  # the stack writes them each 200 ms
            self.stop()
        return json.loads(self.output.splitlines()[-1])

    def __exit__(self, *_):
        self.stop()
