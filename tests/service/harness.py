# SPDX-License-Identifier: Apache-2.0
"""A service for a test, in a folder of its own, and those who ask it for something, as any user.

CATENA_BIN names the program, CATENA_DATA the folder tests/data/chain.
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from command import HAS_PROCESSES

BIN = os.environ["CATENA_BIN"]
DATA = os.environ["CATENA_DATA"]
LIMIT_S = 60
IS_ROOT = os.geteuid() == 0
PLACE = "process" if HAS_PROCESSES else "cpu"  # where an NF is that is placed on the CPU and says nothing else

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: {name}}}
spec:
  rx: {rx}
  tx: {tx}
  device: none
{more}  nfs: {nfs}
"""
SLOW = "{generator: {rate: 20000}}"


def firewall(rules=f"{DATA}/fw.rules"):
    return f"[{{name: fw, type: firewall, config: {{rules: {rules}, default: allow}}}}]"


def wait_for(what, seconds=LIMIT_S):
    """The first true value of what()."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > end:
            assert value, "it did not come to be"
            return value
        time.sleep(0.02)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self.path)


def ask(path, method, resource, body=None):
    """(status, answer) of a request; the answer as JSON where it is that."""
    connection = UnixConnection(path)
    try:
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, resource, body=text)
        response = connection.getresponse()
        answer = response.read().decode()
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(answer) if is_json else answer
    finally:
        connection.close()


def as_user(uid, groups, work):
    """What `work()` gives, as JSON has it, in a process of the user `uid` with the groups `groups`."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            os.write(write_end, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the other user's process failed"
    return json.loads(text)


class Service:
    """A running `catena serve` whose log goes to a file."""

    def __init__(self, folder, *words, **popen):
        self.socket = str(folder / "s")
        self.log_path = folder / "log"
        self.was_ended = False  # by the test
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BIN, "serve", "--socket", self.socket, "--state", str(folder / "state"), *words],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, **popen)
        wait_for(self.answers)

    def answers(self):
        assert self.process.poll() is None, self.log()
        try:
            return ask(self.socket, "GET", "/v1/version")[0] in (200, 403)
        except OSError:
            return False

    def log(self):
        return self.log_path.read_text(errors="replace")

    def ask(self, method, resource, body=None, user=None, groups=()):
        if user is None:
            return ask(self.socket, method, resource, body)
        return as_user(user, list(groups), lambda: ask(self.socket, method, resource, body))

    def send_end(self, number):
        """Sends a signal that ends it."""
        self.was_ended = True
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        self.send_end(number)
        return self.process.wait(LIMIT_S)


class ServiceTest(unittest.TestCase):
    def setUp(self):
        # short: a socket's path has at most 107 bytes
        scratch = tempfile.TemporaryDirectory(prefix="svc", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)
        self.services = []
        self.addCleanup(self.end_services)

    def serve(self, *words, **popen):
        service = Service(self.folder, *words, **popen)
        self.services.append(service)
        return service

    def end_services(self):
        for service in self.services:
            ended_unasked = service.process.poll() is not None and not service.was_ended
            service.process.kill()
            service.process.wait()
            self.assertFalse(ended_unasked, f"the service ended with {service.process.returncode}:\n{service.log()}")

    def chain(self, name, rx=SLOW, tx="null", nfs="[]", more="", file=None):
        path = self.folder / (file or f"{name}.yaml")
        if not HAS_PROCESSES and "isolation" not in nfs:
            nfs, count = re.subn(r", type:", ", isolation: none, type:", nfs)
            print(f"{self.id()}: {count} NFs without processes of their own", file=sys.stderr)
        path.write_text(CHAIN.format(name=name, rx=rx, tx=tx, nfs=nfs, more=more))
        return str(path)

    def apply(self, service, file, user=None, groups=(), **options):
        body = {"file": file, **({"options": options} if options else {})}
        return service.ask("POST", "/v1/chains", body, user, groups)

    def applied(self, service, file, **kinds):
        """As apply(); it must work."""
        status, answer = self.apply(service, file, **kinds)
        self.assertIn(status, (200, 201), answer)
        return answer

    def state(self, service, name):
        return service.ask("GET", f"/v1/chains/{name}")[1].get("state")

    def cli(self, service, *words, status=0):
        done = subprocess.run([BIN, *words, "--socket", service.socket], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done
