#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what Catena finds after VLAN tags with what tshark finds.

    tags.py CATENA [--device none]

Frames with no tag, with each type of tag, and with each pair of types, priority tags too. Firewall, nids and monitor
must read every one as tshark does: addresses and ports of the datagram, and so the rule that denies it, the content in
it and its flow. tshark dissects 0x9200 as a tag only where it is told to.
"""
import argparse
import itertools
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

from frames import read_frames, write_frames
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

TYPES = (0x8100, 0x88A8, 0x9100, 0x9200)
CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: tags}}
spec:
  rx: {{pcap: in.pcap}}
  tx: {{pcap: out.pcap}}
  device: {device}
  shards: {shards}
  nfs:
    - {{name: fw, type: firewall, on: {on}, config: {{rules: fw.rules, default: allow}}}}
    - {{name: mon, type: monitor, on: {on}, config: {{export: [{{format: json, file: flows.jsonl}}]}}}}
    - {{name: ids, type: nids, on: {on}, config: {{rules: ids.rules}}}}
"""
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


def seen_by_tshark(capture):
    """(source, destination port) of each frame; empty where it finds no IPv4."""
    fields = [word for name in ("ip.src", "udp.dstport") for word in ("-e", name)]
    options = ["-d", "ethertype==0x9200,vlan", "-d", "udp.port==53,data"]
    output = subprocess.run(["tshark", "-n", *options, "-r", capture, "-T", "fields", *fields], check=True,
                            capture_output=True, text=True).stdout
    return [tuple(line.split("\t")) for line in output.splitlines()]


def run(catena, folder, device, shards):
    (folder / "chain.yaml").write_text(
        CHAIN.format(device=device, on="cpu" if device == "none" else "gpu", shards=shards))
    subprocess.run([catena, "run", "chain.yaml", "--record", "rec.jsonl", "--eve", "eve.json", "-q"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    read = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines()]
    records = read("rec.jsonl")
    denied = {line["packet"] for line in records if line.get("reason") == "denied"}
    dropped = {line["packet"] for line in records if line["verdict"] == "drop"}
    alerts = {event["pcap_cnt"] - 1: (event["src_ip"], str(event["dest_port"])) for event in read("eve.json")}
    flows = {(flow["src"], str(flow["dport"])) for flow in read("flows.jsonl")}
    return denied, dropped, alerts, flows


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("catena")
    arguments.add_argument("--device", default="none")
    options = arguments.parse_args()
    if shutil.which("tshark") is None:
        print("tshark is not installed")
        sys.exit(77)
    sent = list(frames())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        write_frames(folder / "in.pcap", sent)
        seen = seen_by_tshark(str(folder / "in.pcap"))
        assert len(seen) == len(sent) and all(address for address, _ in seen), "tshark reads every frame as IPv4"
        denied_there = {packet for packet, (_, port) in enumerate(seen) if port == "53"}
        others = {packet: flow for packet, flow in enumerate(seen) if packet not in denied_there}
        for shards in (1, 3):
            denied, dropped, alerts, flows = run(options.catena, folder, options.device, shards)
            assert denied == dropped == denied_there, (shards, sorted(denied ^ denied_there), sorted(dropped ^ denied_there))
            assert alerts == others, (shards, alerts, others)
            assert flows == set(others.values()), (shards, flows)
            assert read_frames(folder / "out.pcap") == [sent[packet] for packet in others], shards
    print(f"{len(sent)} frames")


main()
