# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks that are scripts, in the form that catena-bench writes and tools/render-bench reads."""

import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAME_FIELDS = ("part", "commit", "seconds", "repeats", "settings")  # of results that are gone on with


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"


def output_of(*words):
    """The first line of what a program writes; "unknown" where there is no such program, or it failed."""
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def cpu_seconds(*pids):
    """Processor seconds of the processes and of those below them that still run, all read at one time."""
    seconds, parents = {}, {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_below(one):
        while one in parents and one not in pids:
            one = parents[one]
        return one in pids
    return sum(taken for one, taken in seconds.items() if is_below(one))


class Cores:
    """That processes, and those below them, take from now on."""

    def __init__(self, pids):
        self.pids = pids
        self.begin = time.monotonic()
        self.before = cpu_seconds(*pids)

    def taken(self):
        return (cpu_seconds(*self.pids) - self.before) / (time.monotonic() - self.begin)


def add_options(parser, seconds):
    """Of every such benchmark."""
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=seconds)


class Results:
    """A file of results under way. What is in it already, of the same commit and measured the same way, stays. One for a
    program: SIGTERM, by which tools/bench-set ends a block, ends it as an error does, and with it what it has started."""

    def __init__(self, part, arguments, settings):
        self.path = arguments.out
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal; finished repeats are kept"))
        commit = os.environ.get("CATENA_COMMIT") or output_of("git", "-C", str(ROOT), "describe", "--always", "--abbrev=12",
                                                              "--dirty=-modified", "--exclude=*")
        self.json = {"part": part, "commit": commit, "seconds": arguments.seconds, "repeats": arguments.repeats,
                     "settings": settings, "runs": [], "notes": [], "chains": {}, "cells": []}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            earlier = json.loads(self.path.read_text(encoding="utf-8"))
            for field in SAME_FIELDS:
                if earlier[field] != self.json[field]:
                    sys.exit(f"{self.path} is of {field} {earlier[field]}; this run is of {self.json[field]}")
            self.json["runs"] = earlier["runs"]
            self.json["cells"] = [cell for cell in earlier["cells"] if "error" not in cell and cell["repeats"]]
        self.json["runs"].append({
            "machine": machine(), "command": " ".join(sys.argv),
            "device": output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")})

    def measure(self, key, ways):
        """One cell, or the repeats that one lacks: `ways` are (name, what measures it and gives a dict), which take turns
        within each repeat after a first round that does not count. Each repeat is kept once it is finished. What cannot be
        measured is said in the cell."""
        cell = next((cell for cell in self.json["cells"] if all(cell.get(name) == value for name, value in key.items())), None)
        if cell is None:
            cell = {**key, "run": len(self.json["runs"]) - 1, "repeats": []}
            self.json["cells"].append(cell)
        missing = self.json["repeats"] - len(cell["repeats"])
        if missing <= 0:
            return
        try:
            for _, work in ways:
                work()
            for _ in range(missing):
                cell["repeats"].append({way: work() for way, work in ways})
                print(key, cell["repeats"][-1], flush=True)
                self.save()
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            cell["error"] = str(error)
            print(key, error, flush=True)
        self.save()

    def save(self):
        """Who reads meanwhile, or after a run that was cut off, finds the file whole."""
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.json, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.path)

    def exit_status(self):
        return 1 if any("error" in cell for cell in self.json["cells"]) else 0
