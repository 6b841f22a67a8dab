#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NFs with `isolation: process`: the same bytes as in the chain's own process, and what their processes have and have not.
What becomes of packets when one is killed: nf_process_deaths_test.py.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from command import children_of, name_of
from harness import ATTACKER, BIN, DATA, IS_ROOT, LIMIT_S, ServiceTest, as_user, firewall, wait_for
from nf_process import EXAMPLE, GROUP, NFS, NfProcessTest, monitor, nf_process_of


NOBODY = 65534


def is_server(pid):
    return name_of(pid) == "catena-device-s"


class NfProcesses(NfProcessTest):
    def test_the_cpu_gives_the_same_bytes_and_counts_in_other_processes(self):
        self.assert_same("none", "cpu")

    def test_so_does_a_device_through_its_server(self):
        report = self.assert_same("opencl", "gpu")
        for nf in report["nfs"][:3]:
            self.assertGreater(nf["host_to_device_bytes_per_packet"], 0, nf["name"])

    def test_so_does_a_device_that_the_processes_share(self):
        report = self.assert_same("opencl", "gpu", "--share", "fair", "--parts", "blocks")
        self.assertEqual(len(report["share"]["parts"]), 3)
        self.assertEqual(len({part["units"] for part in report["share"]["parts"]}), 1)

    def test_so_do_servers_of_their_own(self):
        report = self.assert_same("opencl", "gpu", "--device-servers", "process")
        for nf in report["nfs"][:3]:
            self.assertGreater(nf["host_to_device_bytes_per_packet"], 0, nf["name"])
        rx = "{generator: {rate: 1000}}"
        process = self.start(self.chain("process", NFS, rx=rx, device="opencl", place="gpu"), "--device-servers", "process")
        self.pids(process)
        servers = [each for each in children_of(process.pid) if is_server(each)]
        self.assertEqual(len(servers), 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)

    def test_each_shard_has_processes_of_its_own(self):
        for device, place in (("none", "cpu"), ("opencl", "gpu")):
            self.assert_same(device, place, more="  shards: 3\n")
        process = self.start(self.chain("process", NFS, rx="{generator: {rate: 1000}}", more="  shards: 3\n"))
        # of all, what one process writes no other one does
        self.assertEqual(len(set(self.pids(process))), 3 * len(NFS) - 2)
        nfs = [NFS[0].replace("HOW", GROUP), NFS[1].replace("HOW", GROUP), NFS[3]]
        process = self.start(self.chain("process", nfs, rx="{generator: {rate: 1000}}", more="  shards: 3\n"))
        pids = self.pids(process)
        self.assertEqual((len(pids), len(set(pids))), (9, 6))
        report = self.run_chain(self.chain("process", nfs, rx="{generator: {count: 20000}}", more="  shards: 3\n"))
        self.assertEqual([nf["in_packets"] for nf in report["nfs"]], [20_000] * 3)
        self.assertEqual(report["tx"]["sent_packets"] + report["dropped_packets"], 20_000)

    def test_so_do_groups_that_write_nothing(self):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        nfs = [NFS[0], NFS[1], NFS[3]]
        self.run_chain(self.chain("none", nfs, tx=f"{{pcap: {expected}}}"))
        report = self.run_chain(self.chain(GROUP, nfs, tx=f"{{pcap: {out}}}", device="opencl", place="gpu", more="  shards: 3\n"))
        self.assertEqual(out.read_bytes(), expected.read_bytes())
        self.assertEqual(len(report["shards"]), 3)

    def test_limits_over_all_packets_are_divided(self):
        routes = self.folder / "routes.txt"
        routes.write_text("10.0.0.0/8 1\n")
        config = f"{{routes: {routes}, ports: [{{port: 0, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:00:02, address: 10.9.0.1/24}}], icmp_rate: 9}}"
        nf = f"{{name: rt, type: router, on: cpu, isolation: HOW, config: {config}}}"
        rx = "{generator: {count: 2000, packet: 64, flows: 100}}"
        replies = []
        for how, more in (("none", ""), ("process", ""), ("process", "  shards: 3\n")):
            report = self.run_chain(self.chain(how, [nf], rx=rx, more=more))
            replies.append(report["nfs"][0]["replies"])
        self.assertGreater(replies[0], 0)
        self.assertEqual(replies[1:], [replies[0]] * 2)

    def test_what_is_said_about_the_cache_is_not_in_the_report(self):
        cache = self.folder / "cache"
        file = self.chain("process", NFS[:1], device="opencl", place="gpu")
        words = [BIN, "run", file, "--json"]
        for _ in range(2):
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                                  env={**os.environ, "CATENA_CACHE_DIR": str(cache)})
            self.assertEqual(done.returncode, 0, done.stderr)
            json.loads(done.stdout)
            kept = list((cache / "strangers").iterdir())
            self.assertGreater(len(kept), 0)
            for each in kept:
                each.write_bytes(each.read_bytes()[:-1])
        self.assertIn("is damaged", done.stderr)

    def test_small_units_and_several_workers_change_nothing(self):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        self.run_chain(self.chain("none", NFS, tx=f"{{pcap: {expected}}}"))
        for tuning in ("{unit_packets: 4}", "{unit_packets: 1024, units_per_launch: 4}"):
            file = self.chain("process", NFS, tx=f"{{pcap: {out}}}", more=f"  tuning: {tuning}\n")
            self.run_chain(file, "--workers", "3")
            self.assertEqual(out.read_bytes(), expected.read_bytes(), tuning)

    def test_shards_before_and_behind_it_go_on_as_shards(self):
        generator = "{generator: {count: 100000, packet: 200}}"
        nfs = [NFS[0].replace("HOW", "none"), NFS[1], NFS[3].replace("HOW", "none")]
        report = self.run_chain(self.chain("process", nfs, rx=generator, more="  shards: 3\n"), "--workers", "2")
        self.assertEqual(report["tx"]["sent_packets"] + report["dropped_packets"], 100_000)
        self.assertEqual([nf["on"] for nf in report["nfs"]], ["cpu", "process", "cpu"])

    def test_a_process_has_its_files_and_nothing_else(self):
        process = self.start(self.chain("process", NFS[:1], rx="{generator: {rate: 1000}}"))
        pid = self.pids(process)[0]
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        self.assertNotIn("0", status["Uid"].split())
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(status["Seccomp"], "2")
        self.assertEqual(status["NoNewPrivs"], "1")
        for namespace in ("user", "mnt", "pid", "net", "ipc"):
            self.assertNotEqual(os.readlink(f"/proc/{pid}/ns/{namespace}"), os.readlink(f"/proc/self/ns/{namespace}"))
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        for library in ("libOpenCL", "libcuda", "libnvrtc", "libpocl"):
            self.assertNotIn(library, maps)
        root = pathlib.Path(f"/proc/{pid}/root")
        self.assertTrue((root / f"{DATA}/fw.rules".lstrip("/")).exists())
        self.assertFalse((root / f"{DATA}/sa.yaml".lstrip("/")).exists())
        self.assertFalse((root / str(self.folder / "chain.yaml").lstrip("/")).exists())
        self.assertEqual([each.name for each in (root / "dev").iterdir() if "nvidia" in each.name], [])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 0)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    @unittest.skipUnless(IS_ROOT, "not root: it has this user")
    def test_for_root_each_has_a_user_that_no_other_process_has(self):
        pids = self.pids(self.start(self.chain("process", NFS[:2], rx="{generator: {rate: 1000}}")))
        pids += self.pids(self.start(self.chain("process", NFS[:1], rx="{generator: {rate: 1000}}")))
        users = [os.stat(f"/proc/{pid}").st_uid for pid in pids]
        self.assertEqual(len(set(users)), len(pids), users)
        self.assertFalse({0, NOBODY} & set(users), users)

        def reads():
            """Which of the processes this user may read or end."""
            reached = []
            for pid in pids:
                try:
                    os.kill(pid, 0)
                    reached.append(pid)
                    with open(f"/proc/{pid}/mem", "rb"):
                        pass
                except PermissionError:
                    pass
            return reached

        self.assertEqual(as_user(NOBODY, [], reads), [])
        self.assertEqual(as_user(users[0], [], reads)[:1], pids[:1], "the test sees who may")

    def test_errors_of_its_configuration_have_their_place(self):
        rules = self.folder / "bad.rules"
        rules.write_text("allow tcp any any -> any any\nnonsense\n")
        for nf in (f"{{name: fw, type: firewall, isolation: HOW, config: {{rules: {rules}, default: allow}}}}",
                   f"{{name: fw, type: firewall, isolation: HOW, config: {{rulse: {DATA}/fw.rules, default: allow}}}}",
                   "{name: fw, type: firewall, isolation: HOW, config: {rules: /no/such/file, default: allow}}",
                   "{name: fw, type: firewal, isolation: HOW, config: {}}",
                   "{name: nat, type: nat, on: gpu, isolation: HOW, config: {}}"):
            errors = [self.run_chain(self.chain(how, [nf]), status=1)["errors"] for how in ("none", "process")]
            self.assertEqual(errors[1], errors[0])

    def test_it_gives_the_lines_that_it_gives_in_the_chain_s_own_process(self):
        lines = {}
        for how, device, place in (("none", "none", "cpu"), ("process", "none", "cpu"), ("process", "opencl", "gpu")):
            record, eve = self.folder / f"{how}-{place}.jsonl", self.folder / f"{how}-{place}.eve"
            file = self.chain(how, NFS, device=device, place=place)
            self.run_chain(file, "--record", record, "--eve", eve)
            lines[how, place] = (record.read_text(), eve.read_text())
        for name, text in zip(("record", "eve"), lines["none", "cpu"]):
            self.assertGreater(text.count("\n"), 10, name)
        self.assertEqual(lines["process", "cpu"], lines["none", "cpu"])
        self.assertEqual(lines["process", "gpu"], lines["none", "cpu"])

    def test_rules_that_its_nf_refuses_are_reported(self):
        rules = self.folder / "some.rules"
        rules.write_text('alert tcp any any -> any any (msg:"a"; pcre:"/x/"; sid:1;)\n'
                         'alert tcp any any -> any any (msg:"b"; content:"x"; sid:2;)\n')
        nf = f"{{name: ids, type: nids, isolation: HOW, config: {{rules: {rules}}}}}"
        reports = [self.run_chain(self.chain(how, [nf]))["nfs"][0]["refused_rules"] for how in ("none", "process")]
        self.assertTrue(reports[0])
        self.assertEqual(reports[1], reports[0])

    def test_many_rules_may_be_refused_for_reasons_of_their_own(self):
        rules = self.folder / "some.rules"
        rules.write_text("".join(f'alert tcp any any -> any any (msg:"a"; {keyword}:"x"; sid:{i + 1};)\n'
                                 for i, keyword in enumerate(["content", *(f"keyword{i}" for i in range(1000))])))
        nf = f"{{name: ids, type: nids, isolation: HOW, config: {{rules: {rules}}}}}"
        reports = [self.run_chain(self.chain(how, [nf]))["nfs"][0]["refused_rules"] for how in ("none", "process")]
        self.assertEqual(len(reports[0]), 1000)
        self.assertEqual(reports[1], reports[0])

    def test_much_may_be_said_at_the_end(self):
        nf = "{name: flows, type: monitor, isolation: HOW, config: {top: 1000}}"
        rx = "{generator: {count: 20000, flows: 5000}}"
        said = [[line for line in self.command("run", self.chain(how, [nf], rx=rx)).splitlines() if " -> " in line]
                for how in ("none", "process")]
        self.assertEqual(len(said[0]), 1000)
        self.assertEqual(said[1], said[0])

    def test_more_lines_than_fit_at_once_wait(self):
        record = self.folder / "r.jsonl"
        rx = "{generator: {count: 200000, packet: 64}}"
        nf = f"{{name: fw, type: firewall, isolation: process, config: {{rules: {DATA}/fw.rules, default: deny}}}}"
        report = self.run_chain(self.chain("process", [nf], rx=rx, more="  tuning: {unit_packets: 1024}\n"),
                                "--record", record)
        self.assertEqual(record.read_text().count("\n"), report["dropped_packets"])
        self.assertGreater(report["dropped_packets"], 100_000)

    def test_a_killed_chain_leaves_no_process(self):
        process = self.start(self.chain("process", NFS, rx="{generator: {rate: 1000}}"))
        pids = self.pids(process)
        self.assertEqual(len(pids), 4)
        process.kill()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))



