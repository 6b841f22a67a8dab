#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The closing line of `make test`: nothing that was skipped is hidden by what passed."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
JUNIT = """<testsuite>
<testcase name="Pool.wraps" status="run"><system-out>[  PASSED  ] 1 test.</system-out></testcase>
<testcase name="Cuda.copies" status="notrun"><skipped/><system-out>pool.cpp:7: Skipped
cuda: no driver</system-out></testcase>
{}</testsuite>
"""
SKIPS = """
import unittest
class Live(unittest.TestCase):
    def test_one(self):
        self.skipTest("it's not root")
    @unittest.skipIf(True, "no tcpdump")
    def test_two(self):
        \"\"\"With words of its own.\"\"\"
    def test_three(self):
        pass
unittest.main()
"""


class Summary(unittest.TestCase):
    def summary(self, cases):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tests.xml")
            path.write_text(JUNIT.format(cases))
            done = subprocess.run([ROOT / "tools" / "summarize-tests", "--why", path], capture_output=True, text=True,
                                  check=False)
        return done.returncode, done.stdout.splitlines()[-1]

    def test_whole_tests_that_were_skipped_count_with_their_reason(self):
        self.assertEqual(self.summary(""), (0, "1 passed, 0 failed, 1 skipped (1: cuda: no driver)"))

    def test_so_do_cases_that_a_python_program_skips(self):
        output = subprocess.run([sys.executable, "-c", SKIPS, "-v"], capture_output=True, text=True, check=True).stderr
        case = f'<testcase name="live_test" status="run"><system-out>{output.replace("<", "(")}</system-out></testcase>'
        self.assertEqual(self.summary(case), (0, "2 passed, 0 failed, 3 skipped (1: cuda: no driver, 1: it's not root, "
                                                 "1: no tcpdump)"))

    def test_a_program_that_ends_before_its_last_case_failed_whatever_its_status(self):
        lines = ["[==========] Running 3 tests from 1 test suite.", "[ RUN      ] Pool.fills", "[       OK ] Pool.fills (0 ms)"]
        case = '<testcase name="pool_test" status="run"><system-out>{}</system-out></testcase>'
        self.assertEqual(self.summary(case.format("\n".join(lines))),
                         (1, "2 passed, 1 failed, 1 skipped (1: cuda: no driver)"))
        self.assertEqual(self.summary(case.format(lines[0])), (1, "1 passed, 1 failed, 1 skipped (1: cuda: no driver)"))

    def test_a_run_without_tests_is_no_result(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("one.xml", "none.xml")]
            for path, text in zip(paths, (JUNIT.format(""), "<testsuite></testsuite>")):
                path.write_text(text)
            done = subprocess.run([ROOT / "tools" / "summarize-tests", *paths], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"no test results in {paths[1]}", done.stdout)

    def test_a_program_counts_as_its_cases(self):
        lines = ["[ RUN      ] Pool.fills", "[       OK ] Pool.fills (0 ms)", "[ RUN      ] Pool.drains/1",
                 "pool.cpp:9: Skipped", "no pool", "", "[  SKIPPED ] Pool.drains/1 (2 ms)", "[ RUN      ] Pool.leaks/0",
                 "pool.cpp:11: Failure", "[  FAILED  ] Pool.leaks/0, where GetParam() = 7 (1 ms)",
                 "[  PASSED  ] 1 test.", "[  SKIPPED ] 1 test, listed below:", "[  SKIPPED ] Pool.drains/1",
                 "[  FAILED  ] 1 test, listed below:", "[  FAILED  ] Pool.leaks/0, where GetParam() = 7"]
        case = '<testcase name="pool_test" status="{}"><system-out>{}</system-out></testcase>'
        self.assertEqual(self.summary(case.format("fail", "\n".join(lines))),
                         (1, "2 passed, 1 failed, 2 skipped (1: cuda: no driver, 1: no pool)"))
        self.assertEqual(self.summary(case.format("run", "\n".join(lines[:7]))),
                         (0, "2 passed, 0 failed, 2 skipped (1: cuda: no driver, 1: no pool)"))

    def test_so_does_a_program_of_one_case(self):
        lines = ["[ RUN      ] Cuda.copies", "cuda.cpp:9: Skipped", "no driver", "", "[  SKIPPED ] Cuda.copies (2 ms)"]
        case = '<testcase name="cuda_test" status="run"><system-out>' + "\n".join(lines) + "</system-out></testcase>"
        self.assertEqual(self.summary(case), (0, "1 passed, 0 failed, 2 skipped (1: cuda: no driver, 1: no driver)"))

    def test_so_does_a_case_that_is_a_test_of_its_own(self):
        lines = ["[ RUN      ] Rates/Live.runs/fast", "live.cpp:9: Skipped", "no driver", "",
                 "[  SKIPPED ] Rates/Live.runs/fast (2 ms)", "[  SKIPPED ] 1 test, listed below:",
                 "[  SKIPPED ] Rates/Live.runs/fast"]
        case = '<testcase name="Rates/Live.runs/fast" status="notrun"><skipped/><system-out>' + "\n".join(lines) + \
            "</system-out></testcase>"
        self.assertEqual(self.summary(case), (0, "1 passed, 0 failed, 2 skipped (1: cuda: no driver, 1: no driver)"))

    def test_a_program_that_dies_after_a_case_has_failed(self):
        lines = ["[       OK ] Pool.fills (0 ms)", "[       OK ] Pool.drains (0 ms)", "[ RUN      ] Pool.leaks"]
        case = '<testcase name="pool_test" status="fail"><system-out>' + "\n".join(lines) + "</system-out></testcase>"
        self.assertEqual(self.summary(case), (1, "3 passed, 1 failed, 1 skipped (1: cuda: no driver)"))

    def test_a_failure_is_one(self):
        case = '<testcase name="Pool.fills" status="fail"><failure/></testcase>'
        self.assertEqual(self.summary(case), (1, "1 passed, 1 failed, 1 skipped (1: cuda: no driver)"))


if __name__ == "__main__":
    unittest.main()
