#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`new_keys` of a request is a consent for the chain that this request starts or changes, and for no later one."""

import re
import shutil
import unittest

from harness import ServiceTest, wait_for

REMARK = "{name: mark, type: remark, isolation: none, config: {map: [{from: 0, to: 1}]}}"
# shards, and where the NF is
PLACES = [(1, "none"), (3, "none"), (1, "process"), (3, "process")]


class NewKeys(ServiceTest):
    def write_associations(self, *spis):
        (self.folder / "sa.yaml").write_text("associations:\n" + "".join(
            f"  - spi: {spi}\n    source: 192.0.2.1\n    destination: 198.51.100.1\n    encryption_key: \"{spi:040x}\"\n"
            f"    authentication_key: \"{spi:040x}\"\n" for spi in spis))

    def vpn(self, shards=1, place="none", more="", out="out"):
        nf = f"{{name: vpn, type: ipsec, isolation: {place}, config: {{direction: encrypt, sa: sa.yaml}}}}"
        return self.chain("a", tx=f'{{dpdk: "net_pcap0,tx_pcap={self.folder}/{out}.pcap"}}', nfs=f"[{nf}{more}]",
                          more=f"  shards: {shards}\n")

    def states(self):
        """The SPIs that have a state."""
        return {int(re.search(r"^spi: (\d+)$", file.read_text(), re.M)[1])
                for file in (self.folder / "sa.yaml.state").glob("*") if not file.name.endswith((".lock", ".new"))}

    def sent(self, service):
        return service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"]

    def wait_for_packets(self, service):
        before = self.sent(service)
        wait_for(lambda: self.sent(service) > before + 500)

    def assert_refused(self, service, file, spi, state="running", **options):
        before = service.ask("GET", "/v1/chains/a")[1]
        status, answer = self.apply(service, file, **options)
        self.assertEqual(status, 400, answer)
        after = service.ask("GET", "/v1/chains/a")[1]
        self.assertEqual(after.get("state"), state, answer)
        self.assertNotIn(spi, self.states())
        self.assertIn(f"no state of the association with SPI {spi}, and its keys are refused", answer["error"])
        self.assertIn(f"pass --new-keys {spi} to `catena run` or `catena apply`", answer["error"])
        if state == "running":  # and it is the one that ran before
            self.assertGreaterEqual(after["rx"]["received_packets"], before["rx"]["received_packets"])
            self.wait_for_packets(service)

    def test_keys_that_are_refused_leave_the_chain_as_it_runs(self):
        for shards, place in PLACES:
            with self.subTest(shards=shards, place=place):
                service = self.serve()
                self.write_associations(4096)
                file = self.vpn(shards, place)
                answer = self.applied(service, file, new_keys=[4096])
                self.wait_for_packets(service)
                self.write_associations(4096, 5000)
                self.assert_refused(service, file, 5000)
                self.assertEqual(answer["options"], {}, "a client that sends back what it is shown says nothing of keys")
                self.assert_refused(service, self.vpn(shards, place, ", " + REMARK), 5000)
                self.assert_refused(service, self.vpn(shards, place), 5000, new_keys=[4096])
                # the consent of this request, and not of the next one
                self.applied(service, self.vpn(shards, place), new_keys=[5000])
                self.wait_for_packets(service)
                self.assertEqual(self.states(), {4096, 5000})
                self.write_associations(4096, 5000, 6000)
                self.assert_refused(service, file, 6000)
                self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
                self.assertEqual(service.end(), 0, service.log())
                shutil.rmtree(self.folder / "sa.yaml.state")

    def test_an_spi_that_no_association_has_is_refused(self):
        service = self.serve()
        self.write_associations(4096)
        status, answer = self.apply(service, self.vpn(), new_keys=[4096, 4711])
        self.assertEqual((status, answer["error"]), (400, "--new-keys: no association of the chain has SPI 4711; write SPIs of "
                                                          "its SA files"))
        self.assertEqual(service.ask("GET", "/v1/chains")[1], {"chains": []})

    def test_a_dry_run_refuses_keys_as_the_change_does(self):
        service = self.serve()
        self.write_associations(4096)
        file = self.vpn()
        self.applied(service, file, new_keys=[4096])
        self.wait_for_packets(service)
        self.write_associations(4096, 5000)
        for nfs in ("", ", " + REMARK):
            file = self.vpn(more=nfs)
            for new_keys, status in (([], 400), ([4096], 400), ([5000], 200)):
                answer = service.ask("POST", "/v1/chains", {"file": file, "dry_run": True, "options": {"new_keys": new_keys}})
                self.assertEqual(answer[0], status, answer)
                self.assertEqual(self.states(), {4096})

    def test_a_change_refused_for_its_losses_leaves_no_state_of_new_keys(self):
        service = self.serve()
        nat = ", {name: nat, type: nat, isolation: process, config: {inside: [10.0.0.0/8], external: 203.0.113.1, ports: 2000-3000}}"
        self.write_associations(4096)
        self.applied(service, self.vpn(more=nat), new_keys=[4096])
        self.wait_for_packets(service)
        self.write_associations(4096, 5000)
        file = self.vpn(more=nat.replace("process", "none"))
        status, answer = self.apply(service, file, new_keys=[5000])
        self.assertEqual((status, self.states()), (409, {4096}), answer)
        self.assertIn("the state of NF 'nat'", answer["error"])
        self.assert_refused(service, file, 5000)
        self.applied(service, file, new_keys=[5000], accept_loss=True)
        self.wait_for_packets(service)
        self.assertEqual(self.states(), {4096, 5000})

    def test_a_service_that_starts_again_starts_no_new_keys(self):
        for place in ("none", "process"):
            with self.subTest(place=place):
                service = self.serve()
                self.write_associations(4096)
                file = self.vpn(place=place)
                self.applied(service, file, new_keys=[4096])
                self.wait_for_packets(service)
                self.assertEqual(service.end(), 0, service.log())
                self.write_associations(4096, 5000)
                service = self.serve()
                wait_for(lambda: self.state(service, "a") == "failed")
                self.assertIn("SPI 5000, and its keys are refused", service.ask("GET", "/v1/chains/a")[1]["error"])
                self.assertEqual(self.states(), {4096})
                self.assert_refused(service, file, 5000, "failed")
                self.write_associations(4096)
                self.applied(service, file)
                self.wait_for_packets(service)
                self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
                self.assertEqual(service.end(), 0, service.log())
                shutil.rmtree(self.folder / "sa.yaml.state")

    def test_a_start_that_failed_leaves_no_consent(self):
        service = self.serve()
        self.write_associations(4096)
        status, answer = self.apply(service, self.vpn(out="no/folder"), new_keys=[4096])
        self.assertEqual(status, 400, answer)
        self.assertNotIn("keys", answer["error"])
        self.assert_refused(service, self.vpn(), 4096, None)
        self.applied(service, self.vpn(), new_keys=[4096])
        self.wait_for_packets(service)
        # nor does one that changes a chain, after which that goes on
        self.write_associations(4096, 5000)
        self.vpn(more=", {name: x, type: firewall, isolation: none, config: {rules: none.rules}}")
        status, answer = self.apply(service, str(self.folder / "a.yaml"), new_keys=[5000])
        self.assertEqual(status, 400, answer)
        self.assertIn("none.rules", answer["error"])
        self.assert_refused(service, self.vpn(), 5000)

    def test_two_nfs_with_the_same_keys_are_refused(self):
        service = self.serve()
        self.write_associations(4096)
        shutil.copy(self.folder / "sa.yaml", self.folder / "other.yaml")
        for place in ("none", "process"):
            second = (f", {{name: more, type: ipsec, isolation: {place}, config: {{direction: encrypt, sa: other.yaml}}}}")
            status, answer = self.apply(service, self.vpn(place=place, more=second), new_keys=[4096])
            self.assertEqual(status, 400, answer)
            self.assertIn("NF 'more': the association with SPI 4096 has the keys of the association with SPI 4096 of NF "
                          "'vpn'", answer["error"])
        self.assertEqual(service.ask("GET", "/v1/chains")[1], {"chains": []})


if __name__ == "__main__":
    unittest.main()
