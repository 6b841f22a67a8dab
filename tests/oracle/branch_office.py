#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/branch-office.yaml and judges what comes out, with plain Python and scapy alone.

    branch_office.py CATENA EXAMPLES_DIR [--device none]

The script reads the example's own files, decides each captured packet the slow way (rules from the top, contents at
every place, prefixes one by one), and compares: every record line; the number and order of packets sent; each ESP
packet decrypted by scapy with a good ICV and the captured datagram inside; outer header, MAC addresses and port.
"""

import argparse
import collections
import datetime
import ipaddress
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import yaml
from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.utils import RawPcapReader, checksum

PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}
HEADER_BYTES = {1: 8, 17: 8}


class Packet:
    """A captured frame, taken apart."""

    def __init__(self, frame):
        at = 12
        while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        self.frame, self.l3 = frame, at + 2
        self.is_ipv4 = frame[at:at + 2] == b"\x08\x00"
        self.is_control = frame[at:at + 2] == b"\x08\x06" or frame[:6] == b"\x01\x00\x0c\xcc\xcc\xcc"
        if not self.is_ipv4:
            return
        datagram = frame[at + 2:]
        self.datagram = datagram[:struct.unpack_from("!H", datagram, 2)[0]]
        self.protocol = datagram[9]
        self.source, self.destination = (ipaddress.IPv4Address(datagram[i:i + 4]) for i in (12, 16))
        l4 = self.datagram[(datagram[0] & 15) * 4:]
        self.ports = struct.unpack_from("!HH", l4) if self.protocol in (6, 17) else None
        header = (l4[12] >> 4) * 4 if self.protocol == 6 else HEADER_BYTES.get(self.protocol, 0)
        self.payload = l4[header:]


def lines_of(path):
    """(line number from 0, fields) of each line that is not a comment."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        text = line.split("#")[0].split()
        if text:
            yield number, text


def port_range(text):
    first, _, last = text.partition("-")
    return range(0, 65536) if text == "any" else range(int(first), int(last or first) + 1)


def network(text):
    return ipaddress.IPv4Network("0.0.0.0/0" if text == "any" else text)


class Firewall:
    """First match from the top."""

    def __init__(self, path):
        self.rules = []
        for _, (action, protocol, source, destination, sport, dport) in lines_of(path):
            self.rules.append((action, PROTOCOLS[protocol], network(source), network(destination), sport, dport))

    def decide(self, packet):
        for number, (action, protocol, source, destination, sport, dport) in enumerate(self.rules):
            if packet.protocol != protocol or packet.source not in source or packet.destination not in destination:
                continue
            if packet.ports is None:
                if (sport, dport) == ("any", "any"):
                    return action, number
            elif packet.ports[0] in port_range(sport) and packet.ports[1] in port_range(dport):
                return action, number
        return "allow", -1


def content_bytes(text):
    parts = text.split("|")
    return b"".join(part.encode() if i % 2 == 0 else bytes.fromhex(part) for i, part in enumerate(parts))


class Rule:
    """One detection rule."""

    FORM = re.compile(r"(alert|drop) (\w+) (\S+) (\S+) -> (\S+) (\S+) \((.*)\)$")

    def __init__(self, line, variables):
        match = self.FORM.match(line)
        self.action, protocol, *header, options = match.groups()
        self.protocol = PROTOCOLS[protocol]
        source, self.sport, destination, self.dport = (variables.get(word.lstrip("$"), word) for word in header)
        self.source, self.destination = network(source), network(destination)
        self.contents = []
        for option in filter(None, (text.strip() for text in options.split(";"))):
            name, _, value = option.partition(":")
            if name == "content":
                self.contents.append({"negated": value.startswith("!"), "bytes": content_bytes(value.strip('!"'))})
            elif name in ("nocase", "offset", "depth", "distance", "within"):
                self.contents[-1][name] = int(value or 1)
            elif name == "sid":
                self.sid = int(value)

    def matches(self, packet):
        if packet.protocol != self.protocol or packet.source not in self.source:
            return False
        if packet.destination not in self.destination:
            return False
        if packet.ports and not (packet.ports[0] in port_range(self.sport) and packet.ports[1] in port_range(self.dport)):
            return False
        return self.matches_from(packet.payload, 0, 0)

    def matches_from(self, payload, number, previous):
        if number == len(self.contents):
            return True
        content = self.contents[number]
        text, pattern = payload, content["bytes"]
        if "nocase" in content:
            text, pattern = text.lower(), pattern.lower()
        if "distance" in content or "within" in content:
            first = previous + content.get("distance", 0)
            last = first + content.get("within", len(payload))
        else:
            first = content.get("offset", 0)
            last = first + content.get("depth", len(payload))
        places = [at for at in range(max(first, 0), min(last, len(text)) - len(pattern) + 1)
                  if text[at:at + len(pattern)] == pattern]
        if content["negated"]:
            return not places and self.matches_from(payload, number + 1, previous)
        return any(self.matches_from(payload, number + 1, at + len(pattern)) for at in places)


