#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes icmp_errors.txt and fragments.txt beside this file: what scapy makes of packets, for icmp_test and
fragments_test. Not run by the tests; scapy 2.5.0 wrote the files that are kept.

    icmp_errors.txt   NAME TYPE CODE REST SOURCE IN OUT    OUT: the frame of the error, or "none"
    fragments.txt     NAME MTU IN OUT...                   OUT: the frames of the fragments
"""

import pathlib

from scapy.all import (ICMP, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPOption_NOP, IPOption_Router_Alert,
                       IPOption_Timestamp, Raw, checksum, fragment, raw)

HERE = pathlib.Path(__file__).parent
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ROUTER = "192.0.2.1"


def text(count):
    return bytes(ord("a") + i % 26 for i in range(count))


def data(count):
    return Raw(text(count))


def ether(**fields):
    return Ether(**{"src": A, "dst": B, **fields})


def answer(packet, kind, code, rest):
    """The error about `packet`, field by field."""
    datagram = raw(packet[IP])[:packet[IP].len or len(raw(packet[IP]))]
    frame = Ether(src=packet[Ether].dst, dst=packet[Ether].src, type=packet[Ether].type)
    tags = packet[Ether].payload
    while isinstance(tags, (Dot1Q, Dot1AD)):
        tag = tags.copy()
        tag.remove_payload()
        frame /= tag
        tags = tags.payload
    error = IP(src=ROUTER, dst=packet[IP].src, tos=(packet[IP].tos & 0x1E) | 0xC0, ttl=64, id=0, flags="DF", proto=1)
    message = bytes([kind, code, 0, 0]) + rest.to_bytes(4, "big") + datagram[:576 - 28]
    message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
    return raw(frame / error / Raw(message))


def built(packet):
    """With all lengths and checksums worked out."""
    return packet.__class__(raw(packet))


def icmp_cases():
    ip = {"src": "10.9.0.2", "dst": "198.51.100.7", "id": 7}
    udp = UDP(sport=1000, dport=2000)
    ttl, net, admin, big = (11, 0, 0), (3, 0, 0), (3, 13, 0), (3, 4, 1400)
    yes = [
        ("udp", ttl, ether() / IP(ttl=1, **ip) / udp / data(20)),
        ("tcp", net, ether() / IP(**ip) / TCP(sport=1, dport=2, seq=77) / data(5)),
        ("tos", admin, ether() / IP(tos=0x2A, **ip) / udp / data(3)),
        ("large", big, ether() / IP(**ip, flags="DF") / udp / data(1472)),
        ("quote_of_547", ttl, ether() / IP(**ip) / udp / data(519)),
        ("quote_of_548", ttl, ether() / IP(**ip) / udp / data(520)),
        ("quote_of_549", ttl, ether() / IP(**ip) / udp / data(521)),
        ("vlan", ttl, ether() / Dot1Q(vlan=42, prio=5) / IP(**ip) / udp / data(9)),
        ("qinq", ttl, ether() / Dot1AD(vlan=7) / Dot1Q(vlan=42) / IP(**ip) / udp / data(9)),
        ("options", ttl, ether() / IP(options=[IPOption_Router_Alert()], **ip) / udp / data(9)),
        ("padded", ttl, ether() / IP(**ip) / udp / data(1) / Raw(b"")),
        ("echo_request", ttl, ether() / IP(**ip) / ICMP(type=8, id=3, seq=4) / data(8)),
        ("timestamp_request", ttl, ether() / IP(**ip) / ICMP(type=13, id=3, seq=4, ts_ori=5, ts_rx=0, ts_tx=0)),
        ("mask_request", net, ether() / IP(**ip) / ICMP(type=17, id=3, seq=4)),
        ("first_fragment", ttl, ether() / IP(flags="MF", **ip) / udp / data(32)),
        ("no_transport", net, ether() / IP(proto=99, **ip) / data(0)),
    ]
    no = [
        ("later_fragment", ether() / IP(frag=5, proto=17, **ip) / data(32)),
        ("last_fragment", ether() / IP(frag=5, flags=0, proto=6, **ip) / data(3)),
        ("icmp_error_unreachable", ether() / IP(**ip) / ICMP(type=3, code=1) / data(28)),
        ("icmp_error_quench", ether() / IP(**ip) / ICMP(type=4) / data(28)),
        ("icmp_error_redirect", ether() / IP(**ip) / ICMP(type=5) / data(28)),
        ("icmp_error_time", ether() / IP(**ip) / ICMP(type=11) / data(28)),
        ("icmp_error_parameter", ether() / IP(**ip) / ICMP(type=12) / data(28)),
        ("icmp_router_advertisement", ether() / IP(**ip) / ICMP(type=9) / data(12)),
        ("icmp_unassigned_1", ether() / IP(**ip) / ICMP(type=1) / data(12)),
        ("icmp_unknown_42", ether() / IP(**ip) / ICMP(type=42) / data(12)),
        ("icmp_unknown_255", ether() / IP(**ip) / ICMP(type=255) / data(12)),
        ("icmp_cut", ether() / IP(proto=1, **ip) / Raw(b"\x08\x00\x00")),
        ("to_broadcast_mac", ether(dst="ff:ff:ff:ff:ff:ff") / IP(**ip) / udp / data(4)),
        ("to_multicast_mac", ether(dst="01:00:5e:00:00:05") / IP(**ip) / udp / data(4)),
        ("from_multicast_mac", ether(src="03:00:00:00:00:01") / IP(**ip) / udp / data(4)),
        ("arp_like", ether(type=0x0806) / data(28)),
    ]
    sources = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"]
    no += [(f"from_{source}", ether() / IP(src=source, dst="198.51.100.7") / udp / data(4)) for source in sources]
    targets = ["224.0.0.1", "239.1.2.3", "255.255.255.255", "240.0.0.1"]
    no += [(f"to_{target}", ether() / IP(src="10.9.0.2", dst=target) / udp / data(4)) for target in targets]
    for name, (kind, code, rest), packet in yes:
        packet = built(packet)
        if name == "padded":
            packet = Ether(raw(packet) + b"\xEE" * 17)
            out = answer(built(ether() / IP(**ip) / udp / data(1)), kind, code, rest)
        else:
            out = answer(packet, kind, code, rest)
        yield name, kind, code, rest, raw(packet), out
    for fields in ({}, {"options": [IPOption_Router_Alert()], "ttl": 3}):
        request = built(ether() / IP(**ip, **fields) / ICMP(type=8, id=3, seq=4) / data(11))
        reply = Ether(src=B, dst=A) / IP(**{**ip, **fields, "src": ip["dst"], "dst": ip["src"], "ttl": 64})
        yield "echo_request_to_reply", 0, 0, 0, raw(request), raw(reply / ICMP(type=0, id=3, seq=4) / data(11))
    for name, packet in no:
        yield name, 11, 0, 0, raw(built(packet)), None


def fragment_cases():
    ip = {"src": "10.9.0.2", "dst": "198.51.100.7", "id": 4711, "ttl": 63, "tos": 0x2C}
    udp = UDP(sport=1000, dport=2000)
    plain = [
        ("two", 1500, ether() / IP(**ip) / udp / data(1552 - 28)),
        ("just_too_long", 1500, ether() / IP(**ip) / udp / data(1501 - 28)),
        ("three", 600, ether() / IP(**ip) / udp / data(1500 - 28)),
        ("exactly_two", 516, ether() / IP(**ip) / udp / data(2 * 496 - 8)),
        ("least_mtu", 68, ether() / IP(**ip) / udp / data(300)),
        ("vlan", 576, ether() / Dot1Q(vlan=3) / IP(**ip) / udp / data(1000)),
        ("esp", 1400, ether() / IP(proto=50, **ip) / data(1480)),
    ]
    for name, mtu, packet in plain:
        yield name, mtu, raw(packet), [raw(part) for part in scapy_fragments(packet, mtu)]
    # of a fragment: scapy's fragment() forgets where it stood
    middle = ether() / IP(**ip, frag=100, flags="MF", proto=17) / data(800)
    last = ether() / IP(**ip, frag=100, flags=0, proto=17) / data(801)
    for name, packet, end in (("middle_fragment", middle, "MF"), ("last_fragment", last, 0)):
        parts = []
        payload = raw(packet[IP].payload)
        for at in range(0, len(payload), 400):
            done = len(payload) - at <= 405  # the last one may carry what is no multiple of 8
            parts.append(raw(ether() / IP(**ip, proto=17, frag=100 + at // 8, flags=end if done else "MF")
                             / Raw(payload[at:] if done else payload[at:at + 400])))
            if done:
                break
        yield name, 425, raw(packet), parts
    # router alert is copied into every fragment, a timestamp is not (RFC 791, section 3.1)
    alert, stamp = IPOption_Router_Alert(), IPOption_Timestamp(length=12, pointer=9, flg=0, timestamp=1)
    options = [IPOption_NOP(), alert, stamp]
    packet = ether() / IP(**ip, proto=17, options=options) / data(1000)
    first_header = len(raw(IP(options=options)))
    first = (516 - first_header) // 8 * 8
    later = (516 - 24) // 8 * 8
    parts = [raw(ether() / IP(**ip, proto=17, flags="MF", options=options) / Raw(text(1000)[:first]))]
    for at in range(first, 1000, later):
        done = at + later >= 1000
        parts.append(raw(ether() / IP(**ip, proto=17, flags=0 if done else "MF", frag=at // 8, options=[alert])
                         / Raw(text(1000)[at:at + later])))
    yield "options", 516, raw(packet), parts


def scapy_fragments(packet, mtu):
    """scapy takes the data bytes of a fragment, not the MTU; the last one may be longer than a multiple of 8."""
    parts = fragment(built(packet), fragsize=(mtu - 20) // 8 * 8)
    if len(parts) > 2 or len(raw(packet[IP])) - 20 <= (mtu - 20) // 8 * 8:
        whole = sum(len(raw(part[IP].payload)) for part in parts[-2:])
        assert whole > mtu - 20, "the last two parts would fit one fragment"
    return parts


def main():
    with open(HERE / "icmp_errors.txt", "w", encoding="ascii") as file:
        file.write("# by make_cases.py with scapy: NAME TYPE CODE REST SOURCE IN OUT\n")
        for name, kind, code, rest, before, after in icmp_cases():
            file.write(f"{name} {kind} {code} {rest} {ROUTER} {before.hex()} {after.hex() if after else 'none'}\n")
    with open(HERE / "fragments.txt", "w", encoding="ascii") as file:
        file.write("# by make_cases.py with scapy: NAME MTU IN OUT...\n")
        for name, mtu, before, after in fragment_cases():
            file.write(f"{name} {mtu} {before.hex()} {' '.join(part.hex() for part in after)}\n")


if __name__ == "__main__":
    main()
