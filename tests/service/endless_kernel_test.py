#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tenant's kernel that never ends, under one name after another. It takes minutes: each time a device server ends and
another one starts."""

import os
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import TenantTest, wait_for

from device_server_test import GPU_CHAIN


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class DevicesOfTenants(TenantTest):
    def test_who_takes_the_device_down_under_new_names_has_a_server_of_his_own(self):
        attacker, victim = self.attacker, self.victim
        # few packets: a chain with unfinished work would be a suspect, too, which takes longer
        victim.applied(victim.chain("victim", rx="{generator: {rate: 20}}", nfs=victim.data(GPU_CHAIN)), device="opencl")
        wait_for(lambda: victim.get("victim")["tx"]["sent_packets"] > 10)
        endless = f"[{{name: k, plugin: {attacker.copy(os.environ['CATENA_ENDLESS_NF'])}, on: gpu}}]"

        def losses():
            return victim.get("victim")["device"]["losses"]

        def attack(name):
            attacker.applied(attacker.chain(name, nfs=endless), device="opencl")
            wait_for(lambda: attacker.get(name)["quarantine"])
            wait_for(lambda: victim.get("victim")["device"]["returns"] == losses())  # and is on the device again

        attack("k0")
        self.assertIsNone(attacker.get("k0")["own_device_server"])
        attack("k1")
        self.assertIn(f"2 clients of user {attacker.uid}", attacker.get("k1")["own_device_server"])
        self.assertIsNone(victim.get("victim")["own_device_server"])
        before = losses()
        self.assertGreater(before, 0)
        attack("k2")
        self.assertIn("has a device server of its user's own", self.service.log())
        self.assertEqual(losses(), before)


if __name__ == "__main__":
    unittest.main()
