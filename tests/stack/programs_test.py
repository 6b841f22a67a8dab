#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs on the stack: nginx, iperf3 and a small server, with the kernel's TCP as peer.

The test has a network namespace of its own, in which the stack is at the other end of a TAP interface. Needs root; a part
is skipped where its program is not installed. Environment: that of stack_run.py.
"""

import collections
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from command import call, children_of
from stack_run import LIMIT_S, PATH, STACK, StackRun, connect, enter_namespace

HERE = pathlib.Path(__file__).resolve().parent
SIZES = (0, 1, 1000, 1460, 16384, 65536, 262144, 1048576)

NGINX = """\
user root; worker_processes {workers}; worker_rlimit_nofile 8192; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; keepalive_requests 1000000;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 80 backlog=4096; listen [::]:80 backlog=4096;
    add_header X-Worker $pid;
    location /on/ {{ alias {folder}/files/; sendfile on; tcp_nopush on; }}
    location /off/ {{ alias {folder}/files/; sendfile off; }}
    location /post {{ client_max_body_size 4m; return 200 "$request_length"; }}
  }}
}}
"""


def setUpModule():
    enter_namespace()


def needs(*programs):
    lacking = [program for program in programs if shutil.which(program, path=PATH) is None]
    return unittest.skipIf(lacking, f"not installed: {', '.join(lacking)}")


def wait_for(condition, what):
    """The first true value of condition(); only a hang reaches the limit."""
    end = time.monotonic() + LIMIT_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not in {LIMIT_S} s")
        time.sleep(0.02)


class Stack(unittest.TestCase):
    """Runs programs on a stack, or on the kernel."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="catena-stack-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_on_stack(self, port, *program, options=()):
        return StackRun(*program, options=("--interface", "stack0", "--ports", str(port), *options))


