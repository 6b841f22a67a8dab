#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The devices of a service are in processes of their own: what it costs its chains when one dies, and the service."""

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import unittest

from prometheus_client.parser import text_string_to_metric_families

from command import children_of
from harness import BIN, DATA, LIMIT_S, ServiceTest, wait_for

GPU_CHAIN = "[{name: fw, type: firewall, on: gpu, isolation: none, config: {rules: " + DATA + "/fw.rules, default: allow}}]"


class DeviceServer(ServiceTest):
    def start_chains(self, service, *names):
        for name in names:
            self.applied(service, self.chain(name, nfs=GPU_CHAIN), device="opencl")
            wait_for(lambda name=name: self.get(service, name)["tx"]["sent_packets"] > 100)

    def get(self, service, name):
        return service.ask("GET", f"/v1/chains/{name}")[1]

    def test_chains_share_one_and_return_to_the_next_one_when_it_is_killed(self):
        service = self.serve()
        self.start_chains(service, "a", "b")
        first = children_of(service.process.pid)
        self.assertEqual(len(first), 1, "one device, one server")
        os.kill(first[0], signal.SIGKILL)
        for name in ("a", "b"):
            wait_for(lambda name=name: self.get(service, name)["device"]["returns"] == 1)
        second = children_of(service.process.pid)
        self.assertEqual(len(second), 1)
        self.assertNotEqual(second, first)
        for name in ("a", "b"):
            before = self.get(service, name)["tx"]["sent_packets"]
            wait_for(lambda name=name, before=before: self.get(service, name)["tx"]["sent_packets"] > before + 100)
            status, answer = service.ask("POST", f"/v1/chains/{name}/stop")
            self.assertEqual(status, 200, answer)
            self.assertTrue(answer["accounted"])
            self.assertEqual(answer["nfs"][0]["on"], "gpu")
            self.assertEqual(answer["rx"]["seen_packets"], answer["tx"]["sent_packets"] + answer["dropped_packets"])
            self.assertEqual(set(answer["nfs"][0]["drops"]) - {"device_failed", "denied"}, set())
        families = text_string_to_metric_families(service.ask("GET", "/metrics")[1])
        losses = {sample.labels["chain"]: sample.value for family in families for sample in family.samples
                  if sample.name == "catena_device_losses_total"}
        self.assertEqual(losses, {"a": 1, "b": 1})

    def test_costs_place_the_nfs_of_a_service_as_those_of_a_run(self):
        file = self.chain("a", rx="{generator: {packet: 512, rate: 20000}}", nfs=GPU_CHAIN.replace("on: gpu", "on: auto"))
        profile = self.folder / "p.json"
        subprocess.run([BIN, "profile", "--nf", file, "--device", "opencl", "--packet-bytes", "512", "--seconds", "0",
                        "--output", profile], check=True, capture_output=True, timeout=LIMIT_S)
        costs = json.loads(profile.read_text())
        costs["nfs"][0].update({"kernel": {"fixed_ns": 10, "per_packet_ns": 0, "r_squared": 1}, "overhead_ns": 0,
                                "cpu_ns_per_packet": 1})
        service = self.serve()
        for place, cpu_ns in (("gpu", 1e6), ("cpu", 0.1)):
            costs["nfs_on_cpu"][0]["ns_per_packet"] = cpu_ns
            profile.write_text(json.dumps(costs))
            self.applied(service, file, device="opencl", profile=str(profile))
            wait_for(lambda: self.get(service, "a")["tx"]["sent_packets"] > 100)
            self.assertEqual(self.get(service, "a")["nfs"][0]["on"], place)
            self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)

    def apply_with_small_packets(self, more="", spec=""):
        """A service with a chain whose NF `on: auto`, and NFs `more`, get smaller packets than expected: of a stream IMIX
        is expected. Costs send those to the gpu, and small ones to the CPU. `spec`: further lines."""
        fifo = self.folder / "rx.fifo"
        os.mkfifo(fifo)
        nfs = GPU_CHAIN.replace("on: gpu", "on: auto").replace("]", f"{more}]")
        profile = self.folder / "p.json"
        subprocess.run([BIN, "profile", "--nf", self.chain("a", rx="{generator: {rate: 20000}}", nfs=nfs), "--device", "opencl",
                        "--packet-bytes", "64,512", "--seconds", "0", "--output", profile],
                       check=True, capture_output=True, timeout=LIMIT_S)
        costs = json.loads(profile.read_text())
        of_firewall = [nf for nf in costs["nfs_on_cpu"] if nf["type"] == "firewall"]
        for on_gpu, on_cpu in zip(costs["nfs"], of_firewall):
            is_large = on_gpu["packet_bytes"] == 512
            self.assertEqual(on_gpu["packet_bytes"], on_cpu["packet_bytes"])
            on_gpu.update({"kernel": {"fixed_ns": 10 if is_large else 900_000, "per_packet_ns": 0, "r_squared": 1},
                           "overhead_ns": 0, "cpu_ns_per_packet": 1})
            on_cpu["ns_per_packet"] = 1e6 if is_large else 0.1
        profile.write_text(json.dumps(costs))
        frame = bytes(12) + b"\x08\x00" + bytes.fromhex("4500002e000040004011000001020304050607080001000200100000") + bytes(18)
        record = struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
        ended = threading.Event()

        def bring():
            with contextlib.suppress(BrokenPipeError), open(fifo, "wb", buffering=0) as stream:
                stream.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
                while not ended.wait(0.02):
                    stream.write(record * 200)

        service = self.serve()
        threading.Thread(target=bring, daemon=True).start()
        self.addCleanup(ended.set)
        self.applied(service, self.chain("a", rx=f"{{pcap: {fifo}}}", nfs=nfs, more=spec), device="opencl",
                     profile=str(profile))
        wait_for(lambda: self.get(service, "a")["rx"]["received_packets"] > 100)
        self.assertEqual(self.get(service, "a")["nfs"][0]["on"], "gpu")
        return service

    FLOWS = ", {name: flows, type: monitor, on: cpu, isolation: process}"

    def test_processes_of_other_nfs_go_on_when_nfs_are_placed_anew(self):
        service = self.apply_with_small_packets(self.FLOWS)
        before = self.get(service, "a")["nfs"][1]["processes"]
        wait_for(lambda: "a: placement changed: packets have 60 bytes now" in service.log())
        answer = wait_for(lambda: self.get(service, "a"))
        self.assertEqual((answer["nfs"][0]["on"], answer["nfs"][1]["processes"]), ("cpu", before))

    def test_nfs_stay_where_they_are_if_a_move_loses_state(self):
        # with units of another size, processes cannot go on
        service = self.apply_with_small_packets(self.FLOWS, "  tuning: {unit_packets: auto}\n")
        line = re.compile(r"a: placement not changed .* because this would lose the state of NF 'flows'")
        wait_for(lambda: line.search(service.log()))
        received = self.get(service, "a")["rx"]["received_packets"]
        wait_for(lambda: self.get(service, "a")["rx"]["received_packets"] > received + 150_000)
        answer = self.get(service, "a")
        self.assertEqual((answer["nfs"][0]["on"], answer["state"], len(line.findall(service.log()))), ("gpu", "running", 1))

    def test_nfs_are_placed_anew_when_packets_are_others_than_expected(self):
        service = self.apply_with_small_packets()
        wait_for(lambda: "a: placement changed: packets have 60 bytes now" in service.log())
        wait_for(lambda: self.get(service, "a")["rx"]["received_packets"] > 100)
        answer = self.get(service, "a")
        self.assertEqual((answer["nfs"][0]["on"], answer["state"]), ("cpu", "running"))
        report = r"a: stopped, received (\d+), sent (\d+), dropped (\d+)"  # said of the old chain while the next one runs
        wait_for(lambda: re.search(report, service.log()))
        received, sent, dropped = re.search(report, service.log()).groups()
        self.assertEqual(int(received), int(sent) + int(dropped))
        self.assertTrue(service.ask("POST", "/v1/chains/a/stop")[1]["accounted"])

    def test_nothing_is_left_of_it_after_the_service(self):
        for number, name in ((signal.SIGTERM, "a"), (signal.SIGKILL, "b")):
            service = self.serve()
            self.start_chains(service, name)
            servers = children_of(service.process.pid)
            self.assertEqual(len(servers), 1)
            service.end(number)
            wait_for(lambda servers=servers: not os.path.exists(f"/proc/{servers[0]}"))

    def test_tenants_may_have_servers_of_their_own(self):
        service = self.serve("--device-servers", "tenant")
        for name, tenant in (("a", "acme"), ("b", "acme"), ("c", "other")):
            self.applied(service, self.chain(name, nfs=GPU_CHAIN, more=f"  tenant: {tenant}\n"), device="opencl")
            wait_for(lambda name=name: self.get(service, name)["tx"]["sent_packets"] > 100)
            self.assertEqual(self.get(service, name)["nfs"][0]["on"], "gpu")
        servers = children_of(service.process.pid)
        self.assertEqual(len(servers), 2)
        self.assertEqual(service.ask("DELETE", "/v1/chains/c")[0], 200)
        wait_for(lambda: len(children_of(service.process.pid)) == 1)
        self.assertEqual(service.ask("DELETE", "/v1/chains/a")[0], 200)
        remaining = children_of(service.process.pid)
        self.assertEqual(len(remaining), 1, "another chain of the tenant has it")
        os.kill(remaining[0], signal.SIGKILL)
        wait_for(lambda: self.get(service, "b")["device"]["returns"] == 1)
        self.assertEqual(service.ask("POST", "/v1/chains/b/stop")[0], 200)
        wait_for(lambda: not children_of(service.process.pid))
        self.assertEqual(self.cli(service, "apply", self.chain("b", nfs=GPU_CHAIN), "--device", "opencl").returncode, 0)
        wait_for(lambda: self.get(service, "b")["nfs"][0]["on"] == "gpu")

    def test_tenants_who_are_to_be_kept_apart_are_never_together(self):
        alone = self.folder / "catena"
        shutil.copy(BIN, alone)
        done = subprocess.run([alone, "serve", "--socket", self.folder / "x.sock", "--state", self.folder, "--device-servers",
                               "tenant"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("catena-device-server", done.stderr)

    def test_what_one_server_divides_is_not_for_several(self):
        words = [BIN, "serve", "--socket", self.folder / "x.sock", "--state", self.folder, "--device-servers", "tenant"]
        done = subprocess.run([*words, "--share", "fair"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--share fair divides the device of one device server", done.stderr)
        service = self.serve("--device-servers", "tenant")
        status, answer = self.apply(service, self.chain("a", nfs=GPU_CHAIN), device="opencl", share="temporal")
        self.assertEqual(status, 400, answer)
        self.assertIn("--share temporal divides the device of one device server", answer["error"])
        for servers, expected in (("process", 400), ("device", 400), ("tenant", 201)):
            file = self.chain("a", nfs=GPU_CHAIN, more=f"  device_servers: {servers}\n")
            status, answer = self.apply(service, file, device="opencl")
            self.assertEqual(status, expected, answer)
            if status == 400:
                self.assertIn(f"'device_servers' is {servers}, and this service has others", answer["error"])

    def test_who_is_in_no_quarantine_cannot_be_let_out(self):
        service = self.serve()
        self.start_chains(service, "a")
        self.assertIsNone(self.get(service, "a")["quarantine"])
        status, answer = service.ask("POST", "/v1/chains/a/reset")
        self.assertEqual(status, 409)
        self.assertIn("'a' is not in quarantine", answer["error"])
        self.assertEqual(service.ask("POST", "/v1/chains/b/reset")[0], 404)
        self.assertEqual(service.ask("GET", "/v1/chains/a/reset")[0], 405)
        self.assertIn("not in quarantine", self.cli(service, "nf", "reset", "a", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
