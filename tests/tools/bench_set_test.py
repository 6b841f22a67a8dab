#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/bench-set notes of a block, and how it ends one."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import stat
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True  # beside the tool
from bench_pages.page import Page  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("bench_set", str(ROOT / "tools" / "bench-set"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


bench_set = load()
PART = bench_set.Part(None, tuple(os.sched_getaffinity(0)))


class Notes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_name_the_blocks_that_ran_beside_one(self):
        neighbours = bench_set.Neighbours()
        for name in ("a", "b"):
            neighbours.begin(name)
        self.assertEqual(neighbours.end("b"), ["a"])
        neighbours.begin("c")
        self.assertEqual((neighbours.end("a"), neighbours.end("c")), (["b", "c"], ["a"]))
        neighbours.begin("d")
        self.assertEqual(neighbours.end("d"), [])

    def test_are_of_the_run_that_was_added(self):
        path = self.folder / "block.json"
        self.assertEqual(bench_set.runs_in(path), 0)
        bench_set.note(path, 0, {"beside": []})
        self.assertFalse(path.exists(), "a block that wrote nothing")
        path.write_text(json.dumps({"runs": [{"machine": "first"}, {"machine": "second"}]}))
        bench_set.note(path, 2, {"beside": ["a"]})
        bench_set.note(path, 1, {"beside": ["b"]})
        self.assertEqual(json.loads(path.read_text())["runs"], [{"machine": "first"}, {"machine": "second", "beside": ["b"]}])

    def test_have_the_clocks_of_the_gpu(self):
        program = self.folder / "nvidia-smi"
        program.write_text("#!/bin/sh\necho 'NVIDIA H200, 1980, 3201'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            clocks = bench_set.GpuClocks(PART)
            while not clocks.samples:
                time.sleep(0.01)
        self.assertEqual(clocks.end(), {"name": "NVIDIA H200", "sm_mhz": [1980] * 3, "memory_mhz": [3201] * 3})

    def test_without_a_gpu_say_so(self):
        with unittest.mock.patch.dict(os.environ, PATH=str(self.folder)):
            self.assertEqual(bench_set.GpuClocks(PART).end(), {"name": "none"})

    def test_are_on_the_page(self):
        gpu = {"name": "NVIDIA H200", "sm_mhz": [1900, 1950, 1980], "memory_mhz": [3201] * 3}
        page = Page()
        page.surroundings({"runs": [{}]})
        self.assertEqual(page.markdown(), "", "results that bench-set did not measure")
        page.surroundings({"runs": [{"beside": ["c4-64", "stages"], "gpu": gpu}, {"beside": [], "gpu": {"name": "none"}}]})
        self.assertIn("| 1 | c4-64, stages | NVIDIA H200 | 1950 (1900 .. 1980) | 3201 (3201 .. 3201) |", page.markdown())
        self.assertIn("| 2 | nothing | none | - | - |", page.markdown())


class Blocks(unittest.TestCase):
    def test_have_names_of_their_own_and_time_to_end(self):
        names = [block.name for block in bench_set.BLOCKS]
        self.assertEqual(len(names), len(set(names)))
        for block in bench_set.BLOCKS:
            self.assertLess(block.seconds, bench_set.LIMIT_S, block.name)
            self.assertTrue(not block.program or (ROOT / block.program).exists(), block.name)

    def test_of_nginx_measure_each_of_its_rows_once(self):
        sys.path.insert(0, str(ROOT / "bench" / "havs"))
        import nginx  # noqa: E402
        blocks = [nginx.options().parse_args([*block.words.split(), "--out", "x"]) for block in bench_set.BLOCKS
                  if block.program == bench_set.NGINX]
        measured = [(group, block.sizes or block.lost if group in ("loss", *nginx.SIZES) else None)
                    for block in blocks for group in block.groups.split(",")]
        for group, sizes in nginx.SIZES.items():
            self.assertEqual([rows for name, rows in measured if name == group], [[size] for size in sizes])
        self.assertEqual([rows for name, rows in measured if name == "loss"], [[lost] for lost in nginx.LOST])
        self.assertEqual({name for name, _ in measured}, set(nginx.GROUPS))


class Limits(unittest.TestCase):
    def test_let_a_block_end_what_it_has_started(self):
        program = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print(flush=True)\n" \
                  "try: time.sleep(60)\nfinally: open(sys.argv[1], 'w').close()"
        with tempfile.TemporaryDirectory() as folder:
            mark = pathlib.Path(folder) / "ended"
            self.assertFalse(bench_set.run([sys.executable, "-c", program, mark], 2, PART))
            self.assertTrue(mark.exists())
        self.assertTrue(bench_set.run(["true"], 10, PART))


if __name__ == "__main__":
    unittest.main()
