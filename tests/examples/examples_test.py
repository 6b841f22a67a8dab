#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every example chain runs as its first lines say, and gives the same packets without a device.

Environment: CATENA_BIN, the program.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATENA = os.environ["CATENA_BIN"]
CHAINS = sorted((ROOT / "examples").glob("chains/*.yaml")) + [ROOT / "examples" / "branch-office.yaml",
                                                                ROOT / "examples" / "branches.yaml"]


def packets_of(capture):
    """The frames of a pcap file with their stamps, sorted: where ways meet there is no order of all packets."""
    packets = []
    at = 24
    while at < len(capture):
        length = int.from_bytes(capture[at + 8:at + 12], "little")
        packets.append(capture[at:at + 16 + length])
        at += 16 + length
    return sorted(packets)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="catena-examples-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        shutil.copytree(ROOT / "examples", cls.root / "examples")
        subprocess.run([ROOT / "tools" / "make-esp-capture", cls.root / "examples" / "branch-office.pcap",
                        cls.root / "out" / "branch-office-esp.pcap"], check=True, capture_output=True)

    def run_chain(self, chain, device):
        done = subprocess.run([CATENA, "run", self.root / chain.relative_to(ROOT), "--device", device, "--json"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertTrue(report["accounted"])
        return report, (self.root / "out" / f"{report['chain']}.pcap").read_bytes()

    def test_chains_of_the_papers_are_all_there(self):
        names = {chain.stem for chain in CHAINS}
        self.assertLessEqual({"c1", "c2", "c3", "c4", "c5", "sa", "sb", "sc", "sd"}, names)

    def test_every_chain_runs_and_no_device_gives_the_same_packets(self):
        for chain in CHAINS:
            with self.subTest(chain=chain.stem):
                report, capture = self.run_chain(chain, "opencl")
                self.assertGreater(report["tx"]["sent_packets"], 1000)
                for nf in report["nfs"]:
                    self.assertGreater(nf["in_packets"], nf["unsupported_packets"], f"{nf['name']} had work")
                _, other = self.run_chain(chain, "none")
                if report["steering"]:
                    self.assertEqual(packets_of(capture), packets_of(other))
                else:
                    self.assertEqual(capture, other)

    def test_packets_go_every_way_that_the_branching_one_has(self):
        report, _ = self.run_chain(ROOT / "examples/branches.yaml", "none")
        ways = {row["from"]: row for row in report["steering"]}
        self.assertEqual(set(ways["fw"]["to"]), {"ids", "rt"})
        self.assertEqual(set(ways["ids"]["to"]), {"rt", "vpn"})
        copies = ways["ids"]["mirrored"]["recorder"]
        self.assertEqual(copies, report["nfs"][1]["alerts"])
        self.assertEqual(report["mirrored_packets"], copies)
        self.assertEqual(sum(nf["queue_drops"] for nf in report["nfs"]), 0)

    def test_every_nf_of_the_chains_does_something(self):
        nat = self.run_chain(ROOT / "examples/chains/c2.yaml", "none")[0]["nfs"][1]
        self.assertGreater(nat["statistics"]["mappings_created"], 50)
        lb = self.run_chain(ROOT / "examples/chains/c3.yaml", "none")[0]["nfs"][1]
        self.assertGreater(lb["statistics"]["flows_created"], 5)
        monitor = self.run_chain(ROOT / "examples/chains/c5.yaml", "none")[0]["nfs"][1]
        self.assertGreater(monitor["statistics"]["flows_exported"], 100)
        self.assertGreater(len((self.root / "out" / "c5-flows.jsonl").read_text().splitlines()), 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
