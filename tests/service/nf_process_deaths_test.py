#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NFs in processes that are killed or stopped, or whose device server is, and what cannot wait: with nothing beside them,
as packets wait for a second only until the next process is there. Chains are a tenant's in a service, where that process
has another user than the service, but for what no tenant may have.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import time
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from harness import DATA, LIMIT_S, TenantTest, wait_for
from nf_process import GROUP, KILLS, NFS, NfProcessTest, monitor, nf_process_of


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class DeathTest(TenantTest):
    said_before = 0

    def start(self, how, nfs, rx, more="", **options):
        """A chain of the tenant's that runs; the number of its NFs' process."""
        nfs = ", ".join(nf.replace("HOW", how).replace("PLACE", "cpu") for nf in nfs)
        file = self.attacker.chain("c", rx=rx, nfs=f"[{self.attacker.data(nfs)}]", more=more)
        self.attacker.applied(file, **options)
        pid = wait_for(lambda: nf_process_of(self.service.process.pid))
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, self.attacker.uid)
        return pid

    def wait_ended(self):
        """The report of the chain, at its end, and what the service has said meanwhile."""
        report = wait_for(lambda: (chain := self.attacker.get("c"))["state"] in ("finished", "failed") and chain)
        self.assertEqual(report["state"], "finished", report["error"])
        self.assertEqual(report["rx"]["slots_in_use"], 0)
        self.assertEqual(report["rx"]["received_packets"], 200_000)
        self.assertEqual(report["tx"]["sent_packets"] + report["dropped_packets"], 200_000)
        self.assertEqual(self.attacker.delete("c")[0], 200)
        log, self.said_before = self.service.log()[self.said_before:], len(self.service.log())
        return report, log

    def killed(self, how, nfs):
        """Kills the process of the NFs of a chain under way: the chain's report, what was said, and its record."""
        record = self.attacker.folder / "r.jsonl"
        record.unlink(missing_ok=True)
        pid = self.start(how, nfs, "{generator: {rate: 200000, count: 200000, packet: 200}}", record=str(record),
                         workers=2)
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: nf_process_of(self.service.process.pid, pid))
        report, log = self.wait_ended()
        return report, log, record.read_text()


class Processes(DeathTest):
    def test_whoever_is_killed_costs_what_it_had_and_the_chain_goes_on(self):
        for nf in (NFS[0], NFS[1], NFS[3]) * KILLS:
            report, log, record = self.killed("process", [nf])
            of = report["nfs"][0]
            self.assertEqual(of["process_restarts"], 1, log)
            self.assertIn(f"{of['name']}: its process was ended by signal 9", log)
            # a unit is lost where it was; the others wait for the next process
            self.assertLess(of["drops"].get("process_failed", 0), 20_000)
            self.assertEqual(record.count('"reason":"process_failed"'), of["drops"].get("process_failed", 0))

    def test_one_that_is_stopped_is_taken_for_one_that_hangs(self):
        pid = self.start("process", NFS[:1], "{generator: {rate: 20000, count: 200000, packet: 200}}",
                         more="  tuning: {device_limit_ms: 10}\n")
        os.kill(pid, signal.SIGSTOP)
        report, log = self.wait_ended()
        self.assertEqual(report["nfs"][0]["process_restarts"], 1)
        self.assertGreater(report["nfs"][0]["drops"]["process_failed"], 0)
        self.assertIn("does not answer", log)


class Groups(DeathTest):
    def test_whoever_kills_it_costs_what_it_had_and_the_first_nf_counts_that(self):
        nfs = [NFS[0], NFS[1], NFS[3]]
        for _ in range(KILLS):
            report, log, record = self.killed(GROUP, nfs)
            self.assertIn("group g: its process was ended by signal 9", log)
            packets = 200_000
            for nf in report["nfs"]:
                self.assertEqual(nf["process_restarts"], 1, log)
                self.assertEqual(nf["in_packets"], packets, nf["name"])
                packets -= sum(nf["drops"].values())
                self.assertEqual(nf["passed_packets"], packets, nf["name"])
            lost = report["nfs"][0]["drops"].get("process_failed", 0)
            self.assertLess(lost, 20_000)
            self.assertEqual([nf["drops"].get("process_failed", 0) for nf in report["nfs"][1:]], [0, 0])
            self.assertEqual(record.count('"reason":"process_failed"'), lost)


class Files(DeathTest):
    def test_a_process_that_is_started_again_goes_on_with_its_files(self):
        flows = self.attacker.folder / "flows.jsonl"
        pid = self.start("process", [monitor("{format: json, file: flows.jsonl}", ", max_flows: 10")],
                         "{generator: {rate: 50000, count: 200000, packet: 100, flows: 5000}}", workers=1)
        wait_for(lambda: flows.exists() and flows.stat().st_size > 100_000)
        os.kill(pid, signal.SIGKILL)
        before = flows.read_bytes()
        report, _ = self.wait_ended()
        self.assertEqual(report["nfs"][0]["process_restarts"], 1)
        after = flows.read_bytes()
        self.assertTrue(after.startswith(before))
        self.assertGreater(len(after), len(before))
        for line in after.splitlines():
            json.loads(line)