class Groups(NfProcessTest):
    """NFs that share a process: `isolation: {group: NAME}`."""

    def test_they_give_the_bytes_and_counts_that_they_give_in_the_chain_s_own_process(self):
        self.assert_same("none", "cpu", how=GROUP)

    def test_so_they_do_on_a_device_through_its_server(self):
        report = self.assert_same("opencl", "gpu", how=GROUP)
        self.assertGreater(report["nfs"][0]["host_to_device_bytes_per_packet"], 0)

    def test_so_they_do_on_a_device_that_they_share_in_parts(self):
        report = self.assert_same("opencl", "gpu", "--share", "fair", "--parts", "blocks", how=GROUP)
        self.assertEqual(len(report["share"]["parts"]), 3)
        self.assertEqual(len({part["units"] for part in report["share"]["parts"]}), 1)
        for count in (10_000, 50_000, 150_000):  # a busy machine makes a process take its part later
            rx = f"{{generator: {{rate: 5000, count: {count}}}}}"
            file = self.chain(GROUP, NFS, rx=rx, device="opencl", place="gpu")
            parts = self.run_chain(file, "--share", "fair", "--parts", "blocks")["share"]["parts"]
            if all(part["taken"] for part in parts):
                break
        self.assertEqual([(part["nf"], part["taken"]) for part in parts], [(nf, True) for nf in ("fw", "ids", "vpn")])

    def test_a_chain_with_bounded_rings_ends_with_its_source(self):
        rx = "{generator: {rate: 20000, count: 1000}}"
        for mode in ("vanilla", "backpressure"):
            with self.subTest(mode):
                file = self.chain(GROUP, NFS, rx=rx)
                text = file.read_text().replace("  nfs:", f"  flow: {{mode: {mode}}}\n  nfs:", 1)
                file.write_text(text)
                self.assertEqual(self.run_chain(file)["rx"]["received_packets"], 1000)

    def test_some_neighbours_may_share_one(self):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        self.run_chain(self.chain("none", NFS, tx=f"{{pcap: {expected}}}"))
        nfs = [NFS[0].replace("HOW", "none")] + NFS[1:3] + [NFS[3].replace("HOW", "process")]
        self.run_chain(self.chain(GROUP, nfs, tx=f"{{pcap: {out}}}"))
        self.assertEqual(out.read_bytes(), expected.read_bytes())

    def test_on_a_device_they_move_less_than_each_alone(self):
        moved = {}
        for how in ("process", GROUP):
            report = self.run_chain(self.chain(how, NFS, device="opencl", place="gpu"))
            moved[how] = sum(nf["host_to_device_bytes_per_packet"] for nf in report["nfs"])
        self.assertLess(moved[GROUP], moved["process"])
        self.assertGreater(moved[GROUP], 0)

    def test_their_process_makes_the_plan_that_a_chain_makes_of_them(self):
        rx = "{generator: {packet: imix}}"
        plans = {how: json.loads(self.command("plan", "--json", "--device", "none", self.chain(how, NFS, rx=rx, place="gpu")))
                 for how in ("none", "process", GROUP)}
        self.assertNotIn("processes", plans["none"])
        self.assertEqual([len(each["adaptive"]["nfs"]) for each in plans["process"]["processes"]], [1, 1, 1])
        for mode in ("adaptive", "copy", "shared"):
            self.assertEqual([each[mode] for each in plans[GROUP]["processes"]], [plans["none"][mode]])
        text = self.command("plan", self.chain(GROUP, NFS, rx=rx, place="gpu"))
        self.assertIn("in the process of group 'g'", text)

    def test_they_have_one_process_with_the_files_of_all(self):
        process = self.start(self.chain(GROUP, NFS, rx="{generator: {rate: 1000}}"))
        pids = self.pids(process)
        self.assertEqual(len(pids), len(NFS))
        self.assertEqual(len(set(pids)), 1)
        self.assertIsNone(nf_process_of(process.pid, pids[0]))
        root = pathlib.Path(f"/proc/{pids[0]}/root")
        for name in ("fw.rules", "ids.rules", "sa-all.yaml", "routes.txt"):
            self.assertTrue((root / f"{DATA}/{name}".lstrip("/")).exists(), name)
        self.assertFalse((root / f"{DATA}/sa.yaml".lstrip("/")).exists())

    def test_lines_are_those_of_the_chain_s_own_process(self):
        lines = []
        for how, device, place in (("none", "none", "cpu"), (GROUP, "none", "cpu"), (GROUP, "opencl", "gpu")):
            record, eve = (self.folder / f"{name}-{how != 'none'}-{place}" for name in ("record", "eve"))
            self.run_chain(self.chain(how, NFS, device=device, place=place), "--record", record, "--eve", eve)
            lines.append((record.read_text(), eve.read_text()))
        self.assertEqual({json.loads(line)["nf"] for line in lines[0][0].splitlines()}, {"fw", "ids", "vpn", "rt"})
        self.assertEqual(lines[1], lines[0])
        self.assertEqual(lines[2], lines[0])

    def test_each_nf_has_its_own_rules_refused_and_its_own_statistics(self):
        reports = []
        rules = self.folder / "some.rules"
        rules.write_text('alert tcp any any -> any any (msg:"a"; pcre:"/x/"; sid:1;)\n'
                         'alert tcp any any -> any any (msg:"b"; content:"x"; sid:2;)\n')
        nfs = [NFS[0], f"{{name: ids, type: nids, isolation: HOW, config: {{rules: {rules}}}}}",
               "{name: flows, type: monitor, isolation: HOW, config: {export: [{format: json, file: f.jsonl}]}}"]
        for how in ("none", GROUP):
            report = self.run_chain(self.chain(how, nfs))
            reports.append([(nf["name"], nf["refused_rules"], nf["statistics"]) for nf in report["nfs"]])
        self.assertTrue(reports[0][1][1])
        self.assertTrue(reports[0][2][2])
        self.assertEqual(reports[1], reports[0])

    def test_each_nf_writes_its_own_files(self):
        nfs = [f"{{name: m{i}, type: monitor, isolation: HOW, config: {{max_flows: {100 * (i + 1)}, "
               f"export: [{{format: json, file: flows{i}.jsonl}}]}}}}" for i in range(2)]
        written = []
        files = [self.folder / f"flows{i}.jsonl" for i in range(2)]
        for how in ("none", GROUP):
            report = self.run_chain(self.chain(how, [nfs[0], NFS[0], nfs[1]]))
            self.assertEqual([nf["process_refusals"] for nf in report["nfs"]], [0, 0, 0])
            written.append([file.read_bytes() for file in files])
            for file in files:
                file.unlink()
        self.assertNotEqual(written[0][0], written[0][1])
        self.assertEqual(written[1], written[0])

    def test_each_may_count_as_much_as_one_alone(self):
        def backends(service):
            return "".join(f"{{name: {f'b{service}-{i}-'.ljust(60, 'x')}, address: 10.{service}.{i // 250}.{i % 250 + 1}}}, "
                           for i in range(256))

        services = "".join(f"{{address: 203.0.113.{service + 1}, port: 80, protocol: tcp, backends: [{backends(service)}]}}, "
                           for service in range(16))
        nfs = [f"{{name: lb{i}, type: lb, isolation: HOW, config: {{services: [{services}]}}}}" for i in range(4)]
        counted = [[nf["statistics"] for nf in self.run_chain(self.chain(how, nfs))["nfs"]]
                   for how in ("none", GROUP)]
        self.assertGreater(len(counted[0][3]), 4096)
        self.assertEqual(counted[1], counted[0])

    def test_an_error_at_the_end_is_that_of_its_nf(self):
        full = "{name: flows, type: monitor, isolation: HOW, config: {export: [{format: json, file: /dev/full}]}}"
        errors = [self.run_chain(self.chain(how, [NFS[0], full]), status=1)["error"] for how in ("none", GROUP)]
        self.assertIn("NF 'flows'", errors[0])
        self.assertEqual(errors[1], errors[0])

    def test_errors_of_a_configuration_have_their_place(self):
        wrong = f"{{name: fw2, type: firewall, isolation: HOW, config: {{rulse: {DATA}/fw.rules, default: allow}}}}"
        unknown = "{name: fw2, type: firewal, isolation: HOW, config: {}}"
        for nf in (wrong, unknown):
            errors = [self.run_chain(self.chain(how, [NFS[0], nf]), status=1)["errors"]
                      for how in ("none".ljust(len(GROUP)), GROUP)]
            self.assertEqual(errors[0][0]["line"], 10)
            self.assertEqual(errors[1], errors[0])

    def test_groups_that_cannot_be_are_refused_by_check(self):
        nfs = [NFS[0], NFS[1].replace("HOW", "none"), NFS[3]]
        answer = json.loads(self.command("check", "--json", self.chain(GROUP, nfs), status=1))
        self.assertEqual(answer["errors"][0]["line"], 11)
        self.assertIn("'ids' is between them", answer["errors"][0]["message"])


