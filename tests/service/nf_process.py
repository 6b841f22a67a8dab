# SPDX-License-Identifier: Apache-2.0
"""What the tests of NFs in processes have in common."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from command import descendants_of, name_of
from harness import BIN, DATA, LIMIT_S, wait_for

KILLS = int(os.environ.get("CATENA_KILLS", "3"))  # of each kind
EXAMPLE = pathlib.Path(DATA).parents[2] / "examples" / "branch-office.pcap"
NFS = [
    f"{{name: fw, type: firewall, on: PLACE, isolation: HOW, config: {{rules: {DATA}/fw.rules, default: allow}}}}",
    f"{{name: ids, type: nids, on: PLACE, isolation: HOW, config: {{rules: {DATA}/ids.rules}}}}",
    f"{{name: vpn, type: ipsec, on: PLACE, isolation: HOW, config: {{direction: encrypt, sa: {DATA}/sa-all.yaml}}}}",
    f"{{name: rt, type: router, on: cpu, isolation: HOW, config: {{routes: {DATA}/routes.txt}}}}",
]
GROUP = "{group: g}"


def process_below(pid, name, other_than=None):
    """A process that has the name `name` for the kernel, below the process `pid`."""
    return next((each for each in descendants_of(pid) if each != other_than and name_of(each) == name), None)


def nf_process_of(pid, other_than=None):
    return process_below(pid, "catena-nf", other_than)


def monitor(exports, more=""):
    return f"{{name: flows, type: monitor, on: PLACE, isolation: HOW, config: {{export: [{exports}]{more}}}}}"


class NfProcessTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="nfp", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)

    def chain(self, how, nfs, rx=f"{{pcap: {EXAMPLE}}}", tx=None, device="none", place="cpu", more=""):
        path = self.folder / "chain.yaml"
        nfs = "".join(f"    - {nf.replace('HOW', how.ljust(7)).replace('PLACE', place)}\n" for nf in nfs)
        path.write_text(f"apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: c}}\nspec:\n  rx: {rx}\n"
                        f"  tx: {tx or 'null'}\n  device: {device}\n{more}  nfs:\n{nfs}")
        return path

    def start(self, file, *words):
        process = subprocess.Popen([BIN, "run", file, "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(lambda: process.kill() or process.communicate())
        return process

    def run_chain(self, file, *words, status=0):
        done = subprocess.run([BIN, "run", file, "--json", *words], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def command(self, *words, status=0):
        done = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def pids(self, process):
        """The numbers that the start report gives to the processes of the NFs."""
        lines = []
        while not lines or not lines[-1].startswith("tx "):
            lines.append(process.stderr.readline())
            self.assertTrue(lines[-1], "".join(lines))
        return [int(each) for each in re.findall(r"process of (?:its own|group '\w+'), number (\d+)", "".join(lines))]

    def assert_same(self, device, place, *words, how="process", more=""):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        reference = self.run_chain(self.chain("none", NFS, tx=f"{{pcap: {expected}}}"))
        report = self.run_chain(self.chain(how, NFS, tx=f"{{pcap: {out}}}", device=device, place=place, more=more),
                                *words)
        self.assertEqual(out.read_bytes(), expected.read_bytes())
        for nf, of in zip(report["nfs"], reference["nfs"]):
            self.assertEqual(nf["on"], "process")
            for key in ("in_packets", "passed_packets", "alerts", "replies", "unsupported_packets", "link_local_packets",
                        "not_inspected", "drops", "statistics", "process_restarts"):
                self.assertEqual(nf[key], of[key], (nf["name"], key))
        return report

    def assert_device_returns(self, how, nfs):
        def server_of(pid, other_than=None):
            return process_below(pid, "catena-device-s", other_than)

        rx = "{generator: {rate: 100000, packet: 200}}"
        process = self.start(self.chain(how, nfs, rx=rx, device="opencl", place="gpu"), "--workers", "2")
        self.pids(process)
        lines, dead = [], None
        for _ in range(KILLS):
            dead = wait_for(lambda before=dead: server_of(process.pid, before))
            os.kill(dead, signal.SIGKILL)
            lines.append("")
            while "is in use again" not in lines[-1]:
                lines.append(process.stderr.readline())
                self.assertTrue(lines[-1], "".join(lines))
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, errors)
        report = json.loads(out)
        self.assertEqual(report["nfs"][0]["process_restarts"], 0, "".join(lines))
        self.assertEqual(report["tx"]["sent_packets"] + report["dropped_packets"], report["rx"]["received_packets"])
