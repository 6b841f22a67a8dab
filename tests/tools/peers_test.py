#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/peers/peers.py reads of other programs, the rules and the traffic that it makes for them, and its page."""

import pathlib
import struct
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench" / "peers")]
import peers  # noqa: E402
from common.rules import nftables, read_rules  # noqa: E402
from bench_pages import peers as peers_page  # noqa: E402
from bench_pages.page import Results  # noqa: E402

PORT_STATS = """testpmd> show port stats 0
  ######################## NIC statistics for port 0  ########################
  RX-packets: {rx:<10} RX-missed: 0          RX-bytes:  {bytes}
  RX-errors: 0
  RX-nombuf:  0
  TX-packets: {tx:<10} TX-errors: 0          TX-bytes:  {bytes}

  Throughput (since last show)
  Rx-pps:     {pps}          Rx-bps:  10993810216
  Tx-pps:     22903771          Tx-bps:  10993810216
  ############################################################################
"""
PMD_STATS = """pmd thread numa_id 0 core_id 1:
  packets received: 18068544
  packet recirculations: 5
  emc hits: 100
  miss with success upcall: 3
  miss with failed upcall: 2
pmd thread numa_id 0 core_id 2:
  packets received: 10
  miss with failed upcall: 1
pmd thread numa_id 0 core_id 3:
  packets received: 0
  miss with failed upcall: 0
main thread:
  packets received: 77
  miss with failed upcall: 7
"""
DPCTL_SHOW = """netdev@ovs-netdev:
  lookups: hit:18167328 missed:0 lost:0
  flows: 1
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
  port 1: p0 (dpdk: configured_rx_queues=1, mtu=1500)
    RX packets:18505600 errors:0 dropped:0 overruns:? frame:?
    TX packets:18238784 errors:0 dropped:0 aborted:? carrier:?
    RX bytes:1110336000 (1.0 GiB)  TX bytes:1094327040 (1.0 GiB)
"""
CAPTURE = ROOT / "examples" / "branch-office.pcap"


class Outputs(unittest.TestCase):
    def test_of_testpmd_are_read_in_order(self):
        shown = ((42, 41, 0), (99, 98, 22903771))
        text = "".join(PORT_STATS.format(rx=rx, tx=tx, bytes=60 * rx, pps=pps) for rx, tx, pps in shown)
        self.assertEqual(peers.port_stats(text), [peers.PortStats(42, 41, 0), peers.PortStats(99, 98, 22903771)])
        self.assertEqual(peers.port_stats(text[:300]), [], "what is not whole yet")

    def test_of_open_vswitch_are_those_of_all_pmd_threads(self):
        self.assertEqual(peers.pmd_stats(PMD_STATS), peers.PmdStats(2, 18068554, 3))
        self.assertEqual(peers.pmd_stats(""), peers.PmdStats(0, 0, 0))
        self.assertEqual(peers.port_packets(DPCTL_SHOW, "p0"), (18505600, 18238784))
        with self.assertRaises(RuntimeError):
            peers.port_packets(DPCTL_SHOW, "p1")


