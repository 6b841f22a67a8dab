#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Specs that ran are kept: `catena history`, `rollback`, `apply --confirm`, a start with a broken file; and `start`,
`restart`, `reload`, `cancel`. In the process of the chain and in one of its own, with 1 and 3 shards.
"""

import json
import os
import pathlib
import signal
import stat
import unittest

from harness import DATA, Request, ServiceTest, TenantTest, firewall, wait_for

SHARDS = ("shards: 1", "shards: 3")


def delay(us):
    """A key of `spec` whose change loses nothing."""
    return f"  tuning: {{max_batch_delay_us: {us}}}\n"


class SpecTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve()

    def get(self, name="a"):
        return self.service.ask("GET", f"/v1/chains/{name}")[1]

    def config(self, name="a"):
        return self.service.ask("GET", f"/v1/chains/{name}/config")[1]["config"]

    def revisions(self, name="a"):
        return self.service.ask("GET", f"/v1/chains/{name}/revisions")[1]["revisions"]

    def post(self, what, body=None, name="a"):
        return self.service.ask("POST", f"/v1/chains/{name}/{what}", body)

    def rules(self, text="deny tcp any any any 23\n"):
        path = self.folder / "own.rules"
        path.write_text(text)
        return str(path)

    def restart_service(self):
        self.service.end()
        self.service = self.serve()


class History(SpecTest):
    def test_each_spec_that_ran_is_kept_once(self):
        for isolation in ("none", "process"):
            for shards in SHARDS:
                name = f"c-{isolation}-{shards[-1]}"
                nfs = firewall(self.rules()).replace("type:", f"isolation: {isolation}, type:")
                ids = []
                for us in (1000, 2000, 1000):
                    file = self.chain(name, nfs=nfs, more=f"  {shards}\n{delay(us)}")
                    ids.append(self.applied(self.service, file)["revision"])
                self.assertEqual(ids[0], ids[2])
                kept = self.revisions(name)
                self.assertEqual([each["revision"] for each in kept], [ids[0], ids[1]])
                self.assertEqual([each["is_present"] for each in kept], [True, False])
                status, answer = self.apply(self.service, self.chain(name, rx="{generator: {rate: fast}}"))
                self.assertEqual(status, 400, answer)
                self.assertEqual(self.revisions(name), kept)
                status, answer = self.post("rollback", name=name)
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["revision"], ids[1])
                self.assertIn("max_batch_delay_us: 2000", self.config(name))
                self.assertEqual(answer["state"], "running")

    def test_only_the_last_ones_are_kept_and_only_for_root(self):
        for us in range(1, 19):
            self.applied(self.service, self.chain("a", more=delay(us)))
        kept = self.revisions()
        self.assertEqual(len(kept), 16)
        folder = self.folder / "state" / "history" / "a.d"
        self.assertEqual({path.stem for path in folder.iterdir()}, {each["revision"] for each in kept})
        for path in folder.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a")[0], 200)
        self.assertFalse(folder.exists())

    def test_a_rollback_survives_a_restart_and_ends_with_a_reload(self):
        self.applied(self.service, self.chain("a", more=delay(1000)))
        self.applied(self.service, self.chain("a", more=delay(2000)))
        self.cli(self.service, "rollback", "a")
        self.assertIn("max_batch_delay_us: 1000", self.config())
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("max_batch_delay_us: 1000", self.config())
        self.assertIsNone(self.get()["fallback"])
        done = self.cli(self.service, "reload", "a")
        self.assertIn("a: running", done.stdout)
        self.assertIn("max_batch_delay_us: 2000", self.config())

    def test_included_files_are_of_the_spec(self):
        more = self.folder / "more.yaml"
        more.write_text("spec: {tuning: {max_batch_delay_us: 1000}}\n")
        file = pathlib.Path(self.chain("a"))
        file.write_text("include: [more.yaml]\n" + file.read_text())
        first = self.applied(self.service, str(file))["revision"]
        more.write_text("spec: {tuning: {max_batch_delay_us: 2000}}\n")
        self.assertEqual(self.post("reload")[0], 200)
        self.assertIn("max_batch_delay_us: 2000", self.config())
        more.unlink()
        self.assertEqual(self.post("rollback", {"revision": first})[0], 200)
        self.assertIn("max_batch_delay_us: 1000", self.config())

    def test_a_changed_file_of_an_nf_makes_a_rollback_a_refusal(self):
        file = self.chain("a", more=delay(1000), nfs=firewall(self.rules()))
        self.applied(self.service, file)
        self.applied(self.service, self.chain("a", more=delay(2000), nfs=firewall(self.rules())))
        before = self.get()
        rules = self.rules("deny udp any any any 53\n")
        status, answer = self.post("rollback")
        self.assertEqual(status, 400, answer)
        self.assertIn(f"{rules} has changed since", answer["error"])
        os.unlink(rules)
        status, answer = self.post("rollback")
        self.assertIn(rules, answer["error"])
        after = self.get()
        self.assertEqual((after["state"], after["revision"]), ("running", before["revision"]))
        self.assertGreaterEqual(after["rx"]["received_packets"], before["rx"]["received_packets"])
        self.rules()
        self.assertEqual(self.post("rollback")[0], 200)

    def test_losses_of_a_rollback_need_a_consent(self):
        self.applied(self.service, self.chain("a"))
        record = str(self.folder / "record")
        second = self.applied(self.service, self.chain("a"), record=record, accept_loss=True)
        status, answer = self.post("rollback")
        self.assertEqual(status, 409, answer)
        self.assertIn("--accept-loss", answer["error"])
        self.assertEqual(self.get()["revision"], second["revision"])
        self.assertEqual(self.get()["options"], {"record": record})
        self.assertIn("lost packets", self.cli(self.service, "rollback", "a", "--accept-loss").stdout)
        self.assertEqual(self.get()["options"], {})
        self.cli(self.service, "rollback", "a", "--accept-loss", second["revision"])
        self.assertEqual(self.get()["options"], {"record": record})

    def test_outputs_and_captures_are_no_part_of_a_spec(self):
        flows = self.folder / "flows"
        nfs = f"[{{name: m, type: monitor, config: {{active_timeout_s: 1, export: [{{format: json, file: {flows}}}]}}}}]"
        for us in (1000, 2000):
            self.applied(self.service, self.chain("a", nfs=nfs, more=delay(us)), accept_loss=True)
            wait_for(lambda: flows.exists() and flows.stat().st_size > 0)
        status, answer = self.post("rollback", {"options": {"accept_loss": True}})
        self.assertEqual(status, 200, answer)

    def test_unknown_revisions_are_refused(self):
        self.applied(self.service, self.chain("a"))
        for revision in ("0123456789ab", "../../a", "", "x" * 1000, "0123456789AB/"):
            status, answer = self.post("rollback", {"revision": revision})
            self.assertEqual(status, 404, answer)
        for body in ({"revision": 3}, {"revisions": "x"}, [], {"options": {"device": "none"}}, "{"):
            self.assertEqual(self.post("rollback", body)[0], 400, body)
        self.assertIn("has no earlier spec", self.cli(self.service, "rollback", "a", status=1).stderr)
        self.assertEqual(self.post("rollback", name="b")[0], 404)

    def test_damaged_revisions_are_left_out(self):
        first = self.applied(self.service, self.chain("a", more=delay(1000)))["revision"]
        self.applied(self.service, self.chain("a", more=delay(2000)))
        path = self.folder / "state" / "history" / "a.d" / f"{first}.json"
        text = path.read_text()
        for damaged in (text[:100], "", text.replace("delay_us: 1000", "delay_us: 1001"), "[" * 100_000):
            path.write_text(damaged)
            self.assertEqual(self.post("rollback", {"revision": first})[0], 500)
            self.assertEqual(len(self.revisions()), 1)
        path.write_text(text)
        self.assertEqual(self.post("rollback", {"revision": first})[0], 200)


class Fallback(SpecTest):
    """A start of the service with files that were good and are not now."""

    def test_the_last_spec_runs_instead_of_a_broken_file(self):
        for isolation in ("none", "process"):
            for shards in SHARDS:
                nfs = firewall(self.rules()).replace("type:", f"isolation: {isolation}, type:")
                file = pathlib.Path(self.chain("a", nfs=nfs, more=f"  {shards}\n"))
                revision = self.applied(self.service, str(file), accept_loss=True)["revision"]
                good = file.read_text()
                file.write_text(good + "  typo: 1\n")
                self.restart_service()
                wait_for(lambda: self.state(self.service, "a") == "running")
                wait_for(lambda: self.get()["fallback"])
                answer = self.get()
                self.assertEqual(answer["revision"], revision)
                self.assertIn("typo", answer["fallback"])
                self.assertIn(f"its file cannot run, so revision {revision} does", self.service.log())
                self.assertIn("an earlier spec", self.cli(self.service, "get", "a").stdout)
                file.write_text(good)
                self.assertEqual(self.post("reload")[0], 200)
                self.assertIsNone(self.get()["fallback"])

    def test_a_file_that_is_gone_is_a_broken_one(self):
        file = pathlib.Path(self.chain("a"))
        self.applied(self.service, str(file))
        file.unlink()
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")

    def test_a_file_of_another_chain_is_a_broken_one(self):
        file = pathlib.Path(self.chain("a"))
        self.applied(self.service, str(file))
        file.write_text(file.read_text().replace("{name: a}", "{name: b}"))
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("describes chain 'b' now", wait_for(lambda: self.get()["fallback"]))

    def test_a_spec_of_a_rollback_that_is_lost_leaves_the_file(self):
        first = self.applied(self.service, self.chain("a", more=delay(1000)))["revision"]
        self.applied(self.service, self.chain("a", more=delay(2000)))
        self.assertEqual(self.post("rollback")[0], 200)
        (self.folder / "state" / "history" / "a.d" / f"{first}.json").unlink()
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("max_batch_delay_us: 2000", self.config())
        self.assertIn("has no revision", wait_for(lambda: self.get()["fallback"]))

    def test_without_a_spec_that_can_run_the_chain_has_failed(self):
        file = pathlib.Path(self.chain("a", nfs=firewall(self.rules())))
        self.applied(self.service, str(file))
        file.write_text("x")
        self.rules("deny")
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "failed")
        self.assertIn(f"{file}:1:1", self.get()["error"])


class Confirm(SpecTest):
    def setUp(self):
        super().setUp()
        self.first = self.applied(self.service, self.chain("a", more=delay(1000)))["revision"]

    def try_out(self, seconds, us=2000):
        return self.service.ask("POST", "/v1/chains", {"file": self.chain("a", more=delay(us)), "confirm_s": seconds})

    def test_a_spec_that_is_not_confirmed_is_taken_back(self):
        status, answer = self.try_out(1)
        self.assertEqual(status, 200, answer)
        self.assertNotEqual(answer["revision"], self.first)
        self.assertIn(answer["confirm_s"], (0, 1))
        wait_for(lambda: self.get()["revision"] == self.first)
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("max_batch_delay_us: 1000", self.config())
        self.assertIsNone(self.get()["confirm_s"])

    def test_it_is_taken_back_though_packets_are_lost(self):
        file = self.chain("a", more=delay(1000))
        body = {"file": file, "options": {"record": str(self.folder / "record")}, "confirm_s": 1}
        self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 409)
        self.assertIsNone(self.get()["confirm_s"])
        body["options"]["accept_loss"] = True
        self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 200)
        wait_for(lambda: self.get()["revision"] == self.first and self.get()["state"] == "running")
        self.assertEqual(self.get()["options"], {})

    def test_one_whose_chain_fails_is_taken_back(self):
        body = {"file": self.chain("a", tx="{pcap: /dev/full}"), "options": {"accept_loss": True}, "confirm_s": 600}
        self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 200)
        wait_for(lambda: self.get()["revision"] == self.first and self.get()["state"] == "running")

    def test_one_that_is_confirmed_stays(self):
        done = self.cli(self.service, "apply", "--confirm", "3", self.chain("a", more=delay(2000)))
        self.assertIn("a: running", done.stdout)
        self.assertIn("within", self.cli(self.service, "get", "a").stdout)
        self.assertEqual(self.cli(self.service, "confirm", "a").stdout, "a: confirmed\n")
        self.assertIsNone(self.get()["confirm_s"])
        self.assertEqual(self.post("confirm")[0], 409)
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("max_batch_delay_us: 2000", self.config())

    def test_one_that_could_not_return_is_refused(self):
        rules = self.rules()
        self.applied(self.service, self.chain("a", nfs=firewall(rules), more=delay(1000)), accept_loss=True)
        before = self.get()["revision"]
        self.rules("deny udp any any any 53\n")
        body = {"file": self.chain("a", nfs=firewall(rules), more=delay(2000)), "confirm_s": 5}
        status, answer = self.service.ask("POST", "/v1/chains", body)
        self.assertEqual(status, 409, answer)
        self.assertIn(f"{rules} has changed since", answer["error"])
        self.assertIn("leave out --confirm", answer["error"])
        self.assertEqual((self.get()["revision"], self.get()["confirm_s"]), (before, None))

    def test_trials_do_not_push_their_base_out(self):
        for us in range(2000, 2020):
            self.assertEqual(self.try_out(600, us)[0], 200)
        self.assertIn(self.first, [each["revision"] for each in self.revisions()])
        self.assertEqual(self.try_out(1, 3000)[0], 200)
        wait_for(lambda: self.get()["revision"] == self.first)

    def test_a_restart_is_no_confirmation(self):
        self.assertEqual(self.try_out(600)[0], 200)
        status, answer = self.post("restart")
        self.assertEqual(status, 200, answer)
        self.assertIn("max_batch_delay_us: 2000", self.config())
        self.assertGreater(self.get()["confirm_s"], 500)

    def test_a_return_at_a_start_has_the_options_and_the_tenant_of_its_spec(self):
        file = self.chain("a", more="  tenant: other\n")
        body = {"file": file, "options": {"record": str(self.folder / "record"), "accept_loss": True}, "confirm_s": 600}
        for end in (self.service.end, lambda: self.service.end(signal.SIGKILL)):
            self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 200)
            end()
            self.service = self.serve()
            wait_for(lambda: self.get()["revision"] == self.first)
            chain = self.get()
            self.assertEqual((chain["options"], chain["tenant"], chain["state"]), ({}, "a", "running"))
        body["confirm_s"] = 1
        self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 200)
        wait_for(lambda: self.get()["revision"] == self.first and self.get()["state"] == "running")
        self.assertEqual((self.get()["options"], self.get()["tenant"]), ({}, "a"))

    def test_the_end_of_the_service_during_a_return_is_no_confirmation(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        file = self.chain("a", tx=f"{{pcap: {fifo}}}", rx="{generator: {rate: 10}}")
        base = self.applied(self.service, file, accept_loss=True)["revision"]
        body = {"file": self.chain("a"), "options": {"accept_loss": True}, "confirm_s": 1}
        self.assertEqual(self.service.ask("POST", "/v1/chains", body)[0], 200)
        os.close(reader)
        wait_for(lambda: "waiting for a reader" in self.service.log())
        self.service.end()
        self.service = self.serve()
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        wait_for(lambda: self.get()["revision"] == base)
        os.close(reader)

    def test_a_second_one_on_trial_returns_to_the_one_before_both(self):
        self.assertEqual(self.try_out(600)[0], 200)
        self.assertEqual(self.try_out(1, 3000)[0], 200)
        wait_for(lambda: self.get()["revision"] == self.first)

    def test_a_refused_one_leaves_the_trial_as_it_is(self):
        self.assertEqual(self.try_out(600)[0], 200)
        self.assertEqual(self.apply(self.service, self.chain("a", rx="{generator: {rate: x}}"))[0], 400)
        self.assertGreater(self.get()["confirm_s"], 500)

    def test_the_end_of_the_service_is_no_confirmation(self):
        self.assertEqual(self.try_out(600)[0], 200)
        self.service.end()
        self.service = self.serve()
        wait_for(lambda: self.state(self.service, "a") == "running")
        self.assertIn("max_batch_delay_us: 1000", self.config())
        self.assertIn("its last spec was not confirmed", self.service.log())
        self.assertIn(f"revision {self.first} is started", self.service.log())

    def test_a_stopped_chain_is_not_started_by_it(self):
        self.assertEqual(self.try_out(1)[0], 200)
        self.assertEqual(self.post("stop")[0], 200)
        self.applied(self.service, self.chain("b", rx="{generator: {rate: 1000, count: 2000}}"))
        wait_for(lambda: self.state(self.service, "b") == "finished")
        self.assertEqual(self.state(self.service, "a"), "stopped")

    def test_there_must_be_something_to_return_to(self):
        status, answer = self.service.ask("POST", "/v1/chains", {"file": self.chain("b"), "confirm_s": 5})
        self.assertEqual(status, 409, answer)
        self.assertIn("leave out --confirm", answer["error"])
        self.assertEqual(self.service.ask("GET", "/v1/chains/b")[0], 404)
        for seconds in (0, -1, 1.5, "5", 86_401, None):
            self.assertEqual(self.try_out(seconds)[0], 400, seconds)


class Again(SpecTest):
    """start, restart, reload and cancel."""

    def test_a_stopped_chain_starts_again(self):
        self.applied(self.service, self.chain("a"), workers=1)
        self.cli(self.service, "stop", "a")
        self.assertIn("a: running", self.cli(self.service, "start", "a").stdout)
        self.assertEqual(self.get()["options"], {"workers": 1})
        self.assertIn("nothing has changed", self.cli(self.service, "start", "a").stdout)
        self.restart_service()
        wait_for(lambda: self.state(self.service, "a") == "running")

    def test_a_restart_counts_from_zero_and_a_reload_goes_on(self):
        self.applied(self.service, self.chain("a", nfs=firewall()))
        wait_for(lambda: self.get()["rx"]["received_packets"] > 20_000)
        self.assertEqual(self.post("reload")[0], 200)
        self.assertGreater(self.get()["rx"]["received_packets"], 20_000)
        status, answer = self.post("restart")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["state"], "running")
        self.assertLess(answer["rx"]["received_packets"], 20_000)

    def test_what_is_refused_leaves_the_chain_as_it_is(self):
        file = pathlib.Path(self.chain("a"))
        self.applied(self.service, str(file))
        before = self.get()
        file.write_text("x")
        for what in ("restart", "reload"):
            self.assertEqual(self.post(what)[0], 400)
            after = self.get()
            self.assertEqual(after["state"], "running")
            self.assertGreaterEqual(after["rx"]["received_packets"], before["rx"]["received_packets"])
        self.assertEqual(self.post("start")[0], 200)

    def test_no_start_empties_a_capture(self):
        out = self.folder / "out.pcap"
        self.applied(self.service, self.chain("a", rx="{generator: {rate: 100000, count: 10}}", tx=f"{{pcap: {out}}}"))
        wait_for(lambda: self.state(self.service, "a") == "finished")
        whole = out.read_bytes()
        self.assertGreater(len(whole), 24 + 10 * 16)
        for part in (1, 2):
            self.assertEqual(self.post("start")[0], 200)
            wait_for(lambda: self.state(self.service, "a") == "finished")
            written = pathlib.Path(f"{out}.{part}").read_bytes()
            self.assertEqual(len(written), len(whole))
        self.restart_service()
        self.applied(self.service, self.chain("a", rx="{generator: {rate: 1000}}", tx=f"{{pcap: {out}}}"))
        wait_for(lambda: pathlib.Path(f"{out}.3").exists())
        self.assertEqual(out.read_bytes(), whole)
        self.assertIn(f"{out} exists, so this run writes {out}.3", self.service.log())
        status, _ = self.apply(self.service, self.chain("b", tx=f"{{pcap: {out}}}"))
        self.assertEqual(status, 409)
        self.assertFalse(pathlib.Path(f"{out}.4").exists())

    def test_a_restart_that_fails_is_seen_and_tried_again(self):
        self.applied(self.service, self.chain("a", tx="{pcap: /dev/full}", rx="{generator: {rate: 1000}}"))
        wait_for(lambda: self.state(self.service, "a") == "failed")
        self.assertEqual(self.post("restart")[0], 200)
        wait_for(lambda: self.state(self.service, "a") == "failed")
        self.assertFalse(json.loads((self.folder / "state" / "a.json").read_text())["stopped"])

    def test_a_start_that_waits_is_cancelled(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        body = {"file": self.chain("a", tx=f"{{pcap: {fifo}}}")}
        with Request(self.service.socket, "POST", "/v1/chains", body) as request:
            wait_for(lambda: self.state(self.service, "a") == "starting")
            self.assertIn("a: stopped", self.cli(self.service, "cancel", "a").stdout)
            self.assertEqual(request.answer()[0], 409)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/a/operation")[0], 409)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/b/operation")[0], 404)


class OfUsers(TenantTest):
    def test_a_chain_s_specs_are_its_owner_s(self):
        file = self.victim.chain("v", more=delay(1000))
        self.victim.applied(file)
        self.victim.applied(self.victim.chain("v", more=delay(2000)))
        for method, what in (("GET", "revisions"), *(("POST", each) for each in (
                "rollback", "start", "restart", "reload", "confirm")), ("DELETE", "operation")):
            self.assertEqual(self.attacker.ask(method, f"/v1/chains/v/{what}")[0], 403, what)
        self.assertEqual(self.victim.ask("POST", "/v1/chains/v/rollback")[0], 200)
        status, answer = self.service.ask("POST", "/v1/chains/v/rollback")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["uid"], self.victim.uid)

    def test_root_does_not_run_a_user_s_spec_with_its_own_rights(self):
        self.victim.applied(self.victim.chain("v", more=delay(1000)))
        self.applied(self.service, self.chain("v", more=delay(2000)), accept_loss=True)
        status, answer = self.service.ask("POST", "/v1/chains/v/rollback")
        self.assertEqual(status, 409, answer)
        self.assertIn(f"was applied by user {self.victim.uid}", answer["error"])
        self.assertEqual(self.service.ask("GET", "/v1/chains/v")[1]["uid"], 0)

    def test_root_tries_nothing_out_over_a_user_s_chain(self):
        """Its return would run the user's text with root's rights."""
        self.victim.applied(self.victim.chain("v", more=delay(1000)))
        body = {"file": self.chain("v"), "options": {"accept_loss": True}, "confirm_s": 5}
        status, answer = self.service.ask("POST", "/v1/chains", body)
        self.assertEqual(status, 409, answer)
        self.assertIn(f"was applied by user {self.victim.uid}", answer["error"])
        state = self.folder / "state" / "v.json"
        stored = json.loads(state.read_text())
        revision = self.victim.get("v")["revision"]
        self.service.end()
        for key in ("revision", "unconfirmed"):  # as written by a service that did not refuse it
            state.write_text(json.dumps({**stored, "uid": 0, "gid": 0, "groups": [], key: revision}))
            self.service = self.serve()
            wait_for(lambda: self.service.ask("GET", "/v1/chains/v")[1]["fallback"], 10)
            self.assertIn("was applied by user", self.service.ask("GET", "/v1/chains/v")[1]["fallback"])
            self.service.end()

    def test_a_revoked_group_reads_nothing_for_a_reload(self):
        group = 64_200
        rules = self.folder / "of_group"
        rules.write_text(pathlib.Path(f"{DATA}/fw.rules").read_text())
        rules.chmod(0o640)
        os.chown(rules, 0, group)
        file = self.victim.chain("v")
        self.applied(self.service, file, user=self.victim.uid, groups=[group])
        self.victim.chain("v", nfs=firewall(rules))
        status, answer = self.service.ask("POST", "/v1/chains/v/reload", user=self.victim.uid)
        self.assertIn(status, (400, 403), answer)
        self.assertIn(str(rules), answer["error"])

    def test_a_history_is_not_left_to_another_user(self):
        self.victim.applied(self.victim.chain("v"))
        self.service.end(signal.SIGKILL)
        (self.folder / "state" / "v.json").unlink()
        self.serve()
        self.attacker.applied(self.attacker.chain("v", more=delay(7)))
        self.assertEqual(len(self.attacker.ask("GET", "/v1/chains/v/revisions")[1]["revisions"]), 1)

    def test_a_change_that_is_cancelled_leaves_the_chain_running(self):
        tenant = self.attacker
        tenant.applied(tenant.chain("v", nfs=f"[{tenant.hostile_nf()}]"))
        waiting = tenant.begin_to_apply(tenant.chain("v", nfs=f"[{tenant.hostile_nf(create='hang')}]"))
        wait_for(lambda: tenant.ask("DELETE", "/v1/chains/v/operation")[0] == 200)
        self.assertEqual(waiting.answer()[0], 409)
        chain = tenant.get("v")
        self.assertEqual(chain["state"], "running", chain)
        wait_for(lambda than=chain["tx"]["sent_packets"]: tenant.get("v")["tx"]["sent_packets"] > than)

    def test_files_are_read_with_the_rights_of_the_owner(self):
        secret = self.folder / "secret"
        secret.write_text(pathlib.Path(f"{DATA}/fw.rules").read_text())
        rules = self.victim.copy(f"{DATA}/fw.rules")
        self.victim.applied(self.victim.chain("v", more=delay(1000), nfs=firewall(rules)))
        self.victim.applied(self.victim.chain("v", more=delay(2000), nfs=firewall(rules)))
        secret.chmod(0o600)
        os.unlink(rules)
        os.symlink(secret, rules)
        status, answer = self.victim.ask("POST", "/v1/chains/v/rollback")
        self.assertEqual(status, 400, answer)
        self.assertNotIn("sha256", answer["error"])


if __name__ == "__main__":
    unittest.main()
