#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make install` in a tree that has built nothing else: whatever it copies from the build folder, it has built, and no test.

Compares CMake's lists of what is installed with what Ninja would build for the targets that the Makefile names. Builds
nothing itself.
"""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


class FromABuiltOnlyTree(unittest.TestCase):
    def test_everything_installed_is_built_first(self):
        for preset in ("release", "test"):  # after `make build`, after `make test`
            with self.subTest(preset), tempfile.TemporaryDirectory() as folder:
                self.installed_is_built(preset, folder)

    def installed_is_built(self, preset, folder):
        output_of("cmake", "--preset", preset, "-B", folder)
        lists = [path.read_text() for path in pathlib.Path(folder).rglob("cmake_install.cmake")]
        installed = {name for text in lists for name in re.findall(re.escape(folder) + r'/([^";]+)"', text)}
        files = {name for name in installed if "." in pathlib.PurePath(name).name or name.endswith("/catena")}
        wanted = {name for name in files
                  if not name.endswith((".cmake", "cmake_install.cmake")) and "CMakeRelink.dir" not in name}
        self.assertLessEqual({"src/apps/catena/catena", "src/apps/catena/catena.1", "src/apps/catena/catena.bash"}, wanted)
        self.assertTrue(any("libnca.so" in name for name in wanted), wanted)

        recipe = output_of("make", "-n", "install")
        targets = [word for line in recipe.splitlines() if "--target" in line
                   for word in line.split("--target")[1].split()]
        built = set(output_of("ninja", "-C", folder, "-t", "commands", *targets).replace(folder + "/", "").split())
        missing = {name for name in wanted if name not in built and not (pathlib.Path(folder) / name).exists()}
        self.assertEqual(missing, set(), "installed, but not built by `make install`")
        self.assertEqual({name for name in built if "_test.dir/" in name}, set(), "built and not installed")


if __name__ == "__main__":
    unittest.main()
