#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sender of bench/change/change.py: a pause of the receiver shows as loss, and nothing else does. CATENA_BIN and
CATENA_BENCH_SENDER name the programs."""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "change")]
import change  # noqa: E402

SENDER = os.environ["CATENA_BENCH_SENDER"]
RATE = 100_000
PAUSE_S = 0.5


class Senders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bench = change.Bench(argparse.Namespace(catena=os.environ["CATENA_BIN"], sender=SENDER, device="none"),
                                  pathlib.Path(folder.name))

    def test_lose_what_is_due_while_nobody_receives(self):
        self.bench.write_rules(0)
        self.bench.write_chain("cpu", False)
        receiver = self.bench.start_chain()
        self.addCleanup(receiver.process.kill)
        sender = change.Sender(SENDER, self.bench.ring("client"), RATE)
        self.addCleanup(sender.process.kill)
        time.sleep(change.WARM_UP_S + 0.5)
        receiver.process.send_signal(signal.SIGSTOP)
        time.sleep(PAUSE_S)
        receiver.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        sent = sender.end()
        counts = change.accounts(sent, change.end(receiver), receiver.log)  # raises where a packet is missing
        paused = PAUSE_S * RATE - (1 << change.RING)
        self.assertGreater(counts["lost"], 0.8 * paused)
        self.assertGreater(counts["longest_pause_us"], 0.8e6 * PAUSE_S)
        self.assertGreater(counts["offered"], 0.9 * RATE * (1 + PAUSE_S), "the schedule goes on")

    def test_refuse_what_is_no_rate(self):
        done = subprocess.run([SENDER, "net_memif0", "fast", "4096", "1"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: catena-bench-sender", done.stderr)


if __name__ == "__main__":
    unittest.main()
