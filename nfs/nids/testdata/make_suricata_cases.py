#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the cases that hold the NIDS to Suricata: rules, packets, and the alerts that Suricata raises.

    make_suricata_cases.py [--suricata PROGRAM] [--config suricata.yaml]

writes, beside itself, contents.{rules,pcap,alerts.tsv} (chains of contents over a tiny alphabet, so that most
occurrences overlap) and headers.{rules,pcap,alerts.tsv} (addresses, ports and protocols without contents). Needs scapy
and Suricata 7. The files in the tree were made by Suricata 7.0.10.
"""
import argparse
import json
import pathlib
import random
import subprocess
import tempfile

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, wrpcap

HERE = pathlib.Path(__file__).parent
MAX_ALERTS = 255  # the most that Suricata reports for one packet: fewer rules than this lose no alert


def chain(rng):
    """The contents of one rule, as text. Two things are left out because Suricata does them otherwise:
    - a window that ends before the payload begins: its unsigned sum wraps, and Suricata looks everywhere;
    - a relative content right behind a negated one that is not relative: Suricata then tries only the first occurrence
      of the content that it is relative to."""
    text = ""
    relative_allowed = True
    for i in range(rng.choice([1, 1, 2, 2, 3, 3, 4, 5])):
        length = rng.choice([1, 1, 1, 2, 2, 3])
        literal = "".join(rng.choice("aAbBc") for _ in range(length))
        negated = rng.random() < 0.25
        text += 'content:%s"%s"; ' % ("!" if negated else "", literal)
        kind = rng.random()
        relative = relative_allowed and 0.3 <= kind < 0.85
        if kind < 0.3:
            if rng.random() < 0.7:
                text += "offset:%d; " % rng.randrange(0, 12)
            if rng.random() < 0.7:
                text += "depth:%d; " % rng.randrange(length, length + 10)
        elif relative:
            distance = rng.randrange(-4, 6) if rng.random() < 0.75 else 0
            within = rng.randrange(max(length, -distance), length + 6)
            if distance != 0:
                text += "distance:%d; " % distance
            if distance == 0 or rng.random() < 0.75:
                text += "within:%d; " % within
        if rng.random() < 0.4:
            text += "nocase; "
        relative_allowed = relative or not negated
    return text


def contents_case(rng):
    rules = ["alert udp any any -> any any (msg:\"chain %d\"; %ssid:%d;)" % (n, chain(rng), n) for n in range(1, 221)]
    packets = []
    for n in range(160):
        length = rng.choice([0, 1, 2, 3, 5, 8, 12, 16, 24, 40])
        alphabet = rng.choice(["ab", "abc", "aAbB", "aAbBcC", "a"])
        payload = "".join(rng.choice(alphabet) for _ in range(length)).encode()
        packets.append(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1024 + n, dport=9) / Raw(payload))
    return rules, packets


def address(rng, depth=0):
    kind = rng.randrange(7 if depth < 3 else 5)
    octet = lambda: rng.randrange(0, 4)
    single = "10.0.%d.%d" % (octet(), octet())
    if kind == 0:
        return "any"
    if kind == 1:
        return single
    if kind == 2:
        return "10.0.%d.0/%d" % (octet(), rng.choice([23, 24, 30, 31]))
    if kind == 3:
        first, last = sorted([octet(), octet()])
        return "10.0.%d.%d-10.0.%d.%d" % (first, octet() if first < last else 0, last, 3)
    if kind == 4:
        return "!" + single
    return rng.choice(["", "", "", "!"]) + "[" + ",".join(address(rng, depth + 1) for _ in range(rng.randrange(1, 4))) + "]"


def port(rng, depth=0, negated=False):
    kind = rng.randrange(7 if depth < 3 else 5)
    low, high = sorted([rng.randrange(1, 12), rng.randrange(1, 12)])
    if kind == 0:
        return "any"
    if kind == 1:
        return "%d" % low
    if kind == 2:
        return "%d:%d" % (low, high)
    if kind == 3:
        return rng.choice(["%d:" % low, ":%d" % high])
    # Suricata takes a negated port in a negated list as negated, and a negated address there as positive.
    if kind == 4:
        return ("" if negated else "!") + "%d" % low
    sign = "" if negated else rng.choice(["", "", "", "!"])
    return sign + "[" + ",".join(port(rng, depth + 1, negated or sign == "!") for _ in range(rng.randrange(1, 4))) + "]"


def headers_case(rng):
    rules = []
    for n in range(1, 221):
        protocol = rng.choice(["tcp", "tcp-pkt", "udp", "icmp", "ip"])
        ports = ["any", "any"] if protocol in ("icmp", "ip") else [port(rng), port(rng)]
        rules.append("alert %s %s %s %s %s %s (msg:\"header %d\"; sid:%d;)" % (
            protocol, address(rng), ports[0], rng.choice(["->", "->", "<>"]), address(rng), ports[1], n, n))
    packets = []
    for n in range(250):
        source, destination = ("10.0.%d.%d" % (rng.randrange(4), rng.randrange(4)) for _ in range(2))
        layer = rng.choice([TCP(sport=rng.randrange(1, 12), dport=rng.randrange(1, 12), flags="S", seq=n),
                            UDP(sport=rng.randrange(1, 12), dport=rng.randrange(1, 12)), ICMP()])
        packets.append(Ether() / IP(src=source, dst=destination, id=n) / layer / Raw(b"x"))
    return rules, packets


def suricata(program, config, rules, capture):
    """{frame: sids}, frames counted from 1."""
    with tempfile.TemporaryDirectory() as folder:
        log = subprocess.run(
            [program, "-c", config, "-S", rules, "-r", capture, "-l", folder, "-k", "none", "--runmode", "single",
             "--set", "packet-alert-max=%d" % MAX_ALERTS, "--set", "threshold-file=/dev/null",
             "--set", "unix-command.enabled=no"], check=True, capture_output=True, text=True)
        alerts = {}
        for line in open(pathlib.Path(folder) / "eve.json"):
            event = json.loads(line)
            if event["event_type"] == "alert":
                alerts.setdefault(event["pcap_cnt"], set()).add(event["alert"]["signature_id"])
        return alerts, log.stdout + log.stderr


def refused_by_suricata(rules, log):
    """Rules that Suricata calls wrong (an address list that matches nothing) are no cases."""
    return [rule for rule in rules if rule not in log]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--suricata", default="suricata")
    arguments.add_argument("--config", default="/etc/suricata/suricata.yaml")
    options = arguments.parse_args()
    for name, make, seed in (("contents", contents_case, 1), ("headers", headers_case, 2)):
        rules, packets = make(random.Random(seed))
        capture = str(HERE / (name + ".pcap"))
        for number, packet in enumerate(packets):
            packet.time = 1700000000 + number * 3600  # far apart, so that no flow or stream state joins two packets
        wrpcap(capture, packets)
        rules_file = HERE / (name + ".rules")
        rules_file.write_text("\n".join(rules) + "\n")
        alerts, log = suricata(options.suricata, options.config, str(rules_file), capture)
        rules = refused_by_suricata(rules, log)
        rules_file.write_text("# Made by make_suricata_cases.py.\n" + "\n".join(rules) + "\n")
        with open(HERE / (name + ".alerts.tsv"), "w") as out:
            out.write("# frame (from 1), then the sids that Suricata 7.0.10 alerts on\n")
            for frame in sorted(alerts):
                out.write("%d\t%s\n" % (frame, " ".join(map(str, sorted(alerts[frame])))))


if __name__ == "__main__":
    main()
