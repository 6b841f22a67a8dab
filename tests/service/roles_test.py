#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Roles of users: what a reader, an owner and an operator may do with chains of another user."""

import json
import pathlib
import signal
import subprocess
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import BIN, TENANTS, TenantTest, firewall, wait_for


class Roles(TenantTest):
    """The victim has chains; the attacker has the role of the test."""

    def setUp(self):
        super().setUp()
        self.service.end()
        self.file = self.folder / "roles.yaml"

    def serve_with(self, role):
        self.file.write_text(f"users: {{{self.attacker.uid}: {role}}}\n")
        self.service = self.serve("--roles", str(self.file), "--audit", str(self.folder / "audit"))
        self.victim.applied(self.victim.chain("v"))

    def status(self, method, path, body=None):
        return self.attacker.ask(method, f"/v1/chains{path}", body)[0]

    def refused(self, *requests):
        for method, path, *body in requests:
            with self.subTest(method=method, path=path):
                self.assertEqual(self.status(method, path, *body), 403)

    def changes(self, name, file):
        return [("PUT", f"/{name}", {"file": file}), ("POST", f"/{name}/reload"), ("POST", f"/{name}/rollback"),
                ("POST", f"/{name}/confirm"), ("DELETE", f"/{name}"), ("GET", f"/{name}/config"), ("POST", f"/{name}/reset")]

    def operations(self, name):
        return [("POST", f"/{name}/stop"), ("POST", f"/{name}/start"), ("POST", f"/{name}/restart"),
                ("DELETE", f"/{name}/operation"), ("GET", f"/{name}/log")]

    def test_an_owner_has_his_own_chains_alone(self):
        self.serve_with("owner")
        self.refused(("GET", "/v"), ("GET", "/v/revisions"), *self.operations("v"),
                     *self.changes("v", self.attacker.chain("v")))
        self.assertEqual(self.attacker.ask("GET", "/v1/chains")[1]["chains"], [])
        self.attacker.applied(self.attacker.chain("a"))
        self.assertEqual(self.attacker.delete("a")[0], 200)

    def test_a_reader_sees_all_chains_and_changes_none(self):
        self.serve_with("reader")
        self.assertEqual(self.attacker.get("v")["state"], "running")
        self.assertEqual([each["name"] for each in self.attacker.ask("GET", "/v1/chains")[1]["chains"]], ["v"])
        self.assertEqual(self.status("GET", "/v/revisions"), 200)
        self.assertIn('chain="v"', self.attacker.ask("GET", "/metrics")[1])
        self.refused(*self.operations("v"), *self.changes("v", self.attacker.chain("v")))
        status, answer = self.attacker.apply(self.attacker.chain("a"))
        self.assertEqual((status, answer["error"]),
                         (403, f"user {self.attacker.uid} is a reader and may change no chain"))
        self.refused(("POST", "", {"file": self.attacker.chain("a"), "dry_run": True}))
        self.assertEqual(self.victim.get("v")["state"], "running")

    def failed_for_words_of_a_file(self, role):
        """What the victim and the attacker see of a chain that does not start again."""
        rules = self.victim.write("fw.rules", "allow udp any any any 53\n")
        self.serve_with(role)
        fw = f"[{{name: fw, type: firewall, config: {{rules: {rules}, default: deny}}}}]"
        self.victim.applied(self.victim.chain("w", nfs=fw))
        self.service.end()
        self.victim.write("fw.rules", "a-secret begins no rule\n")
        self.service = self.serve("--roles", str(self.file))
        wait_for(lambda: self.victim.get("w")["error"] or self.victim.get("w")["fallback"])
        return json.dumps(self.victim.get("w")), json.dumps(self.attacker.get("w"))

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_a_reader_sees_no_words_of_files(self):
        own, others = self.failed_for_words_of_a_file("reader")
        self.assertIn("a-secret", own)
        self.assertNotIn("a-secret", others)
        self.assertIn("its user and operators see the reason", others)

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_an_operator_sees_why_a_chain_failed(self):
        self.assertIn("a-secret", self.failed_for_words_of_a_file("operator")[1])

    def test_an_operator_stops_and_starts_all_chains_and_applies_his_own_alone(self):
        self.serve_with("operator")
        self.refused(*self.changes("v", self.attacker.chain("v")))
        self.assertEqual(self.status("DELETE", "/v/operation"), 409, "nothing to cancel")
        for path, state in (("stop", "stopped"), ("start", "running"), ("restart", "running")):
            status, answer = self.attacker.ask("POST", f"/v1/chains/v/{path}")
            self.assertEqual((status, answer.get("state"), answer.get("uid")), (200, state, self.victim.uid), answer)
        self.assertTrue(self.attacker.ask("GET", "/v1/chains/v/log")[1]["lines"])
        self.attacker.applied(self.attacker.chain("a"))
        self.assertEqual(self.attacker.delete("a")[0], 200)
        self.assertIn(f"audit: restart of 'v' by user {self.attacker.uid} (operator, process ", self.service.log())

    def test_an_operator_starts_no_text_that_its_user_did_not_apply(self):
        self.serve_with("operator")
        rules = self.victim.data(firewall())
        file = self.victim.chain("v", nfs=rules)
        self.victim.applied(file, accept_loss=True)
        named = pathlib.Path(self.victim.folder / "fw.rules")
        for path, text in ((pathlib.Path(file), "# changed\n"), (named, "# changed\n")):
            before = path.read_text()
            path.write_text(before + text)
            status, answer = self.attacker.ask("POST", "/v1/chains/v/restart")
            self.assertEqual(status, 409, answer)
            self.assertIn(f"only user {self.victim.uid} may apply", answer["error"])
            self.assertEqual(self.victim.get("v")["state"], "running")
            path.write_text(before)
        self.assertEqual(self.attacker.ask("POST", "/v1/chains/v/restart")[0], 200)
        status, answer = self.attacker.ask("POST", "/v1/chains/v/restart", {"options": {"new_keys": [4096]}})
        self.assertEqual(status, 403, answer)
        self.assertIn(f"need the consent of its user {self.victim.uid}", answer["error"])

    def test_a_signal_has_them_read_again(self):
        self.serve_with("owner")
        self.assertEqual(self.attacker.stop("v")[0], 403)
        self.file.write_text("users: {x: operator}\n")
        self.service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: f"the earlier roles hold: {self.file}:1:" in self.service.log())
        self.assertEqual(self.attacker.stop("v")[0], 403)
        self.file.write_text(f"groups: {{{TENANTS}: operator}}\n")
        self.service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.attacker.stop("v")[0] == 200)

    def test_a_wrong_file_is_an_error_at_its_place(self):
        self.file.write_text("users:\n  1000: admin\n")
        done = subprocess.run([BIN, "serve", "--socket", str(self.folder / "q"), "--state", str(self.folder / "q-state"),
                               "--roles", str(self.file)], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.file}:2:9: ", done.stderr)
        self.assertIn("allowed: reader, owner, operator", done.stderr)


if __name__ == "__main__":
    unittest.main()
