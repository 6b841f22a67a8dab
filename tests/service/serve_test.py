#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`catena serve` and those who use it: chains, the commands, HTTP, metrics, what is remembered."""

import fcntl
import itertools
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import termios
import time
import unittest
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from command import HAS_PROCESSES, NO_PROCESSES
from harness import BIN, DATA, IS_ROOT, LIMIT_S, PLACE, ServiceTest, firewall, wait_for


def samples_of(text):
    """{(name, labels without le in order): value}"""
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


def bytes_in(fifo):
    """How many bytes wait for who reads there."""
    return int.from_bytes(fcntl.ioctl(fifo, termios.FIONREAD, bytes(4)), sys.byteorder)


class Chains(ServiceTest):
    def test_a_chain_is_applied_seen_stopped_and_deleted(self):
        service = self.serve()
        status, answer = self.apply(service, self.chain("a", nfs=firewall(), more="  tenant: red\n"))
        self.assertEqual(status, 201, answer)
        self.assertEqual((answer["name"], answer["tenant"], answer["uid"]), ("a", "red", os.geteuid()))
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["rx"]["received_packets"] > 100)
        status, answer = service.ask("POST", "/v1/chains/a/stop")
        self.assertEqual((status, answer["state"], answer["accounted"]), (200, "stopped", True))
        self.assertEqual(answer["rx"]["received_packets"], answer["tx"]["sent_packets"])
        self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
        self.assertEqual(service.ask("GET", "/v1/chains/a")[0], 404)
        self.assertEqual(service.ask("GET", "/v1/chains"), (200, {"chains": []}))

    def test_several_chains_run_at_once(self):
        service = self.serve()
        for name in ("a", "b", "c"):
            self.applied(service, self.chain(name, nfs=firewall()))
        for name in ("a", "b", "c"):
            wait_for(lambda name=name: service.ask("GET", f"/v1/chains/{name}")[1]["tx"]["sent_packets"] > 100)

    def test_the_log_has_the_form_of_its_reader(self):
        stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
        (self.folder / "log").touch()
        of_log = (self.folder / "log").stat()
        journal = {**os.environ, "JOURNAL_STREAM": f"{of_log.st_dev}:{of_log.st_ino}"}
        inherited = {**os.environ, "JOURNAL_STREAM": "1:2"}
        for words, env, form in (((), None, stamp + r" info serves at .*"), ((), journal, r"<6>serves at .*"),
                                 ((), inherited, stamp + r" info serves at .*"), (("--log", "journal"), None, r"<6>serves at .*"),
                                 (("--log", "json"), None, r'{"time":"' + stamp + r'","level":"info","message":"serves at .*"}')):
            with self.subTest(words=words, form=form):
                begin = len((self.folder / "log").read_bytes())
                service = self.serve(*words, env=env)
                self.assertEqual(service.end(), 0)
                lines = service.log()[begin:].splitlines()
                self.assertTrue(any(re.fullmatch(form, line) for line in lines), lines)

    def test_a_source_that_ends_leaves_a_finished_chain(self):
        service = self.serve()
        self.applied(service, self.chain("a", rx="{generator: {count: 5000}}"))
        wait_for(lambda: self.state(service, "a") == "finished")
        answer = service.ask("GET", "/v1/chains/a")[1]
        self.assertEqual(answer["tx"]["sent_packets"], 5000)

    def test_a_bad_file_changes_nothing(self):
        service = self.serve()
        file = self.chain("a", nfs=firewall())
        self.applied(service, file)
        before = service.ask("GET", "/v1/chains/a")[1]
        self.chain("a", nfs="[{name: x, type: firewal}]")
        status, answer = self.apply(service, file)
        self.assertEqual(status, 400)
        self.assertEqual((answer["ok"], answer["errors"][0]["file"], answer["errors"][0]["line"]), (False, file, 8))
        after = service.ask("GET", "/v1/chains/a")[1]
        self.assertEqual(after["state"], "running")
        self.assertGreaterEqual(after["rx"]["received_packets"], before["rx"]["received_packets"])

    def test_a_chain_is_replaced_by_one_with_another_rx(self):
        service = self.serve()
        file = self.chain("a")
        self.applied(service, file)
        self.chain("a", rx="{generator: {count: 700}}")
        status, _ = self.apply(service, file, accept_loss=True)
        self.assertEqual(status, 200)
        wait_for(lambda: self.state(service, "a") == "finished")
        self.assertEqual(service.ask("GET", "/v1/chains/a")[1]["rx"]["received_packets"], 700)

    def test_a_chain_is_replaced_by_one_with_the_same_output(self):
        service = self.serve()
        out = self.folder / "out.pcap"
        file = self.chain("a", tx=f"{{pcap: {out}}}")
        self.applied(service, file)
        self.chain("a", rx="{generator: {count: 10, packet: 100}}", tx=f"{{pcap: {out}}}")
        self.applied(service, file, accept_loss=True)
        wait_for(lambda: self.state(service, "a") == "finished")
        self.assertEqual(pathlib.Path(f"{out}.1").stat().st_size, 24 + 10 * (16 + 100))  # the old chain's stays
        self.assertGreater(out.stat().st_size, 24)

    def test_a_chain_that_runs_goes_on_with_changed_rules(self):
        service = self.serve()
        rules = self.folder / "fw.rules"
        for place in ("", ", isolation: none"):
            rules.write_text("allow any any any any any\n")
            nfs = f"[{{name: fw{place}, type: firewall, config: {{rules: {rules}, default: deny}}}}]"
            file = self.chain("a", nfs=nfs)
            self.assertEqual(self.applied(service, file)["applied"], "started")
            wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > 100)
            answer = self.applied(service, file)
            self.assertEqual((answer["applied"], answer["changes"]), ("changed", []))
            rules.write_text("deny any any any any any\nallow tcp any any any 1\n")
            before = service.ask("GET", "/v1/chains/a")[1]
            preview = service.ask("POST", "/v1/chains", {"file": file, "dry_run": True})[1]
            self.assertEqual((preview["dry_run"], preview["applied"], len(preview["changes"])), (True, "changed", 1))
            self.assertEqual(service.ask("GET", "/v1/chains/a")[1]["dropped_packets"], 0, "only said")
            answer = self.applied(service, file)
            self.assertEqual((answer["applied"], answer["why_replaced"]), ("changed", None))
            self.assertTrue(answer["changes"][0].startswith("fw"), answer["changes"])
            wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["dropped_packets"] > 100)
            rules.write_text("alow any any any any any\n")
            status, answer = self.apply(service, file)
            self.assertEqual((status, answer["error"].split("'")[0]), (400, f"{rules}:1:1: "), answer)
            after = service.ask("GET", "/v1/chains/a")[1]
            self.assertGreater(after["rx"]["received_packets"], before["rx"]["received_packets"], "counts go on")
            self.assertEqual(after["state"], "running")
            self.assertEqual(service.ask("POST", "/v1/chains/a/stop")[1]["accounted"], True)
            service.ask("DELETE", "/v1/chains/a")

    def test_a_chain_that_runs_goes_on_with_more_than_rules_and_is_made_anew_for_other_outputs(self):
        service = self.serve()
        file = self.chain("a", nfs=firewall())
        self.applied(service, file)
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["rx"]["received_packets"] > 1000)
        first = firewall()[1:-1]
        self.chain("a", nfs=f"[{first}, {first.replace('name: fw', 'name: second')}]")
        done = self.cli(service, "apply", file, "--dry-run")
        self.assertEqual(done.stdout.splitlines()[:2], ["a: would keep running, with these changes", "  second"])
        done = self.cli(service, "apply", file)
        self.assertRegex(done.stdout, r"^a: running, with these changes\n  second: .*\n$")
        self.assertEqual(len(service.ask("GET", "/v1/chains/a")[1]["nfs"]), 2)
        self.assertEqual(self.cli(service, "apply", file).stdout, "a: running, nothing has changed\n")
        done = self.cli(service, "apply", file, "--workers", "1")
        self.assertEqual(done.stdout, "a: running, with these changes\n  'workers' of 'spec'\n")
        # the same key of the file is no change
        self.chain("a", nfs=f"[{first}, {first.replace('name: fw', 'name: second')}]", more="  workers: 1\n")
        self.assertEqual(self.cli(service, "apply", file).stdout, "a: running, nothing has changed\n")
        record = self.folder / "record"
        done = self.cli(service, "apply", file, "--record", str(record), "--accept-loss")
        reason = f"{file}: 'outputs' of 'spec' has changed"
        self.assertEqual(done.stdout, f"a: running, replaced: {reason}\n  lost packets that arrive during the replacement "
                                      f"({reason})\n")
        wait_for(lambda: record.stat().st_size > 0)
        status, answer = service.ask("POST", "/v1/chains", {"file": file, "dry_run": 1})
        self.assertEqual((status, answer["error"]), (400, "'dry_run' must be true or false"))

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_counts_go_on_over_changes_and_none_is_counted_twice(self):
        service = self.serve()
        begin = time.monotonic()

        def nf(name, default="allow"):
            return firewall()[1:-1].replace("name: fw", f"name: {name}").replace("default: allow", f"default: {default}")

        def applied(*nfs):
            return self.applied(service, self.chain("a", nfs=f"[{', '.join(nfs)}]", rx="{generator: {}}"))

        def view():
            return service.ask("GET", "/v1/chains/a")[1]

        def count(name):
            return sum(float(line.split()[-1]) for line in service.ask("GET", "/metrics")[1].splitlines()
                       if line.startswith(name + "{"))

        applied(nf("p"))
        wait_for(lambda: count("catena_rx_paused_seconds_total") > 0)  # the source is faster than the process
        os.kill(view()["nfs"][0]["processes"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: view()["nfs"][0]["process_restarts"] == 1)
        last, number = view(), view()["number"]
        for nfs in ((nf("p", "deny"),), (nf("p", "deny"), nf("q")), (nf("r"), nf("p", "deny"))):
            applied(*nfs)
            now = view()
            for part, key in (("rx", "received_packets"), ("tx", "sent_packets")):
                self.assertGreaterEqual(now[part][key], last[part][key])
            self.assertGreaterEqual(now["seconds"], last["seconds"])
            of_p = next(each for each in now["nfs"] if each["name"] == "p")
            self.assertEqual((of_p["process_restarts"], now["number"]), (1, number))
            self.assertEqual(count("catena_nf_process_restarts_total"), 1)
            self.assertLess(count("catena_rx_paused_seconds_total"), time.monotonic() - begin)
            last = now
        arguments = pathlib.Path(f"/proc/{of_p['processes'][0]['pid']}/cmdline").read_text().split("\0")
        self.assertIn(f"chain={number}", arguments)
        self.assertTrue(service.ask("POST", "/v1/chains/a/stop")[1]["accounted"])

    def test_one_with_the_same_ends_goes_on_with_them(self):
        service = self.serve()
        out = self.folder / "out.pcap"
        ends = {"rx": "{generator: {rate: 20000, packet: 60}}", "tx": f"{{pcap: {out}}}"}
        first = firewall()[1:-1]
        second = first.replace("name: fw", "name: second")
        # each differs from the one before it where NFs have no processes, too
        without_processes = f"[{second}, {first}]".replace("}}", "}, isolation: none}")
        shapes = [f"[{first}]", f"[{second}]", f"[{first}, {second}]", without_processes]
        file = self.chain("a", nfs=shapes[0], **ends)
        self.applied(service, file)
        for shape in shapes[1:] + shapes:
            wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > 500)
            self.chain("a", nfs=shape, **ends)
            answer = self.applied(service, file)
            self.assertEqual((answer["applied"], answer["why_packets_are_lost"]), ("changed", None), shape)
            self.assertIsNone(answer["why_replaced"])
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > 500)
        last = service.ask("POST", "/v1/chains/a/stop")[1]
        self.assertTrue(last["accounted"])
        ended = re.findall(r"a: stopped, received (\d+), sent (\d+), dropped (\d+)", service.log())
        self.assertEqual(len(ended), 2 * len(shapes))
        self.assertEqual({(received, dropped) for received, _, dropped in ended}, {(sent, "0") for _, sent, _ in ended})
        self.assertEqual(out.stat().st_size, 24 + int(ended[-1][1]) * (16 + 60))  # counts go on
        self.assertEqual(self.state(service, "a"), "stopped")

    def test_two_chains_do_not_share_an_output(self):
        service = self.serve()
        out = self.folder / "out.pcap"
        self.applied(service, self.chain("a", tx=f"{{pcap: {out}}}"))
        os.symlink(out, self.folder / "other.pcap")
        status, answer = self.apply(service, self.chain("b", tx=f"{{pcap: {self.folder}/other.pcap}}"))
        self.assertEqual(status, 409)
        self.assertIn("out.pcap is used by chain 'a'", answer["error"])
        service.ask("POST", "/v1/chains/a/stop")
        self.applied(service, str(self.folder / "b.yaml"))

    def test_a_chain_that_waits_for_a_reader_blocks_no_other_and_no_end(self):
        service = self.serve()
        os.mkfifo(self.folder / "fifo")
        waiting = self.applying(service, self.chain("a", tx=f"{{pcap: {self.folder}/fifo}}"))
        status, answer = self.apply(service, str(self.folder / "a.yaml"))
        self.assertEqual(status, 409, answer)
        self.applied(service, self.chain("b"))
        with open(self.folder / "fifo", "rb") as reader:
            self.assertEqual(waiting.wait(LIMIT_S), 0)
            self.assertEqual(len(reader.read(24)), 24)
        self.assertEqual(service.end(), 0)

    def applying(self, service, file, *words, waiting="waiting for a reader"):
        """The program that applies the file, when the chain waits for who reads its output or writes its input."""
        waits = service.log().count(waiting)
        program = subprocess.Popen([BIN, "apply", file, *words, "--socket", service.socket], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: [program.kill(), program.communicate()])
        wait_for(lambda: service.log().count(waiting) > waits)
        return program

    def test_a_chain_that_waits_for_a_reader_or_a_writer_is_there_and_can_be_stopped(self):
        service = self.serve()
        os.mkfifo(self.folder / "fifo")
        for (end, words), (method, resource, left) in itertools.product(
                (("tx", "waiting for a reader"), ("rx", "waiting for a capture")),
                (("POST", "/v1/chains/a/stop", ["stopped"]), ("DELETE", "/v1/chains/a", []))):
            waiting = self.applying(service, self.chain("a", **{end: f"{{pcap: {self.folder}/fifo}}"}), waiting=words)
            chains = service.ask("GET", "/v1/chains")[1]["chains"]
            self.assertEqual([(each["name"], each["state"]) for each in chains], [("a", "starting")])
            self.assertEqual(service.ask(method, resource)[0], 200)
            self.assertEqual((waiting.wait(LIMIT_S), "'a' was stopped while it was being started"
                              in waiting.stderr.read()), (1, True))
            chains = service.ask("GET", "/v1/chains")[1]["chains"]
            self.assertEqual([each["state"] for each in chains], left)
        self.assertEqual(list((self.folder / "state").iterdir()), [])

    def test_who_stops_a_chain_that_is_being_replaced_stops_both(self):
        service = self.serve()
        os.mkfifo(self.folder / "fifo")
        file = self.chain("a")
        self.applied(service, file)
        waiting = self.applying(service, self.chain("a", tx=f"{{pcap: {self.folder}/fifo}}"), "--accept-loss")
        self.assertEqual(self.state(service, "a"), "running")  # the old one
        status, answer = service.ask("POST", "/v1/chains/a/stop")
        self.assertEqual((status, answer["state"]), (200, "stopped"))
        self.assertGreater(answer["rx"]["received_packets"], 0)
        self.assertEqual(waiting.wait(LIMIT_S), 1)

    def test_a_service_ends_while_a_chain_waits_and_waits_again_with_it(self):
        service = self.serve()
        os.mkfifo(self.folder / "fifo")
        waiting = self.applying(service, self.chain("a", tx=f"{{pcap: {self.folder}/fifo}}"))
        self.assertEqual(service.end(), 0, service.log())
        self.assertEqual(waiting.wait(LIMIT_S), 1)
        service = self.serve()
        with open(self.folder / "fifo", "rb"):
            wait_for(lambda: self.state(service, "a") == "running")

    def test_a_fifo_that_is_to_be_read_as_a_file_is_refused_and_not_waited_for(self):
        service = self.serve()
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        nfs = (firewall(fifo), f"[{{name: rt, type: router, config: {{routes: {fifo}}}}}]",
               f"[{{name: ids, type: nids, config: {{rules: {fifo}}}}}]",
               f"[{{name: ids, type: nids, config: {{strings: {fifo}}}}}]",
               f"[{{name: vpn, type: ipsec, config: {{direction: encrypt, sa: {fifo}}}}}]")
        for file in [self.chain(f"a{i}", nfs=each) for i, each in enumerate(nfs)] + [str(fifo)]:
            status, answer = self.apply(service, file)
            self.assertEqual(status, 400, answer)
            self.assertIn(f"{fifo}:", answer["error"])
        self.assertEqual(service.ask("GET", "/v1/chains")[1], {"chains": []})
        self.assertEqual(service.end(), 0)

    def test_standard_streams_are_not_for_chains(self):
        service = self.serve()
        for ends in ({"rx": "{pcap: '-'}"}, {"tx": "{pcap: '-'}"}):
            status, answer = self.apply(service, self.chain("a", **ends))
            self.assertEqual(status, 400)
            self.assertIn("a service has no standard", answer["error"])
        status, answer = self.apply(service, self.chain("a", more="  outputs: {record: '-'}\n"))
        self.assertEqual((status, "a service has no standard output" in answer["error"]), (400, True), answer)

    def test_outputs_of_a_file_are_no_other_chains_and_stay_after_a_restart(self):
        service = self.serve()
        record = self.folder / "record"
        keys = f"  workers: 1\n  outputs: {{record: {record}}}\n"
        file = self.chain("a", nfs=firewall(), more=keys)
        answer = self.applied(service, file)
        self.assertEqual((answer["workers"], answer["options"]), (1, {}))
        status, answer = self.apply(service, self.chain("b", more=f"  outputs: {{eve: {record}}}\n"))
        self.assertEqual((status, f"{record} is used by chain 'a'" in answer["error"]), (409, True), answer)
        self.assertEqual(service.end(), 0, service.log())
        record.unlink()
        service = self.serve()
        wait_for(lambda: record.exists() and record.stat().st_size > 0)
        self.assertEqual(service.ask("GET", "/v1/chains/a")[1]["workers"], 1)

    def test_the_configuration_in_force_is_shown_whatever_the_file_says(self):
        service = self.serve()
        file = self.chain("a", nfs=firewall())
        self.applied(service, file, workers=1)
        (self.folder / "a.yaml").write_text("nothing")
        shown = self.cli(service, "show", "config", "a").stdout
        for line in ("  workers: 1\n", "  shards: 1\n", "    mode: adaptive\n", "      rate: 20000\n", "    - name: fw\n"):
            self.assertIn(line, shown)
        (self.folder / "b.yaml").write_text(shown)
        self.assertEqual(self.cli(service, "show", "config", str(self.folder / "b.yaml")).stdout, shown)
        self.assertIn("no chain is named 'b'", self.cli(service, "show", "config", "b", status=1).stderr)
        self.assertIn("'a' is no file", self.cli(service, "show", "config", "a", "--workers", "2", status=1).stderr)
        self.assertIn("no/b.yaml", self.cli(service, "show", "config", "no/b.yaml", status=1).stderr)
        self.assertEqual(service.ask("POST", "/v1/chains/a/stop")[0], 200)
        self.assertEqual(service.end(), 0, service.log())
        service = self.serve()
        self.assertEqual(service.ask("GET", "/v1/chains/a/config")[0], 409)

    def test_options_are_those_of_run(self):
        service = self.serve()
        record = self.folder / "record"
        file = self.chain("a", rx="{generator: {count: 50}}", nfs=firewall())
        answer = self.applied(service, file, record=str(record), workers=1)
        self.assertEqual((answer["workers"], answer["options"]), (1, {"record": str(record), "workers": 1}))
        wait_for(lambda: self.state(service, "a") == "finished")
        self.assertEqual(len(record.read_text().splitlines()), 50)
        for options, says in (({"wrokers": 1}, "unknown 'wrokers'"), ({"workers": 0}, "from 1 to 256"),
                              ({"workers": "2"}, "from 1 to 256"), ({"record": "here"}, "whole path"),
                              ({"tx": "pcap:here"}, "whole path"), ({"pushdown": "maybe"}, "on, off"),
                              ({"new_keys": True}, "a list of SPIs, as [4096, 4097]"), ({"cores": "x"}, "cores"), ({"device": 3}, "a string")):
            status, answer = self.apply(service, file, **options)
            self.assertEqual(status, 400, answer)
            self.assertIn(says, answer["error"])


