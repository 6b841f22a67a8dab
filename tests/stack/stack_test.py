#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`catena stack run` with the servers of examples/stack; the kernel's TCP is the peer, in a network namespace of the test's own.

Environment: that of stack_run.py; ECHO and FILE_SERVER, the servers.
"""

import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from stack_run import BIN, LIMIT_S, STACK, StackRun, connect, enter_namespace

ECHO = os.environ["ECHO"]
FILE_SERVER = os.environ["FILE_SERVER"]
PORT = 8080
# the engines that every machine has; that of a GPU has a test of its own
ENGINES = ("cpu-stream", "opencl", "dmadev-skeleton")
# each way of copying
WAYS = [["--copy", "reference"], ["--copy", "cpu"], ["--copy", "async", "--engine", "opencl,cpu-stream"],
        *(["--copy", mode, "--engine", engine, *more] for engine in ENGINES
          for mode, *more in (["sync"], ["async"], ["full", "--threshold", "4096"]))]


def setUpModule():
    enter_namespace()
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    os.environ["CATENA_DATA_DIR"] = folder.name  # not the profiles of whoever runs the tests


def run(*program, options=()):
    return StackRun(*program, options=options, port=PORT)


def wait_for(condition):
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not happen")
        time.sleep(0.02)


def echoed(data, address=STACK[0]):
    """What comes back of `data`, sent while it is read."""
    with connect(address, PORT) as peer:
        sender = threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR)))
        sender.start()
        back = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        sender.join()
    return back


class Bytes(unittest.TestCase):
    def test_come_back_by_each_way_over_both_families(self):
        for way in WAYS:
            with self.subTest(way=way), run(ECHO, str(PORT), options=way) as stack:
                for size in (0, 1, 1459, 1461, 70_000, 3_000_000):
                    data = random.Random(size).randbytes(size)
                    for address in STACK:
                        self.assertEqual(echoed(data, address), data)
                report = stack.report()
                self.assertEqual((report["violations"], report["buffers_in_use"]), (0, 0))
                self.assertEqual((report["copies"]["engine"] > 0, report["copies"]["lost_engines"]), ("--engine" in way, 0), report)

    def test_of_files_are_equal_with_many_requests_of_a_connection(self):
        with tempfile.TemporaryDirectory() as folder:
            sizes = [0, 1, 100, 4095, 4096, 65_535, 65_537, 300_000]
            for size in sizes:
                pathlib.Path(folder, str(size)).write_bytes(random.Random(size).randbytes(size))
            wanted = {size: hashlib.sha256(pathlib.Path(folder, str(size)).read_bytes()).digest() for size in sizes}
            for way in WAYS:
                with self.subTest(way=way), run(FILE_SERVER, str(PORT), folder, options=way) as stack:
                    self.fetch(sizes, wanted)
                    self.assertEqual(stack.report()["violations"], 0)

    @unittest.skipUnless(shutil.which("nft"), "packets are lost by nft")
    def test_of_files_are_equal_though_packets_are_lost(self):
        subprocess.run(["nft", "add table inet lossy; add chain inet lossy in { type filter hook prerouting priority raw; };"
                        f"add rule inet lossy in ip saddr {STACK[0]} numgen random mod 100 < 2 counter drop"], check=True)
        self.addCleanup(subprocess.run, ["nft", "delete table inet lossy"], check=True)
        with tempfile.TemporaryDirectory() as folder:
            bodies = {size: random.Random(size).randbytes(size) for size in (100, 65_537, 300_000, 1_000_000)}
            for size, body in bodies.items():
                pathlib.Path(folder, str(size)).write_bytes(body)
            wanted = {size: hashlib.sha256(body).digest() for size, body in bodies.items()}
            for way in (["--copy", "reference"], ["--copy", "cpu"], ["--copy", "full", "--engine", "cpu-stream"]):
                with self.subTest(way=way), run(FILE_SERVER, str(PORT), folder, options=way) as stack:
                    self.fetch(list(bodies), wanted, clients=8, requests=25)
                    self.assertEqual(stack.report()["violations"], 0)
        dropped = subprocess.run(["nft", "list table inet lossy"], check=True, capture_output=True, text=True).stdout
        self.assertGreater(int(re.search(r"packets (\d+)", dropped).group(1)), 50)

    def fetch(self, sizes, wanted, clients=4, requests=120):
        errors = []

        def client(seed):
            chosen = random.Random(seed)
            connection = http.client.HTTPConnection(STACK[0], PORT, timeout=LIMIT_S)
            try:
                for _ in range(requests):
                    size = chosen.choice(sizes)
                    connection.request("GET", f"/{size}")
                    body = connection.getresponse().read()
                    if hashlib.sha256(body).digest() != wanted[size]:
                        errors.append(f"{size}: {len(body)} bytes")
                connection.request("GET", "/none")
                if connection.getresponse().status != 404:
                    errors.append("none")
            except (OSError, http.client.HTTPException) as error:
                errors.append(repr(error))
            finally:
                connection.close()

        threads = [threading.Thread(target=client, args=[seed]) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])


def profile_of_copies():
    """The file of `catena profile --copies`, measured at the first call, and what is in it."""
    measured = subprocess.run([BIN, "profile", "--copies", "--json"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    path = pathlib.Path(json.loads(measured.stdout)["file"])
    return path, json.loads(path.read_text(encoding="utf-8"))


class Thresholds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path, cls.profile = profile_of_copies()
        cls.addClassCleanup(cls.path.unlink, missing_ok=True)

    def chosen(self, *options):
        """The report, and what is said at the start, of a run that sends many bytes."""
        with run(ECHO, str(PORT), options=options) as stack:
            data = random.Random(1).randbytes(500_000)
            self.assertEqual(echoed(data), data)
            report = stack.report()
        return report, [line for line in stack.output.splitlines() if line.startswith("copies ")], stack.output

    def write(self, engine, cheaper_from, **other):
        """A profile by which `engine` takes less time than the CPU from `cheaper_from` bytes on."""
        for entry in self.profile["engines"]:
            for size in entry["sizes"]:
                size["cpu_ns"] = 100 if entry["name"] == "cpu" else 50 if entry["name"] == engine and size["bytes"] >= cheaper_from else 200
        self.path.write_text(json.dumps({**self.profile, **other}), encoding="utf-8")

    def test_are_those_of_the_profile(self):
        day = self.profile["engines"][0]["measured"][:10]
        for engine in ENGINES:
            with self.subTest(engine=engine):
                self.write(engine, 16384)
                report, said, _ = self.chosen("--copy", "full", "--engine", engine)
                self.assertEqual(said, [f"copies    by {engine} from 16384 B on, by the profile measured {day}"])
                self.assertEqual(report["threshold"], {"bytes": 16384, "why": f"by the profile measured {day}"})
                self.assertGreater(report["pieces"]["engine"], 0)
                report, said, _ = self.chosen("--copy", "full", "--engine", engine, "--threshold", "2048")
                self.assertEqual(said, [f"copies    by {engine} from 2048 B on, by --threshold"])
                self.assertEqual(report["threshold"], {"bytes": 2048, "why": "by --threshold"})

    def test_never_come_where_the_engine_is_slower_at_each_size(self):
        self.write("cpu-stream", 1 << 30)
        report, said, _ = self.chosen("--copy", "full", "--engine", "cpu-stream")
        self.assertIn("copies    by the CPU, which takes less time than cpu-stream at each size", said[0])
        self.assertEqual((report["threshold"]["bytes"], report["pieces"]["engine"]), (None, 0))

    def test_are_1_KiB_without_a_profile_of_this_machine(self):
        self.write("cpu-stream", 16384)
        whole = self.path.read_text(encoding="utf-8")
        for text, named in ((None, False), (whole[:200], True), (whole.replace('"version": 1', '"version": 9'), True),
                            (json.dumps({**self.profile, "processor": "Another One"}), True),
                            (json.dumps({**self.profile, "engines": []}), False)):
            with self.subTest(text=text):
                self.path.unlink(missing_ok=True)
                if text is not None:
                    self.path.write_text(text, encoding="utf-8")
                report, said, output = self.chosen("--copy", "full", "--engine", "cpu-stream")
                self.assertEqual(said, ["copies    by cpu-stream from 1024 B on, the default: "
                                        "`catena profile --copies --engine cpu-stream` measures this machine"])
                self.assertEqual(report["threshold"]["bytes"], 1024)
                self.assertEqual(str(self.path) in output, named, output)

    def test_are_of_the_mode_full_alone(self):
        self.write("cpu-stream", 16384)
        for way in (["reference"], ["cpu"], ["sync", "--engine", "cpu-stream"], ["async", "--engine", "cpu-stream"]):
            report, said, _ = self.chosen("--copy", *way)
            self.assertEqual((said, "threshold" in report), ([], False), way)


class Sandboxes(unittest.TestCase):
    def sees(self, options):
        """What the stack's process has, of what engines need."""
        with run(ECHO, str(PORT), options=options) as stack:
            proc = pathlib.Path("/proc", str(stack.processes("catena-stack")[0]))
            root = proc / "root"
            limits = (proc / "limits").read_text(encoding="utf-8")
            scratch = [line.split()[1] for line in (proc / "mounts").read_text(encoding="utf-8").splitlines()]
            devices = sorted(name for name in os.listdir(root / "dev") if name.startswith("nvidia"))
            return {"opencl": (root / "etc/OpenCL").exists(), "modules": (root / "sys/module").exists(), "scratch": "/tmp" in scratch,
                    "devices": devices != [], "addresses": re.search("address space +unlimited", limits) is not None}

    def test_give_what_the_engine_needs_and_only_where_it_is_used(self):
        nothing = dict.fromkeys(("opencl", "modules", "scratch", "devices", "addresses"), False)
        for options, more in ((["--copy", "reference"], {}), (["--copy", "cpu"], {}),
                              (["--copy", "full", "--engine", "cpu"], {}), (["--copy", "full", "--engine", "cpu-stream"], {}),
                              (["--copy", "full", "--engine", "opencl"], {"opencl": True, "scratch": True}),
                              (["--copy", "full", "--engine", "dmadev-skeleton"], {"modules": True, "scratch": True})):
            with self.subTest(options=options):
                self.assertEqual(self.sees(options), {**nothing, **more})

    def refused(self, *options, env=None):
        done = subprocess.run([BIN, "stack", "run", *options, "--", "true"], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, env={**os.environ, **(env or {})})
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_an_engine_that_a_sandbox_cannot_have_says_what_to_use(self):
        self.assertIn("use 'cuda' or 'cpu-stream'", self.refused("--copy", "full", "--engine", "dmadev"))

    def test_an_engine_that_works_outside_alone_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            for vendor in pathlib.Path("/etc/OpenCL/vendors").iterdir():
                shutil.copy(vendor, folder)
                os.chmod(pathlib.Path(folder, vendor.name), 0o600)  # root's, which the sandbox's user is not
            said = self.refused("--copy", "full", "--engine", "opencl", env={"OCL_ICD_VENDORS": folder})
            self.assertIn("copy engine 'opencl' works on this machine, but not in the stack's sandbox: ", said)

    def test_give_a_gpu(self):
        found = json.loads(subprocess.run([BIN, "doctor", "--json"], capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout)
        cuda = next(finding for finding in found if finding["subject"] == "copies: cuda")
        if cuda["level"] != "ok":
            self.assertIn(cuda["text"], self.refused("--copy", "full", "--engine", "cuda"))
            self.skipTest(f"no copy engine of a GPU here: {cuda['text']}")
        way = ["--copy", "full", "--engine", "cuda", "--threshold", "1024"]
        with run(ECHO, str(PORT), options=way) as stack:
            data = random.Random(2).randbytes(3_000_000)
            self.assertEqual(echoed(data), data)
            self.assertGreater(stack.report()["copies"]["engine"], 0)
        seen = self.sees(way)
        self.assertTrue(seen["devices"] and seen["addresses"] and seen["scratch"], seen)


class Neighbours(unittest.TestCase):
    def test_are_served_beside_a_program_that_never_reads(self):
        silent = f"import socket, time; listener = socket.create_server(('', {PORT + 1})); peers = [listener.accept() for _ in range(20)]; time.sleep(600)"
        with run("sh", "-c", f'python3 -c "{silent}" & exec {ECHO} {PORT}') as stack, contextlib.ExitStack() as peers:
            for _ in range(20):
                peer = peers.enter_context(connect(STACK[0], PORT + 1, patience=LIMIT_S))
                peer.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    while True:
                        peer.send(bytes(1 << 16))
            for size in (1, 3_000_000):
                data = random.Random(size).randbytes(size)
                self.assertEqual(echoed(data), data)
            self.assertEqual(stack.report()["violations"], 0)


class Metrics(unittest.TestCase):
    def samples(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=LIMIT_S) as response:
            self.assertIn("version=0.0.4", response.headers["Content-Type"])
            lines = response.read().decode().splitlines()
        values = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: int(value) for name, value in values}

    def test_have_the_share_of_each_part_and_are_all_in_their_page(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        address = f"127.0.0.1:{self.port}"
        options = ["--metrics", address, "--copy", "async", "--engine", "cpu-stream"]
        parts = [f'catena_stack_part_cycles_total{{part="{part}"}}'
                 for part in ("port", "tcp", "session", "copy", "poll", "post_copy", "idle")]
        with run(ECHO, str(PORT), options=options):
            first = self.samples()
            data = random.Random(3).randbytes(3_000_000)
            self.assertEqual(echoed(data), data)
            wait_for(lambda: self.samples()["catena_stack_sent_bytes_total"] == len(data))
            last = self.samples()
            for path, body, expected in (("/", None, 404), ("/metrics", b"x", 405)):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(f"http://{address}{path}", data=body, timeout=LIMIT_S)
                self.assertEqual(refused.exception.code, expected)
        for part in parts:
            self.assertGreater(last[part], first.get(part, 0), part)
        for samples in (first, last):
            self.assertLessEqual(sum(samples[part] for part in parts), samples["catena_stack_cycles_total"])
        # the rest is since the last change of part
        self.assertGreater(sum(last[part] for part in parts), 0.9 * last["catena_stack_cycles_total"])
        self.assertGreater(last['catena_stack_pieces_total{by="engine"}'], 0)
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
        for name in last:
            self.assertIn(f"`{name.partition('{')[0]}`", page)
        named = set(re.findall(r"`(catena_stack_\w+)`", page))
        self.assertEqual(named, {name.partition("{")[0] for name in last})

    def test_an_address_that_is_none_is_refused(self):
        done = subprocess.run([BIN, "stack", "run", "--metrics", "9465", "--", "true"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("127.0.0.1:", done.stderr)


class Ends(unittest.TestCase):
    def test_an_application_that_is_killed_resets_its_connections(self):
        with run("sh", "-c", f"{ECHO} {PORT} & wait") as stack:
            peer = connect(STACK[0], PORT)
            os.kill(stack.processes("catena_stack_echo")[0], signal.SIGKILL)
            with peer, self.assertRaises(ConnectionResetError):
                peer.recv(1)

    def test_a_stack_that_is_killed_is_started_again_and_serves_within_seconds(self):
        with run("sh", "-c", f"while true; do {ECHO} {PORT}; sleep 0.1; done") as stack:
            os.kill(stack.processes("catena-stack")[0], signal.SIGKILL)
            end = time.monotonic() + LIMIT_S
            while True:
                try:
                    self.assertEqual(echoed(b"again"), b"again")
                    break
                except OSError:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.05)
            self.assertEqual(stack.report()["restarts"], 1)

    def test_a_stopped_stack_is_replaced_as_soon_as_its_host_cannot_reach_it(self):
        attack = ("import os, socket\ndoors = [socket.socket(socket.AF_UNIX) for _ in range(600)]\n"
                  "for door in doors: door.connect(os.environ['CATENA_STACK'])\n")
        with tempfile.TemporaryDirectory() as folder:
            start = pathlib.Path(folder, "start")
            begin = f"while ! [ -e {start} ]; do sleep 0.1; done; exec python3 -c \"{attack}\""
            with run("sh", "-c", f"({begin}) & while true; do {ECHO} {PORT}; sleep 0.1; done") as stack:
                stopped = stack.processes("catena-stack")
                os.kill(stopped[0], signal.SIGSTOP)
                start.touch()
                wait_for(lambda: stack.processes("catena-stack") not in ([], stopped))
                with connect(STACK[0], PORT, patience=LIMIT_S) as peer:
                    peer.sendall(b"again")
                    self.assertEqual(peer.recv(5), b"again")
                self.assertEqual(stack.report()["restarts"], 1)

    def test_the_process_is_confined(self):
        with run(ECHO, str(PORT)) as stack:
            pid = stack.processes("catena-stack")[0]
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            self.assertIn("CapEff:\t0000000000000000", status)
            self.assertIn("Seccomp:\t2", status)
            self.assertNotEqual(os.readlink(f"/proc/{pid}/ns/net"), os.readlink("/proc/self/ns/net"))

    def test_the_exit_status_is_the_programs(self):
        done = subprocess.run([BIN, "stack", "run", "--", "sh", "-c", "exit 7"], capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 7, done.stderr)


    def test_a_key_of_the_terminal_reaches_the_program_once(self):
        program = ("import signal, time\nsignal.signal(signal.SIGINT, lambda *_: print('interrupted', flush=True))\n"
                   "print('ready', flush=True)\ntime.sleep(1)\n")
        child, terminal = pty.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(BIN, [BIN, "stack", "run", "--", "python3", "-c", program])
        seen = b""
        with contextlib.suppress(OSError):  # the end of the terminal's last process
            while part := os.read(terminal, 4096):
                if b"ready" in part:
                    os.write(terminal, b"\x03")
                seen += part
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, seen)
        self.assertEqual(seen.count(b"interrupted"), 1, seen)

    def test_the_next_run_removes_what_a_killed_one_left(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TMPDIR": folder}
            words = [[BIN, "stack", "run", "--interface", f"stack{i}", "--address", f"10.124.{i}.2/24", "--host-address",
                      f"10.124.{i}.1/24", "--"] for i in range(3)]
            ones = [subprocess.Popen([*words[i], "sleep", "60"], env=environment, stderr=subprocess.DEVNULL) for i in range(2)]
            try:
                wait_for(lambda: len(list(pathlib.Path(folder).glob("*/stack.sock"))) == 2)
                ones[0].kill()
                ones[0].wait()
                self.assertEqual(len(os.listdir(folder)), 2)
                subprocess.run([*words[2], "true"], env=environment, check=True, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
                self.assertEqual(len(os.listdir(folder)), 1, "that of the run that goes on")
                self.assertIsNone(ones[1].poll())
            finally:
                for one in ones:
                    one.terminate()
                    one.wait(LIMIT_S)


class Refusals(unittest.TestCase):
    def test_wrong_options_say_what_to_write(self):
        for words, said in ((["--address", "10.0.0.300/24"], "write 10.123.0.2/24"), (["--copy", "dma"], "one of reference, cpu"),
                            (["--sessions", "1000"], "powers of two"), (["--engine", "nothing"], "--engine"), (["--engine", "cpu,nothing"], "--engine"),
                            (["--threshold", "010"], "no decimal number"),
                            (["--copy", "sync", "--engine", "cpu-stream", "--threshold", "4096"], "write --copy full"),
                            (["--rx", "32"], "--rx (64 to 1024 KiB)"), (["--rx", "4194368"], "--rx (64 to 1024 KiB)"),
                            (["--ports", "80-90"], "as 80,443"), (["--ports", ""], "is empty"),
                            (["--ports", "080"], "write 80 without leading zeros"),
                            (["--engine", "cpu-stream"], "write --copy sync, async or full"),
                            (["--copy", "reference", "--engine", "cpu-stream"], "write --copy sync, async or full"),
                            (["--threshold", "4096"], "write --copy full"), (["--copy", "async", "--threshold", "1"], "write --copy full"),
                            (["--address", "10.9.0.2/24"], "would not reach the stack"),
                            (["--address", "fd00::2/64"], "would not reach the stack"),
                            (["--address", "10.123.0.1/24"], "would not reach the stack")):
            done = subprocess.run([BIN, "stack", "run", *words, "--", "true"], capture_output=True, text=True, timeout=LIMIT_S,
                                  check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_a_program_that_loads_no_library_is_refused(self):
        def program(*segments):
            """An executable file with these segments, each a type and its bytes."""
            at = 64 + 56 * len(segments)
            headers = contents = b""
            for kind, content in segments:
                headers += struct.pack("<IIQQQQQQ", kind, 4, at + len(contents), 0, 0, len(content), len(content), 4)
                contents += content
            return struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0,
                               0) + headers + contents
        interp, note = 3, 4
        loader = (interp, b"/lib64/ld-linux-x86-64.so.2\0")
        go = (note, struct.pack("<III", 4, 8, 4) + b"Go\0\0" + b"buildid\0")
        gnu = (note, struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"\1\2\3\4")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

            def said_of(content, name=None):
                path = pathlib.Path(folder, "server")
                path.write_bytes(content)
                path.chmod(0o755)
                done = subprocess.run([BIN, "stack", "run", "--", name or path], capture_output=True, text=True, timeout=LIMIT_S,
                                      check=False, env=environment)
                self.assertNotEqual(done.returncode, 0)
                return done.stderr
            self.assertIn("server is linked statically", said_of(program(gnu)))
            self.assertIn("link it dynamically to libc, or write it with catena/session.h", said_of(program()))
            self.assertIn("server is written in Go", said_of(program(go)))
            self.assertIn("server is written in Go", said_of(program(loader, gnu, go)), "it uses C libraries")
            self.assertIn("server is written in Go", said_of(program(loader, (note, gnu[1] + go[1])), "server"), "by PATH")
            for content in (program(loader, gnu), b"exit 3\n", b"#!\nexit 3\n"):
                self.assertNotIn("the stack cannot serve it", said_of(content))
            os.rename(pathlib.Path(folder, "server"), pathlib.Path(folder, "interpreter"))
            pathlib.Path(folder, "interpreter").write_bytes(program(go))
            self.assertIn("interpreter is written in Go", said_of(f"#! {folder}/interpreter -x\n".encode()))

    def test_a_second_stack_at_the_addresses_of_another_one(self):
        with run(ECHO, str(PORT)):
            for words, said in ((["--interface", "stack1"], "10.123.0.2/24 is in the network 10.123.0.1/24 of catena0"),
                                (["--interface", "stack1", "--address", "fd00:ca7e::9/64", "--host-address", "fd00:ca7e::8/64"],
                                 "fd00:ca7e::9/64 is in the network fd00:ca7e::1/64 of catena0"),
                                ([], "another process has the TAP catena0 with 10.123.0.1/24 and fd00:ca7e::1/64")):
                done = subprocess.run([BIN, "stack", "run", *words, "--", "true"], capture_output=True, text=True, timeout=LIMIT_S,
                                      check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)
                self.assertIn("--interface, --address and --host-address", done.stderr)
            subprocess.run([BIN, "stack", "run", "--interface", "stack1", "--address", "10.123.1.2/24", "--host-address",
                            "10.123.1.1/24", "--", "true"], check=True, timeout=LIMIT_S, stderr=subprocess.DEVNULL)
            self.assertEqual(echoed(b"still"), b"still")

    def test_a_process_leaves_room_for_others(self):
        taking = """
import os, socket, struct, subprocess, sys
doors = []
while True:
    doors.append(socket.socket(socket.AF_UNIX))
    doors[-1].connect(os.environ["CATENA_STACK"])
    call, size = struct.unpack("II", doors[-1].recv(8))
    body = doors[-1].recv(size)
    if call != 0xCA7E0001:
        break
print("has", len(doors) - 1, os.strerror(*struct.unpack("i", body)), flush=True)
subprocess.run(sys.argv[1:])
"""
        with run("python3", "-c", taking, ECHO, str(PORT)) as stack:
            self.assertEqual(echoed(b"room"), b"room")
        self.assertIn("has 32 Too many open files", stack.output)

    def test_a_stranger_may_not_attach(self):
        with run(ECHO, str(PORT)) as stack:
            environment = pathlib.Path(f"/proc/{stack.processes('catena_stack_echo')[0]}/environ").read_bytes().split(b"\0")
            door = next(word for word in environment if word.startswith(b"CATENA_STACK="))
            stranger = subprocess.run([ECHO, "9"], env={"CATENA_STACK": door.partition(b"=")[2].decode()}, capture_output=True,
                                      text=True, timeout=LIMIT_S, check=False)
            self.assertIn("Permission denied", stranger.stderr)


if __name__ == "__main__":
    unittest.main()
