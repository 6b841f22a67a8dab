#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile tenant can take from the service and from others: his processes end when they must, and his files and
requests have bounds.
"""

import contextlib
import os
import pathlib
import re
import select
import socket
import time
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from frames import capture, datagram
from harness import Tenant, TenantTest, wait_for
from nf_process import nf_process_of

ENDLESS = "{generator: {rate: 20000}}"
SOON = "  tuning: {device_limit_ms: 500}\n"


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class Processes(TenantTest):
    """An NF that does what it likes, in a process of its own which is that of another user than the service."""

    def chain_of(self, rx=ENDLESS, **nf):
        return self.attacker.chain("a", rx=rx, nfs=f"[{self.attacker.hostile_nf(**nf)}]", more=SOON)

    def process(self, other_than=None):
        return wait_for(lambda: nf_process_of(self.service.process.pid, other_than))

    def assert_nothing_is_left(self):
        wait_for(lambda: nf_process_of(self.service.process.pid) is None)
        self.assertNotIn("cannot be killed", self.service.log())

    def begin_to_apply(self, **config):
        """A request that waits because the NF does not come to be; and the number of its process."""
        waiting = self.attacker.begin_to_apply(self.chain_of(**config))
        return waiting, self.process()

    def test_one_that_hangs_at_work_is_ended_and_started_again(self):
        for what, why in (("hang", "does not answer"), ("spin", "does not answer"), ("lie", "sent an unexpected message"),
                          ("die", "ended by signal")):
            self.attacker.applied(self.chain_of(compute=what))
            first = self.process()
            second = self.process(first)
            self.assertFalse(is_alive(first), what)
            nf = wait_for(lambda: (nf := self.attacker.get("a")["nfs"][0])["process_restarts"] and nf)
            self.assertGreater(nf["drops"]["process_failed"], 0, what)
            self.assertIn(why, self.service.log())
            self.assertEqual(self.attacker.delete("a"), (200, {"ok": True}), what)
            self.assertFalse(is_alive(second), what)
            self.assert_nothing_is_left()

    def test_a_chain_ends_whose_nf_does_not(self):
        fifo = self.attacker.fifo()
        for what in ("hang", "lie"):
            with open(fifo, "r+b", buffering=0) as packets:  # for reading, too: it then opens without a reader
                packets.write(capture([datagram(b"x")] * 100))
                self.attacker.applied(self.chain_of(rx=f"{{pcap: {fifo}}}", finish=what))
                pid = self.process()
            wait_for(lambda: self.attacker.get("a")["state"] in ("finished", "failed"))
            self.assertFalse(is_alive(pid), what)
            self.assert_nothing_is_left()

    def test_a_delete_ends_one_that_hangs_while_it_is_made(self):
        for what in ("hang", "spin"):
            waiting, pid = self.begin_to_apply(create=what)
            self.assertEqual(self.attacker.get("a")["state"], "starting")
            self.assertEqual(self.attacker.delete("a")[0], 200, what)
            status, answer = waiting.answer()
            self.assertEqual(status, 409)
            self.assertIn("was stopped while it was being started", answer["error"])
            self.assertFalse(is_alive(pid), what)
            self.assert_nothing_is_left()

    def test_a_stop_ends_one_that_hangs_while_it_is_made(self):
        waiting, pid = self.begin_to_apply(create="hang")
        self.assertEqual(self.attacker.stop("a")[0], 200)
        self.assertEqual(waiting.answer()[0], 409)
        self.assertFalse(is_alive(pid))
        self.assertEqual(self.attacker.get("a")["state"], "stopped")

    def test_a_client_that_goes_ends_one_that_hangs_while_it_is_made(self):
        waiting, pid = self.begin_to_apply(create="hang")
        waiting.close()
        wait_for(lambda: self.attacker.ask("GET", "/v1/chains/a")[0] == 404)
        wait_for(lambda: not is_alive(pid))
        self.assert_nothing_is_left()

    def test_the_service_ends_one_that_hangs_while_it_is_made(self):
        _, pid = self.begin_to_apply(create="hang")
        self.assertEqual(self.service.end(), 0)
        self.assertNotIn("unfinished work", self.service.log())
        self.assertFalse(is_alive(pid))

    def test_one_that_lies_or_dies_while_it_is_made_is_an_error(self):
        for what, why in (("lie", "does not report whether it has started"), ("die", "ended by signal")):
            status, answer = self.attacker.apply(self.chain_of(create=what))
            self.assertGreaterEqual(status, 400)
            self.assertIn(why, answer["error"])
            self.assertRegex(answer["error"], r"a.yaml:\d+:\d+: ")
            self.assertEqual(self.attacker.ask("GET", "/v1/chains/a")[0], 404)
            self.assert_nothing_is_left()

    def test_one_that_hangs_while_it_is_loaded_is_not_waited_for_for_ever(self):
        status, answer = self.attacker.apply(self.chain_of(object_name="hangs-when-loaded.so"))
        self.assertGreaterEqual(status, 400)
        self.assertIn("does not answer", answer["error"])
        self.assert_nothing_is_left()

    def begin_to_change(self, name):
        """A chain that runs, and a request that waits because its next NF, `name`, does not come to be."""
        self.attacker.applied(self.chain_of())
        before = self.process()
        waiting = self.attacker.begin_to_apply(self.chain_of(name=name, create="hang"))
        return before, waiting, self.process(before)

    def test_a_client_that_goes_ends_a_change_and_the_chain_stays(self):
        for name in ("hostile", "another"):  # the chain changes; there is another one
            before, waiting, hanging = self.begin_to_change(name)
            waiting.close()
            wait_for(lambda pid=hanging: not is_alive(pid))
            sent = self.attacker.get("a")["tx"]["sent_packets"]
            wait_for(lambda than=sent: self.attacker.get("a")["tx"]["sent_packets"] > than)
            self.assertTrue(is_alive(before))
            self.assertEqual(self.attacker.delete("a")[0], 200)

    def test_a_delete_ends_a_change_and_the_chain(self):
        for name in ("hostile", "another"):
            _, waiting, _ = self.begin_to_change(name)
            self.assertEqual(self.attacker.delete("a")[0], 200)
            self.assertGreaterEqual(waiting.answer()[0], 400)
            self.assert_nothing_is_left()

    def test_the_service_ends_one_that_hangs_at_work(self):
        self.attacker.applied(self.chain_of(compute="hang"))
        self.process()
        self.assertEqual(self.service.end(), 0)
        self.assertNotIn("unfinished work", self.service.log())


def doubled_aliases(count):
    """2^count empty values in a list, and no text that would count."""
    lines = ["a0: &a0 [~, ~]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, count)]
    return "{" + ", ".join(lines) + "}"


class Files(TenantTest):
    def peak_bytes(self):
        """The most memory that the service has had since clear_peak()."""
        status = pathlib.Path(f"/proc/{self.service.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10

    def clear_peak(self):
        pathlib.Path(f"/proc/{self.service.process.pid}/clear_refs").write_text("5")

    def begin_dry_run(self, file):
        return self.attacker.request("POST", "/v1/chains", {"file": file, "dry_run": True})

    def test_a_users_chain_file_has_a_mebibyte(self):
        comment = "#" * (1 << 20) + "\n"
        for tenant in (self.attacker, self.victim):
            status, answer = tenant.apply(tenant.write("large.yaml", comment))
            self.assertEqual(status, 400)
            self.assertIn("such a file has at most 1048576", answer["error"])
        roots = pathlib.Path(self.chain("roots"))
        roots.write_text(comment + roots.read_text())
        self.applied(self.service, str(roots))

    def test_many_small_nodes_are_refused_before_they_take_memory(self):
        self.assertEqual(self.begin_dry_run(self.attacker.chain("a")).answer()[0], 200)
        # the second one is read to its end before a parser knows what its first bracket is
        for start, most in (("a: [", 64 << 20), ("- [", 256 << 20)):
            bomb = self.attacker.write("bomb.yaml", start + "[]," * 340_000 + "]\n")
            self.clear_peak()
            before = self.peak_bytes()
            answers = [waiting.answer() for waiting in [self.begin_dry_run(bomb) for _ in range(4)]]
            self.assertLess(self.peak_bytes() - before, most)
            for status, answer in answers:
                self.assertEqual(status, 400)
                self.assertRegex(answer["error"], r"bomb.yaml:1:\d+: more than \d+ values and keys")

    def test_many_small_nodes_are_refused_in_files_that_nfs_read(self):
        bomb = self.attacker.write("sa.yaml", "associations: [" + "[]," * 340_000 + "]\n")
        nf = f"{{name: vpn, type: ipsec, isolation: none, config: {{direction: encrypt, sa: {bomb}}}}}"
        file = self.attacker.chain("a", nfs=f"[{nf}]")
        for waiting in (self.begin_dry_run(file), self.attacker.begin_to_apply(file)):
            status, answer = waiting.answer()
            self.assertEqual(status, 400)
            self.assertRegex(answer["error"], r"sa.yaml:1:\d+: more than \d+ values and keys")

    def test_aliases_count_as_what_they_stand_for(self):
        plugin = self.attacker.copy(os.environ["CATENA_HOSTILE_NF"])  # of which the service believes any configuration
        nf = f"{{name: hostile, plugin: {plugin}, config: {doubled_aliases(62)}}}"
        file = self.attacker.chain("a", nfs=f"[{nf}]")
        for waiting in [self.attacker.begin_to_apply(file) for _ in range(3)]:
            status, answer = waiting.answer()
            self.assertEqual(status, 400)
            self.assertRegex(answer["error"], r"a.yaml:\d+:\d+: more than \d+ values and keys, with the values of aliases")
        self.assertEqual(self.attacker.ask("GET", "/v1/chains")[1], {"chains": []})
        self.assertEqual(self.service.end(), 0)
        self.assertNotIn("unfinished work", self.service.log())

    def test_an_alias_to_what_it_is_in_is_refused(self):
        nf = "{name: fw, type: firewall, config: {a: &a [~, *a]}}"
        status, answer = self.attacker.apply(self.attacker.chain("a", nfs=f"[{nf}]"))
        self.assertEqual(status, 400)
        self.assertIn("an alias refers to a value containing it", answer["error"])


class Requests(TenantTest):
    """Requests that wait: each applies a chain whose output is a FIFO without a reader."""

    MOST = 12  # of one user

    def setUp(self):
        super().setUp()
        self.other = Tenant(3003, self.folder)
        self.other.service = self.service
        self.fifos = {tenant: tenant.fifo() for tenant in (self.attacker, self.victim)}
        self.open_requests = contextlib.ExitStack()
        self.addCleanup(self.open_requests.close)

    def begin(self, tenant, count):
        """`count` requests of the tenant, each of which waits, or has its answer."""
        begun = []
        for number in range(count):
            file = tenant.chain(f"{tenant.uid}-{number}", tx=f"{{pcap: {self.fifos[tenant]}}}",
                                more="  tuning: {pool_slots: 2048}\n")
            begun.append(self.open_requests.enter_context(tenant.begin_to_apply(file)))
        return begun

    def answered(self, requests):
        readable, _, _ = select.select([each.sock for each in requests], [], [], 0)
        return [each for each in requests if each.sock in readable]

    def wait_until_all_wait(self, requests):
        """Until each waits for a reader, or has its answer; the latter."""
        wait_for(lambda: self.service.log().count("waiting for a reader") + len(self.answered(requests)) == len(requests))
        return self.answered(requests)

    def test_two_users_whose_requests_wait_keep_no_other_out(self):
        refused = self.wait_until_all_wait(self.begin(self.attacker, 32) + self.begin(self.victim, 16))
        self.assertEqual(len(refused), 32 - self.MOST + 16 - self.MOST)
        for each in refused:
            status, answer = each.answer()
            self.assertEqual(status, 503)
            self.assertIn(f"{self.MOST} of one user", answer["error"])
        for resource in ("/v1/version", "/v1/chains", "/metrics"):
            self.assertEqual(self.other.ask("GET", resource)[0], 200, resource)
        self.other.applied(self.other.chain("o"))
        self.assertEqual(self.other.get("o")["state"], "running")
        self.assertEqual(self.other.delete("o")[0], 200)
        # nor themselves: they see what waits, and can end it
        self.assertEqual(len(self.attacker.ask("GET", "/v1/chains")[1]["chains"]), self.MOST)
        self.assertEqual(self.attacker.delete(f"{self.attacker.uid}-0")[0], 200)
        self.attacker.applied(self.attacker.chain("again"))

    def test_requests_end_with_their_clients(self):
        requests = self.begin(self.attacker, self.MOST) + self.begin(self.victim, self.MOST)
        self.assertEqual(self.wait_until_all_wait(requests), [])
        for each in requests:
            each.close()
        wait_for(lambda: self.service.ask("GET", "/v1/chains")[1] == {"chains": []})
        for tenant in (self.attacker, self.victim):
            tenant.applied(tenant.chain(f"{tenant.uid}-0"))

    def test_a_chain_that_runs_stays_when_the_client_that_replaces_it_goes(self):
        tenant = self.attacker
        tenant.applied(tenant.chain("a"))
        file = tenant.chain("a", tx=f"{{pcap: {self.fifos[tenant]}}}", file="next.yaml")
        waiting = tenant.begin_to_apply(file, accept_loss=True)
        wait_for(lambda: "waiting for a reader" in self.service.log())
        waiting.close()
        wait_for(lambda: "was stopped while it was being started" in self.service.log())
        chain = tenant.get("a")
        self.assertEqual((chain["state"], pathlib.Path(chain["file"]).name), ("running", "a.yaml"))
        self.assertEqual(tenant.delete("a")[0], 200)

    def test_one_that_only_sends_no_more_gets_its_answer(self):
        request = self.attacker.begin_to_apply(self.attacker.chain("a", rx="{generator: {count: 1}}"))
        request.sock.shutdown(socket.SHUT_WR)
        self.assertEqual(request.answer()[0], 201)

    def test_a_chain_that_does_not_end_says_which_output_has_no_reader(self):
        tenant, fifo = self.attacker, self.fifos[self.attacker]
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        tenant.applied(tenant.chain("a", rx="{generator: {packet: 1500}}", tx=f"{{pcap: {fifo}}}"))
        sent = 0
        while sent == 0 or sent != tenant.get("a")["tx"]["sent_packets"]:  # until the FIFO is full
            sent = tenant.get("a")["tx"]["sent_packets"]
            time.sleep(0.1)
        status, answer = tenant.delete("a")
        self.assertEqual(status, 503)
        self.assertIn(f"{fifo} is a FIFO and may have no reader", answer["error"])


if __name__ == "__main__":
    unittest.main()
