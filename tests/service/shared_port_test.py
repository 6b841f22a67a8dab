#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chains of several tenants at one interface of the kernel, in a service.

Needs root and iproute2 for a pair of virtual interfaces; skips with the reason where that cannot be made.
Environment: CATENA_BIN.
"""

import io
import os
import socket
import subprocess
import threading
import unittest

from scapy.all import IP, TCP, UDP, Dot1Q, Ether, rdpcap

from harness import ServiceTest, wait_for

INSIDE, OUTSIDE = f"ct{os.getpid()}a", f"ct{os.getpid()}b"


def make_pair():
    """Why there is none; else nothing."""
    if os.geteuid() != 0:
        return "not root"
    commands = [f"ip link add {INSIDE} type veth peer name {OUTSIDE}"]
    for name in (INSIDE, OUTSIDE):
        # nobody but the test says anything there
        commands += [f"sysctl -q -w net.ipv6.conf.{name}.disable_ipv6=1", f"ip link set {name} arp off up"]
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode != 0 and not command.startswith("sysctl"):
            return f"{command}: {done.stderr.strip()}"
    return None


def frames(count, vlan=None, dst="10.1.2.3", dport=1000):
    head = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
    if vlan is not None:
        head /= Dot1Q(vlan=vlan)
    return [bytes(head / IP(dst=dst, id=i) / UDP(sport=7, dport=dport) / (f"{i} " * 10).encode()) for i in range(count)]


class SharedPort(ServiceTest):
    @classmethod
    def setUpClass(cls):
        reason = make_pair()
        if reason:
            raise unittest.SkipTest(reason)

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["ip", "link", "del", INSIDE], capture_output=True, check=False)

    def setUp(self):
        super().setUp()
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.addCleanup(self.wire.close)
        self.wire.bind((OUTSIDE, 0))
        self.wire.settimeout(20)
        self.service = self.serve()

    def member(self, name, match=None, tx=None, tenant=None):
        rx = f"{{dev: {INSIDE}, shared: true" + (f", match: [{match}]" if match else "") + "}"
        return self.chain(name, rx=rx, tx=tx or f"{{pcap: {name}.pcap}}",
                          more=f"  tenant: {tenant}\n" if tenant else "")

    def received(self, name):
        return self.service.ask("GET", f"/v1/chains/{name}")[1].get("rx", {}).get("received_packets")

    def port(self):
        ports = self.service.ask("GET", "/v1/ports")[1]["ports"]
        self.assertEqual([port["name"] for port in ports], [f"interface {INSIDE}"])
        return ports[0]

    def send(self, all_frames):
        for frame in all_frames:
            self.wire.send(frame)

    def written(self, name):
        self.service.ask("POST", f"/v1/chains/{name}/stop")
        return [bytes(packet) for packet in rdpcap(str(self.folder / f"{name}.pcap"))]

    def test_each_tenant_gets_its_own_frames_and_the_default_chain_the_rest(self):
        kinds = {"acme": frames(200), "beta": frames(200, vlan=10), "rest": frames(200, dst="10.2.0.1")}
        self.applied(self.service, self.member("acme", "{vlan: untagged, dst: 10.1.0.0/16}", tenant="acme"))
        self.applied(self.service, self.member("beta", "{vlan: 10}", tenant="beta"))
        self.applied(self.service, self.member("rest"))
        self.send(frame for three in zip(*kinds.values()) for frame in three)
        for name, own in kinds.items():
            wait_for(lambda name=name: self.received(name) == 200)
            self.assertEqual(self.written(name), own, name)

    def test_a_narrower_match_goes_first_whoever_came_first(self):
        self.applied(self.service, self.member("names", "{dport: 53}"))
        self.applied(self.service, self.member("rest"))
        self.applied(self.service, self.member("server", "{dst: 10.1.2.3, protocol: udp, dport: 53}"))
        self.send(frames(5, dport=53) + frames(7, dst="10.9.9.9", dport=53) + frames(9))
        for name, count in (("server", 5), ("names", 7), ("rest", 9)):
            wait_for(lambda name=name, count=count: self.received(name) == count)

    def test_frames_that_no_chain_wants_are_counted(self):
        self.applied(self.service, self.member("acme", "{dst: 10.1.0.0/16}"))
        self.send(frames(3) + frames(4, dst="10.2.0.1"))
        wait_for(lambda: self.port()["frames"] == 7)
        self.assertEqual(self.port()["drops"]["unmatched"], 4)
        self.assertEqual(self.port()["chains"], [{"chain": "acme", "match": ["dst 10.1.0.0/16"]}])
        metrics = self.service.ask("GET", "/metrics")[1]
        self.assertIn(f'catena_port_frames_total{{port="interface {INSIDE}"}} 7\n', metrics)
        self.assertIn(f'catena_port_dropped_frames_total{{port="interface {INSIDE}",reason="unmatched"}} 4\n', metrics)
        self.assertEqual(self.service.ask("DELETE", "/v1/chains/acme")[0], 200)
        self.assertEqual(self.service.ask("GET", "/v1/ports")[1], {"ports": []})
        self.assertIn(f"interface {INSIDE}: 4 of 7 frames met no chain's `match`", self.service.log())

    def test_headers_that_fragments_split_do_not_get_round_a_match_with_ports(self):
        self.applied(self.service, self.member("ssh", "{protocol: tcp, dport: 22}"))
        self.applied(self.service, self.member("rest"))
        head = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
        segment = bytes(TCP(sport=7, dport=22, flags="S")) + b"text"

        def part(data, flags=0, offset=0):
            return bytes(head / IP(dst="10.1.2.3", id=1, flags=flags, frag=offset, proto=6) / data)

        split = [part(segment[:size], "MF") for size in (4, 8, 16, 19)]
        hidden = [part(segment[:3], "MF"), part(segment, "MF", 1), part(segment, 0, 1)]
        self.send(split + hidden + [part(segment[16:], 0, 2)])
        wait_for(lambda: self.port()["frames"] == 8)
        self.assertEqual(self.port()["drops"]["malformed"], len(hidden))
        for name, count in (("ssh", len(split)), ("rest", 1)):
            wait_for(lambda name=name, count=count: self.received(name) == count)

    def test_chains_send_through_the_port_that_they_share(self):
        both = f"{{dev: {INSIDE}, shared: true}}"
        self.applied(self.service, self.member("acme", "{dst: 10.1.0.0/16}", tx=both))
        self.applied(self.service, self.member("beta", "{dst: 10.2.0.0/16}", tx=both))
        sent = frames(100) + frames(100, dst="10.2.0.1")
        self.send(sent)
        back = [self.wire.recv(2000) for _ in sent]
        self.assertEqual([frame for frame in back if frame in sent[:100]], sent[:100])
        self.assertEqual([frame for frame in back if frame in sent[100:]], sent[100:])
        for name in ("acme", "beta"):
            wait_for(lambda name=name: self.service.ask("GET", f"/v1/chains/{name}")[1]["tx"]["sent_packets"] == 100)

    def test_a_chain_takes_frames_from_when_it_runs(self):
        os.mkfifo(self.folder / "acme.pcap")
        self.applied(self.service, self.member("rest"))
        file = self.member("acme", "{dst: 10.1.0.0/16}")
        applying = threading.Thread(target=self.applied, args=(self.service, file))
        applying.start()
        self.addCleanup(applying.join)
        wait_for(lambda: "waiting for a reader" in self.service.log())
        self.send(frames(20))
        wait_for(lambda: self.received("rest") == 20)
        self.assertEqual(self.port()["chains"], [{"chain": "rest", "match": ["everything else"]}])
        with open(self.folder / "acme.pcap", "rb") as reader:
            wait_for(lambda: self.state(self.service, "acme") == "running")
            self.send(frames(30))
            wait_for(lambda: self.received("acme") == 30)
            self.service.ask("POST", "/v1/chains/acme/stop")
            self.assertEqual(len(rdpcap(io.BytesIO(reader.read()))), 30)
        self.send(frames(10))
        wait_for(lambda: self.received("rest") == 30)

    def test_a_chain_that_cannot_start_has_taken_no_frames(self):
        os.mkfifo(self.folder / "acme.pcap")
        gone = self.folder / "gone"
        gone.mkdir()
        self.applied(self.service, self.member("rest"))
        answers = []
        applying = threading.Thread(
            target=lambda: answers.append(self.apply(self.service, self.member("acme", "{dst: 10.1.0.0/16}"),
                                                     record=str(gone / "record"))))
        applying.start()
        wait_for(lambda: "waiting for a reader" in self.service.log())
        self.send(frames(20))
        gone.rmdir()
        with open(self.folder / "acme.pcap", "rb"):
            applying.join()
        self.assertEqual(answers[0][0], 400, answers)
        wait_for(lambda: self.received("rest") == 20)

    def test_every_frame_is_counted_while_chains_come_and_go(self):
        self.applied(self.service, self.member("rest"))
        file = self.member("acme", "{dst: 10.1.0.0/16}")
        stop = threading.Event()
        sender = threading.Thread(target=lambda: [self.send(frames(50)) for _ in iter(stop.is_set, True)])
        sender.start()
        of_acme = 0
        for _ in range(5):
            self.applied(self.service, file)
            wait_for(lambda: self.received("acme") > 0)
            of_acme += self.service.ask("POST", "/v1/chains/acme/stop")[1]["rx"]["seen_packets"]
        stop.set()
        sender.join()

        def balances():
            port = self.port()
            of_rest = self.service.ask("GET", "/v1/chains/rest")[1]["rx"]["seen_packets"]
            drops = port["drops"]
            return port["frames"] == of_acme + of_rest + drops["unmatched"] + drops["chain_ended"] + drops["too_long"]
        wait_for(balances)

    def test_matches_that_cross_are_refused_and_one_may_take_the_place_of_its_own(self):
        self.applied(self.service, self.member("acme", "{dst: 10.1.0.0/16}"))
        status, answer = self.apply(self.service, self.member("beta", "{vlan: 10}"))
        self.assertEqual(status, 409)
        self.assertEqual(answer["error"], f"interface {INSIDE}: chains 'beta' (vlan 10) and 'acme' (dst 10.1.0.0/16) "
                                          "want some of the same frames, and each also wants others")
        status, answer = self.apply(self.service, self.chain("own", rx=f"{{dev: {INSIDE}}}"))
        self.assertEqual(status, 409)
        self.assertEqual(answer["error"], f"interface {INSIDE} is used by chain 'acme'; both chains must say "
                                          "`shared: true` to have it at a time")
        self.applied(self.service, self.member("acme", "{vlan: 11}"), accept_loss=True)
        self.applied(self.service, self.member("beta", "{vlan: 10}"))
        self.send(frames(6, vlan=10))
        wait_for(lambda: self.received("beta") == 6)

    def test_a_service_that_starts_again_has_its_shared_ports_again(self):
        for name, vlan in (("acme", 10), ("beta", 11)):
            self.applied(self.service, self.member(name, f"{{vlan: {vlan}}}"))
        self.assertEqual(self.service.end(), 0, self.service.log())
        self.service = self.serve()
        wait_for(lambda: self.state(self.service, "acme") == self.state(self.service, "beta") == "running")
        self.send(frames(3, vlan=11))
        wait_for(lambda: self.received("beta") == 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