class Outputs(NfProcessTest):
    """What an NF writes is written for its process, which has no file system to write to."""

    def test_files_and_datagrams_are_those_of_the_chain_s_own_process(self):
        written = {}
        for how, device, place in (("none", "none", "cpu"), ("process", "none", "cpu"), ("process", "opencl", "gpu")):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
                receiver.bind(("127.0.0.1", 0))
                receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                receiver.setblocking(False)
                exports = (f"{{format: json, file: flows.jsonl}}, {{format: ipfix, file: {self.folder}/flows.ipfix}}, "
                           f"{{format: ipfix, udp: 127.0.0.1:{receiver.getsockname()[1]}}}")
                for name in ("flows.jsonl", "flows.ipfix"):
                    (self.folder / name).write_text("of an earlier run")
                file = self.chain(how, [monitor(exports, ", max_flows: 100")], device=device, place=place)
                self.command("check", file)
                self.assertEqual((self.folder / "flows.jsonl").read_text(), "of an earlier run")
                report = self.run_chain(file)
                datagrams = []
                try:
                    while True:
                        datagrams.append(receiver.recv(65536))
                except BlockingIOError:
                    pass
            self.assertEqual(report["nfs"][0]["process_refusals"], 0)
            written[how, place] = ((self.folder / "flows.jsonl").read_bytes(), (self.folder / "flows.ipfix").read_bytes(),
                                   datagrams, report["nfs"][0]["statistics"])
            self.assertTrue(all(written[how, place]), (how, place))
        self.assertEqual(written["process", "cpu"], written["none", "cpu"])
        self.assertEqual(written["process", "gpu"], written["none", "cpu"])

    def test_a_full_disk_is_as_loud_as_in_the_chain_s_own_process(self):
        errors = []
        for how in ("none", "process"):
            file = self.chain(how, [monitor("{format: json, file: /dev/full}")])
            report = self.run_chain(file, status=1)
            errors.append((report["error"], report["nfs"][0]["statistics"]["export_errors"]))
        self.assertEqual(errors[1], errors[0])
        self.assertIn("/dev/full: No space left", errors[0][0])
        self.assertGreater(errors[0][1], 0)

    def test_what_cannot_be_written_is_said_before_packets_run(self):
        for name, message in (("no/flows", "no such folder: "), (".", "is a folder"), ("chain.yaml", "overwritten")):
            file = self.chain("process", [monitor(f"{{format: json, file: {name}}}")])
            for words in (["run", "--json", file], ["check", "--json", file]):
                answer = json.loads(self.command(*words, status=1))
                self.assertIn(message, answer["errors"][0]["message"], words)
                self.assertEqual(answer["errors"][0]["line"], 9)

    def test_a_fifo_is_not_for_processes_and_that_is_said(self):
        os.mkfifo(self.folder / "fifo")
        report = self.run_chain(self.chain("process", [monitor("{format: json, file: fifo}")]), status=1)
        self.assertIn("isolation: none", report["errors"][0]["message"])
        self.assertEqual(report["errors"][0]["line"], 9)



