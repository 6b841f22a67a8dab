#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replacement that loses packets or NF state needs `accept_loss` in its request, and is refused without it."""

import json
import unittest

from harness import ServiceTest, firewall, wait_for

NAT = "{name: nat, type: nat, isolation: none, config: {inside: [10.0.0.0/8], external: 203.0.113.1, ports: 2000-3000}}"
FLOWS = "{name: flows, type: monitor, isolation: process}"


class AcceptLoss(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve()

    def view(self):
        return self.service.ask("GET", "/v1/chains/a")[1]

    def stored(self):
        return json.loads((self.folder / "state" / "a.json").read_text())

    def run_chain(self, **kinds):
        file = self.chain("a", **kinds)
        self.applied(self.service, file)
        wait_for(lambda: self.view()["tx"]["sent_packets"] > 100)
        return file

    def dry_run(self, file, **options):
        status, answer = self.service.ask("POST", "/v1/chains", {"file": file, "dry_run": True, "options": options})
        self.assertEqual(status, 200, answer)
        return answer

    def assert_refused(self, file, *losses, **options):
        """The request is refused with these losses, as its dry run has them, and the chain continues."""
        before, stored = self.view(), self.stored()
        self.assertEqual(self.dry_run(file, **options)["losses"], list(losses))
        status, answer = self.apply(self.service, file, **options)
        self.assertEqual((status, answer["error"]),
                         (409, f"chain 'a' keeps running unchanged, because its replacement would lose {', '.join(losses)}. "
                               "To accept this, use `catena apply --accept-loss`"))
        self.assertEqual(self.stored(), stored)
        after = self.view()
        self.assertEqual((after["state"], after["options"]), ("running", before["options"]))
        self.assertEqual([nf["name"] for nf in after["nfs"]], [nf["name"] for nf in before["nfs"]])
        wait_for(lambda: self.view()["rx"]["received_packets"] > after["rx"]["received_packets"])
        self.assertGreaterEqual(self.view()["rx"]["received_packets"], before["rx"]["received_packets"])

    def assert_accepted(self, file, *losses, **options):
        answer = self.applied(self.service, file, accept_loss=True, **options)
        self.assertEqual((answer["applied"], answer["losses"]), ("replaced", list(losses)))
        wait_for(lambda: self.view()["tx"]["sent_packets"] > 100)

    def test_packets_are_lost_with_a_consent_only(self):
        file = self.run_chain(nfs=firewall())
        record = str(self.folder / "record")
        loss = f"packets that arrive during the replacement ({file}: 'outputs' of 'spec' has changed)"
        self.assert_refused(file, loss, record=record)
        self.assert_accepted(file, loss, record=record)
        self.assertEqual(self.view()["options"], {"record": record}, "the consent is no option of the chain")
        self.assertNotIn("accept_loss", json.dumps(self.stored()))
        self.chain("a", nfs=firewall(), rx="{generator: {rate: 30000}}")
        self.assert_refused(file, f"packets that arrive during the replacement ({file}: 'rx' of 'spec' has changed)",
                            record=record)

    def test_state_of_nfs_is_lost_with_a_consent_only(self):
        nat = NAT.replace("isolation: none", "isolation: process")
        flows = FLOWS.replace("isolation: process", "isolation: none")
        for nfs, lost in ((f"{nat}, {FLOWS}", ["nat"]), (f"{NAT}, {flows}", ["flows"]), (f"{nat}, {flows}", ["nat", "flows"])):
            file = self.run_chain(nfs=f"[{NAT}, {FLOWS}]")
            self.chain("a", nfs=f"[{firewall()[1:-1]}, {nfs}]")
            losses = [f"the state of NF '{name}'" for name in lost]
            self.assert_refused(file, *losses)
            self.assert_accepted(file, *losses)
            self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)

    def test_a_restart_of_the_chain_loses_the_state_of_all_nfs(self):
        file = self.run_chain(nfs=f"[{firewall()[1:-1]}, {NAT}, {FLOWS}]")
        record = str(self.folder / "record")
        losses = [f"packets that arrive during the replacement ({file}: 'outputs' of 'spec' has changed)",
                  "the state of NF 'nat'", "the state of NF 'flows'"]
        self.assert_refused(file, *losses, record=record)
        self.assert_accepted(file, *losses, record=record)

    def test_the_earlier_spec_runs_again_if_the_new_chain_cannot_be_created(self):
        for shards in (1, 3):
            record = self.folder / "record"
            more = f"  outputs: {{record: {record}}}\n  shards: {shards}\n"
            file = self.chain("a", nfs=firewall(), more=more)
            self.applied(self.service, file, accept_loss=True)
            before = self.view()
            self.chain("a", nfs=firewall(), rx="{dpdk: net_nonsense0}", more=more)
            status, answer = self.apply(self.service, file, accept_loss=True)
            self.assertEqual(status, 400, answer)
            self.assertIn("net_nonsense0", answer["error"])
            self.assertIn("the chain has been started again with its earlier spec", answer["error"])
            after = self.view()
            self.assertEqual((after["state"], after["revision"]), ("running", before["revision"]))
            wait_for(lambda: self.view()["tx"]["sent_packets"] > 100)
            self.service.end()
            self.service = self.serve()
            wait_for(lambda: self.view()["revision"] == before["revision"])
            self.assertEqual(self.state(self.service, "a"), "running")

    def test_the_chain_does_not_end_for_one_whose_interface_is_not_here(self):
        more = f"  outputs: {{record: {self.folder / 'record'}}}\n"
        for shards in (1, 3):
            file = self.chain("a", nfs=firewall(), more=f"{more}  shards: {shards}\n")
            self.applied(self.service, file, accept_loss=True)
            started = self.service.log().count("a: runs")
            sent = self.view()["tx"]["sent_packets"]
            self.chain("a", nfs=firewall(), rx="{dev: not-here0}", more=f"{more}  shards: {shards}\n")
            for dry_run in (True, False):
                body = {"file": file, "dry_run": dry_run, "options": {"accept_loss": True}}
                status, answer = self.service.ask("POST", "/v1/chains", body)
                self.assertEqual(status, 400, answer)
                self.assertRegex(answer["error"], r"a.yaml:\d+:\d+: no interface is named 'not-here0' here")
                self.assertNotIn("started again", answer["error"])
            wait_for(lambda than=sent: self.view()["tx"]["sent_packets"] > than)
            self.assertEqual(self.view()["state"], "running")
            self.assertEqual(self.service.log().count("a: runs"), started)

    def test_what_loses_nothing_needs_no_consent(self):
        file = self.run_chain(nfs=f"[{NAT}, {FLOWS}]")
        self.chain("a", nfs=f"[{NAT}, {firewall()[1:-1]}, {FLOWS}]")
        self.assertEqual(self.dry_run(file)["losses"], [], "an unchanged process goes on")
        self.assertEqual(self.applied(self.service, file)["losses"], [])
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)
        file = self.run_chain(nfs=f"[{NAT}]")
        self.chain("a", nfs=f"[{NAT}, {firewall()[1:-1]}]")
        self.assertEqual(self.dry_run(file)["losses"], [])
        self.assertEqual(self.applied(self.service, file)["losses"], [])
        flows = FLOWS.replace("isolation: process", "isolation: none")
        self.chain("a", nfs=f"[{NAT}, {flows}]")
        self.assertEqual(self.applied(self.service, file)["losses"], [])
        for shards in (3, 1, 2):
            self.chain("a", nfs=f"[{NAT}, {flows}]", more=f"  shards: {shards}\n")
            self.assertEqual(self.dry_run(file)["losses"], [])
            self.assertEqual(self.applied(self.service, file)["losses"], [])

    def test_a_chain_that_does_not_run_has_nothing_to_lose(self):
        record = str(self.folder / "record")
        file = self.run_chain(nfs=f"[{NAT}]")
        self.assertEqual(self.service.ask("POST", "/v1/chains/a/stop")[0], 200)
        self.chain("a", nfs=f"[{NAT}]", rx="{generator: {count: 200}}")
        self.assertEqual(self.dry_run(file, record=record)["losses"], [])
        self.assertEqual(self.applied(self.service, file, record=record)["losses"], [])
        wait_for(lambda: self.state(self.service, "a") == "finished")
        self.chain("a", nfs=f"[{NAT}]", rx="{generator: {rate: 1000}}", tx="{pcap: /dev/full}")
        self.assertEqual(self.applied(self.service, file)["losses"], [])
        wait_for(lambda: self.state(self.service, "a") == "failed")
        self.chain("a", nfs=f"[{NAT}]")
        self.assertEqual(self.applied(self.service, file)["losses"], [])
        self.assertEqual(self.state(self.service, "a"), "running")

    def test_a_refused_change_has_no_effect_on_the_next_start_of_the_service(self):
        file = self.run_chain()
        record = self.folder / "record"
        self.assertEqual(self.apply(self.service, file, record=str(record))[0], 409)
        self.assertEqual(self.service.end(), 0, self.service.log())
        self.service = self.serve()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertEqual(self.view()["options"], {})
        self.assertFalse(record.exists())

    def test_a_dry_run_sees_that_packets_are_divided_otherwise(self):
        file = self.run_chain(nfs=f"[{NAT}]")
        self.chain("a", nfs=f"[{NAT}]", more="  shards: 2\n")
        losses = ["packets that arrive during the replacement (its shards divide packets differently)", "the state of NF 'nat'"]
        self.assert_refused(file, *losses)
        self.assert_accepted(file, *losses)

    def test_the_command_names_the_losses(self):
        nfs = f"[{firewall()[1:-1]}, {NAT}]"
        file = self.run_chain(nfs=nfs)
        self.chain("a", nfs=nfs.replace("isolation: none", "isolation: process"))
        reason = self.dry_run(file)["why_replaced"]
        self.assertEqual(reason, "the state of NF 'nat' cannot move")
        self.assertEqual(self.cli(self.service, "apply", file, "--dry-run").stdout.splitlines()[:4],
                         [f"a: would be replaced: {reason}", "  nat", "  would lose the state of NF 'nat'", "  needs --accept-loss"])
        refused = self.cli(self.service, "apply", file, status=1)
        self.assertIn("would lose the state of NF 'nat'. To accept this, use `catena apply --accept-loss`", refused.stderr)
        self.assertRegex(self.cli(self.service, "apply", file, "--accept-loss").stdout,
                         rf"^a: running, replaced: {reason}\n  nat: in a process .*\n  lost the state of NF 'nat'\n$")


if __name__ == "__main__":
    unittest.main()
