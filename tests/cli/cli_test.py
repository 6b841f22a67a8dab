#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user types it. CATENA_BIN names the program, CATENA_DATA the folder tests/data/chain."""

import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import xml.dom.minidom

from command import HAS_PROCESSES, NO_PROCESSES, children_of

BIN = os.environ["CATENA_BIN"]
DATA = os.environ["CATENA_DATA"]
TIMEOUT_S = 120

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: cli-test}}
spec:
  rx: {rx}
  tx: {tx}
  device: {device}
  nfs:
    - {{name: fw, type: firewall, on: gpu, config: {{rules: {data}/fw.rules, default: allow}}}}
    - {{name: ids, type: nids, on: cpu, config: {{rules: {data}/ids.rules}}}}
    - {{name: vpn, type: ipsec, on: gpu, config: {{direction: encrypt, sa: {data}/sa.yaml}}}}
    - {{name: rt, type: router, on: cpu, config: {{routes: {data}/routes.txt}}}}
"""


def catena(*arguments, env=None):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          env={**os.environ, **(env or {})})


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # not the profiles of whoever runs the tests
        os.environ["CATENA_DATA_DIR"] = self.path("data")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def chain(self, rx="{generator: {packet: imix, flows: 50, count: 5000}}", tx="{pcap: out.pcap}", device="opencl"):
        path = self.path("chain.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CHAIN.format(rx=rx, tx=tx, device=device, data=DATA))
        return path

    def test_a_device_server_that_is_killed_costs_the_run_nothing_but_a_moment_on_the_cpu(self):
        chain = self.chain(rx="{generator: {packet: imix, flows: 50, rate: 20000}}", tx="null")
        with subprocess.Popen([BIN, "run", chain, "--device-server", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=os.environ) as run:
            try:
                self.wait_for_line(run, "received")
                before = children_of(run.pid)
                self.assertEqual(len(before), 1)
                os.kill(before[0], signal.SIGKILL)
                self.wait_for_line(run, "is in use again")
                after = children_of(run.pid)
                self.assertNotEqual(after, before)
                run.send_signal(signal.SIGINT)
                out, err = run.communicate(timeout=TIMEOUT_S)
            finally:
                run.kill()
        self.assertEqual(run.returncode, 0, err)
        report = json.loads(out)
        self.assertTrue(report["accounted"])
        self.assertEqual((report["device"]["losses"], report["device"]["returns"]), (1, 1))
        self.assertEqual([nf["on"] for nf in report["nfs"]], ["gpu", "cpu", "gpu", "cpu"])
        for pid in after:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), "nothing is left behind")

    def test_a_device_server_may_be_in_the_file(self):
        chain = self.chain(rx="{generator: {rate: 20000}}", tx="null\n  device_servers: device")
        for words, servers in (((), 1), (("--device-servers", "none"), 0)):
            with subprocess.Popen([BIN, "run", chain, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env=os.environ) as run:
                try:
                    self.wait_for_line(run, "received")
                    self.assertEqual(len(children_of(run.pid)), servers)
                    run.send_signal(signal.SIGINT)
                    run.communicate(timeout=TIMEOUT_S)
                finally:
                    run.kill()

    def wait_for_line(self, process, text):
        for line in process.stderr:
            if text in line:
                return
        self.fail(f"no line with '{text}'")

    def test_run_reports_as_json_and_writes_capture_and_record(self):
        record = self.path("record.jsonl")
        result = catena("run", self.chain(), "--record", record, "--json", "--workers", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertTrue(report["accounted"])
        self.assertEqual(report["rx"]["seen_packets"], 5000)
        self.assertEqual(report["tx"]["sent_packets"] + report["dropped_packets"], 5000)
        self.assertIn("opencl", report["device"]["name"])
        self.assertEqual([nf["on"] for nf in report["nfs"]], ["gpu", "cpu", "gpu", "cpu"])
        self.assertGreater(sum(nf["host_to_device_bytes_per_packet"] for nf in report["nfs"]), 60)
        self.assertGreater(os.path.getsize(self.path("out.pcap")), 5000 * 60)
        with open(record, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        order = [line["packet"] for line in lines]
        self.assertEqual(order, sorted(order))
        self.assertEqual({line["nf"] for line in lines}, {"fw", "ids", "vpn", "rt"})

    def write_chain(self, rx, more=""):
        """A chain without an NF."""
        path = self.path("c.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: c}}\n{more}"
                       f"spec:\n  rx: {rx}\n  tx: null\n  nfs: []\n")
        return path

    def test_check_reads_a_capture_to_its_end(self):
        frame = struct.pack("<IIII", 0, 0, 60, 60) + bytes(60)
        for frames in (1, 20_000):  # more than decide what a plan is for
            with open(self.path("cut.pcap"), "wb") as file:
                file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + frames * frame + frame[:40])
            chain = self.write_chain("{pcap: cut.pcap}")
            checked, ran = catena("check", chain), catena("run", chain)
            self.assertEqual((checked.returncode, ran.returncode), (1, 1))
            self.assertIn(f"cut.pcap: frame {frames + 1}", checked.stderr)
            self.assertIn(checked.stderr.strip(), ran.stderr)

    def test_check_says_what_this_machine_does_not_have(self):
        for rx, missing in (("{dev: nosuchif0}", "c.yaml:5:13: no interface is named 'nosuchif0' here"),
                            ("{dpdk: [net_null0, 'net_af_xdp0,iface=nosuchif0']}", "c.yaml:5:14: no interface is named 'nosuchif0'"),
                            ("{dpdk: '0000:ff:1f.7'}", "c.yaml:5:14: no PCI device is named '0000:ff:1f.7' here")):
            result = catena("check", self.write_chain(rx))
            self.assertEqual(result.returncode, 0, result.stderr)  # it may be for another machine
            self.assertIn(f"WARNING {self.path(missing)}", result.stdout)
            warnings = json.loads(catena("check", self.write_chain(rx), "--json").stdout)["warnings"]
            self.assertEqual(len(warnings), 1)
        self.assertIn("WARNING --tx: no interface is named 'nosuchif1' here",
                      catena("check", self.write_chain("{generator: {count: 1}}"), "--tx", "dev:nosuchif1").stdout)

    def test_variables_of_a_chain_file_come_from_the_environment(self):
        chain = self.write_chain("{generator: {count: \"${COUNT}\", flows: \"${FLOWS}\"}}", "vars: {FLOWS: 7}\n")
        missing = catena("run", chain)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("c.yaml:6:27: no value for '${COUNT}'", missing.stderr)
        for command in (("check",), ("show", "config"), ("plan",)):
            result = catena(*command, chain, env={"COUNT": "12"})
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("count: 12\n", catena("show", "config", chain, env={"COUNT": "12"}).stdout)
        result = catena("run", chain, "--json", env={"COUNT": "12"})
        self.assertEqual(json.loads(result.stdout)["rx"]["seen_packets"], 12, result.stderr)

    def rules_chain(self, rules, more=""):
        """A chain whose only NF has these rules."""
        with open(self.path("x.rules"), "w", encoding="utf-8") as file:
            file.write(rules)
        path = self.path("rules.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: rules}\nspec:\n"
                       "  rx: {generator: {count: 1000, flows: 10}}\n  tx: null\n  nfs:\n"
                       f"    - {{name: ids, type: nids, config: {{rules: x.rules{more}}}}}\n")
        return path

    REFUSED = ("alert ip any any -> any any (msg:\"all\"; sid:1;)\nalert ip any any -> any any (pcre:\"/a/\"; sid:2;)\n"
               "alert tcp $NOPE any -> any any (sid:3;)\nalert ip any any -> any any (pcre:\"/b/\"; sid:4;)\n")

    def test_check_counts_refused_rules_and_lists_them(self):
        chain = self.rules_chain(self.REFUSED)
        result = catena("check", chain)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("does not apply 3 rules: pcre 2, undefined variable $NOPE 1", result.stdout)
        self.assertNotIn("x.rules:2:30", result.stdout)
        verbose = catena("check", "-v", chain)
        for line in ("x.rules:2:30: not applied: pcre", "x.rules:3:11: not applied: undefined variable $NOPE",
                     "x.rules:4:30: not applied: pcre"):
            self.assertIn(line, verbose.stdout)
        listed = json.loads(catena("check", "--json", chain).stdout)
        self.assertTrue(listed["ok"])
        self.assertEqual([(rule["nf"], rule["line"], rule["column"], rule["reason"]) for rule in listed["refused_rules"]],
                         [("ids", 2, 30, "pcre"), ("ids", 3, 11, "undefined variable $NOPE"), ("ids", 4, 30, "pcre")])
        self.assertEqual(json.loads(catena("check", "--json", self.chain()).stdout)["refused_rules"], [])

    def test_check_says_how_many_rules_apply_before_all_is_fine(self):
        for rules, count in ((self.REFUSED, "1 of 4"), ("alert ip any any -> any any (sid:1;)\n", "1 of 1")):
            lines = catena("check", self.rules_chain(rules)).stdout.splitlines()
            self.assertEqual(lines[0], f"NF 'ids' applies {count} rules")
            self.assertIn("fine", lines[-1])
        listed = json.loads(catena("check", "--json", self.rules_chain(self.REFUSED)).stdout)
        self.assertEqual(listed["rules"], {"ids": {"applied": 1, "of": 4}})

    BROKEN = "not a rule\nalert ip any any -> any any (msg:\"all\"; sid:1;)\nalert ip any any -> any any (pcre:\"/a/\"; sid:2;)\n"

    def test_broken_rules_are_skipped_where_the_chain_says_so(self):
        for command in ("check", "run"):
            result = catena(command, self.rules_chain(self.BROKEN))
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("x.rules:1:11: expected '('", result.stderr)
        chain = self.rules_chain(self.BROKEN, ", on_error: skip")
        result = catena("check", chain)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("NF 'ids' applies 1 of 3 rules\n", result.stdout)
        self.assertIn("does not apply 2 rules: broken 1, pcre 1", result.stdout)
        self.assertIn("x.rules:1:11: not applied: broken: expected '('", result.stdout)
        listed = json.loads(catena("check", "--json", chain).stdout)
        self.assertEqual([(rule["line"], rule["reason"], rule["detail"][:12]) for rule in listed["refused_rules"]],
                         [(1, "broken", "expected '('"), (3, "pcre", "")])
        result = catena("run", chain, "--json")
        self.assertEqual(json.loads(result.stdout)["nfs"][0]["refused_rules"], {"broken": 1, "pcre": 1})
        self.assertIn("x.rules:1:11: not applied: broken", result.stderr)

    # for a terminal: clear it, a bell, delete; C1 in UTF-8, no UTF-8, a reversed direction, a byte order mark
    HOSTILE = b"\x1b[2J\x07\x7f\xc2\x9b\xff\xe2\x80\xae\xef\xbb\xbf"

    def test_texts_of_files_control_no_terminal(self):
        with open(self.rules_chain("", ", on_error: skip"), encoding="utf-8") as file:
            right = file.read().encode()
        rules = (b"alert ip any any -> any any (msg:\"a\"; content:\"b\"; sid:1;)\n" + self.HOSTILE + b" any\n"
                 b"alert ip any any -> any any (x" + self.HOSTILE + b":1; sid:2;)\n"
                 b"alert " + self.HOSTILE + b" any any -> any any (sid:3;)\n")
        with open(self.path("x.rules"), "wb") as file:
            file.write(rules)
        name = b"report" + self.HOSTILE + b".yaml"
        cases = [right, right.replace(b"count: 1000", b"count: \"" + self.HOSTILE[:3] + b"\""), b"x" + self.HOSTILE,
                 right.replace(b"x.rules", b"\"\\e[2J\\nforged: line\\x9b\"")]
        for text in cases:
            path = os.path.join(os.fsencode(self.folder.name), name)
            with open(path, "wb") as file:
                file.write(text)
            for words in (("check",), ("check", "-v"), ("check", "--json"), ("run",), ("run", "--json"), ("plan",),
                          ("show", "graph")):
                result = subprocess.run([BIN, *words, path], capture_output=True, timeout=TIMEOUT_S, check=False)
                for output in (result.stdout, result.stderr):
                    text_of_output = output.decode("utf-8")
                    self.assertFalse([c for c in text_of_output if not c.isprintable() and c not in "\n\t"], output)
                    self.assertNotIn("\nforged", text_of_output)
                if "--json" in words and result.stdout:
                    json.loads(result.stdout)
        with open(path, "wb") as file:
            file.write(b"no mapping\n")
        result = subprocess.run([BIN, "check", path], capture_output=True, timeout=TIMEOUT_S, check=False)
        self.assertIn(rb"report\x1b[2J\x07\x7f\xc2\x9b\xff\xe2\x80\xae\xef\xbb\xbf.yaml:1:1: ", result.stderr)

    def test_the_report_counts_refused_rules(self):
        chain = self.rules_chain(self.REFUSED)
        report = json.loads(catena("run", chain, "--json").stdout)
        self.assertEqual(report["nfs"][0]["refused_rules"], {"pcre": 2, "undefined variable $NOPE": 1})
        self.assertIn("WARNING   ids: 3 rules were not applied: pcre 2, undefined variable $NOPE 1",
                      catena("run", chain).stdout)

    def test_refused_rules_are_an_error_if_none_is_left_or_the_chain_says_so(self):
        for rules, more in ((self.REFUSED, ", on_refused: error"), ("alert http any any -> any any (sid:1;)", "")):
            for command in ("check", "run"):
                result = catena(command, self.rules_chain(rules, more))
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("refused", result.stderr)
                self.assertIn("x.rules:", result.stderr)

    def test_alerts_go_to_a_file_as_eve_lines(self):
        chain = self.rules_chain(self.REFUSED)
        result = catena("run", chain, "--eve", self.path("eve.json"), "--record", self.path("record.jsonl"))
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("eve.json"), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        with open(self.path("record.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        self.assertEqual(len(events), 1000)
        self.assertEqual({(event["event_type"], event["chain"], event["nf"], event["alert"]["signature"])
                          for event in events}, {("alert", "rules", "ids", "all")})
        self.assertNotIn("pcap_cnt", events[0])  # the generator is no capture
        keys = ("src", "dst", "sport", "dport")
        eve_keys = ("src_ip", "dest_ip", "src_port", "dest_port")
        self.assertEqual([[record[key] for key in keys] for record in records],
                         [[event[key] for key in eve_keys] for event in events])
        alone = catena("run", chain, "--eve", self.path("alone.json"))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        with open(self.path("alone.json"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file], events)

    def test_an_eve_file_that_cannot_be_written_is_said_before_the_run(self):
        path = self.path("no-such-folder/eve.json")
        result = catena("run", self.rules_chain(self.REFUSED), "--eve", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(path, result.stderr)
        self.assertNotIn("account", result.stdout)

    def test_trace_is_a_time_line_of_stages_and_launches_in_order(self):
        path = self.path("trace.json")
        result = catena("run", self.chain(tx="null"), "--trace", path, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(path, result.stderr)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        stages = {}
        work = {}
        for event in events:
            if event["ph"] != "X":
                self.assertEqual(event["ph"], "M")
                continue
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreaterEqual(event["dur"], 0)
            stage, *device = tracks[event["tid"]].split(" ")
            if event["name"] == "work":
                work[stage] = work.get(stage, 0) + event["args"]["packets"]
                continue
            self.assertEqual(device[:1] == ["device"], event["name"] in ("to device", "kernel", "to host"))
            launch = stages.setdefault(stage, {}).setdefault(event["args"]["number"], {"packets": event["args"]["packets"]})
            self.assertNotIn(event["name"], launch)
            launch[event["name"]] = (event["ts"], event["ts"] + event["dur"])
        self.assertEqual(set(stages), {"fw", "vpn"})
        self.assertEqual(set(work), {"rx", "ids", "rt", "tx"})
        self.assertEqual((work["rx"], work["ids"]), (5000, 5000))
        rounding_us = 0.002
        for launches in stages.values():
            self.assertEqual(sum(launch["packets"] for launch in launches.values()), 5000)
            self.assertEqual(sorted(launches), list(range(len(launches))))
            for launch in launches.values():
                self.assertLessEqual(launch["fill"][1], launch["submit"][0] + rounding_us)
                self.assertLessEqual(launch["submit"][1], launch["deliver"][0] + rounding_us)
                self.assertAlmostEqual(launch["to device"][1], launch["kernel"][0], delta=rounding_us)
                self.assertAlmostEqual(launch["kernel"][1], launch["to host"][0], delta=rounding_us)
                self.assertLess(launch["kernel"][0], launch["kernel"][1])

    def test_a_trace_that_cannot_be_written_is_said_before_the_run(self):
        path = self.path("no-such-folder/trace.json")
        result = catena("run", self.chain(tx="null"), "--trace", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(path, result.stderr)
        self.assertNotIn("account", result.stdout)

    def test_text_report_names_device_drops_and_latency(self):
        result = catena("run", self.chain(tx="null"))
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("device", "account", "p50", "p95", "p99", "busy", "H2D B/pkt"):
            self.assertIn(word, result.stdout)
        self.assertRegex(result.stdout, r"speed +[0-9.]+ m?s, [0-9.]+ [kM]pps, [0-9.]+ [MG]bps, ")

    def test_the_start_says_what_each_nf_passes_unseen(self):
        control = "forwards without inspection: link-local control frames (ARP, LLDP, STP)"
        unlike = "forwards without inspection: non-IPv4, truncated datagrams, link-local control frames (ARP, LLDP, STP)"
        with open(self.chain(tx="null"), encoding="utf-8") as file:
            text = file.read()
        for keys, expected in (("", [control, unlike, control]),
                               ("  on_unsupported: drop\n", [control] * 3),
                               ("  on_unsupported: drop\n  link_local: drop\n", [])):
            path = self.path("unseen.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("  nfs:\n", keys + "  nfs:\n"))
            result = catena("run", path, "--device", "none")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([line.strip() for line in result.stderr.splitlines() if "forwards without inspection" in line], expected)

    def test_check_and_start_warn_of_a_default_of_deny_that_ipv6_passes(self):
        path = self.path("deny.yaml")
        firewall = "{name: fw, type: firewall%s, config: {rules: %s/fw.rules, default: %s}}"
        vpn = "{name: vpn, type: ipsec%s, config: {direction: encrypt, sa: %s/sa.yaml}}"
        decrypt = "{name: vpn, type: ipsec%s, config: {direction: decrypt, cleartext: pass, sa: %s/sa.yaml}}"
        open_firewall = "`default: deny`, but `on_unsupported: pass` lets packets that are not IPv4 pass without a rule"
        open_tunnel = "`on_unsupported: pass` lets packets that are not IPv4 pass in the clear"
        own = ", on_unsupported: pass"
        for nf, keys, expected in ((firewall % ("", DATA, "deny"), "  on_unsupported: pass\n", open_firewall),
                                   (firewall % (own, DATA, "deny"), "", open_firewall),
                                   (firewall % (own + ", isolation: process", DATA, "deny"), "", open_firewall),
                                   (firewall % (own, DATA, "allow"), "", None),
                                   (firewall % ("", DATA, "deny"), "", None),
                                   (vpn % (own, DATA), "", open_tunnel),
                                   (vpn % ("", DATA), "", None),
                                   (decrypt % (own, DATA), "", None)):
            if "isolation" in nf and not HAS_PROCESSES:
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: deny}\nspec:\n  rx: {generator: {count: 1}}\n"
                           f"  tx: null\n  device: none\n{keys}  nfs:\n    - {nf}\n")
            for command in ("check", "run"):
                result = catena(command, path)
                self.assertEqual(result.returncode, 0, result.stderr)
                said = [line for line in (result.stdout + result.stderr).splitlines() if "on_unsupported: pass" in line]
                self.assertEqual(len(said), 1 if expected else 0, (command, nf, said))
                self.assertTrue(not expected or (expected in said[0] and "WARNING" in said[0]), (command, nf, said))

    def test_missing_cuda_is_an_error_that_says_what_is_missing(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is an NVIDIA GPU here")
        result = catena("run", self.chain(), "--device", "cuda")
        self.assertEqual(result.returncode, 1)
        self.assertIn("libcuda.so.1", result.stderr)

    def test_auto_without_any_device_is_a_note_first_and_in_the_report(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is an NVIDIA GPU here")
        result = catena("run", self.chain(device="auto", tx="null"), env={"OCL_ICD_VENDORS": self.path("no-such-folder")})
        self.assertEqual(result.returncode, 0, result.stderr)
        start = result.stderr.splitlines()
        self.assertEqual(start[0], "device   not used: NFs placed `on: gpu` run on the CPU")
        self.assertRegex(start[1], "^         cuda: .*libcuda.so.1")
        self.assertRegex(start[2], "^         opencl: ")
        report = result.stdout.splitlines()
        self.assertEqual(report[1], "device    not used: NFs placed `on: gpu` ran on the CPU")
        self.assertRegex(report[2], "^          cuda: .*libcuda.so.1")
        self.assertRegex(report[3], "^          opencl: ")
        self.assertNotIn("WARNING", result.stderr + result.stdout)

    def test_an_nf_that_counted_nothing_has_no_line_in_the_report(self):
        result = catena("run", self.chain(device="none", tx="null"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^vpn +ipsec ")
        self.assertNotRegex(result.stdout, r"(?m)^vpn +-$")

    def test_auto_does_not_take_a_cpu_that_poses_as_a_device(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is an NVIDIA GPU here")
        reports = {}
        for device in ("auto", "opencl"):
            result = catena("run", self.chain(device=device, tx=f"{{pcap: {device}.pcap}}"), "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            reports[device] = json.loads(result.stdout)
        self.assertEqual(reports["auto"]["device"]["name"], "none")
        self.assertIn("this machine's CPU", reports["auto"]["device"]["note"])
        self.assertEqual({nf["on"] for nf in reports["auto"]["nfs"]}, {"cpu"})
        self.assertIn("opencl", reports["opencl"]["device"]["name"])
        with open(self.path("auto.pcap"), "rb") as auto, open(self.path("opencl.pcap"), "rb") as opencl:
            self.assertEqual(auto.read(), opencl.read())
        profile = catena("profile")
        self.assertEqual(profile.returncode, 1)
        self.assertIn("this machine's CPU", profile.stderr)

    def test_ctrl_c_ends_an_endless_run_with_the_report(self):
        process = subprocess.Popen([BIN, "run", self.chain(rx="{generator: {packet: 60, rate: 20000}}", tx="null"), "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + TIMEOUT_S
            # the live line shows that packets run
            while "received" not in process.stderr.readline():
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
        self.assertEqual(process.returncode, 0)
        report = json.loads(output)
        self.assertTrue(report["accounted"])
        self.assertGreater(report["rx"]["seen_packets"], 0)

    def test_check_names_file_line_and_column(self):
        path = self.chain(device="cudda")
        result = catena("check", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{path}:7:11: 'device' is 'cudda'; allowed: auto, cuda, opencl, none; did you mean 'cuda'?", result.stderr)
        self.assertEqual(catena("check", self.chain()).returncode, 0)

    def test_check_follows_into_the_files_that_the_chain_names(self):
        bad = self.path("bad.rules")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("allow tcp any any any any\nallow tcp any any any 99999\n")
        path = self.path("c.yaml")
        with open(self.chain(), encoding="utf-8") as file:
            text = file.read().replace(f"{DATA}/fw.rules", bad)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        result = catena("check", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{bad}:2:", result.stderr)

    def test_check_says_everything_at_once_and_takes_what_a_run_takes(self):
        path = self.chain()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for right, wrong in (("type: nids", "type: nidss"), ("{rules: ", "{rulse: "), ("routes: ", "rouets: "),
                             ("device: ", "devise: ")):
            text = text.replace(right, wrong, 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("devise: ", "device: "))
        for command in ("check", "run"):
            result = catena(command, path)
            self.assertEqual(result.returncode, 1)
            for words in (":9:52: unknown key 'rulse'; did you mean 'rules'? The key is required",
                          ":10:", "did you mean 'nids'?", ":12:50: unknown key 'rouets'; did you mean 'routes'?"):
                self.assertIn(words, result.stderr)
        many = "[" + ", ".join(f"{{name: r{i}, type: remark, on: gpu, config: {{map: [{{from: 0, to: 0}}]}}}}" for i in range(65)) + "]"
        for count, status in ((64, 0), (65, 1)):
            with open(path, "w", encoding="utf-8") as file:
                file.write("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: many}\nspec:\n"
                           "  rx: {generator: {count: 10}}\n  tx: null\n  device: none\n  nfs: "
                           + (many if count == 65 else many.replace(many[many.rindex(", {name"):], "]")) + "\n")
            for command in ("check", "plan", "run"):
                result = catena(command, path)
                self.assertEqual(result.returncode, status, (count, command, result.stderr))

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_check_kernel_says_where_a_kernel_makes_a_pointer(self):
        os.mkdir(self.path("parts"))
        layout = self.write("parts/count.layout.hpp", "#pragma once\nnamespace vendor {\nstruct Aux { unsigned count; };\n}\n")
        text = ('#include <catena/kernel/context.hpp>\n#include "parts/count.layout.hpp"\nCATENA_KERNEL(count) {\n'
                "  const auto packet = ctx.packet();\n  if (!packet.valid()) { return; }\n"
                "  unsigned left = packet.aux<vendor::Aux>().count;\n%s  packet.set_result(left);\n}\n")
        kernel = self.write("count.kernel.cpp", text % "")
        passes = catena("check-kernel", kernel, layout, "--define", "AUX_BYTES=4")
        self.assertEqual((passes.returncode, passes.stderr), (0, ""))
        self.assertIn("through IsoPtr alone", passes.stdout)
        lacks = catena("check-kernel", kernel, layout)
        self.assertEqual(lacks.returncode, 1)
        self.assertIn("count.kernel.cpp:6:26: the compiler says: static assertion failed", lacks.stderr)

        self.write("count.kernel.cpp", text % "  unsigned* raw = &left;\n  while (left > 7) { left /= *raw; }\n")
        refused = catena("check-kernel", kernel, layout, "--define", "AUX_BYTES=4")
        self.assertEqual((refused.returncode, refused.stdout.count("warning: ")), (1, 2))
        self.assertIn("count.kernel.cpp:7:19: kernels have no pointers", refused.stderr)
        report = json.loads(catena("check-kernel", kernel, layout, "--define", "AUX_BYTES=4", "--json").stdout)
        self.assertFalse(report["ok"])
        self.assertIn(("count.kernel.cpp", 7, 13, "pointer"),
                      [tuple(each[key] for key in ("file", "line", "column", "rule")) for each in report["refused"]])
        self.assertEqual({each["rule"] for each in report["cautions"]}, {"unbounded-loop", "division"})

        missing = catena("check-kernel", self.path("none.cpp"), "--json")
        self.assertEqual((missing.returncode, json.loads(missing.stdout)["ok"]), (1, False))
        self.assertEqual(catena("check-kernel", kernel, "--define", "LANES=4;int x").returncode, 1)

    def test_check_says_of_the_kernels_of_a_chain_that_they_pass(self):
        for sync in ("adaptive", "copy", "shared"):
            result = catena("check", self.chain(), "--kernels", "--json", "--sync", sync)
            report = json.loads(result.stdout)
            self.assertEqual((result.returncode, report["ok"]), (0, True), result.stdout)
            self.assertEqual(set(report["kernels"]), {"fw", "vpn"})
            self.assertTrue(all(kernel["ok"] for kernel in report["kernels"].values()))
        self.assertNotIn("kernels", json.loads(catena("check", self.chain(), "--json").stdout))

    def test_unknown_nf_type_names_the_nearest(self):
        path = self.chain()
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("type: nids", "type: nidss")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        result = catena("check", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("did you mean 'nids'?", result.stderr)
        self.assertIn(f"{path}:10:", result.stderr)

    def test_every_sync_mode_gives_the_same_packets(self):
        outputs = []
        for mode in ("copy", "shared", "adaptive"):
            target = self.path(f"{mode}.pcap")
            result = catena("run", self.chain(), "--sync", mode, "--tx", f"pcap:{target}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"sync     {mode}", result.stderr)
            with open(target, "rb") as file:
                outputs.append(file.read())
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])
        self.assertEqual(catena("run", self.chain(), "--sync", "always").returncode, 2)

    def test_plan_says_what_moves_and_why(self):
        result = catena("plan", self.chain())
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("fw:", "vpn:", "rt: on the CPU", "valid on the device since fw", "read on the CPU by tx", "against copy", "against shared"):
            self.assertIn(word, result.stdout)
        plans = json.loads(catena("plan", self.chain(), "--json").stdout)
        self.assertEqual([nf["on"] for nf in plans["adaptive"]["nfs"]], ["gpu", "cpu", "gpu", "cpu"])
        self.assertLess(plans["adaptive"]["cost_ns"], plans["copy"]["cost_ns"])
        missing = catena("plan", self.path("none.yaml"))
        self.assertEqual(missing.returncode, 1)
        self.assertIn("none.yaml", missing.stderr)

    def test_a_profile_is_measured_kept_and_used(self):
        measured = catena("profile", "--device", "opencl", "--json")
        self.assertEqual(measured.returncode, 0, measured.stderr)
        self.assertIn("100 %", measured.stderr)
        self.assertNotIn("\x1b", measured.stderr, "no terminal, no bar")
        profile = json.loads(measured.stdout)
        self.assertEqual(profile["device"]["backend"], "opencl")
        for name, method in profile["methods"].items():
            for direction in ("h2d", "d2h"):
                cost = method[direction]
                self.assertGreater(cost["per_byte_ns"], 0, (name, direction))
                self.assertTrue(all(value >= 0 for value in cost.values()), (name, direction, cost))
        self.assertTrue(all(value >= 0 for value in profile["host"].values()), profile["host"])
        self.assertEqual({choice["method"] for choice in profile["choices"]} - {"staged", "strided", "gather"}, set())
        self.assertTrue(profile["file"].startswith(self.path("data")))
        date = profile["measured"][:10]

        chain = self.chain()
        run = catena("run", chain, "--tx", "null", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"sync     adaptive, by the profile measured {date}\n", run.stderr)
        self.assertEqual(json.loads(run.stdout)["sync"],
                         {"mode": "adaptive", "cost_profile": f"the profile measured {date}"})
        plan = catena("plan", chain)
        self.assertIn(f"costs: the profile measured {date} ({profile['device']['name']}, opencl)\n", plan.stdout)
        self.assertIn("built-in", catena("plan", chain, "--device", "none").stdout)
        self.assertIn("by the built-in profile", catena("run", chain, "--tx", "null",
                                                        env={"CATENA_DATA_DIR": self.path("empty")}).stderr)

        # what is damaged is said and not used
        with open(profile["file"], "r+", encoding="utf-8") as file:
            file.truncate(100)
        damaged = catena("run", chain, "--tx", "null")
        self.assertEqual(damaged.returncode, 0, damaged.stderr)
        self.assertIn(profile["file"], damaged.stderr)
        self.assertIn("`catena profile` measures again", damaged.stderr)
        self.assertIn("by the built-in profile of an NVIDIA H200", damaged.stderr)

    def test_copies_of_an_engine_are_measured_and_added_to_the_profile_of_the_machine(self):
        first = catena("profile", "--copies", "--engine", "cpu-stream", "--json")
        self.assertEqual(first.returncode, 0, first.stderr)
        result = json.loads(first.stdout)
        self.assertEqual([engine["name"] for engine in result["engines"]], ["cpu", "cpu-stream"])
        self.assertTrue(result["file"].startswith(self.path("data")))
        self.assertEqual([engine["name"] for engine in self.kept(result["file"])], ["cpu", "cpu-stream"])

        second = catena("profile", "--copies", "--engine", "dmadev-skeleton")
        self.assertEqual(second.returncode, 0, second.stderr)
        for word in ("32 KiB", "dmadev-skeleton", "threshold", "saved     " + result["file"]):
            self.assertIn(word, second.stdout)
        kept = self.kept(result["file"])
        self.assertEqual([engine["name"] for engine in kept], ["cpu-stream", "cpu", "dmadev-skeleton"], "the newest last")
        for engine in kept:
            self.assertEqual([size["bytes"] for size in engine["sizes"]], [1024, 4096, 16384, 32768, 65536, 262144])
            self.assertTrue(all(size["cpu_ns"] > 0 and size["gbps"] > 0 for size in engine["sizes"]), engine)

        elsewhere = catena("profile", "--copies", "--engine", "cpu", "--output", self.path("copies.json"))
        self.assertEqual(elsewhere.returncode, 0, elsewhere.stderr)
        self.assertEqual([engine["name"] for engine in self.kept(self.path("copies.json"))], ["cpu"])
        self.assertIn("'format' is not 'catena cost profile'", catena("plan", self.chain(), "--profile", self.path("copies.json")).stderr)

        missing = catena("profile", "--copies", "--engine", "dmadev")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("vfio-pci", missing.stderr)
        self.assertEqual([engine["name"] for engine in self.kept(result["file"])], ["cpu-stream", "dmadev-skeleton", "cpu"])
        for words in (("--engine", "cpu"), ("--copies", "--engine", "none"), ("--copies", "--nf", self.chain())):
            self.assertEqual(catena("profile", *words).returncode, 2, words)

    def kept(self, path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)["engines"]

    def test_the_nfs_of_a_chain_are_measured_and_added_to_the_profile(self):
        chain, output = self.chain(), self.path("p.json")
        measure = ("profile", "--nf", chain, "--device", "opencl", "--packet-bytes", "64", "--seconds", "0", "--output", output)
        measured = catena(*measure, "--json")
        self.assertEqual(measured.returncode, 0, measured.stderr)
        result = json.loads(measured.stdout)
        self.assertEqual(result["file"], output)
        self.assertEqual([(nf["name"], nf["packet_bytes"]) for nf in result["nfs"]], [("fw", 64), ("vpn", 64)])
        self.assertIn("kernel_by_sms_left_out", result)
        self.assertEqual(len(result["notes"]), 1, "the time was over at once")
        for nf in result["nfs"]:
            self.assertEqual(len(nf["launches"]), 3)
            for line in ("kernel", "transfer"):
                self.assertGreaterEqual(nf[line]["fixed_ns"], 0)
                self.assertGreaterEqual(nf[line]["per_packet_ns"], 0)
                self.assertLessEqual(nf[line]["r_squared"], 1)
            self.assertGreaterEqual(nf["overhead_ns"], 0)

        with open(output, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual([(nf["type"], nf["configuration"]) for nf in kept["nfs"]],
                         [(nf["type"], nf["configuration"]) for nf in result["nfs"]])
        # plans go by the file as before, and another measurement of the same NFs takes the place of the first
        self.assertEqual(catena("plan", chain, "--profile", output).returncode, 0)
        text = catena(*measure)
        self.assertEqual(text.returncode, 0, text.stderr)
        for word in ("fw (firewall, ", "kernel", "transfers", "R2", "predicted", "were not measured: the time was over", "saved     " + output):
            self.assertIn(word, text.stdout)
        with open(output, encoding="utf-8") as file:
            again = json.load(file)
        self.assertEqual(len(again["nfs"]), 2)
        self.assertEqual(again["measured"], kept["measured"], "transfers are not measured again")

        kept["device"]["name"] = "Some GPU"
        with open(output, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        other = catena(*measure)
        self.assertEqual(other.returncode, 1)
        self.assertIn("Some GPU", other.stderr)
        self.assertIn("--output", other.stderr)

    def test_what_profile_of_nfs_refuses(self):
        missing = catena("profile", "--nf", self.path("none.yaml"), "--device", "opencl")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("none.yaml", missing.stderr)
        for words in (("--packet-bytes", "64"), ("--seconds", "5"),
                      ("--nf", self.chain(), "--packet-bytes", "59"), ("--nf", self.chain(), "--packet-bytes", "64,9000"),
                      ("--nf", self.chain(), "--packet-bytes", "small"), ("--nf", self.chain(), "--seconds", "-1")):
            self.assertEqual(catena("profile", *words).returncode, 2, words)

    def test_costs_of_a_named_profile_decide_the_plan(self):
        def profile(name, **dear):
            cost = {"per_transfer_ns": 1000, "per_packet_ns": 1, "per_packet_fields_ns": 1, "per_byte_ns": 0.1}
            methods = {method: {direction: {key: value * dear.get(method, 1) for key, value in cost.items()}
                                for direction in ("h2d", "d2h")} for method in ("staged", "strided", "gather")}
            host = {"copy_ns_per_byte": dear.get("staged", 1), "touch_ns": dear.get("staged", 1),
                    "column_ns": dear.get("staged", 1)}
            path = self.path(name)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"format": "catena cost profile", "version": 1, "measured": "2026-01-02T03:04:05Z",
                           "device": {"backend": "cuda", "name": "Some GPU", "driver": "1"}, "methods": methods,
                           "host": host, "device_copy_ns_per_byte": 0.01}, file)
            return path

        def body_methods(path):
            plans = json.loads(catena("plan", self.chain(), "--profile", path, "--json").stdout)
            self.assertEqual(plans["cost_profile"], "the profile measured 2026-01-02")
            self.assertEqual(plans["cost_profile_device"], "Some GPU")
            return {move["method"] for nf in plans["adaptive"]["nfs"] for move in nf.get("moves", ())
                    if "frame" in move["fields"]}

        self.assertEqual(body_methods(profile("staged.json", strided=1000, gather=1000)), {"staged"})
        self.assertEqual(body_methods(profile("strided.json", staged=1000, gather=1000)), {"strided"})
        gather = profile("gather.json", staged=1000, strided=1000)
        self.assertEqual(body_methods(gather), {"gather"})
        run = catena("run", self.chain(), "--tx", "null", "--profile", gather)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("by the profile measured 2026-01-02 on another device, Some GPU", run.stderr)

        bad = self.path("bad.json")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("{}")
        for arguments in (("plan", self.chain()), ("run", self.chain()), ("show", "program", self.chain(), "fw")):
            for path in (bad, self.path("none.json")):
                refused = catena(*arguments, "--profile", path)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(path, refused.stderr)

    def auto_chain(self, on="auto", more="", device="opencl", packet=512):
        """A chain of two NFs, the second with `on`."""
        path = self.path("auto.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: auto}\nspec:\n"
                       f"  rx: {{generator: {{packet: {packet}, flows: 50, count: 3000}}}}\n"
                       f"  tx: {{pcap: out.pcap}}\n  device: {device}\n  nfs:\n"
                       f"    - {{name: fw, type: firewall, config: {{rules: {DATA}/fw.rules, default: allow}}}}\n"
                       f"    - {{name: ids, type: nids, on: {on}, config: {{rules: {DATA}/ids.rules}}{more}}}\n")
        return path

    def profile_of_auto_chain(self, name, cpu_ns, kernel_ns):
        """A profile of the device here, in which ids takes so much on the CPU and for a launch."""
        output = self.path("measured.json")
        if not os.path.exists(output):
            measured = catena("profile", "--nf", self.auto_chain(), "--device", "opencl", "--packet-bytes", "512",
                              "--seconds", "0", "--output", output)
            self.assertEqual(measured.returncode, 0, measured.stderr)
            for words in (r"fw \(firewall, .*\n  cpu +[0-9.]+ ns per packet on one core",
                          r"ids \(nids, .*\n  cpu +[0-9.]+ ns per packet on one core.*\n  kernel"):
                self.assertRegex(measured.stdout, words)
        with open(output, encoding="utf-8") as file:
            profile = json.load(file)
        self.assertEqual([nf["type"] for nf in profile["nfs_on_cpu"]], ["firewall", "nids"], "all, wherever they are")
        self.assertEqual([nf["type"] for nf in profile["nfs"]], ["nids"], "what may be on the gpu")
        self.assertTrue(all(nf["ns_per_packet"] > 0 for nf in profile["nfs_on_cpu"]))
        if cpu_ns is None:
            del profile["nfs_on_cpu"]
        else:
            profile["nfs_on_cpu"][1]["ns_per_packet"] = cpu_ns
        profile["nfs"][0].update({"kernel": {"fixed_ns": kernel_ns, "per_packet_ns": 0, "r_squared": 1},
                                  "overhead_ns": 0, "cpu_ns_per_packet": 1, "max_packets_per_sm": 1024})
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        return path

    def run_auto_chain(self, chain, *options):
        """The report of a run, what its start said, and the packets that came out."""
        result = catena("run", chain, "--json", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("out.pcap"), "rb") as file:
            return json.loads(result.stdout), result.stderr, file.read()

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_an_nf_in_a_process_of_its_own_has_the_device_where_costs_say_so(self):
        _, _, expected = self.run_auto_chain(self.auto_chain(on="cpu"))
        for on, profile in (("gpu", self.profile_of_auto_chain("dear_cpu.json", 1e6, 10)),
                            ("cpu", self.profile_of_auto_chain("dear_gpu.json", 5, 900_000))):
            with self.subTest(on=on):
                chain = self.auto_chain(more=", isolation: process")
                _, start, actual = self.run_auto_chain(chain, "--profile", profile)
                self.assertRegex(start, r"in a process of its own, number \d+, on " + on)
                self.assertIn("device   not used (no NF of the chain is placed on the gpu)", start)
                self.assertEqual(actual, expected)

    def test_what_an_nf_costs_decides_where_it_is_and_never_what_comes_out(self):
        run = self.run_auto_chain
        _, _, expected = run(self.auto_chain(on="cpu"))
        cases = (("gpu", self.profile_of_auto_chain("dear_cpu.json", 1e6, 10), "faster",
                  r"ids  auto -> gpu: [0-9.]+ ns per packet, cpu 1000000.0 ns per packet; on the cpu the chain would achieve [0-9.]+ kpps"),
                 ("cpu", self.profile_of_auto_chain("dear_gpu.json", 5, 900_000), "not_faster",
                  r"ids  auto -> cpu: 5.0 ns per packet, gpu [0-9.]+ ns per packet; with it on the gpu the chain would achieve"),
                 ("cpu", self.profile_of_auto_chain("late.json", 1e6, 2_000_000), "latency",
                  r"no launch of it on the gpu ends within its latency_limit_us"),
                 ("cpu", self.profile_of_auto_chain("unknown.json", None, 10), "not_known",
                  r"its time on the CPU for packets of 512 bytes is unknown; `catena profile --nf .*` measures it"))
        for on, profile, reason, line in cases:
            with self.subTest(profile=profile):
                chain = self.auto_chain()
                plan = catena("plan", chain, "--profile", profile)
                self.assertEqual(plan.returncode, 0, plan.stderr)
                self.assertRegex(plan.stdout, line)
                self.assertIn("with all of these on the cpu: ", plan.stdout)
                self.assertEqual("ids: on the CPU" in plan.stdout, on == "cpu", "the plan is that of the placement")
                placement = json.loads(catena("plan", chain, "--profile", profile, "--json").stdout)["placement"]
                ids = placement["nfs"][1]
                self.assertEqual((ids["auto"], ids["on"], ids["reason"]), (True, on, reason))
                self.assertFalse(placement["nfs"][0]["auto"])
                check = catena("check", chain, "--profile", profile, "--json")
                self.assertEqual(json.loads(check.stdout)["placement"]["nfs"][1]["on"], on)
                self.assertRegex(catena("check", chain, "--profile", profile).stdout, line)
                report, start, actual = run(chain, "--profile", profile)
                self.assertIn("auto     ids  auto -> " + on, start)
                self.assertRegex(start, line)
                self.assertEqual([nf["on"] for nf in report["nfs"]], ["cpu", on])
                self.assertEqual(actual, expected)
                program = catena("show", "program", chain, "ids", "--profile", profile)
                self.assertEqual(program.returncode == 0, on == "gpu", program.stderr)

        for device in ("none", "auto"):
            chain = self.auto_chain(device=device)
            if device == "auto" and os.path.exists("/dev/nvidiactl"):
                continue
            report, start, actual = run(chain, "--profile", cases[0][1])
            self.assertIn("device   not used: NFs placed `on: auto` are on the CPU", start)
            self.assertIn("no device is available", start)
            self.assertEqual([nf["on"] for nf in report["nfs"]], ["cpu", "cpu"])
            self.assertEqual(actual, expected)
            self.assertIn("no device is available", catena("plan", chain, "--profile", cases[0][1]).stdout)

    def test_profile_without_the_device(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is an NVIDIA GPU here")
        missing = catena("profile", "--device", "cuda")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("libcuda.so.1", missing.stderr)
        none = catena("profile", env={"OCL_ICD_VENDORS": self.path("no-such-folder")})
        self.assertEqual(none.returncode, 1)
        self.assertIn("no device to measure", none.stderr)
        self.assertEqual(catena("profile", "--device", "none").returncode, 2)

    def test_show(self):
        nfs = json.loads(catena("show", "nfs", "--json").stdout)
        self.assertLessEqual({"firewall", "ipsec", "nids", "router"}, {nf["type"] for nf in nfs})
        self.assertEqual(len(json.loads(catena("show", "fields", "--json").stdout)), 39)
        devices = json.loads(catena("show", "devices", "--json").stdout)
        self.assertEqual({entry["backend"] for entry in devices}, {"cuda", "opencl"})
        for what in ("nfs", "fields", "devices"):
            self.assertTrue(catena("show", what).stdout)

    def test_show_graph_prints_where_packets_go(self):
        chain = self.chain()
        text = catena("show", "graph", chain).stdout
        self.assertIn("rx\n", text)
        self.assertIn("-> tx\n", text)
        self.assertTrue(catena("show", "graph", chain, "--format", "mermaid").stdout.startswith("flowchart LR\n"))
        dot = catena("show", "graph", chain, "--format", "dot").stdout
        self.assertIn("rx -> nf0", dot)
        if shutil.which("dot"):
            svg = xml.dom.minidom.parseString(catena("show", "graph", chain, "--format", "svg").stdout)
            self.assertEqual(svg.documentElement.tagName, "svg")
        nowhere = subprocess.run([BIN, "show", "graph", chain, "--format", "svg"], capture_output=True, text=True,
                                 check=False, env={**os.environ, "PATH": "/nowhere"})
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn("apt install graphviz", nowhere.stderr)

    def test_show_program_prints_what_the_plan_made_of_an_nf(self):
        chain = self.chain()
        copy = json.loads(catena("show", "program", chain, "fw", "--sync", "copy", "--methods", "staged", "--json").stdout)
        self.assertEqual(len(copy), 1)
        self.assertIn("CATENA_SHARED=0U", copy[0]["defines"])
        adaptive = json.loads(catena("show", "program", chain, "fw", "--json").stdout)
        self.assertIn("CATENA_SHARED=1U", adaptive[0]["defines"])
        self.assertEqual(adaptive[0]["source"], copy[0]["source"], "a plan leaves the kernel's source as it is")
        strided = json.loads(catena("show", "program", chain, "fw", "--sync", "copy", "--json").stdout)
        self.assertIn("CATENA_SHARED=1U", strided[0]["defines"], "on the twins of slots, and nothing stays there")
        wrong = catena("show", "program", chain, "fw", "--methods", "dma")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("'methods' has 'dma'; allowed: staged, strided, gather", wrong.stderr)
        text = catena("show", "program", chain, "fw").stdout
        self.assertRegex(text, r"#define CATENA_READS +\d+UL  // .*ipv4.src, ipv4.dst")
        for nf, words in (("rt", "works on the CPU"), ("fx", "no NF named 'fx'")):
            wrong = catena("show", "program", chain, nf)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn(words, wrong.stderr)

    def test_doctor(self):
        findings = json.loads(catena("doctor", "--json").stdout)
        self.assertLessEqual({"DPDK", "control groups"}, {finding["subject"] for finding in findings})
        if not os.path.exists("/dev/nvidiactl"):
            devices = [finding for finding in findings if finding["subject"] == "devices"]
            self.assertEqual([finding["level"] for finding in devices], ["note"])
            self.assertIn("no GPU: NFs placed `on: gpu` run on the CPU", devices[0]["text"])
        self.assertTrue(catena("doctor").stdout)

    def test_doctor_names_the_kernel_cache_that_a_run_uses(self):
        def cache(**env):
            findings = json.loads(catena("doctor", "--json", env={"XDG_CACHE_HOME": "", "HOME": self.folder.name, **env}).stdout)
            return next(finding["text"] for finding in findings if finding["subject"] == "kernel cache")
        self.assertEqual(cache(CATENA_CACHE_DIR=self.path("own")), self.path("own"))
        # empty is as if it were not there
        self.assertEqual(cache(CATENA_CACHE_DIR=""), self.path(".cache/catena"))
        self.assertEqual(cache(CATENA_CACHE_DIR="", XDG_CACHE_HOME=self.path("xdg")), self.path("xdg/catena"))
        self.assertIn("without HOME", cache(CATENA_CACHE_DIR="", HOME=""))

    def test_wrong_command_lines_have_their_own_exit_status(self):
        for arguments in ((), ("run",), ("show", "everything"), ("run", "x.yaml", "--workers", "0"), ("fly",)):
            self.assertEqual(catena(*arguments).returncode, 2, arguments)
        self.assertEqual(catena("--help").returncode, 0)

    def test_wrong_ports_say_what_is_allowed(self):
        result = catena("run", self.chain(), "--rx", "file:x")
        self.assertEqual(result.returncode, 2)
        self.assertIn("pcap:FILE, dpdk:DEVICE, dev:INTERFACE, generator", result.stderr)


if __name__ == "__main__":
    unittest.main()
