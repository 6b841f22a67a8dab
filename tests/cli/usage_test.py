#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line itself: help, what is said of wrong words, exit status, completion, manual page.

CATENA_BIN names the program.
"""

import contextlib
import gzip
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from command import HAS_PROCESSES, NO_PROCESSES

BIN = os.environ["CATENA_BIN"]
TIMEOUT_S = 120
TICK_US = 20_000  # of the threads of a run that wait for signals and write its live line
COMMANDS = {"run", "check", "check-kernel", "plan", "profile", "doctor", "show", "help", "completion"}

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {name: usage}
spec:
  rx: {generator: {packet: 60, count: 1000}}
  tx: null
  device: none
  nfs: []
"""


def catena(*arguments, **env):
    """`env` is added to the environment; what is None is taken out of it."""
    whole = {name: value for name, value in {**os.environ, **env}.items() if value is not None}
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=whole)


class Usage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.chain = self.write("chain.yaml", CHAIN)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_a_wrong_word_names_what_was_probably_meant_and_exits_with_2(self):
        for words, message in ((("rum", self.chain), "'catena' has no command 'rum'; did you mean 'run'?"),
                               (("chekc", self.chain), "did you mean 'check'?"),
                               (("up", "x"), "'catena' has no command 'up'; `catena apply FILE` starts"),
                               (("update",), "`catena apply FILE` starts or replaces a chain"),
                               (("status",), "`catena get` lists the chains of the service"),
                               (("journal", "x"), "`catena logs NAME`"),
                               (("undo", "x"), "`catena rollback NAME`"),
                               (("rm", "x"), "`catena delete NAME`"),
                               (("validate", "x"), "`catena check FILE`"),
                               ((), "'catena' needs a command: run, check, "),
                               (("show",), "'catena show' needs a command: nfs, devices, fields, "),
                               (("nf",), "'catena nf' needs a command: reset"),
                               (("show", "nsf"), "'catena show' has no command 'nsf'; did you mean 'nfs'?"),
                               (("run", self.chain, "--recrod", "x"), "'catena run' has no option '--recrod'; did you mean '--record'?"),
                               (("run", self.chain, "--wokers=1"), "has no option '--wokers'; did you mean '--workers'?"),
                               (("help", "rum"), "'catena' has no command 'rum'; did you mean 'run'?"),
                               (("run", self.chain, "--rx", "file:x"), "pcap:FILE, dpdk:DEVICE, dev:INTERFACE, generator"),
                               (("run", self.chain, "--rx", "pcap:"), "pcap:FILE, dpdk:DEVICE, dev:INTERFACE, generator"),
                               (("run", self.chain, "--tx", "dpdk:"), "pcap:FILE, dpdk:DEVICE, dev:INTERFACE, null"),
                               (("show", "foo"), "'catena show' has no command 'foo'; `catena show --help` lists them"),
                               (("check", self.chain, "-q"), "'catena check' has no option '-q'; `catena check --help` lists"),
                               (("run", self.chain, "--tx", "generator"), "pcap:FILE, dpdk:DEVICE, dev:INTERFACE, null"),
                               (("run", self.chain, "--device", "gpu"), "auto"),
                               (("run", self.chain, "--sync", "always"), "adaptive"),
                               (("run", self.chain, "--workers", "0"), "--workers"),
                               (("run", self.chain, "--workers", "010"), "write 10 without leading zeros"),
                               (("run", self.chain, "--workers", "0x2"), "--workers: '0x2' is no decimal number"),
                               (("stack", "run", "--cpus", "0,01", "--", "true"), "write 1 without leading zeros"),
                               (("stack", "run", "--ports", "", "--", "true"), "--ports: the value is empty"),
                               (("serve", "--socket", ""), "--socket: the value is empty; leave the option out for its default"),
                               (("serve", "--state", ""), "--state: the value is empty"),
                               (("serve", "--metrics", ""), "--metrics: the value is empty"),
                               (("get", "--socket", ""), "--socket: the value is empty"),
                               (("top", "--socket", ""), "--socket: the value is empty"),
                               (("apply", self.chain, "--socket", ""), "--socket: the value is empty"),
                               (("run", self.chain, "--new-keys", "all"), "'all' is no SPI; write the SPIs of the new keys"),
                               (("run", self.chain, "--new-keys", "4096,"), "'' is no SPI; write the SPIs of the new keys"),
                               (("run", self.chain, "--record", ""), "--record: the value is empty"),
                               (("profile", "--output", ""), "--output: the value is empty"),
                               (("--nf-path", "", "run", self.chain), "--nf-path: the value is empty"),
                               (("run", self.chain, "--cores", "none"), "--cores"),
                               (("run",), "chain"),
                               (("run", self.chain, "-q", "-v"), "--verbose"),
                               (("--nf-path", self.path("none"), "run", self.chain), f"no such folder: {self.path('none')}")):
            result = catena(*words)
            self.assertEqual(result.returncode, 2, (words, result.stderr))
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stdout, "", words)
        self.assertEqual(catena("run", self.chain, CATENA_NF_PATH=self.path("none")).returncode, 2)

    def test_help_is_there_however_it_is_asked_for(self):
        for words in (("help",), ("--help",), ("-h",)):
            result = catena(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            for command in COMMANDS:
                self.assertIn(f"\n  {command} ", result.stdout)
        self.assertEqual(catena("help", "run").stdout, catena("run", "--help").stdout)
        self.assertIn("--record", catena("help", "run").stdout)
        self.assertEqual(catena("help", "show", "program").stdout, catena("show", "program", "--help").stdout)

    def test_the_help_of_each_command_has_an_example_of_it(self):
        def commands_in(text):
            listed = text.partition("Subcommands:")[2].partition("Examples:")[0]
            return re.findall(r"^  ([a-z-]+) ", listed, re.M)

        def check(*words):
            text = catena(*words, "--help").stdout
            examples = text[text.index("Examples:"):].splitlines()[1:]
            self.assertRegex("\n".join(examples), r"(?m)\bcatena " + " ".join(words))
            for command in commands_in(text):
                check(*words, command)
        check()

    def test_options_for_a_gpu_are_a_group_of_their_own(self):
        for command in ("run", "check", "apply", "serve"):
            text = catena(command, "--help").stdout
            gpu = text[text.index("GPU options:"):text.index("Examples:")]
            rest = text[:text.index("GPU options:")]
            self.assertIn("--share", gpu)
            self.assertNotIn("--share ", rest)
            self.assertNotIn("--workers", gpu)
        for option in ("--device", "--trace", "--sync", "--pushdown", "--methods", "--profile", "--device-server"):
            self.assertIn(f"  {option} ", catena("run", "--help").stdout.split("GPU options:")[1])

    def test_what_fails_exits_with_1_and_says_so_in_json_too(self):
        self.write("bad.yaml", CHAIN.replace("device: none", "device: nome"))
        for command in ("run", "check", "plan"):
            result = catena(command, self.path("bad.yaml"), "--json")
            self.assertEqual(result.returncode, 1)
            answer = json.loads(result.stdout)
            self.assertFalse(answer["ok"])
            self.assertEqual(answer["errors"], [{
                "file": self.path("bad.yaml"), "line": 7, "column": 11,
                "message": "'device' is 'nome'; allowed: auto, cuda, opencl, none; did you mean 'none'?"}])
        result = catena("check", self.path("none.yaml"), "--json")
        self.assertEqual([error["line"] for error in json.loads(result.stdout)["errors"]], [None])
        self.assertEqual(json.loads(catena("check", self.chain, "--json").stdout),
                         {"file": self.chain, "ok": True, "errors": [], "warnings": [], "refused_rules": []})
        report = json.loads(catena("run", self.chain, "--json").stdout)
        self.assertIs(report["ok"], True)
        self.assertIsNone(report["error"])

    def refused(self, chain):
        """What `check` says of a chain, or `run` where that alone finds it."""
        for command in ("check", "run"):
            result = catena(command, self.write("mistake.yaml", chain))
            if result.returncode != 0:
                return result.stdout + result.stderr
        return self.fail("nothing is refused")

    def test_a_common_mistake_is_answered_with_what_to_write(self):
        self.write("x.rules", "alert tcp $EXTERNAL_NET any -> any any (content:\"a\"; sid:1;)\n")
        self.write("typo.rules", "alert tcp any any -> any any (contnet:\"a\"; sid:1;)\n")
        self.write("fw.rules", "drop tcp any any any any\n")
        self.write("routes.txt", "10.0.0.0/8 via 192.168.1.1\n")
        ids = "nfs: [{name: ids, type: nids, config: {rules: %s}}]"
        for wrong, message in (
                ("nfs: [{name: a, type: ips}]", "unknown NF type 'ips'; write nids, with rules whose action is drop. Known: firewall,"),
                ("nfs: [{name: a, type: vpn}]", "unknown NF type 'vpn'; write ipsec. Known: firewall,"),
                ("nfs: [{name: a, type: firewal}]", "did you mean 'firewall'? Known: firewall,"),
                ("nfs: [{name: a, type: x}]", "unknown NF type 'x'. Known: firewall,"),
                (ids % "x.rules, variables: {EXTERNAL_NET: !$HOME_NET}", "write it in quotes: \"!$HOME_NET\""),
                (ids % "typo.rules", "typo.rules:1:31: not applied: contnet (did you mean content?)"),
                ("nfs: [{name: fw, type: firewall, config: {rules: fw.rules, default: deny}}]", "did you mean 'deny'?"),
                ("nfs: [{name: rt, type: router, config: {routes: routes.txt}}]", "gateways and interface names are not supported"),
                ("nfs: []\n  record: x", "unknown key 'record'; write outputs: {record: FILE}"),
                ("nfs: [{name: fw, type: firewall, rules: fw.rules}]", "unknown key 'rules'; the NF's own keys are under `config:`"),
                ("nfs:\n    - {name: a, type: nids, config: {rules: x}\n    - {name: b, type: nids}", "mistake.yaml:9:7: not valid YAML: '{' is not closed"),
                ("nfs:\n\t- {name: a}", "mistake.yaml:9:1: not valid YAML: tabs do not indent YAML")):
            self.assertIn(message, self.refused(CHAIN.replace("nfs: []", wrong)), wrong)
        generator = "{generator: {packet: 60, count: 1000}}"
        self.assertIn("'rx' is 'in.pcap'; write {pcap: in.pcap}", self.refused(CHAIN.replace(generator, "in.pcap")))
        self.assertIn("'tx' is 'none'; write null", self.refused(CHAIN.replace("tx: null", "tx: none")))

    def test_a_file_of_another_kind_is_named(self):
        with open(self.path("in.pcap"), "wb") as file:
            file.write(b"\xd4\xc3\xb2\xa1\x02\0\x04\0" + bytes(8) + b"\xff\xff\0\0\1\0\0\0")
        with gzip.open(self.path("in.pcap.gz"), "wb") as file:
            file.write(b"\xd4\xc3\xb2\xa1")
        self.assertIn("in.pcap: this is a packet capture, not YAML; a chain reads it by `rx: {pcap: FILE}` or --rx pcap:FILE",
                      catena("check", self.path("in.pcap")).stderr)
        self.assertIn("this is compressed by gzip, not YAML; decompress it: gunzip FILE",
                      catena("check", self.path("in.pcap.gz")).stderr)
        self.assertIn("not a pcap or pcapng capture: it is compressed by gzip; decompress it: gunzip FILE",
                      catena("run", self.chain, "--rx", f"pcap:{self.path('in.pcap.gz')}").stderr)

    @unittest.skipIf(any(int(path.read_text()) for path in pathlib.Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")),
                     "hugepages are reserved here")
    def test_a_pci_device_without_hugepages_names_the_command_that_reserves_them(self):
        result = catena("run", self.chain, "--rx", "dpdk:0000:ff:1f.7")
        self.assertEqual(result.returncode, 1)
        self.assertIn("a PCI device needs reserved hugepages: echo 1024 | sudo tee /proc/sys/vm/nr_hugepages", result.stderr)

    def test_a_home_that_cannot_be_written_is_named(self):
        # PoCL then offers no device at all
        home = {"HOME": "/dev/null", "XDG_CACHE_HOME": None, "POCL_CACHE_DIR": None}
        devices = json.loads(catena("show", "devices", "--json", **home).stdout)
        opencl = next(entry for entry in devices if entry["backend"] == "opencl")
        self.assertEqual(opencl["devices"], [])
        self.assertIn("PoCL cannot make its cache, /dev/null/.cache/pocl/kcache (Not a directory): export POCL_CACHE_DIR=",
                      opencl["error"])

    def test_quiet_says_warnings_and_the_report_only(self):
        loud = catena("run", self.chain)
        self.assertIn("generator", loud.stderr)
        quiet = catena("run", self.chain, "-q")
        self.assertEqual(quiet.returncode, 0)
        self.assertEqual(quiet.stderr, "")
        self.assertIn("account   1000 in = 1000 out + 0 dropped", quiet.stdout)
        self.assertIn("stage     tx: busy ", catena("run", self.chain, "-v").stdout)

    def test_the_live_line_says_how_far_a_source_is_that_ends(self):
        self.write("slow.yaml", CHAIN.replace("count: 1000", "count: 3000, rate: 1000"))
        lines = [line for line in catena("run", self.path("slow.yaml")).stderr.splitlines() if "received" in line]
        self.assertGreaterEqual(len(lines), 2)
        self.assertRegex(lines[0], r" pps, \d+ %, \d+ s left$|kpps, \d+ %, \d+ s left$")

    def test_a_run_follows_its_file_when_it_is_told(self):
        rules = self.write("some.rules", "allow any any any any any\n")
        nf = "[{name: fw, type: firewall, config: {rules: %s, default: deny}}]" % rules
        chain = self.write("long.yaml", CHAIN.replace("nfs: []", f"nfs: {nf}").replace("count: 1000", "rate: 20000"))
        process = subprocess.Popen([BIN, "run", chain, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        lines = iter(process.stderr.readline, "")
        next(line for line in lines if "received" in line)
        self.write("some.rules", "alow any any any any any\n")
        process.send_signal(signal.SIGHUP)
        refused = next(line for line in lines if "keeps running unchanged" in line)
        self.assertIn("some.rules:1:1", refused)
        self.write("some.rules", "deny any any any any any\n")
        process.send_signal(signal.SIGHUP)
        self.assertIn("changed: fw", next(line for line in lines if "changed" in line))
        next(line for line in lines if "received" in line)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
        report = json.loads(out)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(report["tx"]["sent_packets"], 0)
        self.assertGreater(report["dropped_packets"], 0)
        self.assertTrue(report["accounted"])

    def test_lines_are_appended_and_follow_a_rotation(self):
        rules = self.write("some.rules", "allow any any any any any\n")
        nf = "[{name: fw, type: firewall, config: {rules: %s, default: deny}}]" % rules
        lines, rotated = pathlib.Path(self.path("lines")), pathlib.Path(self.path("lines.1"))
        few = self.write("few.yaml", CHAIN.replace("nfs: []", f"nfs: {nf}").replace("count: 1000", "count: 10"))
        for _ in range(2):
            self.assertEqual(catena("run", few, "--record", lines).returncode, 0)
        self.assertEqual(len(lines.read_text().splitlines()), 20)
        lines.unlink()
        many = self.write("many.yaml", CHAIN.replace("nfs: []", f"nfs: {nf}").replace("count: 1000", "rate: 2000"))
        process = subprocess.Popen([BIN, "run", many, "--json", "--record", lines], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        live = iter(process.stderr.readline, "")
        next(line for line in live if "received" in line)
        lines.rename(rotated)
        process.send_signal(signal.SIGUSR1)
        while not lines.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        report = json.loads(process.communicate(timeout=TIMEOUT_S)[0])
        self.assertEqual(process.returncode, 0)
        records = [json.loads(line) for file in (rotated, lines) for line in file.read_text().splitlines()]
        self.assertEqual([record["packet"] for record in records], list(range(report["rx"]["received_packets"])))

    def test_a_hangup_during_the_start_waits_for_its_end(self):
        records = self.path("records.fifo")
        os.mkfifo(records)
        chain = self.write("long.yaml", CHAIN.replace("count: 1000", "rate: 1000"))
        process = subprocess.Popen([BIN, "run", chain, "--record", records], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while int(re.search(r"SigCgt:\s+(\w+)", status.read_text())[1], 16) & 1 << signal.SIGHUP - 1 == 0:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        with subprocess.Popen(["cat", records], stdout=subprocess.DEVNULL):  # for which the start waits
            lines = iter(process.stderr.readline, "")
            self.assertIn("nothing has changed", next(line for line in lines if "changed" in line))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)

    def test_a_run_goes_on_as_another_chain_when_it_is_told(self):
        self.write("all.rules", "allow any any any any any\n")
        nf = "{name: %s, type: firewall, config: {rules: all.rules, default: deny}}"
        text = CHAIN.replace("count: 1000", "rate: 20000").replace("tx: null", "tx: {pcap: %s}" % self.path("out.pcap"))
        chain = self.write("long.yaml", text.replace("nfs: []", f"nfs: [{nf % 'fw'}]"))
        process = subprocess.Popen([BIN, "run", chain, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        lines = iter(process.stderr.readline, "")
        next(line for line in lines if "received" in line)
        for nfs, change in ((f"{nf % 'fw'}, {nf % 'more'}", "more"), (nf % "other", "fw: removed; more: removed")):
            self.write("long.yaml", text.replace("nfs: []", f"nfs: [{nfs}]"))
            process.send_signal(signal.SIGHUP)
            self.assertIn(change, next(line for line in lines if "chain replaced" in line))
            next(line for line in lines if re.match(r" +\d+ s  received", line))
        self.write("long.yaml", text.replace("nfs: []", f"nfs: [{nf % 'other'}]").replace("60", "61"))
        process.send_signal(signal.SIGHUP)
        self.assertIn("'rx' of 'spec' has changed", next(line for line in lines if "keeps running unchanged" in line))
        same = text.replace("nfs: []", f"nfs: [{nf % 'other'}]")
        self.write("long.yaml", same + "  outputs: {record: late.jsonl}\n")
        process.send_signal(signal.SIGHUP)
        self.assertIn("'outputs' of 'spec' has changed", next(line for line in lines if "keeps running unchanged" in line))
        self.write("long.yaml", same + "  workers: 1\n")
        process.send_signal(signal.SIGHUP)
        self.assertIn("'workers' of 'spec'", next(line for line in lines if "chain replaced" in line))
        next(line for line in lines if re.match(r" +\d+ s  received", line))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
        report = json.loads(out)
        self.assertEqual((process.returncode, [nf["name"] for nf in report["nfs"]]), (0, ["other", "(removed)"]))
        self.assertEqual(report["workers"], 1, "as the last file says")
        self.assertTrue(report["accounted"])
        self.assertEqual(report["dropped_packets"], 0)
        self.assertEqual(os.path.getsize(self.path("out.pcap")), 24 + report["tx"]["sent_packets"] * (16 + 60))

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_a_run_loses_state_of_nfs_with_a_consent_only(self):
        nat = "{name: nat, type: nat, config: {inside: [10.0.0.0/8], external: 203.0.113.1, ports: 2000-3000}}"
        text = CHAIN.replace("count: 1000", "rate: 20000").replace("nfs: []", f"nfs: [{nat}]")
        text = text.replace("tx: null", "tx: {pcap: %s}" % self.path("out.pcap"))
        for words in ((), ("--accept-loss",)):
            chain = self.write("long.yaml", text)
            process = subprocess.Popen([BIN, "run", chain, "--json", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            lines = iter(process.stderr.readline, "")
            next(line for line in lines if "received" in line)
            self.write("long.yaml", text.replace("type: nat,", "type: nat, isolation: process,"))
            process.send_signal(signal.SIGHUP)
            outcome = next(line for line in lines if "keeps running unchanged" in line or "chain replaced" in line)
            if words:
                self.assertIn("chain replaced", outcome)
            else:
                self.assertIn("keeps running unchanged: its replacement would lose the state of NF 'nat'. To accept this, "
                              "start the run with --accept-loss", outcome)
            next(line for line in lines if re.match(r" +\d+ s  received", line))
            self.write("long.yaml", text + "  outputs: {record: late.jsonl}\n")
            process.send_signal(signal.SIGHUP)
            outcome = next(line for line in lines if "keeps running unchanged" in line or "chain replaced" in line)
            self.assertRegex(outcome, r"would lose packets that arrive during the replacement \(.*'outputs' of 'spec' has changed"
                                      r"\)\. To accept this, end the run and start it again")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0)

    def test_a_chain_that_replaces_another_receives_at_once(self):
        """By the due times of packets, which a replay keeps. The best of some runs: other programs have the cores, too, so this
        one goes before them where it may."""
        def go_first():
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, 0, -20)
        text = CHAIN.replace("{generator: {packet: 60, count: 1000}}", "{replay: {packet: 60, rate: 20000}}")
        longest_us = []
        while len(longest_us) < 8 and min(longest_us, default=1e6) >= TICK_US:
            chain = self.write("long.yaml", text)
            process = subprocess.Popen([BIN, "run", chain, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, preexec_fn=go_first)
            lines = iter(process.stderr.readline, "")
            next(line for line in lines if "received" in line)
            self.write("long.yaml", text.replace("nfs: []", "nfs: [{name: monitor, type: monitor}]"))
            process.send_signal(signal.SIGHUP)
            next(line for line in lines if "chain replaced" in line)
            next(line for line in lines if re.match(r" +\d+ s  received", line))
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=TIMEOUT_S)
            longest_us.append(json.loads(out)["latency_us"]["max"])
        self.assertLess(min(longest_us), TICK_US, longest_us)

    def on_a_terminal(self, *arguments, **env):
        """What the program writes where its output and errors are a terminal."""
        reader, writer = pty.openpty()
        process = subprocess.Popen([BIN, *arguments], stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
                                   env={**os.environ, **env})
        os.close(writer)
        text = b""
        try:
            while chunk := os.read(reader, 65536):
                text += chunk
        except OSError:
            pass  # the last writer is gone
        os.close(reader)
        process.wait(TIMEOUT_S)
        return text.decode()

    def test_colours_are_for_terminals_that_want_them(self):
        rule = "alert tcp any any -> any any (content:\"a\"; %ssid:%d;)\n"
        rules = self.write("some.rules", rule % ("", 1) + rule % ("pcre:\"/x/\"; ", 2))
        nf = "[{name: ids, type: nids, on: cpu, config: {rules: %s}}]" % rules
        warns = self.write("warns.yaml", CHAIN.replace("nfs: []", f"nfs: {nf}"))
        self.assertIn("\x1b[33mWARNING", self.on_a_terminal("run", warns, NO_COLOR=""))
        plain = self.on_a_terminal("run", warns, NO_COLOR="1")
        self.assertIn("WARNING", plain)
        self.assertNotIn("\x1b", plain)
        result = catena("run", warns)
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    # ---- completion and manual page

    def completed(self, *words):
        """What bash offers after these words, the last one of them unfinished."""
        script = (f"source <({shlex.quote(BIN)} completion bash)\nCOMP_WORDS=({' '.join(repr(word) for word in words)})\n"
                  f"COMP_CWORD={len(words) - 1}\n_catena\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_completes_commands_and_options(self):
        self.assertLessEqual(COMMANDS, self.completed("catena", ""))
        self.assertEqual(self.completed("catena", "ru"), {"run"})
        self.assertEqual(self.completed("catena", "run", "chain.yaml", "--rec"), {"--record"})
        self.assertEqual(self.completed("catena", "show", "pro"), {"program"})
        self.assertIn("--sync", self.completed("catena", "show", "program", "--"))
        self.assertNotIn("--record", self.completed("catena", "show", "program", "--"))
        self.assertEqual(self.completed("catena", "run", "no-such-word"), set())

    def test_completion_of_other_shells_names_the_same(self):
        for shell in ("zsh", "fish"):
            script = catena("completion", shell).stdout
            for word in COMMANDS:
                self.assertIn(word, script)
            self.assertIn("record", script)
            if shutil.which(shell):
                subprocess.run([shell, "-n", "-c" if shell == "fish" else "-c", script], check=True, timeout=TIMEOUT_S)

    def test_the_manual_page_is_one_and_names_every_option(self):
        page = catena("manual").stdout
        shown = subprocess.run(["man", "-l", "-"], input=page, capture_output=True, text=True, timeout=TIMEOUT_S,
                               check=True, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "200", "TERM": "dumb"}).stdout
        for words in ("catena run", "--record", "--pushdown", "catena show program", "EXIT STATUS", "NO_COLOR"):
            self.assertIn(words, shown)
        warnings = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=True).stderr
        self.assertEqual(warnings, "")


if __name__ == "__main__":
    unittest.main()
