#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which process serves which NF: in the answers of a service, and in lists of processes, where names are secret."""

import pathlib
import re
import unittest

from command import HAS_PROCESSES, NO_PROCESSES, descendants_of, name_of
from harness import TenantTest, firewall, wait_for


def arguments_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:-1]


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class Processes(TenantTest):
    def running(self, name, **kinds):
        self.victim.applied(self.victim.chain(name, **kinds))
        return wait_for(lambda: self.victim.get(name) if self.victim.get(name)["state"] == "running" else None)

    def test_each_has_the_numbers_of_its_chain_nf_and_shard(self):
        passing = "{name: between, type: monitor, isolation: none}"
        chain = self.running("secret-plan", nfs=self.victim.data(f"[{passing}, {firewall()[1:-1]}]"), more="  shards: 2\n")
        none, of_firewall = [nf["processes"] for nf in chain["nfs"]]
        self.assertEqual(none, [])
        self.assertEqual([each["shard"] for each in of_firewall], [0, 1])
        for each in of_firewall:
            self.assertEqual(name_of(each["pid"]), "catena-nf")
            self.assertEqual(arguments_of(each["pid"]),
                             [f"chain={chain['number']}", "nf=2", f"shard={each['shard']}"])
        text = self.cli(self.service, "get", "secret-plan").stdout
        self.assertIn(f"number   {chain['number']}\n", text)
        self.assertIn(", processes " + ", ".join(str(each["pid"]) for each in of_firewall), text)

    def test_nfs_of_a_group_have_one(self):
        group = ", ".join(firewall()[1:-1].replace("name: fw", f"name: {name}, isolation: {{group: g}}") for name in "abc")
        chain = self.running("a", nfs=self.victim.data(f"[{group}]"))
        pids = [nf["processes"] for nf in chain["nfs"]]
        self.assertEqual(pids, [pids[0]] * 3)
        self.assertEqual(arguments_of(pids[0][0]["pid"]), [f"chain={chain['number']}", "nf=1-3", "shard=0"])

    def test_other_users_find_no_name_in_the_list_of_processes(self):
        self.running("secret-plan", nfs=self.victim.data(firewall().replace("name: fw", "name: secret-nf")))
        below = descendants_of(self.service.process.pid)
        self.assertIn("catena-nf", [name_of(pid) for pid in below])
        for pid in below:
            text = " ".join(arguments_of(pid))
            self.assertNotIn("secret", text)
            self.assertNotRegex(text, re.escape(str(self.victim.folder)))

    def test_a_chain_that_has_ended_has_none(self):
        self.running("a", nfs=self.victim.data(firewall()))
        status, answer = self.victim.stop("a")
        self.assertEqual((status, answer["nfs"][0]["processes"]), (200, []))


if __name__ == "__main__":
    unittest.main()
