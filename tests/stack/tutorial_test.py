#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of the tutorial in docs/stack-programs.md, in order, in one shell and a network namespace of its own.

Needs root, nginx, curl and iproute2. Environment: that of stack_run.py.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from stack_run import BIN, LIMIT_S, PATH, enter_namespace

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "stack-programs.md"


def setUpModule():
    lacking = [program for program in ("nginx", "curl", "ss") if shutil.which(program, path=PATH) is None]
    if lacking:
        raise unittest.SkipTest(f"not installed: {', '.join(lacking)}")
    enter_namespace()


class Tutorial(unittest.TestCase):
    def test_every_command_works(self):
        section = re.search(r"^## Tutorial$(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.M | re.S).group(1)
        blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
        self.assertEqual(len(blocks), 5)
        folder = tempfile.mkdtemp(prefix="catena-stack-tutorial-")
        self.addCleanup(shutil.rmtree, folder)
        process = subprocess.Popen(["bash", "-e", "-o", "pipefail"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   cwd=folder, text=True, start_new_session=True,
                                   env={**os.environ, "PATH": f"{BIN.parent}:{PATH}", "CATENA_DATA_DIR": folder})
        try:
            output, _ = process.communicate("\n".join(blocks), timeout=2 * LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.fail(f"a command hangs: {process.communicate()[0]}")
        self.assertEqual(process.returncode, 0, output)
        self.assertEqual(output.count("hello from the stack"), 3, output)
        self.assertNotIn("LISTEN", output)
        reports = re.findall(r"^stack +(\d+) connections, 0 refused, \d+ B received, (\d+) B sent; copied by cpu \d+, engine (\d+)$", output, re.M)
        self.assertEqual(len(reports), 2, output)
        self.assertGreaterEqual(int(reports[0][0]), 3)
        self.assertEqual(reports[0][2], "0")
        self.assertGreater(int(reports[1][1]), 1_000_000)
        self.assertGreater(int(reports[1][2]), 0)
        self.assertEqual(len(re.findall(r"^cpu +port \d+ %", output, re.M)), 2, output)


if __name__ == "__main__":
    unittest.main()
