#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What benchmarks that are scripts have in common: bench/common/results.py and catena_run.py."""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common import catena_run  # noqa: E402
from common.results import Results, cpu_seconds  # noqa: E402

KEY = {"group": "ways", "threads": 2}


class Repeats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.arguments = argparse.Namespace(out=pathlib.Path(folder.name) / "some.json", seconds=1, repeats=3)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    def cells(self):
        return json.loads(self.arguments.out.read_text())["cells"]

    def test_that_are_finished_stay_when_the_program_is_ended_and_the_others_are_measured_later(self):
        works = 0

        def work():
            nonlocal works
            works += 1
            if works == 4:  # the first round does not count: two repeats are finished
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(1)
            return {"number": works}
        with self.assertRaises(SystemExit):
            Results("some", self.arguments, {}).measure(KEY, [("one", work)])
        self.assertEqual(self.cells(), [{**KEY, "run": 0, "repeats": [{"one": {"number": 2}}, {"one": {"number": 3}}]}])
        results = Results("some", self.arguments, {})
        for _ in range(2):  # the second time nothing is missing
            results.measure(KEY, [("one", work)])
        self.assertEqual([repeat["one"]["number"] for repeat in self.cells()[0]["repeats"]], [2, 3, 6])

    def test_of_a_cell_that_failed_are_measured_again(self):
        def fail():
            raise RuntimeError("it fell over")
        results = Results("some", self.arguments, {})
        results.measure(KEY, [("one", fail)])
        self.assertEqual((self.cells()[0]["error"], results.exit_status()), ("it fell over", 1))
        Results("some", self.arguments, {}).measure(KEY, [("one", lambda: {"number": 1})])
        self.assertEqual([len(cell["repeats"]) for cell in self.cells()], [3])


def run_of(lines):
    """A run under way, with lines (packets received, time)."""
    run = catena_run.CatenaRun.__new__(catena_run.CatenaRun)
    run.lines, run.log = list(lines), []
    return run


class Windows(unittest.TestCase):
    def test_of_runs_that_began_at_different_times_are_one(self):
        first = run_of([(1000 * second, second) for second in range(1, 6)])
        late = run_of([(0, 1.7), (2000, 2.7), (4000, 3.7), (6000, 4.7)])
        self.assertEqual(first.received_at(2.5), 2500)
        self.assertEqual(late.received_at(4.2), 5000)
        with self.assertRaises(RuntimeError):
            late.received_at(1.5)

    def test_are_of_all_processes_at_one_time(self):
        runs = [run_of([]) for _ in range(2)]
        begin = time.monotonic()
        for number, run in enumerate(runs):
            run.process = types.SimpleNamespace(pid=os.getpid(), poll=lambda: None)
            run.lines = [(int(1e6 * at), begin + 0.3 * number + at) for at in range(-2, 10)]
        rate, cores = catena_run.measure_together(runs, 0.5)
        self.assertAlmostEqual(rate, 2e6, delta=1)
        self.assertLess(cores, 1.1, "one process, named twice, is counted once")

    def test_count_each_process_below_once(self):
        self.assertLess(cpu_seconds(os.getpid(), os.getpid()), 1.5 * cpu_seconds(os.getpid()))
        self.assertEqual(cpu_seconds(), 0)


if __name__ == "__main__":
    unittest.main()
