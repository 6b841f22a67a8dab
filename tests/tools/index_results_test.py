#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which set tools/index-results --age takes for the newest."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "index-results"

sys.dont_write_bytecode = True  # beside the tool


def load():
    loader = importlib.machinery.SourceFileLoader("index_results", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Age(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tool = load()
        self.tool.ROOT = pathlib.Path(folder.name)
        self.git("init", "-q")

    def git(self, *words):
        done = subprocess.run(["git", "-C", self.tool.ROOT, "-c", "user.name=a", "-c", "user.email=a@b", *words],
                              capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, file="page"):
        path = self.tool.ROOT / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{path.read_text() if path.exists() else ''}.", encoding="utf-8")
        self.git("add", file)
        self.git("commit", "-qm", "one more")
        return self.git("rev-parse", "HEAD")

    def add_set(self, name, *commits):
        folder = self.tool.ROOT / "bench" / "results" / name
        folder.mkdir(parents=True)
        rows = "".join(f"{number},about,commit,,,,{commit}\n" for number, commit in enumerate(commits))
        (folder / "results.csv").write_text(f"run,cell,what,median,smallest,largest,values\n{rows}", encoding="utf-8")

    def test_is_that_of_the_newest_commit_of_the_last_day(self):
        first, second, third = self.commit(), self.commit(), self.commit("src/a")
        self.add_set("2026-11-28-h200-staged", first)
        self.add_set("2026-11-28-h200-peers", first, second)
        self.add_set("2026-11-27-h200-later-code", third)
        self.assertEqual(self.tool.age(), (f"results: 2026-11-28-h200-peers is of {second[:12]}, 1 commits behind; 1 of them "
                                           "changed src, include, nfs", 1))

    def test_is_unknown_where_git_does_not_know_the_commit(self):
        self.commit()
        self.add_set("2026-11-28-h200-peers", "0123456789ab")
        words, changes = self.tool.age()
        self.assertIsNone(changes)
        self.assertIn("is of 0123456789ab, and git does not know", words)


if __name__ == "__main__":
    unittest.main()