class Tunnel:
    """One association: what it carries, and scapy to open it."""

    def __init__(self, entry):
        self.entry, self.sent = entry, 0
        self.protocol = PROTOCOLS.get(entry.get("selector", {}).get("protocol"))
        self.udp = entry.get("udp_encapsulation")
        self.peer = SecurityAssociation(
            ESP, spi=entry["spi"], crypt_algo="AES-CTR",
            crypt_key=bytes.fromhex(entry["encryption_key"] + entry["salt"]), auth_algo="HMAC-SHA1-96",
            auth_key=bytes.fromhex(entry["authentication_key"]),
            tunnel_header=IP(src=entry["source"], dst=entry["destination"]))

    def carries(self, packet):
        return self.protocol in (None, packet.protocol)

    def open(self, datagram, inner):
        """The datagram inside; asserts what stands around it."""
        outer = IP(datagram)
        assert (outer.src, outer.dst) == (self.entry["source"], self.entry["destination"]), outer.summary()
        assert checksum(datagram[:20]) == 0, "outer checksum"
        assert len(datagram) == outer.len, "bytes behind the outer datagram"
        assert outer.ttl == 63, "64 of the tunnel, less the router's one"
        tos = self.entry["dscp"] << 2 | inner[1] & 3 if "dscp" in self.entry else inner[1]
        assert outer.tos == tos, f"tos {outer.tos}, expected {tos}"
        esp = datagram[20:]
        if self.udp:
            ports = (self.udp["source_port"], self.udp["destination_port"])
            assert outer.proto == 17 and struct.unpack_from("!HH", esp) == ports, outer.summary()
            esp = esp[8:]
        else:
            assert outer.proto == 50, outer.summary()
        spi, sequence = struct.unpack_from("!II", esp)
        assert (spi, sequence) == (self.entry["spi"], self.sent), f"spi {spi}, sequence number {sequence}"
        return self.peer.decrypt(IP(src=outer.src, dst=outer.dst, proto=50) / ESP(esp)).original


class Router:
    """Longest prefix by looking at all."""

    def __init__(self, path, ports):
        self.routes = [(network(prefix), int(port)) for _, (prefix, port) in lines_of(path)]
        self.macs = {entry["port"]: bytes.fromhex((entry["next_hop_mac"] + entry["mac"]).replace(":", ""))
                     for entry in ports}

    def port(self, destination):
        address = ipaddress.IPv4Address(destination)
        return max((prefix.prefixlen, port) for prefix, port in self.routes if address in prefix)[1]


def read_frames(path):
    return [data for data, _ in RawPcapReader(str(path))]


def read_stamps(path):
    """Arrival times as record lines have them."""
    reader = RawPcapReader(str(path))
    stamps = []
    for _, meta in reader:
        second = datetime.datetime.fromtimestamp(meta.sec, datetime.timezone.utc)
        stamps.append(f"{second:%Y-%m-%dT%H:%M:%S}.{meta.usec if reader.nano else meta.usec * 1000:09}Z")
    return stamps


def not_ipv4(frame):
    """What the record line of a frame without IPv4 says of it: its EtherType behind the tags, and IPv6's addresses."""
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8", b"\x91\x00", b"\x92\x00"):
        at += 4
    kind = int.from_bytes(frame[at:at + 2], "big")
    if kind < 0x600:  # the length of an 802.3 frame
        return {"ethertype": "llc"}
    line = {"ethertype": f"{kind:#06x}"}
    if kind == 0x86DD:
        line["proto"] = frame[at + 8]  # the next header
        line |= {name: str(ipaddress.IPv6Address(frame[at + 2 + begin:at + 18 + begin])) for name, begin in (("src", 8), ("dst", 24))}
    return line


