#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what Catena says of frames that it does not inspect with what tshark finds in them.

    not_inspected.py CATENA [--device none]

scapy makes IPv6, MPLS, PPPoE, LLC, unknown EtherTypes, three tags, ARP, truncated and broken IPv4, and tunnels. Firewall
and nids must count each under the EtherType that tshark finds after two tags, the lines of the firewall's drops must
have the EtherType and the addresses that tshark finds, and packets that tshark takes for a tunnel count as such.
"""
import collections
import json

from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, GRE, LLC, Dot1Q, Dot3, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from comparison import comparison

NAMES = {0x0800: "ipv4", 0x0806: "arp", 0x86DD: "ipv6", 0x8100: "vlan", 0x8847: "mpls", 0x8864: "pppoe_session",
         0x88CC: "lldp"}
TUNNELS = {"gre": "tunnel_gre", "vxlan": "tunnel_vxlan", "geneve": "tunnel_geneve", "teredo": "tunnel_teredo",
           "ip:ip": "tunnel_ipip", "ip:ipv6": "tunnel_6in4"}
FILES = {
    "fw.rules": "allow any any any any any\n",
    "routes.txt": "0.0.0.0/0 0\n",
    "ids.rules": 'alert ip any any -> any any (msg:"marker"; content:"no such content"; sid:1;)\n',
}
# with the reason that it drops for what it does not inspect, and whether it counts tunnels
NFS = {
    "fw": ("type: firewall, config: {rules: fw.rules, default: allow}", "unsupported", True),
    "ids": ("type: nids, config: {rules: ids.rules}", None, True),
    "rt": ("type: router, config: {routes: routes.txt}", "not_routable", False),
}
FIELDS = ("frame.protocols", "eth.type", "vlan.etype", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst")


def frames():
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    segment = TCP(sport=4000, dport=22) / Raw(b"a marker")
    ipv4, ipv6 = IP(src="192.0.2.1", dst="198.51.100.2") / segment, IPv6(src="2001:db8::1", dst="2001:db8::2") / segment
    yield ether / ipv4
    yield ether / ipv6
    yield ether / Dot1Q(vlan=1) / ipv6
    yield ether / Dot1Q(vlan=1) / Dot1Q(vlan=2) / ipv6
    yield Ether(src=ether.src, dst="33:33:ff:00:00:01") / IPv6(src="fe80::2", dst="ff02::1:ff00:1") / ICMPv6ND_NS(tgt="fe80::1")
    for inner in (ipv4, ipv6):
        yield ether / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / inner
        yield ether / MPLS(label=16, s=1, ttl=64) / inner
        yield ether / PPPoE(sessionid=1) / PPP() / inner
        yield ether / IP(src="203.0.113.1", dst="203.0.113.2") / inner
        yield ether / IP(src="203.0.113.1", dst="203.0.113.2") / GRE() / inner
        yield ether / Dot1Q(vlan=1) / IP(src="203.0.113.1", dst="203.0.113.2") / UDP(sport=5000, dport=4789) / VXLAN(vni=7) / ether / inner
        yield ether / IP(src="203.0.113.1", dst="203.0.113.2") / UDP(sport=5000, dport=6081) / GENEVE(vni=7, proto=0x6558) / ether / inner
    yield ether / IP(src="203.0.113.1", dst="203.0.113.2") / UDP(sport=5000, dport=3544) / ipv6
    yield ether / IP(src="203.0.113.1", dst="203.0.113.2") / UDP(sport=5000, dport=4788) / Raw(b"no tunnel")
    yield Dot3(src=ether.src, dst=ether.dst) / LLC(dsap=0xE0, ssap=0xE0, ctrl=3) / Raw(b"x" * 40)
    yield Ether(src=ether.src, dst=ether.dst, type=0x88B5) / Raw(b"x" * 46)
    yield Ether(src=ether.src, dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="192.0.2.1", pdst="192.0.2.2")
    yield ether / IP(src="192.0.2.1", dst="198.51.100.2", len=19) / segment
    yield ether / IP(src="192.0.2.1", dst="198.51.100.2") / ICMP()


def kind_of(row):
    """(reason, EtherType) of a frame that is not inspected as a whole, by what tshark says of it."""
    outer = row["eth.type"].split(",")[0]
    types = ([outer] if outer else []) + [kind for kind in row["vlan.etype"].split(",") if kind]
    if not types:
        return "not_ipv4", "llc"
    kind = int(types[min(2, len(types) - 1)], 16)
    name = NAMES.get(kind, "other")
    if kind == 0x0806:
        return "link_local", name
    if kind != 0x0800:
        return "not_ipv4", name
    if not row["ip.dst"] or "_ws.malformed" in row["frame.protocols"]:
        return "malformed", name
    protocols = row["frame.protocols"].split(":ethertype:ip", 1)[1]
    tunnels = [reason for word, reason in TUNNELS.items() if f":{word}:" in f":ip{protocols}:"]
    return (tunnels[0], name) if tunnels else None


def run(both, shards, nf):
    report = json.loads(both.run(shards, {nf: NFS[nf][0]}, "--json"))["nfs"][0]
    counts = {(row["reason"], row["ethertype"], row["verdict"]): row["packets"] for row in report["not_inspected"]}
    return counts, both.lines("rec.jsonl")


def main():
    sent = [bytes(frame) for frame in frames()]
    with comparison(sent, FILES) as both:
        seen = [dict(zip(FIELDS, row)) for row in both.seen_by_tshark(*FIELDS)]
        assert len(seen) == len(sent)
        kinds = [kind_of(row) for row in seen]
        assert {kind[0] for kind in kinds if kind} == {"not_ipv4", "link_local", "malformed", *TUNNELS.values()}, kinds
        for nf, (_, drop_reason, counts_tunnels) in NFS.items():
            verdicts = lambda kind: ("outer" if kind[0].startswith("tunnel") else
                                     "drop" if drop_reason and kind[0] != "link_local" else "pass")
            expected = collections.Counter((*kind, verdicts(kind)) for kind in kinds
                                           if kind and (counts_tunnels or not kind[0].startswith("tunnel")))
            for shards in (1, 3):
                counts, records = run(both, shards, nf)
                assert counts == expected, (nf, shards, set(counts.items()) ^ set(expected.items()))
                dropped = {line["packet"]: line for line in records if line.get("reason", "no") == drop_reason}
                assert len(dropped) == sum(kind is not None and verdicts(kind) == "drop" for kind in kinds)
                for packet, line in dropped.items():
                    row, (reason, _) = seen[packet], kinds[packet]
                    types = [kind for kind in (row["eth.type"].split(",")[0], *row["vlan.etype"].split(",")) if kind]
                    assert line["ethertype"] == ("llc" if not types else f"{int(types[-1], 16):#06x}"), (line, row)
                    family = {"0x0800": "ip", "0x86dd": "ipv6"}.get(line["ethertype"])
                    if family and reason != "malformed":
                        ends = row[f"{family}.src"].split(",")[0], row[f"{family}.dst"].split(",")[0]
                        assert (line["src"], line["dst"]) == ends, (line, row)
                    elif reason != "malformed":
                        assert "src" not in line and "proto" not in line, line
    print(f"{len(sent)} frames, {sum(kind is not None for kind in kinds)} of them not inspected or not as a whole")


main()
