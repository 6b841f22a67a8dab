#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may attach to a stack when the kernel uses process numbers again: in a namespace of processes of the test's own, in
which nothing else takes numbers.

Environment: that of stack_run.py.
"""

import os
import pathlib
import signal
import socket
import struct
import sys
import tempfile
import time
import unittest

from stack_run import LIMIT_S, StackRun, enter_namespace

PORT = 8080
REFUSED = 0xCA7E0002
SO_PEERPIDFD = 77


def setUpModule():
    enter_namespace()
    one, other = socket.socketpair()
    with one, other:
        try:
            os.close(one.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        except OSError as error:
            raise unittest.SkipTest("the kernel gives a connection's process by its number only") from error


class Numbers(unittest.TestCase):
    def test_a_stranger_whose_number_a_process_of_the_program_got_later_may_not_attach(self):
        with tempfile.TemporaryDirectory() as folder:
            fork, forked = pathlib.Path(folder, "fork"), pathlib.Path(folder, "forked")
            guest = f"""
import os, socket, time
listener = socket.create_server(("", {PORT}))
while not os.path.exists("{fork}"):
    time.sleep(0.01)
if os.fork() == 0:
    open("{forked}.new", "w").write(str(os.getpid()))
    os.rename("{forked}.new", "{forked}")
time.sleep(600)
"""
            with StackRun("/usr/bin/python3", "-c", guest) as stack:
                end = time.monotonic() + LIMIT_S
                while not (programs := stack.processes("python3")):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
                environment = pathlib.Path(f"/proc/{programs[0]}/environ").read_bytes().split(b"\0")
                path = next(word for word in environment if word.startswith(b"CATENA_STACK=")).partition(b"=")[2]
                os.kill(stack.process.pid, signal.SIGSTOP)
                door = socket.socket(socket.AF_UNIX)
                stranger = os.fork()
                if stranger == 0:
                    door.connect(path)
                    os._exit(0)
                os.waitpid(stranger, 0)
                pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(stranger - 1))
                fork.touch()
                while not forked.exists():
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
                self.assertEqual(int(forked.read_text()), stranger, "the test needs the number again")
                os.kill(stack.process.pid, signal.SIGCONT)
                door.settimeout(LIMIT_S)
                self.assertEqual(struct.unpack("I", door.recv(4))[0], REFUSED)
                door.close()


if __name__ == "__main__":
    if os.geteuid() == 0 and os.getpid() != 1:
        os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
    unittest.main()
