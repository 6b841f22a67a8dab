#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tenants of harness.py are what the other tests take them for."""

import os
import re
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import ATTACKER, TENANTS, VICTIM, TenantTest, as_user, wait_for
from nf_process import nf_process_of


def uid_of(pid):
    return os.stat(f"/proc/{pid}").st_uid


class Tenants(TenantTest):
    def test_the_socket_is_for_their_group_alone(self):
        for groups, works in (([TENANTS], True), ([], False)):
            may = as_user(ATTACKER, groups, lambda: os.access(self.service.socket, os.W_OK))
            self.assertEqual(may, works)

    def test_neither_sees_the_folder_of_the_other(self):
        secret = self.victim.write("secret", "of the bank")
        self.assertFalse(as_user(ATTACKER, [TENANTS], lambda: os.access(secret, os.F_OK)))
        self.assertTrue(as_user(VICTIM, [TENANTS], lambda: os.access(secret, os.R_OK)))

    def test_a_chain_is_that_of_the_tenant_who_applies_it(self):
        self.victim.applied(self.victim.chain("v"))
        self.attacker.applied(self.attacker.chain("a"))
        self.assertEqual(self.service.ask("GET", "/v1/chains/v")[1]["uid"], VICTIM)
        self.assertEqual([chain["name"] for chain in self.attacker.ask("GET", "/v1/chains")[1]["chains"]], ["a"])
        self.assertEqual(self.attacker.delete("v")[0], 403)
        self.assertEqual(self.victim.stop("v")[0], 200)
        self.assertEqual(self.victim.delete("v")[0], 200)

    def test_the_answer_to_a_request_can_wait(self):
        waiting = self.attacker.begin_to_apply(self.attacker.chain("a", tx=f"{{pcap: {self.attacker.fifo()}}}"))
        wait_for(lambda: "waiting for a reader" in self.service.log())
        self.assertEqual(self.attacker.get("a")["state"], "starting")
        self.assertEqual(self.attacker.delete("a")[0], 200)
        self.assertGreaterEqual(waiting.answer()[0], 400)


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class Plugins(TenantTest):
    def chain_passes_packets(self, tenant, nf):
        tenant.applied(tenant.chain("p", nfs=f"[{nf}]"))
        wait_for(lambda: tenant.get("p")["tx"]["sent_packets"] > 0)

    def test_each_has_a_vendors(self):
        self.chain_passes_packets(self.victim, self.victim.vendor_nf())
        self.assertEqual(uid_of(nf_process_of(self.service.process.pid)), VICTIM)

    def test_a_hostile_one_that_is_told_nothing_does_nothing(self):
        self.chain_passes_packets(self.attacker, self.attacker.hostile_nf())
        self.assertEqual(uid_of(nf_process_of(self.service.process.pid)), ATTACKER)
        self.assertEqual(self.attacker.get("p")["nfs"][0]["process_restarts"], 0)

    def test_a_hostile_one_searches_the_files_that_its_configuration_names(self):
        files = [self.attacker.write("plain", "nothing"), self.attacker.write("loot", "0123 of the bank 456"),
                 self.victim.write("secret", "of the bank")]
        nf = self.attacker.hostile_nf(files=files, search="of the bank")
        self.attacker.applied(self.attacker.chain("p", nfs=f"[{nf}]"))
        found = wait_for(lambda: self.attacker.get("p")["nfs"][0]["statistics"])
        self.assertEqual(found, {"readable_files": 2, "largest_file_bytes": 20, "files_with_text": 1})

    def test_a_hostile_one_has_the_statistics_of_its_start_alone(self):
        nf = self.attacker.hostile_nf(statistics="change")
        self.chain_passes_packets(self.attacker, nf)

        def statistics():
            return self.attacker.get("p")["nfs"][0]["statistics"]

        first = wait_for(lambda: statistics().get("calls"))
        wait_for(lambda: statistics()["calls"] > first + 3)
        self.assertEqual(set(statistics()), {"calls"}, "the others are new each time")
        self.assertEqual(len(re.findall("^catena_nf_statistic", self.attacker.ask("GET", "/metrics")[1], re.M)), 1)

    def test_a_name_of_a_statistic_that_is_no_word_is_refused(self):
        status, answer = self.attacker.apply(self.attacker.chain("p", nfs=f"[{self.attacker.hostile_nf(statistics='misname')}]"))
        self.assertEqual(status, 400, answer)
        self.assertIn("NF 'hostile' has a statistic 'Files {x=\"1\"}'; allowed: ", answer["error"])


if __name__ == "__main__":
    unittest.main()
