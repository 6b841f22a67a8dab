# SPDX-License-Identifier: Apache-2.0
"""Runs the programs that a test needs. CTest puts this folder on PYTHONPATH."""

import os
import subprocess

# a sanitizer needs more addresses than the sandbox of an NF has: in its builds no NF can have a process of its own
HAS_PROCESSES = os.environ.get("CATENA_SANITIZER", "none") in ("", "none")
NO_PROCESSES = "NFs have no processes in sanitizer builds"


def children_of(pid):
    """The processes that any thread of the process has started and that are there; none if the process has ended."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    children = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                children += [int(child) for child in file.read().split()]
        except OSError:
            pass  # the thread has ended
    return children


def descendants_of(pid):
    """Children, their children and so on, parents first."""
    for child in children_of(pid):
        yield child
        yield from descendants_of(child)


def name_of(pid):
    """The process's name for the kernel (15 characters); None if it has ended."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().removesuffix("\n")
    except OSError:
        return None


def status_of(folder):
    """/proc/.../status of a process or thread, by its folder, as {key: value}; OSError if it has ended."""
    with open(f"{folder}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file)


def threads_of(pid):
    """{folder in /proc: status} of the process's threads that are there."""
    threads = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{task}"
        try:
            threads[folder] = status_of(folder)
        except OSError:
            pass  # the thread has ended
    return threads


def call(*words, env=None, fails=False, limit=None):
    """What the command did, as text; an AssertionError with its output if it failed, with `fails` if it did not.

    `env` is added to the environment. After `limit` seconds the command is killed: subprocess.TimeoutExpired.
    """
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=limit,
                          env={**os.environ, **(env or {})})
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{words}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done
