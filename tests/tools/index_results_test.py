#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which sets tools/index-results takes for the newest, and for old."""

import contextlib
import importlib.machinery
import importlib.util
import io
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
        self.assertEqual(self.tool.age(*self.tool.newest_set()), (f"results: 2026-11-28-h200-peers is of {second[:12]}, 1 commits behind; 1 of them "
                                           "changed src, include, nfs", 1))

    def test_is_unknown_where_git_does_not_know_the_commit(self):
        self.commit()
        self.add_set("2026-11-28-h200-peers", "0123456789ab")
        words, changes = self.tool.age(*self.tool.newest_set())
        self.assertIsNone(changes)
        self.assertIn("is of 0123456789ab, and git does not know", words)

    def fresh(self):
        """(exit status, what is said) of --fresh."""
        said, argv = io.StringIO(), sys.argv
        sys.argv = ["index-results", "--fresh"]
        try:
            with contextlib.redirect_stdout(said):
                self.tool.main()
            return 0, said.getvalue()
        except SystemExit as end:
            return 1, f"{said.getvalue()}{end}"
        finally:
            sys.argv = argv

    def test_a_release_needs_every_set_that_is_shown_to_be_of_this_code(self):
        old, new = self.commit("src/a"), self.commit("src/a")
        self.add_set("2026-11-28-old", old)
        self.add_set("2026-11-29-new", new)
        (self.tool.ROOT / "docs").mkdir()
        page = self.tool.ROOT / "docs" / "performance.md"
        page.write_text("[a](../bench/results/2026-11-29-new/README.md)", encoding="utf-8")
        (self.tool.ROOT / "README.md").write_text("", encoding="utf-8")
        status, said = self.fresh()
        self.assertEqual(status, 0, said)
        self.assertNotIn("old", said)
        (self.tool.ROOT / "README.md").write_text("[b](bench/results/2026-11-28-old/README.md)", encoding="utf-8")
        status, said = self.fresh()
        self.assertEqual(status, 1)
        self.assertIn("2026-11-28-old is of", said)
        self.assertIn("measure these sets again", said)
        self.commit("src/a")
        (self.tool.ROOT / "README.md").write_text("", encoding="utf-8")
        self.assertEqual(self.fresh()[0], 1)


if __name__ == "__main__":
    unittest.main()
