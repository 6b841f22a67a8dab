#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas of users: one at a bound is refused, with the numbers, and another user is not."""

import contextlib
import os
import re
import signal
import subprocess
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import BIN, TENANTS, TenantTest, firewall, wait_for


class Quotas(TenantTest):
    def setUp(self):
        super().setUp()
        self.service.end()
        self.file = self.folder / "quotas.yaml"

    def serve_with(self, **quotas):
        self.write(**quotas)
        self.service = self.serve("--quotas", str(self.file))

    def write(self, **quotas):
        rows = ", ".join(f"{key}: {value}" for key, value in quotas.items())
        self.file.write_text(f"users:\n  {self.attacker.uid}: {{{rows}}}\n")

    def assert_refused(self, quota, limit, used, asked, answer):
        status, body = answer
        self.assertEqual(status, 503, body)
        self.assertIn(f"the quota '{quota}' of user {self.attacker.uid} is {limit}; {used} used, {asked} asked",
                      body["error"])

    def test_of_chains(self):
        self.serve_with(chains=1)
        self.attacker.applied(self.attacker.chain("a"))
        second = self.attacker.chain("b")
        self.assert_refused("chains", 1, 1, 1, self.attacker.apply(second))
        self.assertEqual(self.attacker.apply(self.attacker.chain("a"))[0], 200, "no new one")
        for name in "vw":
            self.victim.applied(self.victim.chain(name))
        self.attacker.delete("a")
        self.attacker.applied(second)

    def test_of_packet_memory(self):
        self.serve_with(packet_memory_mb=100)
        self.attacker.applied(self.attacker.chain("a"))
        second = self.attacker.chain("b")
        self.assert_refused("packet_memory_mb", 100, 64, 64, self.attacker.apply(second))
        self.assertEqual(self.attacker.stop("a")[0], 200)
        self.attacker.applied(second)
        self.assert_refused("packet_memory_mb", 100, 64, 64, self.attacker.ask("POST", "/v1/chains/a/start"))
        large = "  tuning: {pool_slots: 1048576}\n"
        self.assert_refused("packet_memory_mb", 100, 0, 4096,
                            self.attacker.apply(self.attacker.chain("b", more=large)))
        for name in "vw":
            self.victim.applied(self.victim.chain(name))

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_processes(self):
        self.serve_with(nf_processes=1)
        self.attacker.applied(self.attacker.chain("a", nfs=self.attacker.data(firewall())))
        self.assert_refused("nf_processes", 1, 1, 1,
                            self.attacker.apply(self.attacker.chain("b", nfs=self.attacker.data(firewall()))))
        self.attacker.applied(self.attacker.chain("c"))
        for name in "vw":
            self.victim.applied(self.victim.chain(name, nfs=self.victim.data(firewall())))

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_of_processes_of_a_replaced_chain_that_does_not_end(self):
        self.serve_with(nf_processes=1)
        full = os.open(self.attacker.fifo("full"), os.O_RDWR | os.O_NONBLOCK)  # nobody reads
        self.addCleanup(os.close, full)
        ends = {"rx": "{generator: {rate: 100000}}", "tx": f"{{pcap: {self.attacker.folder / 'full'}}}"}
        self.attacker.applied(self.attacker.chain("a", nfs=self.attacker.data(firewall()), **ends))
        wait_for(lambda: self.attacker.get("a")["rx"]["received_packets"] > 5000)
        self.attacker.applied(self.attacker.chain("a", nfs="[]", **ends))
        second = self.attacker.chain("b", nfs=self.attacker.data(firewall()))
        self.assert_refused("nf_processes", 1, 1, 1, self.attacker.apply(second))

        def is_applied():
            with contextlib.suppress(BlockingIOError):
                while os.read(full, 1 << 16):
                    pass
            return self.attacker.apply(second)[0] == 201
        wait_for(is_applied)

    def test_of_workers(self):
        self.serve_with(workers=1)
        self.assert_refused("workers", 1, 0, 2, self.attacker.apply(self.attacker.chain("a"), workers=2))
        self.victim.applied(self.victim.chain("v"), workers=2)
        self.attacker.applied(self.attacker.chain("a"), workers=1)
        self.assert_refused("workers", 1, 1, 1, self.attacker.apply(self.attacker.chain("b"), workers=1))

    def test_of_applies(self):
        self.serve_with(applies_per_minute=2)
        for _ in range(2):
            self.attacker.applied(self.attacker.chain("a"))
        self.assert_refused("applies_per_minute", 2, 2, 1, self.attacker.apply(self.attacker.chain("a")))
        self.assertEqual(self.service.ask("POST", "/v1/chains/a/restart")[0], 200, "root's, and so not counted")
        for _ in range(5):
            self.assertEqual(self.attacker.ask("GET", "/v1/chains/a")[0], 200)
        for _ in range(3):
            self.victim.applied(self.victim.chain("v"))
        self.assertEqual(self.attacker.delete("a")[0], 200)

    def test_of_metric_series(self):
        self.serve_with(metric_series=3)
        for tenant in (self.attacker, self.victim):
            tenant.applied(tenant.chain(f"of-{tenant.uid}"))
        text = self.service.ask("GET", "/metrics")[1]
        of_attacker = re.findall(rf'^(\w+)\{{chain="of-{self.attacker.uid}"', text, re.M)
        self.assertEqual(len([name for name in of_attacker if not name.startswith("catena_chain_")]), 3 + 1)
        self.assertIn("catena_omitted_series", of_attacker)
        self.assertNotIn(f'catena_omitted_series{{chain="of-{self.victim.uid}"', text)
        self.assertIn(f'catena_chain_state{{chain="of-{self.attacker.uid}",state="running"}} 1\n', text)

    def test_root_has_none(self):
        self.file.write_text("default: {chains: 0, applies_per_minute: 0, packet_memory_mb: 0, workers: 0}\n")
        service = self.serve("--quotas", str(self.file))
        self.applied(service, self.chain("a"))

    def test_a_dry_run_says_what_a_chain_would_take(self):
        self.serve_with(chains=1)
        file = self.attacker.chain("a", nfs=self.attacker.data(firewall()))
        status, answer = self.attacker.ask("POST", "/v1/chains", {"file": file, "dry_run": True,
                                                                  "options": {"workers": 1}})
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["quotas"], {"chains": 1, "packet_memory_mb": 64, "nf_processes": int(HAS_PROCESSES),
                                            "workers": 1, "applies_per_minute": 0, "metric_series": 0})
        self.assertEqual(answer["quota_limits"], {"chains": 1, "packet_memory_mb": 4096, "nf_processes": 128,
                                                  "workers": 4096, "applies_per_minute": 240, "metric_series": 10000})

    def test_a_dry_run_prints_it(self):
        self.serve_with(chains=3)
        program = os.open(BIN, os.O_RDONLY)  # its folder may be closed to other users
        self.addCleanup(os.close, program)
        words = ["apply", "--dry-run", "--workers", "1", "--socket", self.service.socket]
        done = subprocess.run([f"/proc/self/fd/{program}", *words, self.attacker.chain("a")], capture_output=True,
                              text=True, check=False, timeout=60, pass_fds=[program], user=self.attacker.uid,
                              group=self.attacker.uid, extra_groups=[TENANTS])
        self.assertEqual(done.stdout, "a: would be started\n  takes of the quotas: chains 1 of 3, "
                                      "packet_memory_mb 64 of 4096, workers 1 of 4096\n", done.stderr)
        roots = self.cli(self.service, "apply", "--dry-run", "--workers", "1", self.chain("b"))
        self.assertEqual(roots.stdout, "b: would be started\n  takes of the quotas: chains 1, packet_memory_mb 64, "
                                       "workers 1\n", "it has none")

    def test_a_signal_has_them_read_again(self):
        self.serve_with(chains=0)
        file = self.attacker.chain("a")
        self.assertEqual(self.attacker.apply(file)[0], 503)
        self.file.write_text("users: {x: 1}\n")
        self.service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the earlier quotas hold: " + str(self.file) + ":1:" in self.service.log())
        self.assertEqual(self.attacker.apply(file)[0], 503)
        self.write(chains=1)
        self.service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.attacker.apply(file)[0] == 201)

    def test_a_wrong_file_is_an_error_at_its_place(self):
        self.file.write_text("default:\n  chain: 3\n")
        done = subprocess.run([BIN, "serve", "--socket", str(self.folder / "q"), "--state", str(self.folder / "q-state"),
                               "--quotas", str(self.file)], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.file}:2:3: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