class Http(ServiceTest):
    def test_each_resource_of_the_reference_exists_with_its_methods(self):
        service = self.serve()
        methods = {}
        with open(pathlib.Path(__file__).resolve().parents[2] / "docs" / "service.md", encoding="utf-8") as page:
            for method, path in re.findall(r"^\| `(GET|POST|PUT|DELETE) (/[^`]*)`", page.read(), re.MULTILINE):
                methods.setdefault(path, []).append(method)
        self.assertIn("/v1/chains/NAME/reset", methods)
        for path, allowed in methods.items():
            status, answer = service.ask("PATCH", path)
            self.assertEqual((status, answer["error"]), (405, f"allowed here: {', '.join(allowed)}"), path)
        known = service.ask("GET", "/v2")[1]["error"]
        *first, last = methods
        self.assertEqual(known, f"unknown path /v2; known: {', '.join(first)} and {last}")
        for path in ("/v1/chains/NAME", "/v1/chains/NAME/stop", "/v1/chains/NAME/reset"):
            status, answer = service.ask("GET" if path.endswith("NAME") else "POST", path)
            self.assertEqual((status, answer["error"]), (404, "no chain is named 'NAME'"), path)

    def test_wrong_requests_are_answered_with_the_right_status(self):
        service = self.serve()
        file = self.chain("a")
        self.applied(service, file)
        for method, path, body, expected in (
                ("GET", "/", None, 404), ("GET", "/v1/chains/", None, 404), ("GET", "/v1/chains/b", None, 404),
                ("GET", "/v1/chains/a/x", None, 404), ("GET", "/v1/chains/a/stop", None, 405),
                ("PATCH", "/v1/chains/a", None, 405), ("PUT", "/v1/chains", None, 405), ("POST", "/metrics", None, 405),
                ("POST", "/v1/chains/b/stop", None, 404), ("DELETE", "/v1/chains/b", None, 404),
                ("POST", "/v1/chains", "", 400), ("POST", "/v1/chains", "{", 400), ("POST", "/v1/chains", "[]", 400),
                ("POST", "/v1/chains", {"file": 3}, 400), ("POST", "/v1/chains", {"file": "a.yaml"}, 400),
                ("POST", "/v1/chains", {"file": "/no/file.yaml"}, 400), ("POST", "/v1/chains", {"file": "/\0"}, 400),
                ("POST", "/v1/chains", {"file": "/" + "x/" * 20000}, 400),
                ("POST", "/v1/chains", {"file": "/a:99999999999999999999: x"}, 400),
                ("POST", "/v1/chains", {"file": file, "optoins": {}}, 400),
                ("POST", "/v1/chains", {"file": file, "options": []}, 400),
                ("POST", "/v1/chains", "[" * 60000, 400), ("POST", "/v1/chains", b"\xff\xfe", 400),
                ("PUT", "/v1/chains/b", {"file": file}, 400), ("PUT", "/v1/chains/a", {"file": file}, 200),
                ("POST", "/v1/chains", {"file": "x" * 70000}, 413), ("GET", "/v1/chains/%0a%00%ff", None, 404)):
            status, answer = service.ask(method, path, body)
            self.assertEqual(status, expected, (method, path, answer))
            if expected >= 400:
                self.assertIs(answer["ok"], False)
                self.assertEqual([each["message"] for each in answer["errors"]], answer["error"].splitlines())
        self.assertEqual(service.ask("GET", "/v1/version")[0], 200)
        self.assertEqual(self.state(service, "a"), "running")

    def test_bodies_without_end_and_noise_end_nothing(self):
        service = self.serve()

        def raw(text):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(LIMIT_S)
                connection.connect(service.socket)
                try:
                    connection.sendall(text)
                    connection.shutdown(socket.SHUT_WR)
                    return connection.recv(100)
                except OSError:
                    return b""

        chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        answer = raw(b"POST /v1/chains HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 40 + b"0\r\n\r\n")
        self.assertIn(b" 413 ", answer)
        for noise in (b"", b"\0" * 5000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100_000 + b"\r\n\r\n",
                      b"POST /v1/chains HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
                      b"POST /v1/chains HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
                      b"POST /v1/chains HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}",
                      b"X: y\r\n" * 20_000):
            raw(noise)
        self.assertTrue(service.answers())

    def test_a_body_that_is_nested_as_deep_as_it_can_be_is_refused(self):
        few = 2 << 20  # as a unit's LimitSTACK= may say
        service = self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (few, few)))
        file = self.chain("a")
        for open_, close in (("[", "]"), ('{"x":', "}")):
            levels = 65_000 // len(open_ + close)
            nested = open_ * levels + "0" * (open_ != "[") + close * levels
            for body in (nested, '{"file": "%s", "options": %s}' % (file, nested),
                         '{"file": "%s", "options": {"rx": %s}}' % (file, nested), '{"file": %s}' % nested):
                status, answer = service.ask("POST", "/v1/chains", body)
                self.assertEqual(status, 400, answer)
        self.assertEqual(service.ask("GET", "/v1/chains")[1], {"chains": []})

    def test_the_log_has_one_line_for_what_is_refused(self):
        service = self.serve()
        service.ask("GET", "/v1/chains/x%0aerror%20all%20is%20lost%1b[2J")
        line = wait_for(lambda: [each for each in service.log().splitlines() if "404" in each])[0]
        self.assertIn("all is lost", line)
        self.assertNotIn("\x1b", line)


