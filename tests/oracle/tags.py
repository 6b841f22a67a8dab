#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what Catena finds after VLAN tags with what tshark finds.

    tags.py CATENA [--device none]

Frames with no tag, with each type of tag, and with each pair of types, priority tags too. Firewall, nids and monitor
must read every one as tshark does: addresses and ports of the datagram, and so the rule that denies it, the content in
it and its flow. tshark dissects 0x9200 as a tag only where it is told to.
"""
import itertools
import struct

from frames import read_frames
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw
from comparison import comparison

TYPES = (0x8100, 0x88A8, 0x9100, 0x9200)
NFS = {
    "fw": "type: firewall, config: {rules: fw.rules, default: allow}",
    "mon": "type: monitor, config: {export: [{format: json, file: flows.jsonl}]}",
    "ids": "type: nids, config: {rules: ids.rules}",
}
FILES = {
    "fw.rules": "deny udp any 198.51.100.0/24 any 53\n",
    "ids.rules": 'alert udp any any -> any any (msg:"marker"; content:"marker"; sid:1;)\n',
}


def frames():
    """Of each stack of tags one frame to port 53 and one to another."""
    stacks = [()] + [stack for count in (1, 2) for stack in itertools.product(TYPES, repeat=count)]
    for number, stack in enumerate([(types, 100) for types in stacks] + [(types, 0) for types in stacks[1:]]):
        types, vlan = stack
        tags = b"".join(struct.pack(">HH", kind, vlan + at if vlan else 0x6000) for at, kind in enumerate(types))
        for port in (53, 5000):
            datagram = IP(src=f"192.0.2.{number + 1}", dst="198.51.100.7") / UDP(sport=1024, dport=port) / Raw(b"a marker")
            yield bytes.fromhex("02000000000b02000000000a") + tags + b"\x08\x00" + bytes(datagram)


def run(both, shards):
    both.run(shards, NFS, "--eve", "eve.json")
    records = both.lines("rec.jsonl")
    denied = {line["packet"] for line in records if line.get("reason") == "denied"}
    dropped = {line["packet"] for line in records if line["verdict"] == "drop"}
    alerts = {event["pcap_cnt"] - 1: (event["src_ip"], str(event["dest_port"])) for event in both.lines("eve.json")}
    flows = {(flow["src"], str(flow["dport"])) for flow in both.lines("flows.jsonl")}
    return denied, dropped, alerts, flows


def main():
    sent = list(frames())
    with comparison(sent, FILES) as both:
        # (source, destination port) of each frame; empty where it finds no IPv4
        seen = both.seen_by_tshark("ip.src", "udp.dstport", options=["-d", "ethertype==0x9200,vlan", "-d", "udp.port==53,data"])
        assert len(seen) == len(sent) and all(address for address, _ in seen), "tshark reads every frame as IPv4"
        denied_there = {packet for packet, (_, port) in enumerate(seen) if port == "53"}
        others = {packet: flow for packet, flow in enumerate(seen) if packet not in denied_there}
        for shards in (1, 3):
            denied, dropped, alerts, flows = run(both, shards)
            assert denied == dropped == denied_there, (shards, sorted(denied ^ denied_there), sorted(dropped ^ denied_there))
            assert alerts == others, (shards, alerts, others)
            assert flows == set(others.values()), (shards, flows)
            assert read_frames(both.folder / "out.pcap") == [sent[packet] for packet in others], shards
    print(f"{len(sent)} frames")


main()
