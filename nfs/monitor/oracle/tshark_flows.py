# SPDX-License-Identifier: Apache-2.0
"""Lets tshark say what flows a capture holds.

tshark_flows.py CAPTURE FLOWS.jsonl
Per unidirectional flow the exported packets, bytes and TCP flags must be what tshark's fields add up to, and per TCP
and UDP conversation and direction the packets must be those of `-z conv`. Frames that are not IPv4, and those that end
before their datagram does, are not the monitor's.
"""
import collections
import json
import re
import subprocess
import sys

FIELDS = [
    "frame.protocols", "frame.cap_len", "ip.src", "ip.dst", "ip.proto", "ip.len", "ip.frag_offset", "tcp.srcport", "tcp.dstport", "tcp.flags",
    "udp.srcport", "udp.dstport", "icmp.type", "icmp.code",
]
OPTIONS = ["-n", "-o", "ip.defragment:FALSE", "-o", "ip.check_checksum:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE"]


def tshark(*arguments):
    return subprocess.run(["tshark", *OPTIONS, *arguments], check=True, capture_output=True, text=True).stdout


def flows_of(capture):
    """{(src, dst, sport, dport, protocol): [packets, bytes, flags]}"""
    output = tshark("-r", capture, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f",
                    *[word for field in FIELDS for word in ("-e", field)])
    flows = collections.defaultdict(lambda: [0, 0, 0])
    for line in output.splitlines():
        row = dict(zip(FIELDS, line.split(";")))
        names = row["frame.protocols"].split(":")
        if "ip" not in names:
            continue
        length, protocol = int(row["ip.len"]), int(row["ip.proto"])
        if 14 + 4 * names.count("vlan") + length > int(row["frame.cap_len"]):
            continue
        sport, dport, flags = 0, 0, 0
        if int(row["ip.frag_offset"]) == 0:
            if protocol == 6 and row["tcp.srcport"]:
                sport, dport, flags = int(row["tcp.srcport"]), int(row["tcp.dstport"]), int(row["tcp.flags"], 16)
            elif protocol == 17 and row["udp.srcport"]:
                sport, dport = int(row["udp.srcport"]), int(row["udp.dstport"])
            elif protocol == 1 and row["icmp.type"]:
                dport = int(row["icmp.type"]) * 256 + int(row["icmp.code"])
        flow = flows[row["ip.src"], row["ip.dst"], sport, dport, protocol]
        flow[0] += 1
        flow[1] += length
        flow[2] |= flags
    return dict(flows)


def conversations_of(capture, protocol):
    """{(src, sport, dst, dport): packets} of `-z conv`; a conversation may fill several rows."""
    packets = collections.Counter()
    end = r"(\d+\.\d+\.\d+\.\d+):(\d+)"
    count = r"\s+(\d+)\s+\d+ \w+"
    for line in tshark("-r", capture, "-q", "-z", "conv," + protocol).splitlines():
        row = re.match(end + r"\s+<->\s+" + end + count + count, line)
        if row:
            a, aport, b, bport, to_a, to_b = row.groups()
            packets[b, int(bport), a, int(aport)] += int(to_a)
            packets[a, int(aport), b, int(bport)] += int(to_b)
    return {key: value for key, value in packets.items() if value}


def exported(path):
    flows = collections.defaultdict(lambda: [0, 0, 0])
    with open(path) as file:
        for line in file:
            record = json.loads(line)
            flow = flows[tuple(record[name] for name in ("src", "dst", "sport", "dport", "protocol"))]
            flow[0] += record["packets"]
            flow[1] += record["bytes"]
            flow[2] |= record["tcp_flags"]
    return dict(flows)


def expect_same(found, wanted, what):
    for key in sorted(set(found) | set(wanted)):
        if found.get(key) != wanted.get(key):
            raise ValueError("%s %s is %s, not %s" % (what, key, found.get(key), wanted.get(key)))


def main():
    capture, jsonl = sys.argv[1:]
    found = exported(jsonl)
    expect_same(found, flows_of(capture), "flow")
    for name, number in (("tcp", 6), ("udp", 17)):
        packets = {(k[0], k[2], k[1], k[3]): v[0] for k, v in found.items() if k[4] == number}
        expect_same(packets, conversations_of(capture, name), name + " conversation")
    print("%d flows, %d packets" % (len(found), sum(flow[0] for flow in found.values())))


main()