class Metrics(ServiceTest):
    def test_an_independent_parser_reads_what_the_report_has(self):
        service = self.serve()
        self.applied(service, self.chain("a", rx="{generator: {count: 3000, packet: 100}}", nfs=firewall()))
        self.applied(service, self.chain("b", rx="{generator: {count: 10}}"))
        wait_for(lambda: self.state(service, "a") == "finished" and self.state(service, "b") == "finished")
        samples = samples_of(service.ask("GET", "/metrics")[1])
        of_a = ("chain", "a")
        report = service.ask("GET", "/v1/chains/a")[1]
        self.assertEqual(samples["catena_rx_packets_total", (of_a,)], 3000)
        self.assertEqual(samples["catena_rx_bytes_total", (of_a,)], 300_000)
        self.assertEqual(samples["catena_tx_packets_total", (of_a,)], report["tx"]["sent_packets"])
        self.assertEqual(samples["catena_tx_packets_total", (("chain", "b"),)], 10)
        self.assertEqual(samples["catena_nf_packets_total", (of_a, ("nf", "fw"), ("shard", "0"))], 3000)
        dropped = sum(value for (name, labels), value in samples.items()
                      if name == "catena_nf_dropped_packets_total" and of_a in labels)
        self.assertEqual(dropped, report["dropped_packets"])
        for state, value in (("finished", 1), ("running", 0), ("failed", 0)):
            self.assertEqual(samples["catena_chain_state", (of_a, ("state", state))], value)
        self.assertEqual(samples["catena_latency_seconds_count", (of_a,)], 3000)
        self.assertEqual(samples["catena_latency_seconds_bucket", (of_a, ("le", "+Inf"))], 3000)
        self.assertLess(samples["catena_latency_seconds_sum", (of_a,)], 3000 * LIMIT_S)
        busy = [stage["busy_seconds"] for stage in report["stages"] if stage["name"] == "rx"]
        self.assertAlmostEqual(samples["catena_stage_busy_seconds_total", (of_a, ("stage", "rx"))], busy[0], places=5)
        self.assertFalse([name for name, _ in samples if name.endswith("_ns") or "_ns_" in name])

    def test_a_port_serves_metrics_and_nothing_else(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        service = self.serve("--metrics", address)
        self.applied(service, self.chain("a"))
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_S) as response:
            self.assertIn("version=0.0.4", response.headers["Content-Type"])
            self.assertIn(("catena_chain_state", (("chain", "a"), ("state", "running"))),
                          samples_of(response.read().decode()))
        # health checks ask for the head alone; RFC 9110, section 9.1: every server answers it where it answers GET
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}/metrics", method="HEAD"),
                                    timeout=LIMIT_S) as response:
            self.assertIn("version=0.0.4", response.headers["Content-Type"])
            self.assertGreater(int(response.headers["Content-Length"]), 1000)
            self.assertEqual(response.read(), b"")
        for path, body, expected in (("/v1/chains", None, 404), ("/metrics", b"x", 405)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://{address}{path}", data=body, timeout=LIMIT_S)
            self.assertEqual(refused.exception.code, expected)
        self.assertEqual(refused.exception.headers["Allow"], "GET, HEAD")

    def test_an_address_that_is_none_is_refused(self):
        for address in ("9464", "localhost:9464", "127.0.0.1:99999", "127.0.0.1:", "[::1:1"):
            done = subprocess.run([BIN, "serve", "--socket", self.folder / "s", "--state", self.folder / "state",
                                   "--metrics", address], capture_output=True, text=True, check=False, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn("127.0.0.1:9464", done.stderr)


class Commands(ServiceTest):
    def test_commands_show_what_the_service_says(self):
        service = self.serve()
        self.chain("a", nfs=firewall())
        self.assertEqual(self.cli(service, "get").stdout.count("\n"), 1)
        done = subprocess.run([BIN, "apply", "a.yaml", "--socket", "s", "--workers", "1"], cwd=self.folder,
                              capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "a: running\n", ""))
        self.assertRegex(self.cli(service, "get").stdout, r"\na +running +a ")
        self.assertRegex(self.cli(service, "get", "a").stdout, rf"nf +fw \(firewall\) on {PLACE}: in \d+")
        answer = json.loads(self.cli(service, "get", "a", "--json").stdout)
        self.assertEqual((answer["file"], answer["options"]), (str(self.folder / "a.yaml"), {"workers": 1}))
        self.assertEqual(len(json.loads(self.cli(service, "get", "--json").stdout)["chains"]), 1)
        self.assertEqual(self.cli(service, "stop", "a").stdout, "a: stopped\n")
        self.assertEqual(self.cli(service, "delete", "a").stdout, "a: deleted\n")
        self.assertIn("no chain is named 'a'", self.cli(service, "stop", "a", status=1).stderr)
        refused = json.loads(self.cli(service, "get", "..", "--json", status=1).stdout)
        self.assertEqual(refused["errors"][0]["message"], "no chain is named '..'")

    def test_errors_of_a_file_have_its_positions(self):
        service = self.serve()
        file = self.chain("a", nfs="[{name: x, type: firewal}]")
        done = self.cli(service, "apply", file, "--json", status=1)
        self.assertIn(f"{file}:8:", done.stderr)
        self.assertEqual(json.loads(done.stdout)["errors"][0]["line"], 8)

    def test_top_shows_rates(self):
        service = self.serve()
        self.applied(service, self.chain("a", nfs=firewall()))
        self.applied(service, self.chain("b", rx="{generator: {count: 10}}"))
        frame = json.loads(self.cli(service, "top", "--once", "--json").stdout)["chains"]
        self.assertEqual([each["name"] for each in frame], ["a", "b"])
        self.assertGreater(frame[0]["received_pps"], 10_000)
        self.assertLess(frame[0]["received_pps"], 40_000)
        self.assertEqual((frame[1]["received_pps"], frame[1]["state"]), (0, "finished"))
        self.assertRegex(self.cli(service, "top", "--once").stdout, r"a +running +[\d.]+ kpps +[\d.]+ [kM]bps ")

    def test_alerts_and_load_are_shown(self):
        service = self.serve()
        rules = self.folder / "ids.rules"
        rules.write_text('alert ip any any -> any any (msg:"a"; sid:1;)\n')
        self.applied(service, self.chain("a", nfs=f"[{{name: ids, type: nids, config: {{rules: {rules}}}}}]"))
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["nfs"][0]["alerts"] > 1000)
        nf, = json.loads(self.cli(service, "top", "--once", "--json").stdout)["chains"][0]["nfs"]
        self.assertGreater(nf["alerts_per_second"], 0)
        self.assertGreater(nf["load"], 0)
        self.assertRegex(self.cli(service, "top", "--once").stdout, r"ids +\w+ +[\d.]+ kpps +\d+ % +alerts [\d.]+ k?/s")
        text = self.cli(service, "get", "a").stdout
        self.assertRegex(text, r"passed \d+, alerts \d+, busy [\d.]+ s")
        self.assertRegex(text, r"latency  \d+ us at most for half of the packets")

    def test_without_a_service_the_command_says_how_to_start_one(self):
        done = subprocess.run([BIN, "get", "--socket", self.folder / "none"], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"no service listens at {self.folder}/none; start one: catena serve --socket", done.stderr)