class Rules(unittest.TestCase):
    def test_of_a_range_of_ports_are_masks(self):
        self.assertEqual(peers.masked((22, 23)), [(22, 0xfffe)])
        self.assertEqual(peers.masked((1024, 65535)), [(1 << bit, 0x10000 - (1 << bit)) for bit in range(10, 16)])
        for first, last in ((0, 0), (1, 6), (5900, 5903), (0, 65534), (7, 40000)):
            covered = [port for value, mask in peers.masked((first, last))
                       for port in range(value, value + 0x10000 - mask)]
            self.assertEqual(covered, list(range(first, last + 1)))

    def test_become_openflow_in_their_order(self):
        rules = read_rules("# words\nallow udp 10.0.0.0/24 10.0.0.138 any 53 # more\ndeny tcp any any any 22-23\n\n"
                                 "@87.1.32.0/26\t0.0.0.0/0\t750 : 750\t0 : 65535\t0x11/0xFF\t0x0000/0x0000\t\n"
                                 "@1.2.3.4/32  0.0.0.0/0  0 : 65535  80 : 80  0x00/0x00\ndeny icmp any any any any\n")
        self.assertEqual(peers.openflow(rules, False), [
            "table=0,priority=60000,ip,nw_proto=17,nw_src=10.0.0.0/24,nw_dst=10.0.0.138/32,tp_dst=0x35/0xffff,"
            "actions=in_port",
            "table=0,priority=59999,ip,nw_proto=6,tp_dst=0x16/0xfffe,actions=drop",
            "table=0,priority=59998,ip,nw_proto=17,nw_src=87.1.32.0/26,tp_src=0x2ee/0xffff,actions=drop",
            "table=0,priority=59997,ip,nw_proto=6,nw_src=1.2.3.4/32,tp_dst=0x50/0xffff,actions=drop",
            "table=0,priority=59997,ip,nw_proto=17,nw_src=1.2.3.4/32,tp_dst=0x50/0xffff,actions=drop",
            "table=0,priority=59996,ip,nw_proto=1,actions=drop",
            "table=0,priority=1,ip,actions=in_port"])

    def test_with_state_are_asked_once_for_a_connection(self):
        flows = peers.openflow(read_rules("allow tcp any any any any"), True)
        self.assertEqual(flows[:2], ["table=0,priority=1,ip,actions=ct(table=1)",
                                     "table=1,priority=65000,ct_mark=1,ip,actions=in_port"])
        self.assertIn("table=1,priority=60000,ip,nw_proto=6,actions=ct(commit,exec(set_field:1->ct_mark)),in_port", flows)
        self.assertEqual(len(flows), 4)


    def test_become_a_table_of_nftables_in_their_order(self):
        rules = read_rules("allow udp 10.0.0.0/24 10.0.0.138 any 53\ndeny any any any any 22-23\ndeny icmp any any any any\n"
                           "@0.0.0.0/0 1.2.3.4/32  0 : 65535  0 : 65535  0x00/0x00\n")
        self.assertEqual(nftables(rules).splitlines(), [
            "table bridge firewall {", "chain forward {", "type filter hook forward priority 0; policy accept;",
            "ether type ip ip protocol 17 ip saddr 10.0.0.0/24 ip daddr 10.0.0.138 th dport 53-53 accept",
            "ether type ip ip protocol { 6, 17 } th dport 22-23 drop",
            "ether type ip ip protocol 1 drop",
            "ether type ip ip daddr 1.2.3.4/32 drop", "}", "}"])


class Examples(unittest.TestCase):
    def test_have_the_same_prefixes(self):
        self.assertEqual(peers.l3fwd_routes("# words\n0.0.0.0/0  1\n10.0.0.0/24 2 # more\n\n"),
                         "R0.0.0.0/1 0\nR128.0.0.0/1 0\nR10.0.0.0/24 0\n")

    def test_have_the_same_tunnel(self):
        lines = peers.secgw_config().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertIn("sa out 4096 cipher_algo aes-128-ctr cipher_key 00:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:a0:a1:a2:a3 "
                      "auth_algo sha1-hmac auth_key 10:11:12:13:14:15:16:17:18:19:1a:1b:1c:1d:1e:1f:20:21:22:23 "
                      "mode ipv4-tunnel src 192.0.2.1 dst 198.51.100.1", lines)


def frames(content):
    """(second, frame) of each record of a capture."""
    place = 24
    while place < len(content):
        second, _, length, _ = struct.unpack_from("<IIII", content, place)
        yield second, content[place + 16:place + 16 + length]
        place += 16 + length


def summed(octets):
    """As the checksums of IP, TCP and UDP sum them."""
    return sum(struct.unpack(f">{len(octets) // 2}H", octets)) % 0xffff


