#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of docs/live.md, in order, in one shell inside a network namespace of its own.

Needs root, iproute2, ethtool, ping and curl; skips with the reason where something is missing.
Environment: CATENA_BIN, the program.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "live.md"
LIMIT_SECONDS = 100  # that only a hang reaches; all of them together end before the test does

# Network, names and processes are the page's own and end with it, and it with this test, however that ends.
ALONE = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
         "--mount-proc", "bash", "-c"]
HIDE = "mount -t sysfs none /sys && mount -t tmpfs none /run && mkdir /run/netns && "


def commands():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def missing():
    if os.geteuid() != 0:
        return "not root"
    for tool in ("ip", "ss", "ethtool", "ping", "curl", "unshare", "setpriv"):
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"{tool} is not installed"
    probe = subprocess.run([*ALONE, HIDE + "ip netns add probe"], capture_output=True, text=True, check=False)
    return f"no network namespaces here: {probe.stderr.strip()}" if probe.returncode != 0 else None


REASON = missing()


@unittest.skipIf(REASON, REASON)
class Tutorial(unittest.TestCase):
    def run_page(self, script):
        folder = tempfile.mkdtemp(prefix="catena-tutorial-")
        self.addCleanup(shutil.rmtree, folder)
        pathlib.Path(folder, "page.sh").write_text(script)
        environment = {**os.environ, "PATH": f"{pathlib.Path(os.environ['CATENA_BIN']).parent}:{os.environ['PATH']}"
                                             ":/usr/sbin:/sbin"}
        process = subprocess.Popen([*ALONE, HIDE + "bash -e page.sh"], cwd=folder, env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            self.fail(f"a command hangs:\n{output}\n{self.log(folder)}")
        return process.returncode, output + self.log(folder)

    @staticmethod
    def log(folder):
        log = pathlib.Path(folder, "live.log")
        return "\n--- live.log\n" + log.read_text() if log.exists() else ""

    def test_every_command_of_the_page_works(self):
        blocks = commands()
        self.assertGreaterEqual(len(blocks), 8, "the page has its steps in blocks of ```sh")
        status, output = self.run_page("set -m -x\n" + "\n".join(blocks))
        self.assertEqual(status, 0, output)
        self.assertIn("hello through the chain", output)
        account = re.search(r"^account +(\d+) in = .*$", output, re.M)
        self.assertIsNotNone(account, output)
        self.assertNotIn("NOT BALANCED", account.group(0))
        self.assertGreater(int(account.group(1)), 20)
        self.assertRegex(output, r"\nrt +\d+ packets answered")
        self.assertIn("\ncurl says 28\n", output, "a time-out, as the firewall drops; the server would refuse")
        for hint in ("left to a NIC", "frames longer than", "lacks cap_"):
            self.assertNotIn(hint, output)

    def test_forgotten_offloads_are_named(self):
        blocks = [block for block in commands() if "ethtool" not in block or "ip netns add" in block]
        self.assertEqual(len(blocks), len(commands()) - 1)
        start = next(i for i, block in enumerate(blocks) if "catena run" in block)
        # a datagram whose checksum the kernel leaves to the NIC, until the chain has seen one
        send = ("for i in $(seq 50); do ip netns exec client bash -c 'echo hello > /dev/udp/198.51.100.2/9' || true; "
                "grep -q 'left to a NIC' live.log && break; sleep 0.2; done\nkill -INT %1; wait %1 | cat\n")
        status, output = self.run_page("set -m\n" + "\n".join(blocks[:start + 1]) + send)
        self.assertEqual(status, 0, output)
        self.assertIn("checksum was left to a NIC", output)
        self.assertIn("ethtool -K INTERFACE tx off", output)

    def test_an_interface_that_vanishes_ends_the_run_with_its_name(self):
        blocks = commands()
        start = next(i for i, block in enumerate(blocks) if "catena run" in block)
        status, output = self.run_page("set -m\n" + "\n".join(blocks[:start + 1]) +
                                       "ip link del lan\nif wait %1; then exit 9; fi\n")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"interface lan is gone")

    def test_a_process_without_capabilities_is_told_the_command(self):
        blocks = commands()
        start = next(i for i, block in enumerate(blocks) if "catena run" in block)
        status, output = self.run_page("set -m\n" + "\n".join(blocks[:start]) +
                                       "if setpriv --bounding-set=-all --inh-caps=-all catena run live.yaml 2> live.log; "
                                       "then exit 9; fi\n")
        self.assertEqual(status, 0, output)
        self.assertIn("lacks cap_net_raw, cap_net_admin", output)
        self.assertIn("sudo setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep", output)

    def test_an_interface_that_is_not_there_is_named_with_those_that_are(self):
        blocks = commands()
        start = next(i for i, block in enumerate(blocks) if "catena run" in block)
        status, output = self.run_page("set -m\n" + "\n".join(blocks[:start]) +
                                       "sed -i 's/lan, wan/eht0, wan/' live.yaml\n"
                                       "if catena run live.yaml 2> live.log; then exit 9; fi\n")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"no interface is named 'eht0' here; available: .*lan")


if __name__ == "__main__":
    unittest.main(verbosity=2)