class VendorNf(NfProcessTest):
    """The NF of a vendor: a shared object that a chain file names, and nobody but its process loads."""

    def setUp(self):
        super().setUp()
        self.object = self.folder / "guard.so"
        shutil.copy(os.environ["CATENA_VENDOR_NF"], self.object)
        self.object.chmod(0o755)
        self.loaded = pathlib.Path(f"{self.object}.was-loaded")
        self.nf = f"{{name: guard, plugin: {self.object}, on: PLACE, config: {{minimum: 64}}}}"

    def test_who_loads_it_could_see_that(self):
        self.command("--nf-path", self.folder, "show", "nfs")
        self.assertTrue(self.loaded.exists(), "the other tests would not notice")

    def test_it_gives_the_bytes_that_it_gives_in_the_chain_s_own_process(self):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        trusted = "{name: guard, type: ttl_guard, config: {minimum: 64}}"
        file = self.chain("none", [trusted, NFS[0]], tx=f"{{pcap: {expected}}}")
        reference = json.loads(self.command("--nf-path", self.folder, "run", "--json", file))
        self.assertGreater(reference["nfs"][0]["drops"]["ttl_too_low"], 0)
        self.loaded.unlink()
        for device, place in (("none", "cpu"), ("opencl", "gpu")):
            file = self.chain("none", [self.nf, NFS[0]], tx=f"{{pcap: {out}}}", device=device)
            file.write_text(file.read_text().replace("on: cpu, config: {minimum", f"on: {place}, config: {{minimum"))
            report = self.run_chain(file)
            self.assertEqual(out.read_bytes(), expected.read_bytes(), place)
            self.assertEqual(report["nfs"][0]["drops"], reference["nfs"][0]["drops"])
            self.assertEqual((report["nfs"][0]["on"], report["nfs"][0]["type"]), ("process", "ttl_guard"))
        self.assertFalse(self.loaded.exists())

    def test_it_may_share_a_process_with_itself_and_others(self):
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        trusted = [f"{{name: g{minimum}, type: ttl_guard, config: {{minimum: {minimum}}}}}" for minimum in (10, 64)]
        file = self.chain("none", [trusted[0], NFS[0], trusted[1]], tx=f"{{pcap: {expected}}}")
        reference = json.loads(self.command("--nf-path", self.folder, "run", "--json", file))
        self.assertGreater(reference["nfs"][2]["drops"]["ttl_too_low"], 0)
        self.loaded.unlink()
        guards = [nf.replace("type: ttl_guard", f"plugin: {self.object}, isolation: HOW") for nf in trusted]
        file = self.chain("{group: g}", [guards[0], NFS[0], guards[1]], tx=f"{{pcap: {out}}}")
        self.command("check", file)
        report = self.run_chain(file)
        self.assertEqual(out.read_bytes(), expected.read_bytes())
        self.assertEqual([nf["drops"] for nf in report["nfs"]], [nf["drops"] for nf in reference["nfs"]])
        self.assertFalse(self.loaded.exists())

    def test_neither_check_nor_plan_loads_it(self):
        file = self.chain("none", [self.nf])
        self.command("check", file)
        self.command("plan", file)
        file.write_text(file.read_text().replace("minimum: 64", "minimum: 640"))
        answer = json.loads(self.command("check", "--json", file, status=1))
        self.assertIn("minimum", answer["errors"][0]["message"])
        self.assertEqual(answer["errors"][0]["line"], 9)
        self.assertFalse(self.loaded.exists())

    def test_its_name_may_be_relative_and_nothing_overwrites_it(self):
        file = self.chain("none", [self.nf.replace(str(self.object), "guard.so")], tx="{pcap: out.pcap}")
        for command in ("check", "run"):
            done = subprocess.run([BIN, command, file.name], capture_output=True, text=True, check=False,
                                  timeout=LIMIT_S, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        before = self.object.read_bytes()
        file.write_text(file.read_text().replace("out.pcap", "guard.so"))
        for command in ("check", "run"):
            answer = json.loads(self.command(command, "--json", file, status=1))
            self.assertIn("overwritten", answer["errors"][0]["message"])
        self.assertEqual(self.object.read_bytes(), before)

    def test_nor_does_any_other_command(self):
        file = self.chain("none", [self.nf], device="opencl", place="gpu")
        for words, message in ((["profile", "--nf", file, "--device", "opencl"], "only its own process loads"),
                               (["show", "program", file, "guard"], "made in its own process"),
                               (["check", "--kernels", file], "made in its own process")):
            done = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(message, done.stdout + done.stderr)
            self.assertIn("chain.yaml:9:", done.stdout + done.stderr)
        self.assertFalse(self.loaded.exists())

    def image(self):
        """An unpacked image with the NF and /var, on the path of a chain's own file."""
        image = self.folder / "image"
        for folder in ("opt", "var"):
            (image / folder).mkdir(parents=True)
        (image / "var" / "of-the-image").write_text("x")
        shutil.copy(self.object, image / "opt" / "guard.so")
        return image

    def test_a_container_is_the_root_file_system_of_its_process(self):
        image = self.image()
        # below a folder that a sandbox has not of its own, as it has /tmp
        rules = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))) / "fw.rules"
        shutil.copy(f"{DATA}/fw.rules", rules)
        guard = f"{{name: guard, plugin: /opt/guard.so, on: PLACE, isolation: {{container: {image}}}, config: {{minimum: 64}}}}"
        firewall = NFS[0].replace("HOW", f"{{container: {image}}}").replace(f"{DATA}/fw.rules", str(rules))
        out, expected = self.folder / "out.pcap", self.folder / "expected.pcap"
        trusted = ["{name: guard, type: ttl_guard, config: {minimum: 64}}", NFS[0]]
        file = self.chain("none", trusted, tx=f"{{pcap: {expected}}}")
        self.command("--nf-path", self.folder, "run", "--json", file)
        for device, place in (("none", "cpu"), ("opencl", "gpu")):
            file = self.chain("", [guard, firewall], tx=f"{{pcap: {out}}}", device=device, place=place)
            self.command("check", file)
            self.run_chain(file)
            self.assertEqual(out.read_bytes(), expected.read_bytes(), place)
        process = self.start(self.chain("", [guard, firewall], rx="{generator: {rate: 1000}}"))
        for pid in self.pids(process):
            root = pathlib.Path(f"/proc/{pid}/root")
            self.assertTrue((root / "opt" / "guard.so").exists())
            self.assertTrue((root / "var" / "of-the-image").exists())
            self.assertFalse((root / "usr").exists(), "this machine's")
            self.assertEqual(pathlib.Path(f"/proc/{pid}/status").read_text().split("Seccomp:\t")[1][0], "2")

    def test_what_is_wrong_with_a_container_is_said_at_its_place(self):
        image = self.image()
        for container, plugin, message in (("/no/such", "/opt/guard.so", "is no folder"),
                                           ("/", "/opt/guard.so", "this machine's own root"),
                                           (image, "/opt/other.so", "no file /opt/other.so in the container"),
                                           (image, "other.so", "no such file: ")):
            nf = f"{{name: g, plugin: {plugin}, isolation: {{container: {container}}}, config: {{minimum: 1}}}}"
            answer = self.run_chain(self.chain("", [nf]), status=1)
            self.assertIn(message, answer["errors"][0]["message"])
            self.assertEqual(answer["errors"][0]["line"], 9)
        for isolation, message in (("jail", "allowed: none, process, or a section with container, memory_mb, cpus"),
                                   ("{image: x}", "unknown key 'image'")):
            nf = f"{{name: fw, type: firewall, isolation: {isolation}, config: {{rules: {DATA}/fw.rules, default: allow}}}}"
            answer = self.run_chain(self.chain("", [nf]), status=1)
            self.assertIn(message, answer["errors"][0]["message"])

    def test_its_kernel_reaches_no_memory_of_others(self):
        harmless = b"// One work-item a packet. Reads ipv4.ttl, writes a TtlGuardResult. Deterministic."
        reaches = b"namespace v { inline int* everywhere = nullptr; } //"
        self.object.write_bytes(self.object.read_bytes().replace(harmless, reaches.ljust(len(harmless))))
        file = self.chain("none", [self.nf], device="opencl", place="gpu")
        answer = self.run_chain(file, status=1)
        self.assertEqual((answer["errors"][0]["file"], answer["errors"][0]["line"]), ("ttl_guard.kernel.cpp", 2))
        self.assertIn("[static-storage]", answer["errors"][0]["message"])
        self.run_chain(self.chain("none", [self.nf], place="cpu"))

    def test_what_is_wrong_with_it_is_said_at_its_place(self):
        (self.folder / "text.so").write_text("no object")
        cases = {
            f"{{name: a, plugin: {self.folder}/text.so}}": "cannot be loaded",
            f"{{name: a, plugin: {self.folder}/missing.so}}": "no such file: ",
            f"{{name: a, type: firewall, plugin: {self.object}, config: {{minimum: 1}}}}": "is a 'ttl_guard' and no 'firewall'",
            f"{{name: a, plugin: {self.object}, isolation: none, config: {{minimum: 1}}}}": "in a process of its own",
            "{name: a}": "missing key 'type'",
        }
        for nf, message in cases.items():
            for command in ("run", "check"):
                answer = json.loads(self.command(command, "--json", self.chain("none", [nf]), status=1))
                self.assertIn(message, answer["errors"][0]["message"], (command, nf))
                self.assertEqual(answer["errors"][0]["line"], 9, (command, nf))
        self.assertFalse(self.loaded.exists())


