#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of an encrypting chain whose tx is a DPDK port, killed while packets leave: no sequence number of a key is ever used
twice. CATENA_BIN names the program."""

import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["CATENA_BIN"]
TIMEOUT_S = 120
KILLED_RUNS = 5
IV_AT = 14 + 20 + 8

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: restart}}
spec:
  rx: {rx}
  tx: {tx}
  device: none
  nfs:
    - {{name: vpn, type: ipsec, config: {{direction: encrypt, sa: sa.yaml}}}}
"""

ASSOCIATION = """associations:
  - spi: 4096
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
"""


def frames_of(path):
    """The whole frames of a little-endian capture; the last one may be cut where its writer was killed."""
    with open(path, "rb") as file:
        data = file.read()
    frames, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + length > len(data):
            break
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def numbers_of(frames):
    return [struct.unpack_from("!Q", frame, IV_AT)[0] for frame in frames]


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


class Restart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("sa.yaml"), "w", encoding="utf-8") as file:
            file.write(ASSOCIATION)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def chain(self, rx, tx):
        path = self.path("chain.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CHAIN.format(rx=rx, tx=tx))
        return path

    def live_chain(self, out, rx="{generator: {packet: 128, flows: 50, rate: 200000}}"):
        return self.chain(rx, '{dpdk: "net_pcap0,tx_pcap=' + out + '"}')

    def run_to_end(self, chain, *arguments):
        return subprocess.run([BIN, "run", chain, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S,
                              check=False)

    def run_and_end_by(self, end_signal, out, *arguments):
        """Starts a run, and ends it when it has sent some packets and a little more."""
        with subprocess.Popen([BIN, "run", self.live_chain(out), *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            limit = time.monotonic() + TIMEOUT_S
            while size_of(out) < 500_000 and process.poll() is None and time.monotonic() < limit:
                time.sleep(0.005)
            self.assertGreaterEqual(size_of(out), 500_000, process.stderr.read() if process.poll() is not None else "")
            process.send_signal(end_signal)
            process.communicate(timeout=TIMEOUT_S)
            return process.returncode

    def test_a_live_run_without_state_is_refused_and_told_what_to_do(self):
        count = "{generator: {packet: 128, count: 100}}"
        result = self.run_to_end(self.live_chain(self.path("out.pcap"), count))
        self.assertEqual(result.returncode, 1)
        self.assertIn("NF 'vpn'", result.stderr)
        self.assertIn("no state of the association with SPI 4096", result.stderr)
        self.assertIn("--new-keys 4096 ", result.stderr)
        self.assertFalse(frames_of(self.path("out.pcap")) if size_of(self.path("out.pcap")) else [])
        result = self.run_to_end(self.live_chain(self.path("out.pcap"), count), "--new-keys", "4096")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 new, 0 continued", result.stderr)
        result = self.run_to_end(self.live_chain(self.path("more.pcap"), count))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(numbers_of(frames_of(self.path("out.pcap"))), list(range(1, 101)))
        self.assertEqual(numbers_of(frames_of(self.path("more.pcap"))), list(range(101, 201)))

    def test_runs_that_are_killed_never_use_a_number_twice(self):
        seen = set()
        for run in range(KILLED_RUNS):
            out = self.path(f"out{run}.pcap")
            status = self.run_and_end_by(signal.SIGKILL, out, *(["--new-keys", "4096"] if run == 0 else []))
            self.assertEqual(status, -signal.SIGKILL)
            numbers = numbers_of(frames_of(out))
            self.assertGreater(len(numbers), 1000)
            self.assertEqual(len(set(numbers)), len(numbers))
            self.assertTrue(seen.isdisjoint(numbers), f"run {run} uses numbers of an earlier one")
            self.assertTrue(not seen or min(numbers) > max(seen))
            seen.update(numbers)
        out = self.path("last.pcap")
        self.assertEqual(self.run_and_end_by(signal.SIGTERM, out), 0)
        last = numbers_of(frames_of(out))
        self.assertTrue(seen.isdisjoint(last))
        # who ended by himself loses no number
        out = self.path("after.pcap")
        self.run_and_end_by(signal.SIGTERM, out)
        self.assertEqual(numbers_of(frames_of(out))[0], last[-1] + 1)

    def test_a_process_goes_on_with_the_numbers_of_the_one_before_where_the_chain_has_another_shape(self):
        place = "isolation: process, "
        firewall = "    - {name: fw, type: firewall, config: {rules: all.rules, default: allow}}\n"
        with open(self.path("all.rules"), "w", encoding="utf-8") as file:
            file.write("allow any any any any any\n")
        out = self.path("out.pcap")

        def write(extra):
            path = self.live_chain(out, "{generator: {packet: 128, flows: 50, rate: 20000}}")
            with open(path, encoding="utf-8") as file:
                text = file.read().replace("type: ipsec, ", "type: ipsec, " + place)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + extra)
            return path

        with subprocess.Popen([BIN, "run", write(""), "--new-keys", "4096"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            limit = time.monotonic() + TIMEOUT_S
            for extra in (firewall, "", firewall):
                size = size_of(out)
                while size_of(out) < size + 300_000 and process.poll() is None and time.monotonic() < limit:
                    time.sleep(0.005)
                write(extra)
                process.send_signal(signal.SIGHUP)
                time.sleep(1)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, said)
        self.assertNotIn("restarts without its previous state", said)
        self.assertEqual(said.count("chain replaced"), 3, said)
        numbers = numbers_of(frames_of(out))
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), said)

    def test_two_runs_at_once_are_refused(self):
        out = self.path("out.pcap")
        with subprocess.Popen([BIN, "run", self.live_chain(out), "--new-keys", "4096"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            try:
                limit = time.monotonic() + TIMEOUT_S
                while size_of(out) < 100_000 and time.monotonic() < limit:
                    time.sleep(0.005)
                result = self.run_to_end(self.live_chain(self.path("other.pcap")))
                self.assertEqual(result.returncode, 1)
                self.assertIn("another run uses these keys", result.stderr)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=TIMEOUT_S)

    def test_runs_into_a_capture_are_the_same_every_time(self):
        for name in ("a.pcap", "b.pcap"):
            result = self.run_to_end(self.chain("{generator: {packet: 128, count: 500}}", f"{{pcap: {name}}}"))
            self.assertEqual(result.returncode, 0, result.stderr)
        first, second = frames_of(self.path("a.pcap")), frames_of(self.path("b.pcap"))
        self.assertEqual(len(first), 500)
        self.assertEqual(first, second)
        self.assertFalse(os.path.exists(self.path("sa.yaml.state")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