class Devices(NfProcessTest):
    def test_that_of_a_process_returns_after_the_death_of_its_server(self):
        self.assert_device_returns("process", [NFS[1]])

    def test_that_of_a_group_returns_after_the_death_of_its_server(self):
        self.assert_device_returns(GROUP, NFS[:3])


class Writers(NfProcessTest):
    def test_the_flows_of_a_full_table_are_written_at_the_end(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            exports = f"{{format: ipfix, udp: 127.0.0.1:{receiver.getsockname()[1]}}}"
            file = self.chain("process", [monitor(exports)], more="  tuning: {device_limit_ms: 10}\n",
                              rx="{generator: {count: 780000, packet: 64, flows: 780000}}")
            flows = self.run_chain(file)["nfs"][0]["statistics"]
        self.assertGreater(flows["flows_peak"], 640_000)
        self.assertEqual(flows["flows_exported"], flows["flows_peak"])

    def numbers_of(self, capture):
        """SPI, sequence number and IV of all frames of a capture of ESP, some of it in UDP."""
        data, at, numbers = capture.read_bytes(), 24, []
        while at + 16 <= len(data):
            length = int.from_bytes(data[at + 8:at + 12], "little")
            frame = data[at + 16:at + 16 + length]
            if len(frame) == length:
                esp = frame[42:] if frame[23] == socket.IPPROTO_UDP else frame[34:]
                numbers.append(esp[:16])
            at += 16 + length
        return numbers

    def test_sequence_numbers_are_kept_for_the_next_process_and_the_next_run(self):
        shutil.copy(f"{DATA}/sa-all.yaml", self.folder / "sa.yaml")
        nf = "{name: vpn, type: ipsec, isolation: HOW, config: {direction: encrypt, sa: sa.yaml}}"
        seen = []
        for run, words in enumerate((["--new-keys", "4096,4097,4098"], [])):
            out = self.folder / f"out{run}.pcap"
            rx = "{generator: {rate: 50000, count: 150000, packet: 100, flows: 3}}"
            process = self.start(self.chain("process", [nf], rx=rx, tx=f'{{dpdk: "net_pcap0,tx_pcap={out}"}}'), *words)
            pid = self.pids(process)[0]
            wait_for(lambda file=out: file.exists() and file.stat().st_size > 1_000_000)
            os.kill(pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=LIMIT_S)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn("it is started again", errors)
            numbers = self.numbers_of(out)
            self.assertGreater(len(numbers), 100_000, "the next process went on")
            seen += numbers
        self.assertEqual(len(set(seen)), len(seen), "a number was used twice")
        self.assertTrue((self.folder / "sa.yaml.state").is_dir())
        answer = self.run_chain(self.chain("process", [nf.replace("sa.yaml", f"{DATA}/sa-all.yaml, state: other")],
                                           tx=f'{{dpdk: "net_pcap0,tx_pcap={self.folder}/x.pcap"}}'), status=1)
        self.assertIn("--new-keys", answer["errors"][0]["message"])

    def test_a_process_that_is_started_again_takes_no_keys_without_a_state(self):
        text = (pathlib.Path(DATA) / "sa-all.yaml").read_text()
        (self.folder / "sa.yaml").write_text(text)
        nf = "{name: vpn, type: ipsec, isolation: HOW, config: {direction: encrypt, sa: sa.yaml}}"
        process = self.start(self.chain("process", [nf], rx="{generator: {rate: 20000, packet: 100, flows: 3}}",
                                        tx=f'{{dpdk: "net_pcap0,tx_pcap={self.folder}/out"}}'), "--new-keys", "4096,4097,4098")
        pid = self.pids(process)[0]
        # in place: the process was shown this file, and not its name
        (self.folder / "sa.yaml").write_text(text + """  - spi: 5000
    source: 192.0.2.1
    destination: 198.51.100.1
    encryption_key: "00000000000000000000000000000000000050ff"
    authentication_key: "00000000000000000000000000000000000050ff"
""")
        os.kill(pid, signal.SIGKILL)
        lines = [""]
        while "no state of the association with SPI 5000, and its keys are refused" not in lines[-1]:
            lines.append(process.stderr.readline())
            self.assertTrue(lines[-1], "".join(lines))
        states = [file.read_text() for file in (self.folder / "sa.yaml.state").glob("encrypt-*")]
        self.assertNotIn("spi: 5000", "".join(states))
        (self.folder / "sa.yaml").write_text(text)
        sent = (self.folder / "out").stat().st_size
        wait_for(lambda: (self.folder / "out").stat().st_size > sent + 100_000)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, errors)
        numbers = self.numbers_of(self.folder / "out")
        self.assertEqual(len(set(numbers)), len(numbers), "a number was used twice")


if __name__ == "__main__":
    unittest.main()