class VendorNfThatWrites(NfProcessTest):
    """What a vendor's NF may have written, the chain file says."""

    def setUp(self):
        super().setUp()
        shutil.copy(os.environ["CATENA_TALLY_NF"], self.folder / "tally.so")
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(LIMIT_S)
        self.receiver = receiver
        self.wanted = {"file": "counts/../count.txt", "folder": "kept", "receiver": f"127.0.0.1:{receiver.getsockname()[1]}"}

    def tally(self, writes, wanted):
        of_config = ", ".join(f"{key}: '{value}'" for key, value in wanted.items())
        return f"{{name: tally, plugin: tally.so, writes: [{writes}], config: {{{of_config}}}}}"

    def listed(self, wanted):
        return ", ".join(f"{{{key}: '{value}'}}" for key, value in wanted.items())

    def test_it_writes_what_is_listed(self):
        (self.folder / "counts").mkdir()
        file = self.chain("", [self.tally(self.listed(self.wanted), self.wanted)])
        self.command("check", file)
        self.assertFalse((self.folder / "count.txt").exists(), "by a check")
        packets = []
        for _ in range(2):
            report = self.run_chain(file)
            self.assertEqual(report["nfs"][0]["process_refusals"], 0)
            tally = report["nfs"][0]
            seen = tally["in_packets"] - tally["unsupported_packets"] - tally["link_local_packets"]
            packets.append(f"{seen}\n")
            self.assertEqual(self.receiver.recv(100).decode(), packets[-1])
        self.assertEqual((self.folder / "count.txt").read_text(), "".join(packets))
        self.assertEqual((self.folder / "kept" / "tally").read_text(), "".join(packets))

    def test_it_is_refused_what_is_not(self):
        (self.folder / "counts").mkdir()
        for key in self.wanted:
            listed = {other: value for other, value in self.wanted.items() if other != key}
            for command in ("check", "run"):
                file = self.chain("", [self.tally(self.listed(listed), self.wanted)])
                answer = json.loads(self.command(command, "--json", file, status=1))
                self.assertIn("`writes` of its entry", answer["errors"][0]["message"], (command, key))
            self.assertEqual((self.folder / "count.txt").exists(), key != "file")

    def test_what_is_listed_is_no_file_that_somebody_else_needs(self):
        wanted = {"file": "chain.yaml"}
        for command in ("check", "run"):
            file = self.chain("", [self.tally(self.listed(wanted), wanted)])
            before = file.read_bytes()
            answer = json.loads(self.command(command, "--json", file, status=1))
            self.assertIn("would be overwritten", answer["errors"][0]["message"], command)
            self.assertEqual(file.read_bytes(), before)

    def test_what_is_wrong_with_the_list_is_said_at_its_place(self):
        for writes, message in (("{receiver: nowhere}", "write HOST:PORT"),
                                ("{file: a, folder: b}", "exactly one of file: FILE, folder: FOLDER, receiver: HOST:PORT"),
                                ("{}", "exactly one of"), ("{pipe: a}", "unknown key 'pipe'"), ("a.txt", "must be a")):
            answer = self.run_chain(self.chain("", [self.tally(writes, {})]), status=1)
            self.assertIn(message, "\n".join(error["message"] for error in answer["errors"]), writes)
            self.assertEqual(answer["errors"][0]["line"], 9)
        nf = NFS[0].replace("isolation: HOW", "writes: [{file: a}]")
        self.assertIn("is for a plugin", self.run_chain(self.chain("", [nf]), status=1)["errors"][0]["message"])