class Lifecycle(ServiceTest):
    def test_the_end_finishes_what_is_inside_and_reports(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.serve()
            self.applied(service, self.chain("a", nfs=firewall()))
            wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["rx"]["received_packets"] > 100)
            self.assertEqual(service.end(number), 0, service.log())
            (self.folder / "state" / "a.json").unlink()
            line = [each for each in service.log().splitlines() if "a: stopped" in each][-1]
            received, sent = (int(line.split(word)[1].split(",")[0]) for word in ("received ", "sent "))
            self.assertGreater(received, 100)
            self.assertEqual(received, sent)
            self.assertFalse(os.path.exists(service.socket))

    def test_two_signals_at_once_are_one_and_a_later_one_ends_at_once(self):
        service = self.serve()
        self.applied(service, self.chain("a"))
        service.send_end(signal.SIGINT)
        self.assertEqual(service.end(signal.SIGTERM), 0, service.log())
        (self.folder / "state" / "a.json").unlink()
        os.mkfifo(self.folder / "fifo")
        service = self.serve()
        idle_reader = os.open(self.folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, idle_reader)
        self.applied(service, self.chain("a", rx="{generator: {}}", tx=f"{{pcap: {self.folder}/fifo}}"))
        wait_for(lambda: bytes_in(idle_reader) > 60_000)  # it cannot write on
        service.send_end(signal.SIGINT)
        wait_for(lambda: service.send_end(signal.SIGTERM) or service.process.poll() is not None, 5)
        self.assertEqual(service.process.poll(), -signal.SIGTERM)

    def test_a_second_service_is_refused_and_a_killed_one_is_followed(self):
        service = self.serve()
        second = subprocess.run([BIN, "serve", "--socket", service.socket, "--state", self.folder / "other"],
                                capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"another service has {service.socket}: process {service.process.pid}", second.stderr)
        self.assertTrue(service.answers())
        service.end(signal.SIGKILL)
        self.assertTrue(os.path.exists(service.socket))
        self.assertTrue(self.serve().answers())

    def test_of_services_that_start_at_once_one_serves(self):
        started = [subprocess.Popen([BIN, "serve", "--socket", self.folder / "s", "--state", self.folder / f"state{i}"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(5)]
        self.addCleanup(lambda: [each.kill() or each.wait() for each in started])
        wait_for(lambda: sum(each.poll() is None for each in started) == 1)
        serving = next(each for each in started if each.poll() is None)
        wait_for(lambda: self.cli_answers())
        serving.terminate()
        self.assertEqual(serving.wait(LIMIT_S), 0)

    def cli_answers(self):
        return subprocess.run([BIN, "get", "--socket", self.folder / "s"], capture_output=True, check=False,
                              timeout=LIMIT_S).returncode == 0

    def test_what_is_no_socket_is_left_alone(self):
        (self.folder / "s").write_text("mine")
        done = subprocess.run([BIN, "serve", "--socket", self.folder / "s", "--state", self.folder / "state"],
                              capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not a socket", done.stderr)
        self.assertEqual((self.folder / "s").read_text(), "mine")

    def mend_broken(self):
        """Makes the chain file "broken" a good one."""
        rules = self.folder / "own.rules"
        rules.write_text(pathlib.Path(f"{DATA}/fw.rules").read_text())
        self.chain("broken", nfs=firewall(rules))

    def break_broken(self):
        """Neither this file nor the last spec can run."""
        (self.folder / "own.rules").write_text("deny")
        self.chain("broken", nfs="[{name: x, type: firewal}]")

    def test_chains_come_back_with_the_service(self):
        service = self.serve()
        self.applied(service, self.chain("runs", more="  tenant: red\n"), workers=1)
        self.applied(service, self.chain("stopped"))
        self.applied(service, self.chain("ended", rx="{generator: {count: 10}}"))
        self.mend_broken()
        self.applied(service, str(self.folder / "broken.yaml"))
        self.applied(service, self.chain("deleted"))
        service.ask("POST", "/v1/chains/stopped/stop")
        service.ask("DELETE", "/v1/chains/deleted")
        wait_for(lambda: self.state(service, "ended") == "finished")
        self.assertEqual(service.end(), 0)
        self.break_broken()
        service = self.serve()
        wait_for(lambda: self.state(service, "runs") == "running")
        wait_for(lambda: self.state(service, "broken") == "failed")
        chains = {each["name"]: each for each in service.ask("GET", "/v1/chains")[1]["chains"]}
        self.assertEqual(sorted(chains), ["broken", "ended", "runs", "stopped"])
        self.assertEqual((chains["runs"]["tenant"], chains["runs"]["options"]), ("red", {"workers": 1}))
        self.assertEqual((chains["stopped"]["state"], chains["ended"]["state"]), ("stopped", "stopped"))
        self.assertIn("unknown NF type 'firewal'", chains["broken"]["error"])
        wait_for(lambda: "retry    in " in self.cli(service, "get", "broken").stdout)
        self.mend_broken()
        wait_for(lambda: self.state(service, "broken") == "running")  # as it is started again
        self.assertIsNone(service.ask("GET", "/v1/chains/broken")[1]["retry_s"])

    @unittest.skipUnless(IS_ROOT, "interfaces are made by root")
    def test_a_chain_runs_again_when_its_interface_returns(self):
        ends = ("retry0", "retry1")
        make = ["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]]
        remove = ["ip", "link", "delete", ends[0]]
        self.addCleanup(subprocess.run, remove, check=False, stderr=subprocess.DEVNULL)
        service = self.serve()
        subprocess.run(make, check=True)
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        self.applied(service, self.chain("a", rx=f"{{dev: {ends[0]}}}"))
        subprocess.run(remove, check=True)
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["retry_s"] is not None)
        subprocess.run(make, check=True)
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        wait_for(lambda: self.state(service, "a") == "running")

    def test_a_failed_chain_is_not_started_after_a_stop_nor_is_one_that_reads_a_capture(self):
        service = self.serve()
        self.mend_broken()
        self.applied(service, str(self.folder / "broken.yaml"))
        self.assertEqual(service.end(), 0)
        self.break_broken()
        service = self.serve()
        wait_for(lambda: service.ask("GET", "/v1/chains/broken")[1]["retry_s"] is not None)
        self.assertEqual(service.ask("POST", "/v1/chains/broken/stop")[0], 200)
        self.mend_broken()
        self.applied(service, self.chain("full", rx="{generator: {rate: 1000}}", tx="{pcap: /dev/full}"))
        wait_for(lambda: self.state(service, "full") == "failed")
        begin = len(service.log())
        self.applied(service, self.chain("other", nfs="[{name: x, type: monitor}]"))
        wait_for(lambda: service.ask("GET", "/v1/chains/other")[1]["rx"]["received_packets"] > 2000)  # some rounds later
        self.assertNotIn("started again", service.log()[begin:])

    def test_a_killed_service_starts_its_chains_again(self):
        service = self.serve()
        self.applied(service, self.chain("a"))
        service.end(signal.SIGKILL)
        service = self.serve()
        wait_for(lambda: self.state(service, "a") == "running")

    def test_a_chain_that_waits_does_not_keep_the_service_from_starting_or_ending(self):
        os.mkfifo(self.folder / "fifo")
        service = self.serve()
        file = self.chain("a", tx=f"{{pcap: {self.folder}/fifo}}")
        reader = subprocess.Popen(["cat", self.folder / "fifo"], stdout=subprocess.DEVNULL)
        self.addCleanup(reader.kill)
        self.applied(service, file)
        service.end(signal.SIGKILL)
        reader.wait(LIMIT_S)
        service = self.serve()
        wait_for(lambda: "waiting for a reader" in service.log())
        self.assertEqual(self.state(service, "a"), "starting")
        self.applied(service, self.chain("b"))
        with open(self.folder / "fifo", "rb"):
            wait_for(lambda: self.state(service, "a") == "running")

    def test_damaged_state_keeps_nothing_else_from_starting(self):
        service = self.serve()
        self.applied(service, self.chain("a"))
        self.assertEqual(service.end(), 0)
        state = self.folder / "state"
        self.assertEqual(state.stat().st_mode & 0o777, 0o700)
        good = json.loads((state / "a.json").read_text())
        for number, text in enumerate(("", "{", "[]", "{}", json.dumps({**good, "uid": "root"}), json.dumps(good),
                                       json.dumps({**good, "name": "d7", "options": 3}), "\xff" * 100, "[" * 100_000)):
            (state / f"d{number}.json").write_text(text, encoding="latin-1")
        (state / "half.json.new").write_text("{")
        service = self.serve()
        wait_for(lambda: self.state(service, "a") == "running")
        self.assertEqual(len(service.ask("GET", "/v1/chains")[1]["chains"]), 1)
        self.assertEqual(service.log().count("not written by the service"), 9)

    def test_a_state_that_cannot_be_written_changes_nothing(self):
        service = self.serve()
        file = self.chain("old")
        self.applied(service, file)
        before = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        self.chain("old", rx="{generator: {count: 10}}")
        for path in (file, self.chain("new")):
            status, answer = self.apply(service, path)
            self.assertEqual(status, 500, answer)
            self.assertIn("cannot be written", answer["error"])
        self.assertEqual(service.ask("POST", "/v1/chains/old/stop")[0], 500)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)
        self.assertEqual([(each["name"], each["state"]) for each in service.ask("GET", "/v1/chains")[1]["chains"]],
                         [("old", "running")])
        self.assertEqual(sorted(os.listdir(self.folder / "state")), ["history", "old.json"])
        self.assertEqual(os.listdir(self.folder / "state" / "history"), ["old.d"])
        self.assertEqual(len(os.listdir(self.folder / "state" / "history" / "old.d")), 1)
        self.applied(service, str(self.folder / "new.yaml"))


if __name__ == "__main__":
    unittest.main()
