#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of rights in SECURITY.md is what the kernel says of each process."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from command import HAS_PROCESSES, NO_PROCESSES, descendants_of, name_of, status_of, threads_of
from harness import BIN, DATA, TenantTest, firewall, wait_for

# the folders of other kinds of tests are not on the path
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "stack"))
import stack_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "| process | user | capabilities | namespaces of its own | no new privileges | filter of system calls |"
RESERVED = range(1_900_000_000, 1_900_065_536)  # docs/adr/0054
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")
ON_DEVICE = "[{name: fw, type: firewall, on: gpu, isolation: none, config: {rules: " + DATA + "/fw.rules, default: allow}}]"

# the check of it ends at a limit of its time or memory
ENDLESS_KERNEL = """#include <catena/kernel/context.hpp>
namespace vendor {
template <catena::u64 N, catena::u64 M>
struct Wide { static constexpr catena::u64 kSum = Wide<N - 1, M * 2>::kSum + Wide<N - 1, M * 2 + 1>::kSum; };
template <catena::u64 M>
struct Wide<0, M> { static constexpr catena::u64 kSum = M; };
}
CATENA_KERNEL(base) { static_assert(vendor::Wide<40, 1>::kSum > 0); }
"""


def rows():
    """The table by its first column."""
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    table = lines[lines.index(HEAD) + 2:]
    table = table[:next(at for at, line in enumerate(table) if not line.startswith("|"))]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {first: rest for first, *rest in cells}


def namespaces_of(folder):
    return {name.name: os.readlink(name) for name in (folder / "ns").iterdir() if not name.name.endswith("for_children")}


def user_of(status, tenant):
    """By its IDs: real, effective, saved, and that for files."""
    names = {"0": "root", str(tenant): "that of the chain", **{str(uid): "a reserved one" for uid in RESERVED}}
    *ids, for_files = [names.get(uid, uid) for uid in status["Uid"].split()]
    user = ids[0] if len(set(ids)) == 1 else " ".join(ids)
    return user if for_files == user else f"{user}, for files {for_files}"


def capabilities_of(status):
    sets = [status[name] for name in CAPABILITIES]
    if not any(int(each, 16) for each in sets):
        return "none"
    starter = status_of(pathlib.Path("/proc/self"))
    return "those of its starter" if sets == [starter[name] for name in CAPABILITIES] else " ".join(sets)


def rights_of(folder, tenant=None):
    """The cells of the row of a process or thread, by its folder in /proc."""
    status = status_of(folder)
    shared = namespaces_of(pathlib.Path("/proc/self"))
    own = sorted(name for name, link in namespaces_of(folder).items() if shared[name] != link)
    return [user_of(status, tenant), capabilities_of(status), ", ".join(own) or "none",
            {"0": "no", "1": "yes"}[status["NoNewPrivs"]], {"0": "no", "2": "yes"}[status["Seccomp"]]]


def setUpModule():
    stack_run.enter_namespace()


class Rights(TenantTest):
    maxDiff = None

    def below(self, name, pid=None):
        return wait_for(lambda: next((each for each in descendants_of(pid or self.service.process.pid)
                                      if name_of(each) == name[:15]), None))

    def assert_row(self, name, folder, tenant=None):
        self.assertEqual(rows()[name], rights_of(pathlib.Path(folder), tenant))

    def test_each_row_is_tested(self):
        tested = re.findall(r'assert_row\("([^"]+)"', pathlib.Path(__file__).read_text())
        self.assertEqual(sorted(rows()), sorted(tested))

    def test_of_the_service(self):
        self.assert_row("`catena serve` of root", f"/proc/{self.service.process.pid}")

    def test_of_its_threads_for_a_chain(self):
        self.victim.applied(self.victim.chain("v"))
        found = 0
        for thread, status in threads_of(self.service.process.pid).items():
            if status["Uid"].split()[3] == str(self.victim.uid):
                try:
                    self.assert_row("its threads for a user's chain", thread, self.victim.uid)
                    found += 1
                except (FileNotFoundError, ProcessLookupError):
                    pass  # one that has started the chain and ended
        self.assertGreater(found, 0)

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_an_nf_of_a_user(self):
        self.victim.applied(self.victim.chain("v", nfs=self.victim.data(firewall())))
        self.assert_row("`catena-nf` of a user's chain", f"/proc/{self.below('catena-nf')}", self.victim.uid)

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_an_nf_of_root(self):
        self.applied(self.service, self.chain("r", nfs=firewall()))
        self.assert_row("`catena-nf` of root's chain", f"/proc/{self.below('catena-nf')}")

    def test_of_a_device_server(self):
        self.applied(self.service, self.chain("r", nfs=ON_DEVICE), device="opencl")
        self.assert_row("`catena-device-server`", f"/proc/{self.below('catena-device-server')}")

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_the_check_of_a_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel = pathlib.Path(folder) / "endless.kernel.cpp"
            kernel.write_text(ENDLESS_KERNEL)
            with subprocess.Popen([BIN, "check-kernel", kernel], stdout=subprocess.DEVNULL) as check:
                try:
                    self.assert_row("`catena-static-check` of root", f"/proc/{self.below('catena-static-check', check.pid)}")
                finally:
                    check.kill()

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_the_stack(self):
        with stack_run.StackRun("sleep", "60") as stack:
            self.assert_row("`catena-stack` of root, copy engine `cpu`", f"/proc/{self.below('catena-stack', stack.process.pid)}")


if __name__ == "__main__":
    unittest.main()