class InService(ServiceTest):
    def test_a_service_gives_each_nf_a_process_unless_the_file_says_none(self):
        service = self.serve()
        for isolation, place in (("", "process"), (", isolation: process", "process"), (", isolation: none", "cpu")):
            nfs = f"[{{name: fw, type: firewall{isolation}, config: {{rules: {DATA}/fw.rules, default: allow}}}}]"
            answer = self.applied(service, self.chain("a", nfs=nfs))
            self.assertEqual(answer["nfs"][0]["on"], place, isolation)
            wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > 100)
            self.assertEqual(nf_process_of(service.process.pid) is not None, place == "process")

    def test_files_are_read_and_written_with_the_rights_of_the_caller(self):
        service = self.serve()
        user = ATTACKER if IS_ROOT else None
        own = self.folder / "own"
        own.mkdir()
        for name in ("fw.rules", "sa-all.yaml"):
            shutil.copy(f"{DATA}/{name}", own / name)
            (own / name).chmod(0o600)
        file = pathlib.Path(self.chain("a", rx="{generator: {count: 5000}}", nfs=(
            f"[{{name: fw, type: firewall, config: {{rules: {own}/fw.rules, default: allow}}}}, "
            f"{{name: flows, type: monitor, config: {{export: [{{format: json, file: {own}/flows.jsonl}}]}}}}]")))
        for uid in {None, user}:
            if uid is not None:
                for path in (own, *own.iterdir()):
                    os.chown(path, uid, uid)
            own.chmod(0o700)
            (own / "flows.jsonl").unlink(missing_ok=True)
            status, answer = self.apply(service, str(file), user=uid)
            self.assertIn(status, (200, 201), answer)
            wait_for(lambda: self.state(service, "a") == "finished")
            self.assertEqual([nf["on"] for nf in service.ask("GET", "/v1/chains/a")[1]["nfs"]], ["process"] * 2)
            self.assertGreater((own / "flows.jsonl").stat().st_size, 0)
            self.assertEqual((own / "flows.jsonl").stat().st_uid, os.geteuid() if uid is None else uid)
            self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
        if IS_ROOT:  # what is another's stays so
            (own / "flows.jsonl").write_text("precious")
            os.chown(own, 0, 0)
            own.chmod(0o711)
            os.chown(own / "flows.jsonl", 0, 0)
            (own / "flows.jsonl").chmod(0o600)
            status, answer = self.apply(service, str(file), user=user)
            self.assertIn(status, (400, 403), answer)
            self.assertEqual((own / "flows.jsonl").read_text(), "precious")

    def test_each_shard_has_a_process_there_too(self):
        service = self.serve()
        self.applied(service, self.chain("a", nfs=firewall(), more="  shards: 2\n"))
        first = wait_for(lambda: nf_process_of(service.process.pid))
        second = wait_for(lambda: nf_process_of(service.process.pid, first))
        os.kill(second, signal.SIGKILL)
        chain = wait_for(lambda: (answer := service.ask("GET", "/v1/chains/a")[1])["nfs"][0]["process_restarts"] and answer)
        self.assertEqual(chain["nfs"][0]["process_restarts"], 1)
        sent = chain["tx"]["sent_packets"]
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > sent)
        self.assertTrue(os.path.exists(f"/proc/{first}"), "that of the other shard goes on")

    def test_a_group_is_one_process_there_too(self):
        service = self.serve()
        nfs = (f"[{{name: fw, type: firewall, isolation: {{group: g}}, config: {{rules: {DATA}/fw.rules, default: allow}}}}, "
               f"{{name: ids, type: nids, isolation: {{group: g}}, config: {{rules: {DATA}/ids.rules}}}}]")
        self.applied(service, self.chain("a", nfs=nfs))
        pid = wait_for(lambda: nf_process_of(service.process.pid))
        self.assertIsNone(nf_process_of(service.process.pid, pid))
        os.kill(pid, signal.SIGKILL)

        def restarts():
            return [nf["process_restarts"] for nf in service.ask("GET", "/v1/chains/a")[1]["nfs"]]

        wait_for(lambda: restarts() == [1, 1])
        nfs = service.ask("GET", "/v1/chains/a")[1]["nfs"]
        self.assertEqual([nf["on"] for nf in nfs], ["process", "process"])
        metrics = service.ask("GET", "/metrics")[1]
        for name in ("fw", "ids"):
            self.assertRegex(metrics, f'catena_nf_process_restarts_total{{chain="a",.*nf="{name}".*}} 1')

    def test_where_there_is_no_sandbox_the_chain_is_refused_and_told_what_to_write(self):
        empty = self.folder / "no-bwrap"
        empty.touch()
        words = ["unshare", "--mount", "sh", "-c", f'mount --bind {empty} /usr/bin/bwrap && exec "$@"', "sh"]
        if not IS_ROOT or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("only root can hide bubblewrap")
        file = self.chain("a", nfs=firewall())
        done = subprocess.run([*words, BIN, "run", self.isolated(file), "--json"], capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1, done.stdout)
        message = json.loads(done.stdout)["errors"][0]["message"]
        self.assertIn("apt-get install bubblewrap", message)
        self.assertIn("`isolation: none`", message)

    def test_where_there_are_no_control_groups_it_runs_and_says_so_once(self):
        words = ["unshare", "--mount", "sh", "-c", 'umount --lazy /sys/fs/cgroup && exec "$@"', "sh"]
        if not IS_ROOT or subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("only root can hide control groups")
        nfs = "".join(f"    - {{name: fw{i}, type: firewall, isolation: process, "
                      f"config: {{rules: {DATA}/fw.rules, default: allow}}}}\n" for i in range(2))
        path = self.folder / "two.yaml"
        path.write_text(f"apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: c}}\nspec:\n  rx: {{pcap: {EXAMPLE}}}\n"
                        f"  tx: null\n  device: none\n  nfs:\n{nfs}")
        done = subprocess.run([*words, BIN, "run", path, "--json"], capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("no control groups: no hierarchy with memory limits is mounted"), 1, done.stderr)
        doctor = json.loads(subprocess.run([*words, BIN, "doctor", "--json"], capture_output=True, text=True,
                                           check=False).stdout)
        finding = next(finding for finding in doctor if finding["subject"] == "control groups")
        self.assertEqual(finding["level"], "note")
        self.assertIn("Delegate=yes", finding["fix"])

    def isolated(self, file):
        """The chain as a service has it."""
        path = pathlib.Path(file)
        path.write_text(path.read_text().replace("type: firewall", "type: firewall, isolation: process"))
        return str(path)

    def test_a_service_never_loads_what_a_user_brings(self):
        service = self.serve()
        vendor = self.folder / "brought" / "vendor.so"
        vendor.parent.mkdir()
        vendor.parent.chmod(0o777)  # whoever loads it could leave its trace
        shutil.copy(os.environ["CATENA_VENDOR_NF"], vendor)
        vendor.chmod(0o755)
        file = self.chain("v", nfs=f"[{{name: guard, plugin: {vendor}, config: {{minimum: 1}}}}]")
        status, answer = self.apply(service, file, user=ATTACKER if IS_ROOT else None)
        self.assertEqual(status, 201, answer)
        wait_for(lambda: service.ask("GET", "/v1/chains/v")[1]["tx"]["sent_packets"] > 0)
        maps = pathlib.Path(f"/proc/{service.process.pid}/maps").read_text()
        self.assertNotIn("vendor.so", maps)
        self.assertIn("vendor.so", pathlib.Path(f"/proc/{nf_process_of(service.process.pid)}/maps").read_text())
        self.assertFalse(pathlib.Path(f"{vendor}.was-loaded").exists())

    def test_a_service_runs_them_for_whoever_applies_the_chain(self):
        service = self.serve()
        nfs = f"[{{name: fw, type: firewall, isolation: process, config: {{rules: {DATA}/fw.rules, default: allow}}}}]"
        user = ATTACKER if IS_ROOT else None
        file = self.chain("a", nfs=nfs)
        status, answer = self.apply(service, file, user=user)
        self.assertEqual(status, 201, answer)
        log = service.ask("GET", "/v1/chains/a")[1]
        self.assertEqual(log["nfs"][0]["on"], "process")
        pid = wait_for(lambda: nf_process_of(service.process.pid))
        uid = pathlib.Path(f"/proc/{pid}/status").read_text().split("Uid:")[1].split()[1]
        self.assertEqual(int(uid), user if IS_ROOT else os.geteuid())
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["nfs"][0]["process_restarts"] == 1)
        before = service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"]
        wait_for(lambda: service.ask("GET", "/v1/chains/a")[1]["tx"]["sent_packets"] > before)
        self.assertIn('catena_nf_process_restarts_total{chain="a"', service.ask("GET", "/metrics")[1])
        self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
        wait_for(lambda: not nf_process_of(service.process.pid))


if __name__ == "__main__":
    unittest.main()
