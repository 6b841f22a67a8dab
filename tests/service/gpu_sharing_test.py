#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NFs of several chains of a service share a device: in the chain's own process and in processes of their own.

On OpenCL, whose devices have no green contexts: parts are numbers of work-groups. CATENA_BIN, CATENA_DATA.
"""

import os
import signal
import unittest

from command import HAS_PROCESSES, NO_PROCESSES, children_of, name_of
from harness import DATA, ServiceTest, wait_for

ALL = 1024  # parts that there are


def nfs(isolation, *names):
    entries = (f"{{name: {name}, type: firewall, on: gpu, isolation: {isolation}, "
               f"config: {{rules: {DATA}/fw.rules, default: allow}}}}" for name in names)
    return f"[{', '.join(entries)}]"


class GpuSharing(ServiceTest):
    def start(self, service, name, isolation, *nf_names):
        self.applied(service, self.chain(name, nfs=nfs(isolation, *nf_names)), device="opencl")

    def get(self, service, name):
        return service.ask("GET", f"/v1/chains/{name}")[1]

    def parts(self, service, name):
        """Of each NF, when all of them keep to theirs."""
        parts = self.get(service, name)["share"]["parts"]
        return [part["units"] for part in parts] if all(part["taken"] for part in parts) else None

    def device_server(self, service):
        """The process that has the device."""
        return next((pid for pid in children_of(service.process.pid) if name_of(pid) == "catena-device-s"), None)

    def flows(self, service, name):
        sent = self.get(service, name)["tx"]["sent_packets"]
        wait_for(lambda: self.get(service, name)["tx"]["sent_packets"] > sent + 1000)

    def parts_follow_chains(self, isolation):
        service = self.serve("--share", "fair", "--parts", "blocks")
        self.start(service, "a", isolation, "fw")
        wait_for(lambda: self.parts(service, "a") == [ALL])
        self.flows(service, "a")
        self.start(service, "b", isolation, "one", "two", "three")
        wait_for(lambda: self.parts(service, "b") == [ALL // 4] * 3)
        wait_for(lambda: self.parts(service, "a") == [ALL // 4])
        for name in ("a", "b"):
            self.flows(service, name)
        self.assertEqual(service.ask("DELETE", "/v1/chains/b")[0], 200)
        wait_for(lambda: self.parts(service, "a") == [ALL])
        self.flows(service, "a")
        status, answer = service.ask("POST", "/v1/chains/a/stop")
        self.assertEqual(status, 200, answer)
        self.assertTrue(answer["accounted"])
        self.assertEqual(answer["share"]["mode"], "fair, by the number of work-groups")
        self.assertGreaterEqual(answer["share"]["changes"], 2)
        self.assertEqual(set(answer["nfs"][0]["drops"]) - {"denied"}, set(), "no packet is lost for that")

    def test_parts_follow_the_chains_that_there_are(self):
        self.parts_follow_chains("none")

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_so_do_those_of_nfs_in_processes_of_their_own(self):
        self.parts_follow_chains("process")

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_chains_with_and_without_processes_share_alike(self):
        service = self.serve("--share", "fair", "--parts", "blocks")
        self.start(service, "a", "none", "fw")
        self.start(service, "b", "process", "fw")
        for name in ("a", "b"):
            wait_for(lambda name=name: self.parts(service, name) == [ALL // 2])

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_a_process_that_is_started_again_keeps_to_the_part(self):
        service = self.serve("--share", "fair", "--parts", "blocks")
        self.start(service, "a", "process", "one", "two")
        wait_for(lambda: self.parts(service, "a") == [ALL // 2] * 2)
        sandboxes = [pid for pid in children_of(service.process.pid) if children_of(pid)]
        os.kill(sandboxes[0], signal.SIGKILL)
        wait_for(lambda: sum(nf["process_restarts"] for nf in self.get(service, "a")["nfs"]) == 1)
        wait_for(lambda: self.parts(service, "a") == [ALL // 2] * 2)
        self.flows(service, "a")

    def parts_outlive_the_device(self, isolation):
        service = self.serve("--share", "fair", "--parts", "blocks")
        self.start(service, "a", isolation, "fw")
        wait_for(lambda: self.parts(service, "a") == [ALL])
        for kills in (1, 2):  # what was made for the first return ends with the second
            server = self.device_server(service)
            os.kill(server, signal.SIGKILL)
            wait_for(lambda server=server: self.device_server(service) not in (None, server))
            wait_for(lambda: self.parts(service, "a") == [ALL])
            self.start(service, f"b{kills}", isolation, "one", "two", "three")
            wait_for(lambda: self.parts(service, "a") == [ALL // 4])
            self.flows(service, "a")
            self.assertEqual(service.ask("DELETE", f"/v1/chains/b{kills}")[0], 200)
            wait_for(lambda: self.parts(service, "a") == [ALL])
        status, answer = service.ask("POST", "/v1/chains/a/stop")
        self.assertEqual(status, 200, answer)
        self.assertTrue(answer["accounted"])
        self.assertEqual(answer["share"]["mode"], "fair, by the number of work-groups")
        self.assertEqual(set(answer["nfs"][0]["drops"]) - {"denied", "device_failed"}, set())

    def test_parts_outlive_the_device(self):
        self.parts_outlive_the_device("none")

    @unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
    def test_so_do_those_of_processes(self):
        self.parts_outlive_the_device("process")

    def test_a_chain_has_no_way_of_its_own(self):
        service = self.serve("--share", "uncoordinated")
        status, answer = self.apply(service, self.chain("a", nfs=nfs("none", "fw")), device="opencl", share="fair")
        self.assertEqual(status, 400)
        self.assertIn("the NFs of all chains share devices here (`catena serve --share uncoordinated`)", answer["error"])

    def test_a_schedule_needs_to_know_what_nfs_cost_wherever_they_run(self):
        service = self.serve("--share", "scheduled", "--parts", "blocks")
        for isolation in ("none", "process") if HAS_PROCESSES else ("none",):
            status, answer = self.apply(service, self.chain("a", nfs=nfs(isolation, "fw")), device="opencl")
            self.assertEqual(status, 400, answer)
            self.assertIn("catena profile --nf", answer["error"])

    def test_chains_that_take_turns_send_what_they_would_send_alone(self):
        rx = f"{{pcap: {DATA}/../../../examples/branch-office.pcap}}"
        service = self.serve("--share", "temporal")
        for name, isolation in (("a", "none"), ("b", "process" if HAS_PROCESSES else "none")):
            self.applied(service, self.chain(name, rx=rx, tx=f"{{pcap: {self.folder}/{name}.pcap}}",
                                             nfs=nfs(isolation, "fw")), device="opencl")
        self.applied(service, self.chain("alone", rx=rx, tx=f"{{pcap: {self.folder}/alone.pcap}}",
                                         nfs=nfs("none", "fw")), device="none")
        for name in ("a", "b", "alone"):
            wait_for(lambda name=name: self.get(service, name)["state"] == "finished")
        sent = (self.folder / "alone.pcap").read_bytes()
        for name in ("a", "b"):
            self.assertEqual((self.folder / f"{name}.pcap").read_bytes(), sent)
            self.assertEqual(self.get(service, name)["share"]["mode"], "temporal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
