# SPDX-License-Identifier: Apache-2.0
"""A `catena run` under way, for benchmarks that are scripts."""

import json
import os
import re
import subprocess
import threading
import time

from common.results import cpu_seconds

LIVE = re.compile(r"^\s*\d+ s\s+received\s+(\d+)")
LEAST_TAKEN = 0.99  # of what is offered
START_S = 120  # within which a run must have started


class CatenaRun:
    """Keeps the log, and of each of its lines of a second the time."""

    def __init__(self, words, env=None):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.log = []
        self.lines = []  # (packets received, time)
        self.begin = None  # (time, processor seconds) when it has started
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            found = LIVE.match(line)
            if found:
                self.lines.append((int(found.group(1)), time.monotonic()))
            elif line.startswith("tx "):
                self.begin = (time.monotonic(), cpu_seconds(self.process.pid))
            self.log.append(line)

    def wait_until(self, what, seconds=START_S):
        """Raises RuntimeError with the end of the log if the run ends before, or the time is over."""
        end = time.monotonic() + seconds
        while not what():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the run ended early, or hangs: {''.join(self.log[-20:])}")
            time.sleep(0.002)

    def wait_for(self, text, count=1):
        """Waits for `count` lines of the log with the text."""
        self.wait_until(lambda: sum(text in line for line in self.log) >= count)

    def wait_for_lines(self, count):
        """Waits for `count` lines of a second."""
        self.wait_until(lambda: len(self.lines) >= count, START_S + count)

    def report(self):
        """(report, processor seconds in all) once the run has ended. Raises RuntimeError for an error, or packets without an
        account."""
        output = self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.reader.join()
        report = json.loads(output or "{}")
        if self.process.returncode or report.get("error") or not report["accounted"]:
            raise RuntimeError(f"exit status {self.process.returncode}: {report.get('error')} {''.join(self.log[-20:])}")
        return report, usage.ru_utime + usage.ru_stime

    def received_at(self, when):
        """Packets received until then, by the lines before and after."""
        for (before, begin), (after, end) in zip(self.lines, self.lines[1:]):
            if begin <= when <= end:
                return before + (after - before) * (when - begin) / (end - begin)
        raise RuntimeError(f"no lines of the run are around that time: {''.join(self.log[-20:])}")


def check_load(taken_per_s, offered_per_s):
    """Raises RuntimeError if fewer packets were taken than were offered. 0 offered: as fast as it goes."""
    if taken_per_s < LEAST_TAKEN * offered_per_s:
        raise RuntimeError(f"{taken_per_s:.0f} packets/s taken of {offered_per_s} offered")


def measure_together(runs, seconds):
    """(packets a second, cores) of all runs over one window, which begins when each has run for a second: their lines come
    at times of their own, and windows between lines would be of different times."""
    for run in runs:
        run.wait_for_lines(1)
    begin, used = time.monotonic(), cpu_seconds(*(run.process.pid for run in runs))
    time.sleep(seconds)
    end, used = time.monotonic(), cpu_seconds(*(run.process.pid for run in runs)) - used
    for run in runs:
        run.wait_until(lambda run=run: run.lines[-1][1] >= end)
    received = sum(run.received_at(end) - run.received_at(begin) for run in runs)
    return received / (end - begin), used / (end - begin)
