#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a check reads again: a file too many costs time, one too few hides what it would have found."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = {
    "CMakeLists.txt": "project(x)\n",
    "src/a/CMakeLists.txt": "add_library(a a.cpp)\n",
    "src/a/a.hpp": "#pragma once\n",
    "src/a/a.cpp": '#include "a/a.hpp"\n',
    "src/b/b.hpp": '#pragma once\n#include "a/a.hpp"\n',
    "src/b/b.cpp": '#include "b/b.hpp"\n',
    "src/c/c.cpp": "int c;\n",
}
SOURCES = {name for name in TREE if name.endswith(".cpp")}


class AffectedFiles(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.tree = pathlib.Path(place.name)
        for name, text in TREE.items():
            self.write(name, text)
        (self.tree / "tools").mkdir()
        for name in ("affected-files", "list-files", "check-tidy", "check-headers"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools" / name)
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
            subprocess.run(["git", *command], cwd=self.tree, check=True)

    def write(self, name, text):
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def run_tool(self, *command, base="HEAD"):
        environment = {**os.environ, "CATENA_BASE": base}
        return subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False)

    def affected(self, *options):
        done = self.run_tool("tools/affected-files", *options, "src/*.cpp")
        self.assertEqual(done.returncode, 0, done.stderr)
        return set(done.stdout.split())

    def test_nothing_changed(self):
        self.assertEqual(self.affected(), set())

    def test_a_source_and_a_new_one(self):
        self.write("src/c/c.cpp", "int d;\n")
        self.write("src/c/d.cpp", "int e;\n")
        self.assertEqual(self.affected(), {"src/c/c.cpp", "src/c/d.cpp"})

    def test_a_header_decides_about_all_that_include_it_over_others_too(self):
        self.write("src/a/a.hpp", "#pragma once\nint a;\n")
        self.assertEqual(self.affected(), {"src/a/a.cpp", "src/b/b.cpp"})

    def test_a_list_of_a_folder_decides_about_what_is_below_it(self):
        self.write("src/a/CMakeLists.txt", "\n")
        self.assertLessEqual({"src/a/a.cpp"}, self.affected())
        self.assertNotIn("src/c/c.cpp", self.affected())

    def test_of_those_that_include_a_changed_header_one_is_enough_its_own_source_if_there_is_one(self):
        self.write("src/a/a.hpp", "#pragma once\nint a;\n")
        self.assertEqual(self.affected("--one-reader"), {"src/a/a.cpp"})
        self.write("src/c/c.hpp", "#pragma once\n")
        self.assertEqual(self.affected("--one-reader"), {"src/a/a.cpp"}, "nobody includes the other")
        self.write("src/b/b.cpp", '#include "b/b.hpp"\n#include "c/c.hpp"\n')
        self.assertEqual(self.affected("--one-reader"), {"src/a/a.cpp", "src/b/b.cpp"})
        self.write("src/a/CMakeLists.txt", "\n")
        self.assertEqual(self.affected("--one-reader"), {"src/a/a.cpp", "src/b/b.cpp"})
        self.write(".clang-tidy", "# x\n")
        self.assertEqual(self.affected("--one-reader"), SOURCES)

    def test_what_decides_about_every_file(self):
        for name in ("CMakeLists.txt", ".clang-tidy", "cmake/x.cmake", "tools/check-headers", "tools/tidy-runner",
                     "tools/debian-packages.txt"):
            with self.subTest(name):
                self.setUp()
                path = self.tree / name
                self.write(name, (path.read_text() if path.exists() else "") + "# x\n")
                self.assertEqual(self.affected(), SOURCES)

    def test_what_concerns_installations_alone_decides_about_no_file(self):
        for name in ("cmake/CatenaPackage.cmake", "cmake/CatenaConfig.cmake.in"):
            self.write(name, "# x\n")
        self.assertEqual(self.affected(), set())

    def test_a_check_that_does_not_know_what_to_read_fails(self):
        (self.tree / "compile_commands.json").write_text("[]")
        for command in (["tools/affected-files", "src/*.cpp"], ["tools/check-tidy", "."], ["tools/check-headers"]):
            with self.subTest(command[0]):
                done = self.run_tool(*command, base="no-such-commit")
                self.assertEqual(done.returncode, 1)
                self.assertIn("no commit no-such-commit", done.stderr)


if __name__ == "__main__":
    unittest.main()