class Model:
    """The chain, decided the slow way. `judge()` takes the packets in order."""

    def __init__(self, folder):
        spec = yaml.safe_load((folder / "branch-office.yaml").read_text(encoding="utf-8"))["spec"]
        fw, ids, vpn, rt = (nf["config"] for nf in spec["nfs"])
        self.firewall = Firewall(folder / fw["rules"])
        variables = {name: str(value) for name, value in ids["variables"].items()}
        self.rules = [Rule(line, variables) for line in (folder / ids["rules"]).read_text(encoding="utf-8").splitlines()
                      if line and not line.startswith("#")]
        self.tunnels = [Tunnel(entry) for entry in yaml.safe_load((folder / vpn["sa"]).read_text())["associations"]]
        self.router = Router(folder / rt["routes"], rt["ports"])
        self.seen = collections.Counter()

    def judge(self, index, stamp, packet, sent):
        """The record lines of one packet; `sent` gives the frames that left, of which it takes its own."""
        for line in self.decisions(index, packet, sent):
            # what every line has of the packet as it came, before a tunnel hid it
            line |= {"ts": stamp}
            if packet.is_ipv4:
                line |= {"src": str(packet.source), "dst": str(packet.destination), "proto": packet.protocol}
                if packet.ports:
                    line |= dict(zip(("sport", "dport"), packet.ports))
            elif line["verdict"] == "drop":
                line |= not_ipv4(packet.frame)
            yield line

    def decisions(self, index, packet, sent):
        if packet.is_control:
            self.seen["ARP and CDP"] += 1
            assert next(sent) == packet.frame, "a frame that no NF decides was changed"
            return
        if not packet.is_ipv4:
            self.seen["not IPv4"] += 1
            yield {"packet": index, "nf": "fw", "verdict": "drop", "reason": "unsupported"}
            return
        action, rule = self.firewall.decide(packet)
        if action == "deny":
            self.seen["denied"] += 1
            yield {"packet": index, "nf": "fw", "verdict": "drop", "reason": "denied", "rule": rule}
            return
        yield {"packet": index, "nf": "fw", "verdict": "pass", "rule": rule}

        hits = [rule for rule in self.rules if rule.matches(packet)]
        sids = sorted({rule.sid for rule in hits})
        if any(rule.action == "drop" for rule in hits):
            self.seen["stopped"] += 1
            yield {"packet": index, "nf": "ids", "verdict": "drop", "reason": "rule", "matches": sids}
            return
        if hits:
            self.seen["alerts"] += 1
            yield {"packet": index, "nf": "ids", "verdict": "alert", "matches": sids}

        tunnel = next(tunnel for tunnel in self.tunnels if tunnel.carries(packet))
        tunnel.sent += 1
        self.seen[f"spi {tunnel.entry['spi']}"] += 1
        yield {"packet": index, "nf": "vpn", "verdict": "pass", "spi": tunnel.entry["spi"], "seq": tunnel.sent}
        port = self.router.port(tunnel.entry["destination"])
        yield {"packet": index, "nf": "rt", "verdict": "pass", "port": port}

        frame = next(sent)
        assert frame[:12] == self.router.macs[port], "MAC addresses"
        assert frame[12:packet.l3] == packet.frame[12:packet.l3], "VLAN tags"
        assert tunnel.open(frame[packet.l3:], packet.datagram) == packet.datagram, "the inner datagram was changed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catena")
    parser.add_argument("examples", type=pathlib.Path)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    captured = options.examples / "branch-office.pcap"
    with tempfile.TemporaryDirectory() as folder:
        sent, record = pathlib.Path(folder) / "sent.pcap", pathlib.Path(folder) / "record.jsonl"
        run = subprocess.run([options.catena, "run", options.examples / "branch-office.yaml", "--rx", f"pcap:{captured}",
                              "--tx", f"pcap:{sent}", "--record", record, "--device", options.device],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"catena ended with status {run.returncode}\n{run.stdout}")
        frames = iter(read_frames(sent))
        lines = iter([json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()])

    model = Model(options.examples)
    for index, (frame, stamp) in enumerate(zip(read_frames(captured), read_stamps(captured), strict=True)):
        try:
            for expected in model.judge(index, stamp, Packet(frame), frames):
                actual = next(lines, None)
                assert actual == expected, f"record line {actual}, expected {expected}"
        except (AssertionError, StopIteration) as error:
            sys.exit(f"packet {index}: {error or 'is missing in the output'}")
    left_frames, left_lines = len(list(frames)), len(list(lines))
    if left_frames or left_lines:
        sys.exit(f"{left_frames} packets and {left_lines} record lines more than there should be")
    for kind in ("denied", "stopped", "alerts"):
        if not model.seen[kind]:
            sys.exit(f"the example has no packet of kind '{kind}': nothing was shown")
    print("as the model says:", ", ".join(f"{kind} {count}" for kind, count in sorted(model.seen.items())))


if __name__ == "__main__":
    main()
