#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `catena run --eve` writes with what Suricata wrote for the same rules and captures.

    eve.py CATENA SOURCE_DIR [--device none] [--shared DIR]

Without --shared: the case `eve` of nfs/nids/testdata, member by member, and the addresses and times of --record beside.
With it: the alerts of et150_perpacket.rules on two captures of the shared data (time, 5-tuple, sid, message). Exit
status 77 where that folder is not there.
"""

import argparse
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from scapy.utils import RawPcapReader

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: eve-test}}
spec:
  rx: {{pcap: {capture}}}
  tx: null
  nfs:
    - {{name: ids, type: nids, on: gpu, config: {{rules: {rules}{more}}}}}
"""
PROTOCOLS = {"ICMP": 1, "TCP": 6, "UDP": 17}


def run(options, capture, rules, more=""):
    """The lines of --eve and of --record."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "chain.yaml").write_text(CHAIN.format(capture=capture, rules=rules, more=more))
        result = subprocess.run([options.catena, "run", folder / "chain.yaml", "--device", options.device, "--eve",
                                 folder / "eve.json", "--record", folder / "record.jsonl"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"catena ended with status {result.returncode}\n{result.stdout}")
        return [[json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
                for name in ("eve.json", "record.jsonl")]


def same(what, actual, expected):
    """Both are lists of comparable things."""
    actual, expected = collections.Counter(actual), collections.Counter(expected)
    if actual != expected:
        sys.exit(f"{what}: {sum((actual - expected).values())} more than Suricata, as {next(iter(actual - expected), '-')}; "
                 f"{sum((expected - actual).values())} less, as {next(iter(expected - actual), '-')}")
    if not expected:
        sys.exit(f"{what}: nothing to compare")


def stamps(capture):
    """Times of the frames, as EVE has them."""
    times = []
    for _, meta in (reader := RawPcapReader(str(capture))):
        if hasattr(meta, "tshigh"):
            micro = ((meta.tshigh << 32) | meta.tslow) * 1000000 // meta.tsresol
        else:
            micro = meta.sec * 1000000 + (meta.usec // 1000 if reader.nano else meta.usec)
        second = datetime.datetime.fromtimestamp(micro // 1000000, datetime.timezone.utc)
        times.append(f"{second:%Y-%m-%dT%H:%M:%S}.{micro % 1000000:06}+0000")
    return times


def compare_case(options):
    folder = options.source / "nfs/nids/testdata"
    expected = [json.loads(line) for line in (folder / "eve.jsonl").read_text(encoding="utf-8").splitlines()]
    alerts, records = run(options, folder / "eve.pcap", folder / "eve.rules",
                          f", classification: {folder / 'eve.classification.config'}")
    for alert in alerts:
        rest = [alert.pop(key) for key in ("event_type", "chain", "nf")]
        if rest != ["alert", "eve-test", "ids"]:
            sys.exit(f"event_type, chain and nf are {rest}")
    # packet order is promised; the order of a packet's alerts is not compared
    if [alert["pcap_cnt"] for alert in alerts] != sorted(alert["pcap_cnt"] for alert in alerts):
        sys.exit("alerts are not in packet order")
    same("alerts", [json.dumps(alert, sort_keys=True) for alert in alerts],
         [json.dumps(alert, sort_keys=True) for alert in expected])

    by_frame = {event["pcap_cnt"]: event for event in expected}
    for record in records:
        event = by_frame[record["packet"] + 1]
        if record["ts"][:26] != event["timestamp"][:26]:
            sys.exit(f"record {record} is of another time than {event['timestamp']}")
        if [record["src"], record["dst"], record.get("sport"), record.get("dport")] != [
                event["src_ip"], event["dest_ip"], event.get("src_port"), event.get("dest_port")]:
            sys.exit(f"record {record} has other addresses than {event}")
        if event["proto"] in PROTOCOLS and record["proto"] != PROTOCOLS[event["proto"]]:
            sys.exit(f"record {record} has another protocol than {event['proto']}")
    same("packets with records", [record["packet"] + 1 for record in records], list(by_frame))
    print(f"{len(expected)} alerts, {len(records)} records")


def compare_shared(options):
    rules = options.shared / "nids/et150_perpacket.rules"
    messages = {}
    for line in rules.read_text(encoding="utf-8").splitlines():
        if found := re.search(r'msg:"(.*?)";.*\bsid:(\d+);', line):
            messages[int(found[2])] = found[1]
    for name in ("mixed.pcap", "onvm_64B_download.pcap"):
        capture = options.shared / "traces" / name
        alerts, _ = run(options, capture, rules)
        times = stamps(capture)
        expected = []
        for line in (options.shared / f"nids/et150_perpacket.{name}.suricata_alerts.tsv").read_text().splitlines():
            frame, sid, protocol, source, sport, destination, dport = (line.split("\t") + [""] * 7)[:7]
            if not line.startswith("#") and ":" not in source:
                expected.append((int(frame), times[int(frame) - 1], int(sid), messages[int(sid)], protocol, source, sport,
                                 destination, dport))
        same(name, [(alert["pcap_cnt"], alert["timestamp"], alert["alert"]["signature_id"], alert["alert"]["signature"],
                     alert["proto"], alert["src_ip"], str(alert.get("src_port", "")), alert["dest_ip"],
                     str(alert.get("dest_port", ""))) for alert in alerts], expected)
        print(f"{name}: {len(expected)} alerts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catena")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--device", default="none")
    parser.add_argument("--shared", type=pathlib.Path)
    options = parser.parse_args()
    if options.shared is None:
        compare_case(options)
    elif options.shared.is_dir():
        compare_shared(options)
    else:
        print(f"skipped: {options.shared} is not there")
        sys.exit(77)


if __name__ == "__main__":
    main()
