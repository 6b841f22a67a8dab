#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the cases that hold the NIDS to Suricata: rules, packets, and the alerts that Suricata raises.

    make_suricata_cases.py [--suricata PROGRAM] [--config suricata.yaml] [CASE ...]

writes, beside itself, for each case CASE.rules, CASE.pcap and CASE.alerts.tsv. Needs scapy and Suricata 7. The files in
the tree were made by Suricata 7.0.10 (Debian package 1:7.0.10-1~bpo12+1), with the command that suricata() runs.

    contents   chains of contents over a tiny alphabet, so that most occurrences overlap
    headers    addresses, ports and protocols without contents
    keywords   contents with startswith, endswith, isdataat, dsize and fast_pattern
    fields     flags of TCP, itype and icode of ICMP, and dsize, of packets of both
    tags       one content after VLAN tags of each type that Suricata knows, one or two of them
    eve        what alerts say: eve.jsonl instead of alerts.tsv, with the members that `catena run --eve` shares, of
               Suricata as an IPS (--simulate-ips) with eve.classification.config
"""
import argparse
import json
import pathlib
import random
import subprocess
import tempfile

from scapy.all import ICMP, IP, TCP, UDP, Dot1Q, Ether, Raw, wrpcap

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


def number(rng, limit, signs=("", "=", "<", "<=", ">", ">=", "<>", "-")):
    """What dsize, itype and icode take. Not here: dsize:!N, which Suricata 7.0.10 reads as dsize:N."""
    sign = rng.choice(signs)
    low = rng.randrange(limit)
    if sign in ("<>", "-"):
        return "%d%s%d" % (low, sign, low + 2 + rng.randrange(5))
    return "%s%d" % (sign, low + 1 if sign == "<" else low)


def keyword_chain(rng):
    """The options of one rule, as text. Left out, because Suricata does them otherwise:
    - endswith on a negated content, where it compares the content's first occurrence only;
    - isdataat:!1,relative behind a negated content, which it takes for endswith on that content;
    - what chain() leaves out."""
    text = "dsize:%s; " % number(rng, 14) if rng.random() < 0.3 else ""
    if rng.random() < 0.15:
        text += "isdataat:%s%d%s; " % (rng.choice(["", "!"]), rng.randrange(12), rng.choice(["", ",relative"]))
    relative_allowed = False
    has_fast_pattern = False
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3]) if text else rng.choice([1, 1, 2, 2, 3])):
        literal = "".join(rng.choice("aAbBc") for _ in range(rng.choice([1, 1, 2, 3])))
        negated = rng.random() < 0.25
        text += 'content:%s"%s"; ' % ("!" if negated else "", literal)
        kind = rng.random()
        relative = relative_allowed and 0.5 <= kind < 0.8
        if kind < 0.3:
            text += "startswith; "
        elif kind < 0.5:
            text += "offset:%d; " % rng.randrange(10) if rng.random() < 0.7 else ""
            text += "depth:%d; " % rng.randrange(len(literal), len(literal) + 9) if rng.random() < 0.7 else ""
        elif relative:
            distance = rng.randrange(-4, 6)
            text += "distance:%d; " % distance
            if rng.random() < 0.7:
                text += "within:%d; " % rng.randrange(max(len(literal), -distance), len(literal) + 6)
        if not negated and rng.random() < 0.3:
            text += "endswith; "
        if rng.random() < 0.4:
            text += "nocase; "
        if not negated and not has_fast_pattern and rng.random() < 0.3:
            has_fast_pattern = True
            text += rng.choice(["fast_pattern; ", "fast_pattern:0,1; "])
        if rng.random() < 0.3:
            inverted = not negated and rng.random() < 0.5
            text += "isdataat:%s%d%s; " % ("!" if inverted else "", rng.choice([0, 1, 1, 1, 2, 3, 5]),
                                           rng.choice(["", ",relative", ",relative", ",relative,rawbytes"]))
        relative_allowed = relative or not negated
    return text


def keywords_case(rng):
    rules = ["alert udp any any -> any any (msg:\"keywords %d\"; %ssid:%d;)" % (n, keyword_chain(rng), n)
             for n in range(1, 241)]
    packets = []
    for n in range(160):
        length = rng.choice([0, 1, 2, 3, 5, 8, 12, 16, 24, 40])
        alphabet = rng.choice(["ab", "abc", "aAbB", "aAbBcC", "a"])
        payload = "".join(rng.choice(alphabet) for _ in range(length)).encode()
        packets.append(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1024 + n, dport=9) / Raw(payload))
    return rules, packets


def tcp_flags(rng):
    """What flags takes. Left out: `!` with F, S, R, U, E or C, and `*` with flags of two of the groups FR, S, UEC and PA,
    because Suricata 7.0.10 looks only at packets that have a flag of the group before it compares."""
    mode = rng.choice(["", "", "", "+", "*", "!"])
    groups = {"": ["FSRPAUEC12"], "+": ["FSRPAUEC12"], "*": ["FR", "S", "UEC12", "PA"], "!": ["PA"]}
    letters = rng.choice(groups[mode])
    flags = "".join(sorted(rng.sample(letters, rng.randrange(1, min(4, len(letters)) + 1))))
    if rng.random() < 0.05:
        mode, flags = "", "0"
    text = flags + mode if rng.random() < 0.3 else mode + flags
    return text + ("," + "".join(rng.sample("SAFRPUCE12", rng.randrange(1, 4))) if mode in ("", "+") and flags != "0"
                   and rng.random() < 0.4 else "")


def fields_case(rng):
    rules = []
    for n in range(1, 181):
        kind = rng.choice(["flags", "flags", "icmp", "icmp", "dsize"])
        if kind == "flags":
            protocol, options = rng.choice(["tcp", "tcp", "ip"]), "flags:%s; " % tcp_flags(rng)
        elif kind == "icmp":
            protocol, options = rng.choice(["icmp", "icmp", "ip"]), "itype:%s; " % number(rng, 12)
            if rng.random() < 0.4:
                options = ("" if rng.random() < 0.5 else options) + "icode:%s; " % number(rng, 5)
            elif rng.random() < 0.1:
                options = "itype:!%d; " % rng.randrange(12)
        else:
            protocol, options = rng.choice(["tcp-pkt", "icmp", "ip"]), ""
        if kind == "dsize" or rng.random() < 0.2:
            options += "dsize:%s; " % number(rng, 8)
        rules.append("alert %s any any -> any any (msg:\"fields %d\"; %ssid:%d;)" % (protocol, n, options, n))
    packets = []
    for n in range(256 + 60):
        payload = Raw(b"x" * rng.randrange(0, 9))
        if n < 256:
            layer = TCP(sport=1024 + n, dport=80, flags=n, seq=1000 * n + 1, ack=1)
        else:
            layer = ICMP(type=rng.choice([0, 3, 4, 5, 8, 11, 12]), code=rng.randrange(0, 6), id=n, seq=1)
        packets.append(Ether() / IP(src="10.%d.%d.1" % (n // 256, n % 256), dst="10.9.0.2") / layer / payload)
    return rules, packets


def eve_case(rng):
    rules = [
        'alert udp any any -> any 53 (msg:"a class, a revision"; content:"abc"; classtype:trojan-activity; sid:1; rev:5;)',
        'alert udp any any -> any any (msg:"a priority wins"; classtype:trojan-activity; priority:9; sid:2;)',
        'alert udp any any -> any any (msg:"an unknown class"; classtype:unheard-of; sid:3;)',
        'alert udp any any -> any any (content:"no message"; sid:4;)',
        'alert udp any any -> any any (msg:"quote \\" backslash \\\\ semicolon \\; colon \\:"; content:"esc"; sid:5; gid:7; rev:2;)',
        'alert udp any any -> any any (msg:"\u00fcber \u2192 \u4e2d"; content:"utf"; sid:6;)',
        'drop udp any any -> any 99 (msg:"dropped"; classtype:misc-activity; sid:7; rev:1;)',
        'alert tcp any any -> any any (msg:"a SYN"; flags:S; sid:8;)',
        'alert tcp-pkt any any -> any any (msg:"in a segment"; content:"GET "; startswith; sid:9; rev:3;)',
        'alert icmp any any -> any any (msg:"an ICMP error"; itype:3; sid:10;)',
        'alert icmp any any -> any any (msg:"an echo"; itype:8; icode:0; sid:11;)',
        'alert ip any any -> any any (msg:"any IPv4"; classtype:misc-activity; sid:12;)',
    ]
    packets = []
    for n in range(24):
        payload = rng.choice([b"abc", b"no message", b"esc", b"utf", b"", b"abc esc utf"])
        layer = UDP(sport=1024 + n, dport=rng.choice([53, 99, 4000])) / Raw(payload)
        packets.append(Ether() / IP(src="10.1.%d.1" % n, dst="192.0.2.%d" % (n % 7)) / layer)
    for n in range(8):
        flags, payload = rng.choice([("S", b""), ("A", b"GET / HTTP"), ("PA", b"x GET "), ("SEC", b"")])
        packets.append(Ether() / Dot1Q(vlan=n + 1) / IP(src="10.2.%d.1" % n, dst="192.0.2.9")
                       / TCP(sport=2000 + n, dport=80, flags=flags, seq=n * 1000 + 1) / Raw(payload))
    for n, (kind, code) in enumerate([(8, 0), (8, 1), (3, 1), (0, 0), (11, 0), (13, 0)]):
        packets.append(Ether() / IP(src="10.3.%d.1" % n, dst="192.0.2.8") / ICMP(type=kind, code=code, id=n)
                       / Raw(bytes(IP(src="192.0.2.8", dst="10.3.%d.1" % n) / UDP(sport=1, dport=2)) if kind in (3, 11)
                             else b"x" * 16))
    for protocol in (2, 50, 88, 89, 103, 112, 253):
        packets.append(Ether() / IP(src="10.4.%d.1" % protocol, dst="192.0.2.7", proto=protocol) / Raw(bytes(range(32))))
    return rules, packets


def tags_case(rng):
    rules = ['alert udp any any -> any any (msg:"marker"; content:"marker"; sid:1;)']
    stacks = ["", "81000000", "8100a000", "81000064", "81000064810000c8", "88a80064810000c8", "91000064810000c8",
              "88a8600081002000"]
    packets = []
    for n, tags in enumerate(stacks):
        for target, port in (("203.0.113.5", 8053), ("198.51.100.5", 53)):
            datagram = IP(src="192.0.2.%d" % (n + 1), dst=target) / UDP(sport=5000, dport=port) / Raw(b"marker")
            frame = bytes.fromhex("02000000000b02000000000a" + tags + "0800") + bytes(datagram)
            packets.append(Ether(frame.ljust(60, b"\0")))
    return rules, packets


CASES = {"contents": (contents_case, 1), "headers": (headers_case, 2), "keywords": (keywords_case, 3),
         "fields": (fields_case, 4), "eve": (eve_case, 5), "tags": (tags_case, 6)}
EVE_MEMBERS = ("timestamp", "pcap_cnt", "src_ip", "src_port", "dest_ip", "dest_port", "proto", "icmp_type", "icmp_code")
ALERT_MEMBERS = ("action", "gid", "signature_id", "rev", "signature", "category", "severity")


def suricata(program, config, rules, capture, *options):
    """The alerts of eve.json, and the log."""
    with tempfile.TemporaryDirectory() as folder:
        log = subprocess.run(
            [program, "-c", config, "-S", rules, "-r", capture, "-l", folder, "-k", "none", "--runmode", "single",
             "--set", "mpm-algo=ac", "--set", "spm-algo=bm", "--set", "packet-alert-max=%d" % MAX_ALERTS,
             "--set", "threshold-file=/dev/null", "--set", "unix-command.enabled=no", *options],
            check=True, capture_output=True, text=True)
        events = [json.loads(line) for line in open(pathlib.Path(folder) / "eve.json")]
        return [event for event in events if event["event_type"] == "alert"], log.stdout + log.stderr


def refused_by_suricata(rules, log):
    """Rules that Suricata calls wrong (an address list that matches nothing, contents that dsize leaves no room for)
    are no cases."""
    return [rule for rule in rules if rule not in log]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--suricata", default="suricata")
    arguments.add_argument("--config", default="/etc/suricata/suricata.yaml")
    arguments.add_argument("cases", nargs="*", metavar="CASE", help="of %s; default: all" % ", ".join(CASES))
    options = arguments.parse_args()
    for name in options.cases or CASES:
        make, seed = CASES[name]
        rules, packets = make(random.Random(seed))
        capture = str(HERE / (name + ".pcap"))
        for place, packet in enumerate(packets):
            # far apart, so that no flow or stream state joins two packets
            packet.time = 1700000000 + place * 3600 + (place * 12345 % 1000000 / 1e6 if name == "eve" else 0)
        wrpcap(capture, packets)
        rules_file = HERE / (name + ".rules")
        rules_file.write_text("\n".join(rules) + "\n")
        more = ("--simulate-ips", "--set", "exception-policy=ignore", "--set",
                "classification-file=%s" % (HERE / "eve.classification.config"))
        alerts, log = suricata(options.suricata, options.config, str(rules_file), capture, *(more if name == "eve" else ()))
        rules = refused_by_suricata(rules, log)
        rules_file.write_text("# Made by make_suricata_cases.py.\n" + "\n".join(rules) + "\n")
        (write_eve if name == "eve" else write_sids)(name, alerts)


def write_sids(name, alerts):
    sids = {}
    for event in alerts:
        sids.setdefault(event["pcap_cnt"], set()).add(event["alert"]["signature_id"])
    with open(HERE / (name + ".alerts.tsv"), "w") as out:
        out.write("# frame (from 1), then the sids that Suricata 7.0.10 alerts on\n")
        for frame in sorted(sids):
            out.write("%d\t%s\n" % (frame, " ".join(map(str, sorted(sids[frame])))))


def write_eve(name, alerts):
    with open(HERE / (name + ".jsonl"), "w") as out:
        for event in sorted(alerts, key=lambda event: (event["pcap_cnt"], event["alert"]["signature_id"])):
            line = {key: event[key] for key in EVE_MEMBERS if key in event}
            line["alert"] = {key: event["alert"][key] for key in ALERT_MEMBERS}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
