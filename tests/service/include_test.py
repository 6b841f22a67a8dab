#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`include` of a chain file in every command that reads one, at SIGHUP, in a service and in the process of an NF."""

import os
import pathlib
import signal
import subprocess
import unittest

from harness import BIN, DATA, LIMIT_S, ServiceTest, TenantTest, firewall, wait_for

TOP = "apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: a}}\ninclude: {include}\n"


def common(rules, workers=2):
    return f"vars: {{RULES: {rules}}}\nspec: {{tx: null, device: none, workers: {workers}}}\n"


class Commands(ServiceTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "a.yaml"
        self.file.write_text(TOP.format(include="common.yaml") + "spec:\n  rx: {generator: {rate: 20000}}\n"
                             f"  nfs: {firewall('${RULES}').replace('${RULES}', chr(34) + '${RULES}' + chr(34))}\n")
        self.common = self.folder / "common.yaml"
        self.common.write_text(common(f"{DATA}/fw.rules"))

    def catena(self, *words, status=0):
        done = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_check_plan_and_show_config_read_it(self):
        self.assertIn("fine, 1 NF", self.catena("check", str(self.file)))
        self.catena("plan", str(self.file))
        shown = self.catena("show", "config", str(self.file))
        self.assertIn("workers: 2", shown)
        self.assertIn(f"rules: {DATA}/fw.rules", shown)
        self.assertNotIn("include", shown)
        text = common(f"{DATA}/fw.rules").replace("workers", "wrokers")
        self.common.write_text(text)
        line = 1 + text[:text.index("wrokers")].count("\n")
        column = text.splitlines()[line - 1].index("wrokers") + 1
        for command in (("check",), ("plan",), ("run",), ("show", "config")):
            self.assertIn(f"{self.common}:{line}:{column}: unknown key 'wrokers'", self.catena(*command, str(self.file), status=1))

    def test_a_run_follows_it_at_sighup(self):
        rules = self.folder / "other.rules"
        rules.write_text("deny any any any any any\n")
        with subprocess.Popen([BIN, "run", str(self.file)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as run:
            self.addCleanup(run.kill)
            os.set_blocking(run.stderr.fileno(), False)
            lines = []

            def says(text):
                lines.append(run.stderr.read() or b"")
                return text in b"".join(lines).decode()

            def asked(text):
                run.send_signal(signal.SIGHUP)
                return says(text)
            wait_for(lambda: says("received"))
            wait_for(lambda: asked("nothing has changed"))
            self.common.write_text(common(rules))
            wait_for(lambda: asked("changed: fw"))
            self.common.write_text("spec: [\n")
            wait_for(lambda: asked(f"{self.common}:1:7: not valid YAML: '[' is not closed"))
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(LIMIT_S), 0, b"".join(lines))

    def test_a_service_reads_it_at_each_apply_and_start(self):
        service = self.serve()
        answer = self.applied(service, str(self.file))
        self.assertEqual(answer["applied"], "started")
        config = service.ask("GET", "/v1/chains/a/config")[1]["config"]
        self.assertIn(f"rules: {DATA}/fw.rules", config)
        self.assertEqual(self.applied(service, str(self.file))["changes"], [])
        rules = self.folder / "other.rules"
        rules.write_text("deny any any any any any\n")
        self.common.write_text(common(rules))
        preview = service.ask("POST", "/v1/chains", {"file": str(self.file), "dry_run": True})[1]
        self.assertEqual((preview["applied"], len(preview["changes"])), ("changed", 1), preview)
        self.assertEqual(self.applied(service, str(self.file))["applied"], "changed")
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["dropped_packets"] > 100)
        self.assertEqual(service.end(), 0, service.log())
        self.common.write_text(common(rules, workers=1))
        service = self.serve()
        wait_for(lambda: self.state(service, "a") == "running")
        self.assertIn("workers: 1", service.ask("GET", "/v1/chains/a/config")[1]["config"])
        self.common.unlink()
        status, answer = self.apply(service, str(self.file))
        self.assertEqual(status, 400, answer)
        self.assertIn(f"{self.file}:4:10: 'include': ", answer["error"])
        self.assertEqual(self.state(service, "a"), "running")


class Tenants(TenantTest):
    def test_includes_are_read_with_the_rights_of_the_user(self):
        secret = self.folder / "secret.yaml"
        secret.write_text("spec: {tx: null}\n")
        secret.chmod(0o600)
        mine = pathlib.Path(self.attacker.folder) / "a.yaml"
        for include, expected in ((secret, 403), ("/proc/self/environ", 403), (f"/proc/{os.getpid()}/maps", 403)):
            mine.write_text(TOP.format(include=include) + "spec: {rx: {generator: {}}, nfs: []}\n")
            os.chown(mine, self.attacker.uid, self.attacker.uid)
            status, answer = self.attacker.apply(str(mine))
            self.assertEqual(status, expected, answer)
            self.assertIn(f"{mine}:4:10: 'include': ", answer["error"])
            self.assertNotIn("tx", answer["error"])

    def test_the_files_of_a_chain_share_the_limit_of_one(self):
        folder = pathlib.Path(self.attacker.folder)
        for name in ("b", "c"):
            (folder / f"{name}.yaml").write_text("# " + "x" * 600_000 + "\nspec: {tx: null}\n")
        mine = folder / "a.yaml"
        mine.write_text(TOP.format(include="[b.yaml, c.yaml]") + "spec: {rx: {generator: {}}, nfs: []}\n")
        status, answer = self.attacker.apply(str(mine))
        self.assertEqual(status, 400, answer)
        self.assertIn("the files of the chain have more than 1048576 bytes", answer["error"])


if __name__ == "__main__":
    unittest.main()
