#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit of a service: who changed or tried to change which chain, and the acts of the service itself."""

import json
import os
import stat
import subprocess
import unittest

from harness import BIN, IS_ROOT, ServiceTest, TenantTest, wait_for


class Audit(ServiceTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "audit.jsonl"

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def operations(self):
        return [(line["operation"], line["chain"], line["status"]) for line in self.lines()]

    def test_each_change_is_a_line_and_no_reading_is(self):
        service = self.serve("--audit", str(self.file))
        file = self.chain("a")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o600)
        self.assertEqual(service.ask("POST", "/v1/chains", {"file": file, "dry_run": True})[0], 200)
        revision = self.applied(service, file)["revision"]
        service.ask("GET", "/v1/chains")
        self.assertEqual(service.ask("POST", "/v1/chains/a/confirm")[0], 409)
        self.assertEqual(service.ask("POST", "/v1/chains/a/stop")[0], 200)
        self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
        self.assertEqual(self.operations(), [("apply", "a", 201), ("confirm", "a", 409), ("stop", "a", 200),
                                             ("delete", "a", 200)])
        apply, confirm, *_ = self.lines()
        self.assertEqual((apply["uid"], apply["role"], apply["pid"], apply["revision"], apply["error"]),
                         (os.geteuid(), "root", os.getpid(), revision, None))
        self.assertIn("nothing to confirm", confirm["error"])
        self.assertIn("audit: apply of 'a' by user", service.log())

    def test_a_start_with_the_service_and_a_return_are_its_own(self):
        service = self.serve("--audit", str(self.file))
        before = self.applied(service, self.chain("a"))["revision"]
        self.assertEqual(service.end(), 0)
        service = self.serve("--audit", str(self.file))
        wait_for(lambda: self.operations()[-1] == ("own-start", "a", 200))
        self.assertEqual((self.lines()[-1]["pid"], self.lines()[-1]["role"]), (service.process.pid, None))
        body = {"file": self.chain("a", file="b.yaml", rx="{generator: {rate: 10000}}"), "confirm_s": 1,
                "options": {"accept_loss": True}}
        self.assertEqual(service.ask("POST", "/v1/chains", body)[0], 200)
        wait_for(lambda: self.operations()[-1][0] == "own-return")
        self.assertEqual((self.lines()[-1]["revision"], self.lines()[-1]["status"]), (before, 200))

    def test_a_rotated_file_is_left(self):
        service = self.serve("--audit", str(self.file))
        service.ask("DELETE", "/v1/chains/a")
        self.file.rename(self.folder / "old")
        self.assertEqual(service.ask("POST", "/v1/reopen")[0], 200)
        self.assertEqual([name for name, *_ in self.operations()], ["reopen"])

    def test_a_full_disk_costs_lines_and_not_the_service(self):
        service = self.serve("--audit", "/dev/full")
        self.applied(service, self.chain("a"))
        service.ask("DELETE", "/v1/chains/a")
        self.assertEqual(service.log().count("requests are served all the same"), 1)
        self.assertIn("catena_audit_lost_lines_total 2", service.ask("GET", "/metrics")[1])

    def test_a_file_that_cannot_be_opened_is_an_error(self):
        done = self.refused("--audit", str(self.folder / "no" / "audit"))
        self.assertIn("no/audit", done)

    def refused(self, *words):
        done = subprocess.run([BIN, "serve", "--socket", str(self.folder / "s"), "--state", str(self.folder / "st"),
                               *words], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        return done.stderr


@unittest.skipUnless(IS_ROOT, "root can become other users, others cannot")
class Users(TenantTest):
    def test_a_refused_request_is_of_the_user_who_sent_it(self):
        self.victim.applied(self.victim.chain("a"))
        self.assertEqual(self.attacker.delete("a")[0], 403)
        self.assertIn(f"audit: delete of 'a' by user {self.attacker.uid} (owner, process ", self.service.log())
        lines = self.victim.ask("GET", "/v1/chains/a/log")[1]["lines"]
        self.assertFalse([line for line in lines if "delete" in line["message"]], "others fill no log of a chain")


if __name__ == "__main__":
    unittest.main()