class Captures(unittest.TestCase):
    def test_of_copies_have_flows_of_their_own_and_the_same_checksums(self):
        base = list(frames(CAPTURE.read_bytes()))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "copies.pcap"
            count, size = peers.write_copies(CAPTURE, path, 1 + len(base) * peers.SIDE_BY_SIDE)
            copies = list(frames(path.read_bytes()))
        self.assertEqual((len(copies), sum(len(frame) for _, frame in copies)), (count, size))
        self.assertEqual(count, 2 * peers.SIDE_BY_SIDE * len(base))
        self.assertEqual([second for second, _ in copies], sorted(second for second, _ in copies))
        tcp = next(number for number, (_, frame) in enumerate(base) if frame[12:14] == b"\x08\0" and frame[23] == 6)
        first = tcp * peers.SIDE_BY_SIDE
        second = first + peers.SIDE_BY_SIDE * len(base)
        same = [copies[number][1] for begin in (first, second) for number in range(begin, begin + peers.SIDE_BY_SIDE)]
        self.assertEqual(len({frame[26:34] for frame in same}), 2 * peers.SIDE_BY_SIDE)
        original = base[tcp][1]
        for frame in same:  # the rest is as it was, so checksums stay right if what they are of has the sum that it had
            self.assertEqual(frame[:26] + frame[34:], original[:26] + original[34:])
            self.assertEqual(summed(frame[26:34]), summed(original[26:34]))
        self.assertEqual(peers.moved(b"\xe0\0\0\x05", 7), b"\xe0\0\0\x05", "a group")


class Flows(unittest.TestCase):
    def test_are_divided_among_captures(self):
        content = CAPTURE.read_bytes()
        whole = list(frames(content))
        parts = [list(frames(part)) for part in peers.divided(content, 3)]
        for number, part in enumerate(parts):
            self.assertEqual(part, whole[number::3])
        self.assertEqual(peers.divided(content, 1), [content])

    def test_of_a_port_have_a_capture_for_each_queue(self):
        self.assertEqual(peers.pcap_device(["a.pcap", "b.pcap"]), "net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap,infinite_rx=1")


class Settings(unittest.TestCase):
    def test_are_those_with_the_best_median_of_trials_in_turn(self):
        rates = {"steady": [5e6, 5e6, 5e6], "lucky once": [9e6, 1e6, 1e6]}
        tried = []

        def measure(setting, seconds):
            tried.append((setting[0], seconds))
            return {"packets_per_s": rates[setting[0]][(len(tried) - 1) // 2]}
        bench = peers.Bench.__new__(peers.Bench)
        bench.best = {}
        for _ in range(2):  # the second time it is known
            self.assertEqual(bench.fastest(("a",), (("lucky once", ()), ("steady", ())), measure), ("steady", ()))
        self.assertEqual(tried, [("lucky once", 1), ("steady", 1)] * peers.TRIALS)


class Pages(unittest.TestCase):
    def test_have_a_row_for_each_way(self):
        def ran(rate, **more):
            return {"packets_per_s": rate, "gbps": rate * 512 / 1e9, "cores": 2, "ns_per_packet": 2e9 / rate,
                    "settings": "burst 64", **more}
        cells = [{"group": "filters", "wire_bytes": 64, "threads": 2, "run": 0,
                  "repeats": [{"Open vSwitch": ran(other, passed_percent=43.8),
                               "catena, firewall": ran(own, passed_percent=43.8)}
                              for other, own in ((4e6, 8e6), (5e6, 5e6))]},
                 {"group": "ids", "threads": 16, "run": 0, "repeats": [{"Suricata": ran(1e6, alerts_percent=3.25)}]},
                 {"group": "frameworks", "wire_bytes": 64, "threads": 1, "run": 0, "repeats": [], "error": "it fell over"}]
        page = peers_page.page(Results({
            "part": "peers", "commit": "abc", "seconds": 3, "repeats": 2,
            "settings": {"warm_up_s": 1, "flows": 1024, "rules": "fw.rules"},
            "runs": [{"machine": "a machine", "device": "unknown", "command": "as typed"}], "notes": ["a peer is left out"],
            "chains": {}, "cells": cells}))
        text = page.markdown()
        self.assertIn("| 64 B, 2 cores | catena, firewall | 6.50 (5.00 .. 8.00) | 3.33 (2.56 .. 4.10) | "
                      "2.00 (2.00 .. 2.00) | 325 (250 .. 400) | 43.8 % | 1.50 (1.00 .. 2.00) | burst 64 |", text)
        self.assertIn("| 16 cores | Suricata | 1.00 (1.00 .. 1.00) |", text)
        self.assertIn("- a peer is left out\n", text)
        self.assertIn("- frameworks: 64 B, 1 core: it fell over", text)
        self.assertIn("- ids: 16 cores: 1 of 2 repeats", text)
        self.assertEqual(set(page.figures), {"filters", "ids"})


if __name__ == "__main__":
    unittest.main()