@needs("nginx")
class Nginx(Stack):
    @classmethod
    def setUpClass(cls):
        bytes_of = random.Random(7).randbytes
        cls.files = {f"f{size}": bytes_of(size) for size in SIZES}

    @contextlib.contextmanager
    def serve(self, workers, options=()):
        files = self.folder / "files"
        files.mkdir()
        for name, content in self.files.items():
            (files / name).write_bytes(content)
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(workers=workers, folder=self.folder))
        with self.run_on_stack(80, "nginx", "-c", config, options=options) as stack:
            connect(STACK[0], 80, patience=LIMIT_S).close()
            yield stack
            self.assertIsNone(stack.process.poll())

    def client(self, address):
        connection = http.client.HTTPConnection(address, 80, timeout=LIMIT_S)
        self.addCleanup(connection.close)
        return connection

    def workers(self):
        return children_of(int((self.folder / "nginx.pid").read_text()))

    def request(self, connection, method, path, body=None, **headers):
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return response, response.read()

    def check_files(self, connection):
        for name, content in self.files.items():
            for place in ("on", "off"):
                with self.subTest(name=name, place=place):
                    response, body = self.request(connection, "GET", f"/{place}/{name}")
                    self.assertEqual(response.status, 200)
                    self.assertEqual(hashlib.sha256(body).hexdigest(), hashlib.sha256(content).hexdigest())

    def check_requests(self, connection):
        content = self.files["f1048576"]
        for start, end in ((0, 0), (1, 65536), (65535, 700000), (1048575, 1048575)):
            response, body = self.request(connection, "GET", "/on/f1048576", Range=f"bytes={start}-{end}")
            self.assertEqual((response.status, body == content[start:end + 1]), (206, True))
        response, body = self.request(connection, "HEAD", "/on/f65536")
        self.assertEqual((response.headers["Content-Length"], body), ("65536", b""))
        for size in (1, 300000):
            response, body = self.request(connection, "POST", "/post", body=b"x" * size)
            self.assertEqual((response.status, int(body) > 0), (200, True))

    def test_files_and_requests(self):
        for workers, options in ((1, ("--copy", "cpu")), (3, ("--copy", "reference"))):
            with self.subTest(workers=workers), self.serve(workers, options) as stack:
                for address in STACK:
                    for _ in range(workers):
                        connection = self.client(address)
                        self.check_files(connection)
                        self.check_requests(connection)
            self.assertNotIn("[alert]", (self.folder / "error.log").read_text())
            self.assertEqual(stack.report()["violations"], 0)
            shutil.rmtree(self.folder / "files")

    def test_a_reload_loses_no_request(self):
        failures = []
        served = collections.Counter()
        stop = threading.Event()

        def load():
            while not stop.is_set():
                try:
                    with connect(STACK[0], 80) as peer:
                        peer.sendall(b"GET /on/f1000 HTTP/1.0\r\n\r\n")
                        reply = b"".join(iter(lambda: peer.recv(65536), b""))
                    served[re.search(rb"X-Worker: (\d+)", reply).group(1)] += 1
                    if not reply.endswith(self.files["f1000"]):
                        failures.append("short")
                except (OSError, AttributeError) as error:
                    failures.append(repr(error))

        with self.serve(2):
            threads = [threading.Thread(target=load) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(3):
                before = set(self.workers())
                os.kill(int((self.folder / "nginx.pid").read_text()), signal.SIGHUP)
                wait_for(lambda: not before & set(self.workers()), "new workers")
                wait_for(lambda: any(int(pid) in self.workers() for pid in list(served)), "requests of new workers")
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        self.assertGreaterEqual(len(served), 4)

    def test_an_engine_copies_for_the_workers_of_each_reload(self):
        with self.serve(2, ("--copy", "async", "--engine", "opencl")) as stack:
            for _ in range(5):
                before = set(self.workers())
                os.kill(int((self.folder / "nginx.pid").read_text()), signal.SIGHUP)
                wait_for(lambda: not before & set(self.workers()), "new workers")
                for _ in range(4):
                    _, body = self.request(self.client(STACK[0]), "GET", "/on/f65536")
                    self.assertEqual(body, self.files["f65536"])
        report = stack.report()
        self.assertEqual((report["pieces"]["cpu"], report["copies"]["lost_engines"]), (0, 0), report)
        self.assertGreater(report["copies"]["engine"], 20)

    def test_a_killed_worker_costs_its_own_connections(self):
        with self.serve(3):
            connections, owners = [], []

            def open_one(address):
                connections.append(self.client(address))
                owners.append(int(self.request(connections[-1], "GET", "/on/f1000")[0].headers["X-Worker"]))

            def all_serve():
                open_one(STACK[0])
                return len(set(owners)) == 3

            wait_for(all_serve, "the start of each worker")
            first = len(owners)
            for address in STACK * 6:
                open_one(address)
            self.assertEqual(len(set(owners[first:])), 3)  # in turn
            os.kill(owners[0], signal.SIGKILL)
            for connection, owner in zip(connections, owners):
                sock = connection.sock
                if owner == owners[0]:
                    with self.assertRaises(ConnectionResetError):
                        sock.recv(1)
                    connection.close()
                else:
                    self.assertEqual(self.request(connection, "GET", "/on/f1000")[1], self.files["f1000"])
            wait_for(lambda: len(set(self.workers()) - {owners[0]}) == 3, "another worker")
            served = set()

            def is_served_by_the_new_one():
                connection = self.client(STACK[0])
                served.add(int(self.request(connection, "GET", "/on/f1000")[0].headers["X-Worker"]))
                return served - set(owners)

            wait_for(is_served_by_the_new_one, "a request of the new worker")

    def test_workers_survive_the_stack(self):
        with self.serve(2) as stack:
            connection = self.client(STACK[0])
            self.request(connection, "GET", "/on/f1000")
            workers = set(self.workers())
            killed = stack.processes("catena-stack")
            os.kill(killed[0], signal.SIGKILL)
            # the next stack knows nothing of the connection, and says so when bytes come
            with self.assertRaises(OSError):
                while True:
                    connection.sock.sendall(b"GET ")
                    time.sleep(0.05)
            connect(STACK[0], 80, patience=LIMIT_S).close()
            for address in STACK * 2:
                again = self.client(address)
                self.assertEqual(self.request(again, "GET", "/on/f65536")[1], self.files["f65536"])
            self.assertNotIn(stack.processes("catena-stack"), ([], killed), "another one serves")
            served = set()

            def all_serve():
                served.add(int(self.request(self.client(STACK[0]), "GET", "/on/f1000")[0].headers["X-Worker"]))
                return served == workers

            # each tries every 100 ms
            wait_for(all_serve, "a request of each worker, attached again")
            self.assertEqual(set(self.workers()), workers)
        self.assertEqual(stack.report()["restarts"], 1)

    @needs("wrk", "ab")
    def test_many_connections(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
        with self.serve(1, ("--sessions", "2048")), contextlib.ExitStack() as idle:
            peers = [idle.enter_context(connect(STACK[i % 2], 80)) for i in range(800)]
            report = call("wrk", "-t1", "-c1000", "-d1", f"http://{STACK[0]}/on/f1000", limit=LIMIT_S).stdout
            self.assertNotIn("Socket errors", report)
            self.assertGreater(int(re.search(r"(\d+) requests in", report).group(1)), 1000)
            for peer in peers:
                peer.sendall(b"GET /on/f1 HTTP/1.0\r\n\r\n")
            for peer in peers:
                self.assertTrue(b"".join(iter(lambda peer=peer: peer.recv(65536), b"")).endswith(self.files["f1"]))
            report = call("ab", "-q", "-n", "2000", "-c", "20", f"http://{STACK[0]}/on/f1000", limit=LIMIT_S).stdout
            self.assertRegex(report, r"Complete requests: +2000\n")
            self.assertRegex(report, r"Failed requests: +0\n")


@needs("iperf3")
class Iperf(Stack):
    def test_both_directions(self):
        with self.run_on_stack(5201, "iperf3", "-s"):
            connect(STACK[0], 5201, patience=LIMIT_S).close()
            for address, direction in ((STACK[0], ()), (STACK[1], ("-R",))):
                def report(address=address, direction=direction):
                    done = subprocess.run(["iperf3", "-J", "-c", address, "-n", "20M", "-P", "2", *direction],
                                          capture_output=True, text=True, check=False, timeout=LIMIT_S)
                    return json.loads(done.stdout)["end"].get("sum_received")
                # it serves one client at a time, and may be busy with the end of the last one
                self.assertGreater(wait_for(report, "a report")["bytes"], 10_000_000)


class Python(Stack):
    """What programs do to the descriptors of the library: this interpreter makes the calls of libc."""
    PORT = 7100
    SERVE = """
import ctypes, os, socket, time
listener = socket.create_server(("", 7100))
kept = listener.accept()[0]
low, high = sorted((listener.fileno(), kept.fileno()))
{then}
while data := kept.recv(4096):
    kept.sendall(data)
"""

    def serve(self, then):
        return self.run_on_stack(self.PORT, "/usr/bin/python3", "-c", self.SERVE.format(then=then))

    def test_a_program_that_closes_what_it_does_not_know_keeps_its_connections(self):
        between = "os.closerange(low + 1, high)\n"
        ways = {"close_range": between + "os.closerange(high + 1, 65536)",
                "closefrom": between + "ctypes.CDLL(None).closefrom(high + 1)",
                "close": "for fd in {*range(3, 65536)} - {low, high}: ctypes.CDLL(None).close(fd)",
                "dup2": "for fd in {*range(3, 1000)} - {low, high}: ctypes.CDLL(None).dup2(0, fd)"}
        for name, then in ways.items():
            with self.subTest(call=name), self.serve(then), connect(STACK[0], self.PORT, patience=LIMIT_S) as peer:
                for _ in range(3):
                    peer.sendall(b"bytes")
                    self.assertEqual(peer.recv(4096), b"bytes")

    def test_a_child_does_not_keep_the_connections_of_a_parent_that_has_ended(self):
        with self.serve("if os.fork() == 0: time.sleep(600)") as stack:
            with connect(STACK[0], self.PORT, patience=LIMIT_S) as peer:
                peer.sendall(b"bytes")
                self.assertEqual(peer.recv(4096), b"bytes")
                child = max(wait_for(lambda: stack.processes("python3")[1:], "a child"))
                parent = min(stack.processes("python3"))
                self.assertIn(child, children_of(parent))
                os.kill(parent, signal.SIGKILL)
                with self.assertRaises(ConnectionResetError):
                    peer.recv(1)
                os.kill(child, signal.SIGKILL)


@needs("cc")
class Calls(Stack):
    """A server's results over the kernel's TCP are those over the stack."""
    PORT = 7000

    def converse(self, address, what):
        """What the client sees."""
        with connect(address, self.PORT, patience=LIMIT_S) as peer:
            peer.sendall(what)
            if what == b"e":
                body = random.Random(3).randbytes(200000)
                peer.sendall(body)
                peer.shutdown(socket.SHUT_WR)
                return self.read_all(peer) == body
            if what == b"p":
                peer.sendall(b"abc")
                time.sleep(0.02)
                peer.sendall(b"defgh")
                time.sleep(0.05)
                peer.sendall(b"ijklmnop")
            elif what == b"s":
                seen = peer.recv(2)
                peer.sendall(b"word")
                return seen
            elif what == b"v":
                peer.sendall(b"one")
                time.sleep(0.02)
                peer.shutdown(socket.SHUT_WR)
            elif what == b"w":
                seen = hashlib.sha256(self.read_all(peer)).hexdigest()
                peer.sendall(b"rest")
                peer.shutdown(socket.SHUT_WR)
                return seen
            elif what == b"r":
                seen = peer.recv(2)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return seen
            try:
                return hashlib.sha256(self.read_all(peer)).hexdigest()
            except ConnectionResetError:
                return "reset"

    def read_all(self, peer):
        return b"".join(iter(lambda: peer.recv(65536), b""))

    def results(self, address):
        seen = [(what, self.converse(address, what)) for what in (b"e", b"p", b"s", b"v", b"l", b"w", b"n", b"r", b"t", b"c", b"a")]
        return [*seen, (b"x", self.converse(address, b"x"))]  # and the program ends

    def test_results_of_the_kernel(self):
        server = self.folder / "sockets_server"
        call("cc", "-O2", "-D_GNU_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wall", "-Wextra", "-Werror", "-o", server,
             HERE / "sockets_server.c")
        for own, kernel in zip(STACK, ("127.0.0.1", "::1")):
            with self.subTest(address=own):
                process = subprocess.Popen([server, str(self.PORT)], stdout=subprocess.PIPE, text=True)
                expected = self.results(kernel)
                expected_lines = process.communicate(timeout=LIMIT_S)[0].splitlines()
                self.assertEqual(process.returncode, 0)
                with self.run_on_stack(self.PORT, server, str(self.PORT)) as stack:
                    self.assertEqual(self.results(own), expected)
                    self.assertEqual(stack.process.wait(LIMIT_S), 0)
                self.assertEqual(stack.output.splitlines()[:len(expected_lines)], expected_lines)


if __name__ == "__main__":
    unittest.main()
