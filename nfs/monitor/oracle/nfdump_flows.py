# SPDX-License-Identifier: Apache-2.0
"""Lets nfdump say what a collector (nfcapd) has received.

nfdump_flows.py FOLDER FLOWS.jsonl
The records in FOLDER must be those of FLOWS.jsonl.
"""
import collections
import datetime
import json
import subprocess
import sys

FLAGS = "CEUAPRSF"  # as nfdump writes them, 0x80 first


def milliseconds(text):
    moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return round(moment.timestamp() * 1000)


def received(folder):
    """How often each record is there, as nfdump prints it."""
    command = ["nfdump", "-R", folder, "-o", "json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={"TZ": "UTC", "PATH": "/usr/bin:/bin"})
    records = json.loads(output.stdout)
    return collections.Counter(
        (
            record["src4_addr"],
            record["dst4_addr"],
            record.get("src_port", 0),
            record["icmp_type"] * 256 + record["icmp_code"] if record["proto"] == 1 else record["dst_port"],
            record["proto"],
            record["src_tos"],
            record["in_packets"],
            record["in_bytes"],
            milliseconds(record["first"]),
            milliseconds(record["last"]),
            sum(bit << shift for shift, bit in enumerate(c != "." for c in reversed(record.get("tcp_flags", "")))),
        )
        for record in records
    )


def expected(path):
    names = ["src", "dst", "sport", "dport", "protocol", "tos", "packets", "bytes"]
    records = collections.Counter()
    with open(path) as file:
        for line in file:
            flow = json.loads(line)
            times = (flow["first_ns"] // 10**6, flow["last_ns"] // 10**6)
            records[tuple(flow[name] for name in names) + times + (flow["tcp_flags"] & 0xFF,)] += 1
    return records


def main():
    folder, jsonl = sys.argv[1:]
    found, wanted = received(folder), expected(jsonl)
    for record in sorted(set(found) | set(wanted)):
        if found[record] != wanted[record]:
            raise ValueError("%s is there %d times, not %d" % (record, found[record], wanted[record]))
    print("%d records" % sum(found.values()))


main()
