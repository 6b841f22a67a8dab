#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Splits datagrams as attackers do, lets a firewall filter the parts, and puts together what is left.

    fragments.py CATENA [--device none]

scapy makes TCP segments and UDP datagrams to a port that the firewall denies and to one that it allows, which come in
fragments of every size, with headers split, doubled or overwritten (RFC 1858, RFC 3128). What the firewall let through
is put together here by hosts that prefer the first or the last of overlapping bytes, in any order of arrival. None may
get a whole datagram for the denied port, or a SYN out of a segment that had none; and datagrams for the allowed port
whose first fragment has the whole header must all arrive. That the attacks work without the firewall is checked too.
"""

import itertools
import json
import sys

from comparison import comparison
from frames import read_frames
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

DENIED, ALLOWED = 22, 80
SOURCE, TARGET = "10.0.0.1", "192.0.2.1"
RULES = f"deny tcp any any any {DENIED}\ndeny udp any any any {DENIED}\nallow any any any any any\n"
NFS = {"fw": "type: firewall, config: {rules: fw.rules, default: deny}"}
SYN, ACK = 0x02, 0x10


def transport(protocol, port, flags=SYN):
    """The bytes behind the IPv4 header of one datagram."""
    ip = IP(src=SOURCE, dst=TARGET)
    if protocol == 17:
        return bytes(ip / UDP(sport=4000, dport=port) / Raw(b"u" * 56))[20:]
    options = [("MSS", 1460), ("Timestamp", (1, 2)), ("WScale", 7), ("NOP", None), ("SAckOK", b""), ("Timestamp", (3, 4)),
               ("NOP", None), ("NOP", None), ("NOP", None)]
    return bytes(ip / TCP(sport=4000, dport=port, flags=flags, options=options) / Raw(b"t" * 24))[20:]


class Attack:
    """Fragments of one identification: (offset in bytes, bytes, whether more follow)."""

    def __init__(self, name, protocol, parts, must_arrive=False):
        self.name, self.protocol, self.parts, self.must_arrive = name, protocol, parts, must_arrive

    def frames(self, identification):
        for offset, data, more in self.parts:
            yield bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(
                src=SOURCE, dst=TARGET, id=identification, proto=self.protocol, flags="MF" if more else 0,
                frag=offset // 8) / Raw(data))


def cut(data, *at):
    """`data` in parts that begin at these offsets, the first one at 0."""
    ends = [*at, len(data)]
    return [(begin, data[begin:end], end < len(data)) for begin, end in zip([0, *at], ends)]


def attacks():
    header = {6: lambda data: (data[12] >> 4) * 4, 17: lambda _: 8}
    for protocol, port in itertools.product((6, 17), (DENIED, ALLOWED)):
        data = transport(protocol, port)
        whole = header[protocol](data)
        for at in range(8, len(data), 8):
            yield Attack(f"{protocol} to {port} cut at {at}", protocol, cut(data, at), port == ALLOWED and at >= whole)
            for second in range(at + 8, len(data), 8):
                # the attacker may make the part at byte 8 look like a later one, so TCP's never passes
                yield Attack(f"{protocol} to {port} cut at {at} and {second}", protocol, cut(data, at, second),
                             port == ALLOWED and at >= whole)
        # a first fragment so small that the port is in no fragment at offset 0, where hosts take such
        yield Attack(f"{protocol} to {port}, 4 bytes first", protocol, [(0, data[:4], True), *cut(data, 8)[1:]])
    for protocol in (6, 17):
        good, bad = transport(protocol, ALLOWED), transport(protocol, DENIED)
        for at in (16, 24, 40, 56):
            if at >= len(good):
                continue
            # two first fragments, one for each port, in either order
            for first, second in ((good, bad), (bad, good)):
                yield Attack(f"{protocol}: two first parts of {at}", protocol,
                             [(0, first[:at], True), (0, second[:at], True), (at, good[at:], False)])
        # a later part that reaches back over the header
        for back in (8, 16):
            yield Attack(f"{protocol}: a part over byte {back}", protocol,
                         [(0, good[:56], True), (back, bad[back:56], True), (56, good[56:], False)])
    no_syn, syn = transport(6, ALLOWED, ACK), transport(6, ALLOWED, SYN)
    yield Attack("6: flags overwritten", 6, [(0, no_syn[:56], True), (8, syn[8:56], True), (56, syn[56:], False)])


def put_together(parts, last_wins):
    """The datagram's bytes, or nothing while some are missing."""
    end = next((offset + len(data) for offset, data, more in parts if not more), None)
    if end is None:
        return None
    content = [None] * end
    for offset, data, _ in parts:
        for at, byte in enumerate(data, offset):
            if at < end and (last_wins or content[at] is None):
                content[at] = byte
    return None if None in content else bytes(content)


def datagrams(frames):
    """{identification: every datagram that some host could make of the frames}."""
    parts = {}
    for frame in frames:
        ip = IP(frame[14:])
        parts.setdefault(ip.id, []).append((ip.frag * 8, bytes(ip.payload), bool(ip.flags.MF)))
    made = {}
    for identification, fragments in parts.items():
        made[identification] = {put_together(order, last) for order in itertools.permutations(fragments)
                                for last in (False, True)} - {None}
    return made


def reaches_denied(data):
    return len(data) >= 4 and int.from_bytes(data[2:4], "big") == DENIED


def main():
    tried = dict(enumerate(attacks(), start=1))
    before = [frame for identification, attack in tried.items() for frame in attack.frames(identification)]
    with comparison(before, {"fw.rules": RULES}) as both:
        drops = json.loads(both.run(1, NFS, "--json"))["nfs"][0]["drops"]
        after = read_frames(both.folder / "out.pcap")

    mistakes = []
    without, through = datagrams(before), datagrams(after)
    for identification, attack in tried.items():
        made = through.get(identification, set())
        if any(reaches_denied(data) for data in made):
            mistakes.append(f"{attack.name}: reaches port {DENIED}")
        if attack.name == "6: flags overwritten" and any(data[13] & SYN for data in made):
            mistakes.append(f"{attack.name}: a SYN")
        if attack.must_arrive and not made:
            mistakes.append(f"{attack.name}: does not arrive")
    dangerous = sum(any(reaches_denied(data) for data in made) for made in without.values())
    if dangerous < len(tried) // 3:
        mistakes.append(f"only {dangerous} of {len(tried)} attacks work without the firewall")
    if drops.get("fragment", 0) == 0 or drops.get("denied", 0) == 0:
        mistakes.append(f"drops {drops}")
    if mistakes:
        sys.exit("\n".join(mistakes))
    print(f"{len(tried)} datagrams, {dangerous} of which reach port {DENIED} without the firewall, none with it: {drops}")


if __name__ == "__main__":
    main()
