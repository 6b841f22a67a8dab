#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log of a service, by chain: `catena logs`, and the fields of `catena serve --log json`."""

import json
import os
import signal
import subprocess
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import BIN, ServiceTest, TenantTest, firewall, wait_for
from nf_process import nf_process_of


class Logs(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve("--log", "json")

    def objects(self):
        return [json.loads(line) for line in self.service.log().splitlines()]

    def lines(self, name):
        return self.service.ask("GET", f"/v1/chains/{name}/log")[1]["lines"]

    def test_each_chain_has_its_own_lines(self):
        for shards in (1, 3):
            for name in ("a", "b"):
                self.applied(self.service, self.chain(f"{name}{shards}", more=f"  shards: {shards}\n"))
        for name in ("a1", "b1", "a3", "b3"):
            messages = [line["message"] for line in self.lines(name)]
            self.assertIn(f"{name}: runs", messages)
            self.assertFalse([text for text in messages if text.startswith(("a", "b")) and not text.startswith(name)])
            done = self.cli(self.service, "logs", name)
            self.assertIn(f"Z info {name}: runs\n", done.stdout)
            self.assertTrue([each for each in self.objects()
                             if each.get("chain") == name and each["message"] == f"{name}: runs"])
        self.assertFalse([each for each in self.objects() if "serves at" in each["message"] and "chain" in each])

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_lines_of_an_nf_s_process_name_it(self):
        self.applied(self.service, self.chain("a", nfs=firewall()))
        pid = wait_for(lambda: nf_process_of(self.service.process.pid))
        os.kill(pid, signal.SIGKILL)
        line = wait_for(lambda: next((each for each in self.lines("a") if "ended by signal 9" in each["message"]), None))
        self.assertEqual(line["stage"], "fw")
        self.assertIn("[fw] fw: its process was ended by signal 9", self.cli(self.service, "logs", "a").stdout)
        self.assertTrue([each for each in self.objects()
                         if (each.get("chain"), each.get("stage")) == ("a", "fw") and "signal 9" in each["message"]])

    def test_lines_to_come_are_followed(self):
        self.applied(self.service, self.chain("a"))
        with subprocess.Popen([BIN, "logs", "-f", "a", "--socket", self.service.socket], stdout=subprocess.PIPE,
                              text=True) as following:
            self.addCleanup(following.kill)
            seen = []
            while not seen or "a: runs" not in seen[-1]:
                seen.append(following.stdout.readline())
                self.assertTrue(seen[-1])
            self.assertEqual(self.service.ask("POST", "/v1/chains/a/stop")[0], 200)
            while "stopped" not in seen[-1]:
                seen.append(following.stdout.readline())
                self.assertTrue(seen[-1])
            following.kill()
        self.assertEqual(len(seen), len(set(seen)))

    def test_a_chain_that_is_deleted_leaves_no_lines_to_the_next_of_its_name(self):
        self.applied(self.service, self.chain("a"))
        first = self.lines("a")[-1]["number"]
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)
        self.assertEqual(self.service.ask("GET", "/v1/chains/a/log")[0], 404)
        self.applied(self.service, self.chain("a"))
        self.assertTrue(all(line["number"] > first for line in self.lines("a")))
        self.assertNotIn("stopped", " ".join(line["message"] for line in self.lines("a")))

    def test_outputs_are_reopened(self):
        record = self.folder / "record"
        self.applied(self.service, self.chain("a", rx="{generator: {rate: 1000}}", nfs=firewall()), record=str(record))
        wait_for(lambda: record.exists() and record.stat().st_size > 0)
        record.rename(self.folder / "record.1")
        self.cli(self.service, "logs", "--reopen")
        wait_for(lambda: record.exists() and record.stat().st_size > 0)

    def test_wrong_uses_say_what_is_needed(self):
        self.assertIn("needs the name of a chain, or --reopen", self.cli(self.service, "logs", status=1).stderr)
        self.assertIn("no chain is named 'x'", self.cli(self.service, "logs", "x", status=1).stderr)
        self.cli(self.service, "logs", "x", "--reopen", status=2)


class OfUsers(TenantTest):
    def test_lines_are_the_owner_s(self):
        self.victim.applied(self.victim.chain("v"))
        self.assertEqual(self.victim.ask("GET", "/v1/chains/v/log")[0], 200)
        self.assertEqual(self.attacker.ask("GET", "/v1/chains/v/log")[0], 403)
        self.assertEqual(self.attacker.ask("POST", "/v1/reopen")[0], 403)
        self.assertEqual(self.victim.delete("v")[0], 200)
        self.attacker.applied(self.attacker.chain("v"))
        lines = self.attacker.ask("GET", "/v1/chains/v/log")[1]["lines"]
        self.assertNotIn("deleted", json.dumps(lines))
        self.assertEqual([line for line in lines if "stopped" in line["message"]], [])


if __name__ == "__main__":
    unittest.main()
