# SPDX-License-Identifier: Apache-2.0
"""A service for a test, in a folder of its own, and its users: root, and two tenants who are not.

CATENA_BIN names the program, CATENA_DATA the folder tests/data/chain, CATENA_VENDOR_NF and CATENA_HOSTILE_NF the
plug-ins of tenants (tests/CMakeLists.txt builds them).
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
LIMIT_S = 240  # of what takes seconds on an idle machine
IS_ROOT = os.geteuid() == 0
VICTIM, ATTACKER = 3001, 3002  # users
TENANTS = 3100  # the group of the service's socket
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


def chain_text(name, rx=SLOW, tx="null", nfs="[]", more=""):
    if not HAS_PROCESSES and "isolation" not in nfs:
        nfs, count = re.subn(r", type:", ", isolation: none, type:", nfs)
        print(f"chain {name}: {count} NFs without processes of their own", file=sys.stderr)
    return CHAIN.format(name=name, rx=rx, tx=tx, nfs=nfs, more=more)


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


def connect(path, user=None, groups=()):
    """A connection to a Unix socket. For the other end it is one of `user` with `groups`; None: of this process."""
    if user is None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(LIMIT_S)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            raise
        return connection
    ours, theirs = socket.socketpair()

    def connect_and_pass():
        with connect(path) as connection:
            socket.send_fds(theirs, [b"."], [connection.fileno()])

    with ours, theirs:
        as_user(user, list(groups), connect_and_pass)
        _, [number], _, _ = socket.recv_fds(ours, 1, 1)
    connection = socket.socket(fileno=number)
    connection.settimeout(LIMIT_S)
    return connection


class Request(http.client.HTTPConnection):
    """A request to the service that was sent; its answer is waited for by answer() alone."""

    def __init__(self, path, method, resource, body=None, user=None, groups=()):
        super().__init__("localhost", timeout=LIMIT_S)
        self.sock = connect(path, user, groups)
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        self.request(method, resource, body=text)

    def answer(self):
        """(status, answer); the answer as JSON where it is that."""
        with self:
            response = self.getresponse()
            answer = response.read().decode()
            is_json = response.headers["Content-Type"] == "application/json"
            return response.status, json.loads(answer) if is_json else answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()  # with no answer yet: its client is gone


def ask(path, method, resource, body=None, user=None, groups=()):
    return Request(path, method, resource, body, user, groups).answer()


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
        """As root, or as a user in the socket's group, and in `groups`."""
        return ask(self.socket, method, resource, body, user, [TENANTS, *groups])

    def send_end(self, number):
        """Sends a signal that ends it."""
        self.was_ended = True
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        self.send_end(number)
        return self.process.wait(LIMIT_S)


class Tenant:
    """A user of the service who is not root, with a folder that no other user may enter, and with plug-ins."""

    def __init__(self, uid, parent):
        self.uid = uid
        self.service = None  # ServiceTest.serve() sets it
        self.folder = parent / f"tenant-{uid}"
        self.folder.mkdir(mode=0o700)
        self.own(self.folder)

    def own(self, path):
        """Makes the file or folder the tenant's; its path as text."""
        os.chown(path, self.uid, self.uid)
        return str(path)

    def write(self, name, content, mode=0o600):
        """A file in the tenant's folder that only the tenant may read; its path."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return self.own(path)

    def copy(self, source, name=None):
        return self.write(name or pathlib.Path(source).name, pathlib.Path(source).read_bytes(), 0o700)

    def data(self, text):
        """`text` with files of DATA that it names in the tenant's folder, wherever the tests are."""
        return re.sub(re.escape(DATA) + r"/([\w.-]+)", lambda file: self.copy(file[0]), text)

    def fifo(self, name="fifo"):
        """A FIFO without a reader: a chain that writes to it waits before it runs."""
        os.mkfifo(self.folder / name, 0o600)
        return self.own(self.folder / name)

    def chain(self, name, file=None, **kinds):
        """A chain file in the tenant's folder; its path. `kinds`: see chain_text()."""
        return self.write(file or f"{name}.yaml", chain_text(name, **kinds))

    def vendor_nf(self):
        """An NF of the vendor's plug-in (examples/nf-plugin) that passes all packets."""
        return f"{{name: guard, plugin: {self.copy(os.environ['CATENA_VENDOR_NF'])}, config: {{minimum: 0}}}}"

    def hostile_nf(self, name="hostile", object_name="hostile.so", **config):
        """An NF of tests/service/hostile_nf.cpp, which says there what `config` may be: create="hang", say."""
        plugin = self.copy(os.environ["CATENA_HOSTILE_NF"], object_name)
        return f"{{name: {name}, plugin: {plugin}, config: {json.dumps(config)}}}"

    def request(self, method, resource, body=None):
        """A request whose answer is not waited for."""
        return Request(self.service.socket, method, resource, body, self.uid, [TENANTS])

    def ask(self, method, resource, body=None):
        return self.request(method, resource, body).answer()

    def begin_to_apply(self, file, **options):
        return self.request("POST", "/v1/chains", {"file": file, **({"options": options} if options else {})})

    def apply(self, file, **options):
        return self.begin_to_apply(file, **options).answer()

    def applied(self, file, **options):
        """As apply(); it must work."""
        status, answer = self.apply(file, **options)
        assert status in (200, 201), (status, answer)
        return answer

    def get(self, name):
        return self.ask("GET", f"/v1/chains/{name}")[1]

    def stop(self, name):
        return self.ask("POST", f"/v1/chains/{name}/stop")

    def delete(self, name):
        return self.ask("DELETE", f"/v1/chains/{name}")


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
        if IS_ROOT:
            os.chown(service.socket, 0, TENANTS)
        return service

    def end_services(self):
        for service in self.services:
            ended_unasked = service.process.poll() is not None and not service.was_ended
            service.process.kill()
            service.process.wait()
            self.assertFalse(ended_unasked, f"the service ended with {service.process.returncode}:\n{service.log()}")

    def chain(self, name, file=None, **kinds):
        path = self.folder / (file or f"{name}.yaml")
        path.write_text(chain_text(name, **kinds))
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


@unittest.skipUnless(IS_ROOT, "root can become other users, others cannot")
class TenantTest(ServiceTest):
    """A service of root's with two tenants in the group of its socket, who have no other right: a victim and an
    attacker. What a hostile user might do is tested as the attacker, never as root."""

    def setUp(self):
        super().setUp()
        self.victim = Tenant(VICTIM, self.folder)
        self.attacker = Tenant(ATTACKER, self.folder)
        self.service = self.serve()

    def serve(self, *words, **popen):
        service = super().serve(*words, **popen)
        self.victim.service = self.attacker.service = service
        return service
