# SPDX-License-Identifier: Apache-2.0
"""Frames for a router, made without a library: valid ones, and what RFC 1812 tells a router to drop or to answer.

The router has 10.9.0.1/24 at the port `lan` and 198.51.100.1/24 at `wan`. Every frame comes in at `lan`, from CLIENT.
10.20.0.0/16 is behind the client, 203.0.113.0/24 behind the server, and nothing else has a route.
"""
import itertools
import random
import struct

CLIENT, LAN = "02:00:00:00:09:02", "02:00:00:00:09:01"
SERVER, WAN = "02:00:00:00:51:02", "02:00:00:00:51:01"
OWN = ("10.9.0.1", "198.51.100.1")
ICMP, IGMP, TCP, UDP = 1, 2, 6, 17
ECHO, TIMESTAMP_REQUEST, UNREACHABLE = 8, 13, 3
MORE, DONT = 0x2000, 0x4000

# what the frames of the matrix come from and go to; None: an address behind the client, another one for each frame
SOURCES = {
    "host": None, "own_lan": "10.9.0.1", "own_wan": "198.51.100.1", "lan_broadcast": "10.9.0.255",
    "wan_broadcast": "198.51.100.255", "lan_first": "10.9.0.0", "zero": "0.0.0.0", "zero_net": "0.1.2.3",
    "loopback": "127.0.0.1", "multicast": "224.0.0.1", "group": "239.1.2.3", "limited": "255.255.255.255",
    "reserved": "240.0.0.1", "link_local": "169.254.1.1", "other_side": "203.0.113.7",
}
DESTINATIONS = {
    "server": "198.51.100.2", "beyond": "203.0.113.9", "client": "10.9.0.2", "own_lan": "10.9.0.1",
    "own_wan": "198.51.100.1", "lan_broadcast": "10.9.0.255", "wan_broadcast": "198.51.100.255",
    "lan_first": "10.9.0.0", "limited": "255.255.255.255", "zero": "0.0.0.0", "zero_net": "0.1.2.3",
    "loopback": "127.0.0.1", "all_hosts": "224.0.0.1", "group": "239.1.2.3", "reserved": "240.0.0.1",
    "link_local": "169.254.9.9", "no_route": "8.8.8.8",
}


def address(text):
    return bytes(int(part) for part in text.split("."))


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icmp(kind, code=0, rest=bytes(4), data=b"", wrong=0):
    """`wrong`: what the checksum is off by."""
    whole = struct.pack("!BBH", kind, code, 0) + rest + data
    return whole[:2] + struct.pack("!H", checksum(whole) ^ wrong) + whole[4:]


def options(*parts):
    """Options as in a header, padded to a multiple of 4 with zeros."""
    whole = b"".join(parts)
    return whole + bytes(-len(whole) % 4)


def record_route(places, pointer, kind=7, length=None):
    return bytes([kind, 3 + 4 * places if length is None else length, pointer]) + bytes(4 * places)


def timestamp(data, pointer, flag, overflow=0, length=None):
    return bytes([68, 4 + len(data) if length is None else length, pointer, overflow << 4 | flag]) + data


OPTIONS = {
    "nop": options(b"\1\1\1\1"),
    "end": options(b"\0"),
    "end_then_bytes": options(b"\1\0\7\7"),
    "record_route": options(record_route(3, 4)),
    "record_route_part": options(record_route(3, 8)),
    "record_route_last": options(record_route(2, 8)),
    "record_route_full": options(record_route(1, 8)),
    "record_route_odd": options(record_route(2, 5)),
    "record_route_tight": options(record_route(1, 5)),
    "record_route_low": options(record_route(2, 3)),
    "record_route_zero": options(record_route(2, 0)),
    "record_route_short": options(record_route(0, 4)),
    "record_route_no_pointer": options(bytes([7, 2]), b"\1\1"),
    "record_route_twice": options(record_route(1, 4), record_route(1, 4)),
    "record_route_past_end": options(record_route(1, 40)),
    "time": options(timestamp(bytes(8), 5, 0)),
    "time_part": options(timestamp(bytes(8), 9, 0)),
    "time_last": options(timestamp(bytes(4), 5, 0)),
    "time_full": options(timestamp(bytes(4), 9, 0)),
    "time_full_14": options(timestamp(bytes(4), 9, 0, 14)),
    "time_full_15": options(timestamp(bytes(4), 9, 0, 15)),
    "time_tight": options(timestamp(bytes(4), 6, 0)),
    "time_low": options(timestamp(bytes(4), 4, 0)),
    "time_short": options(timestamp(b"", 5, 0, length=3)),
    "time_empty": options(timestamp(b"", 5, 0)),
    "time_twice": options(timestamp(bytes(4), 5, 0), timestamp(bytes(4), 5, 0)),
    "time_address": options(timestamp(bytes(16), 5, 1)),
    "time_address_last": options(timestamp(bytes(16), 13, 1)),
    "time_address_tight": options(timestamp(bytes(12), 13, 1)),
    "time_address_full": options(timestamp(bytes(8), 13, 1, 2)),
    "time_of_lan": options(timestamp(address("10.9.0.1") + bytes(4) + address("203.0.113.1") + bytes(4), 5, 3)),
    "time_of_wan": options(timestamp(address("198.51.100.1") + bytes(4), 5, 3)),
    "time_of_both": options(timestamp(address("10.9.0.1") + bytes(4) + address("198.51.100.1") + bytes(4), 5, 3)),
    "time_of_other": options(timestamp(address("203.0.113.1") + bytes(4), 5, 3)),
    "time_of_own_full": options(timestamp(address("10.9.0.1") + bytes(4), 13, 3)),
    "time_of_own_tight": options(timestamp(address("10.9.0.1") + bytes(4), 9, 3)),
    "time_flag_2": options(timestamp(bytes(8), 5, 2)),
    "record_route_and_time": options(record_route(2, 4), b"\1", timestamp(bytes(8), 5, 0)),
    "loose_route": options(record_route(2, 4, kind=131)),
    "strict_route": options(record_route(2, 4, kind=137)),
    "loose_route_done": options(record_route(1, 8, kind=131)),
    "strict_route_done": options(record_route(1, 8, kind=137)),
    "loose_route_empty": options(record_route(0, 4, kind=131)),
    "loose_route_low": options(record_route(1, 3, kind=131)),
    "strict_route_no_pointer": options(bytes([137, 2]), b"\1\1"),
    "loose_route_then_bad": options(record_route(2, 8, kind=131), bytes([0x5E, 0])),
    "source_routes": options(record_route(1, 4, kind=131), record_route(1, 4, kind=137)),
    "alert": options(bytes([148, 4, 0, 0])),
    "alert_1": options(bytes([148, 4, 0, 1])),
    "alert_short": options(bytes([148, 3, 0]), b"\1"),
    "alert_twice": options(bytes([148, 4, 0, 0, 148, 4, 0, 0])),
    "security": options(bytes([130, 11]) + bytes(9)),
    "stream": options(bytes([136, 4, 0, 9])),
    "unknown": options(bytes([0x5E, 4, 1, 2])),
    "unknown_copied": options(bytes([0xDE, 8, 1, 2, 3, 4, 5, 6])),
    "unknown_short": options(bytes([0x5E, 2]), b"\1\1"),
    "length_0": options(bytes([0x5E, 0, 1, 1])),
    "length_1": options(bytes([0x5E, 1, 1, 1])),
    "length_over": options(bytes([0x5E, 5, 1, 1])),
    "length_none": options(b"\1\1\1\x5e"),
    "bad_behind_good": options(record_route(1, 4), bytes([0x5E, 9])),
    "most": options(record_route(9, 4)),
}


class Frames:
    """Collects (name, frame); a frame's number is its IPv4 identification."""

    def __init__(self):
        self.made = []

    def number(self):
        return len(self.made) + 1

    def host(self):
        """Behind the client, another one for each frame: Linux limits errors by source."""
        return f"10.20.{self.number() >> 8}.{self.number() & 255}"

    def echo(self, kind=ECHO, code=0, data=b"a few bytes", wrong=0):
        """The number again, as an answer has an identification of its own."""
        return icmp(kind, code, struct.pack("!HH", self.number(), 1), data, wrong)

    def udp(self, src, dst, data=b"a datagram", sum_off=None):
        """`sum_off`: what the checksum is off by; None: no checksum."""
        whole = struct.pack("!HHHH", 1000, 2000, 8 + len(data), 0) + data
        if sum_off is not None:
            pseudo = address(src) + address(dst) + struct.pack("!BBH", 0, UDP, len(whole))
            whole = whole[:6] + struct.pack("!H", (checksum(pseudo + whole) or 0xFFFF) ^ sum_off) + whole[8:]
        return whole

    def add(self, name, dst, body=None, src=None, protocol=UDP, ttl=64, tos=0, fragment=0, opts=b"", first=None,
            total=None, sum_off=0, to=LAN, sender=CLIENT, cut=None, padding=b""):
        """`first`: the first byte; `total`: the total length; `sum_off`: what the header checksum is off by."""
        src = src or self.host()
        if body is None:
            body = self.udp(src, dst, sum_off=0)
        header = struct.pack("!BBHHHBBH", 0x45 + len(opts) // 4 if first is None else first, tos,
                             20 + len(opts) + len(body) if total is None else total, self.number(), fragment, ttl,
                             protocol, 0) + address(src) + address(dst) + opts
        header = header[:10] + struct.pack("!H", checksum(header) ^ sum_off) + header[12:]
        datagram = (header + body)[:cut]
        self.made.append((name, mac(to) + mac(sender) + b"\x08\x00" + datagram + padding))

    def add_arp(self, name, target, operation=1, sender=None, hardware=CLIENT, to="ff:ff:ff:ff:ff:ff"):
        """The number is in the sender's address."""
        self.made.append((name, mac(to) + mac(CLIENT) + b"\x08\x06" +
                          struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + mac(hardware) +
                          address(sender or self.host()) + bytes(6) + address(target)))


def add_addresses(made, whole):
    """Every kind of source with every kind of destination: at the end of its life and not, echoes and not."""
    for (source, src), (destination, dst) in itertools.product(SOURCES.items(), DESTINATIONS.items()):
        if not whole and source != "host" and destination not in ("server", "own_lan", "limited"):
            continue
        if source != "host" and destination == "no_route":
            continue  # Linux answers a few a second
        for ttl in (1, 64):
            name = f"from {source} to {destination} ttl {ttl}"
            made.add(f"{name} udp", dst, src=src, ttl=ttl)
            made.add(f"{name} echo", dst, made.echo(), src=src, protocol=ICMP, ttl=ttl)


def add_lives(made):
    for ttl in (0, 1, 2, 255):
        for destination in ("server", "client", "own_lan", "no_route"):
            made.add(f"ttl {ttl} to {destination}", DESTINATIONS[destination], ttl=ttl)


def add_messages(made, whole):
    """What may be reported, and what may not."""
    for destination, ttl in (("server", 64), ("server", 1), ("client", 1), ("no_route", 64), ("own_lan", 64)):
        dst, name = DESTINATIONS[destination], f"to {destination} ttl {ttl}"
        for kind in range(20):
            if kind != ECHO:
                made.add(f"icmp {kind} {name}", dst, made.echo(kind, data=bytes(28)), protocol=ICMP, ttl=ttl)
        for kind in (30, 31, 37, 40, 41, 42, 43, 255):
            made.add(f"icmp {kind} {name}", dst, icmp(kind, data=bytes(28)), protocol=ICMP, ttl=ttl)
        made.add(f"icmp cut {name}", dst, b"\x08\x00", protocol=ICMP, ttl=ttl)
        made.add(f"icmp nothing {name}", dst, b"", protocol=ICMP, ttl=ttl)
        for protocol in (0, IGMP, TCP, 47, 50, 99, 132, 255):
            made.add(f"protocol {protocol} {name}", dst, bytes([0, 80]) * 10, protocol=protocol, ttl=ttl)
        made.add(f"first fragment {name}", dst, fragment=MORE, ttl=ttl)
        made.add(f"first fragment of echo {name}", dst, made.echo(data=bytes(8)), protocol=ICMP, fragment=MORE, ttl=ttl)
        made.add(f"last fragment {name}", dst, bytes(16), fragment=3, ttl=ttl)
        made.add(f"middle fragment {name}", dst, bytes(16), fragment=MORE | 3, ttl=ttl)
        for tos in (0x10, 0x1E, 0x2A, 0xB8, 0xFF):
            made.add(f"tos {tos:#x} {name}", dst, tos=tos, fragment=DONT, ttl=ttl)
        for size in (0, 1, 519, 520, 521, 1400) if whole else (0, 521):
            src = made.host()
            made.add(f"{size} bytes {name}", dst, made.udp(src, dst, bytes(size), 0), src=src, ttl=ttl)


def add_echoes(made):
    for dst in OWN:
        for wrong in (1, 0x1234, 0x8000, 0xFFFF):
            made.add(f"echo to {dst} checksum off by {wrong:#x}", dst, made.echo(wrong=wrong), protocol=ICMP)
        for code in (1, 255):
            made.add(f"echo to {dst} code {code}", dst, made.echo(code=code), protocol=ICMP)
        for size in (0, 1, 600):
            made.add(f"echo to {dst} of {size} bytes", dst, made.echo(data=bytes(size)), protocol=ICMP)
        made.add(f"echo to {dst} tos", dst, made.echo(), protocol=ICMP, tos=0xBA, fragment=DONT)
        made.add(f"echo to {dst} padded", dst, made.echo(data=b""), protocol=ICMP, padding=b"\x77" * 18)
        made.add(f"echo to {dst} last fragment", dst, bytes(16), protocol=ICMP, fragment=3)
        for sum_off in (0, 1, 0xFFFF):
            src = made.host()
            made.add(f"udp to {dst} checksum off by {sum_off:#x}", dst, made.udp(src, dst, sum_off=sum_off), src=src)
        made.add(f"udp to {dst} without checksum", dst, made.udp("0.0.0.0", dst))
        made.add(f"udp to {dst} cut", dst, bytes(7))
        made.add(f"udp to {dst} length short", dst, struct.pack("!HHHH", 1000, 2000, 7, 0))
        made.add(f"udp to {dst} length long", dst, struct.pack("!HHHH", 1000, 2000, 9, 0))
        made.add(f"udp to {dst} surplus", dst, struct.pack("!HHHH", 1000, 2000, 8, 0) + b"more")


def add_options(made):
    for name, opts in OPTIONS.items():
        for destination, ttl in (("server", 64), ("client", 64), ("server", 1), ("no_route", 64), ("limited", 64)):
            made.add(f"option {name} to {destination} ttl {ttl}", DESTINATIONS[destination], opts=opts, ttl=ttl)
        for dst in OWN:
            made.add(f"option {name} echo to {dst}", dst, made.echo(), protocol=ICMP, opts=opts)
        made.add(f"option {name} udp to own", OWN[0], opts=opts)
        made.add(f"option {name} about error", DESTINATIONS["server"], icmp(UNREACHABLE, data=bytes(28)), protocol=ICMP,
                 opts=opts)
        made.add(f"option {name} last fragment", DESTINATIONS["server"], bytes(16), fragment=3, opts=opts)
        made.add(f"option {name} from loopback", DESTINATIONS["server"], src="127.0.0.1", opts=opts)
        made.add(f"option {name} checksum off", DESTINATIONS["server"], opts=opts, sum_off=0x100)


def add_random_options(made, count):
    """Options of random kinds with lengths and pointers about right."""
    chance = random.Random(1812)
    forms = {7: ([0, 2, 3, 7, 11], [0, 3, 4, 8, 12]), 68: ([1, 3, 4, 8, 12], [4, 5, 9, 13]),
             148: ([0, 3, 4, 4, 8], [0, 1]), 0x5E: ([0, 1, 2, 3, 9], [7]), 136: ([4], [1])}
    for _ in range(count):
        opts = b""
        while len(opts) < 40 and chance.random() < 0.85:
            kind = chance.choice([0, 1, 1, *forms])
            if kind in forms:
                lengths, pointers = forms[kind]
                length = chance.choice(lengths)
                body = bytes([chance.choice(pointers), chance.choice([0, 1, 2, 3, 0x10, 0xE1, 0xF0, 0xF3])])
                opts += (bytes([kind, length]) + body + bytes(chance.choice([9, 12, 99]) for _ in range(8)))[:max(length, 2)]
            else:
                opts += bytes([kind])
        opts = options(opts[:40])
        made.add(f"random options {opts.hex() or 'none'}", DESTINATIONS["client"], opts=opts)


def add_lengths(made):
    """Headers that are wrong in themselves."""
    server = DESTINATIONS["server"]
    for destination in ("server", "own_lan"):
        dst = DESTINATIONS[destination]
        for sum_off in (1, 0x100, 0xFFFF):
            for ttl in (1, 64):
                made.add(f"header checksum off by {sum_off:#x} to {destination} ttl {ttl}", dst, ttl=ttl,
                         sum_off=sum_off)
        for first in (0x05, 0x35, 0x55, 0x65, 0x40, 0x44, 0x4F):
            made.add(f"first byte {first:#x} to {destination}", dst, first=first)
        for total in (0, 19, 20, 28, 37, 39, 60, 1500, 65535):
            made.add(f"total length {total} to {destination}", dst, total=total)
    for cut in (0, 1, 19, 20, 27):
        made.add(f"frame cut to {cut}", server, cut=cut)
    made.add("padded", server, b"12345678", padding=bytes(18))
    made.add("padded with bytes", server, b"12345678", padding=b"\x99" * 18)


def add_stations(made):
    for to in (SERVER, CLIENT, "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:05", "02:00:00:00:09:03"):
        for destination in ("server", "no_route", "lan_broadcast", "limited"):
            for ttl in (1, 64):
                made.add(f"frame to {to} packet to {destination} ttl {ttl}", DESTINATIONS[destination], ttl=ttl, to=to)
        made.add(f"frame to {to} echo", OWN[0], made.echo(), protocol=ICMP, to=to)


def add_arps(made):
    for target in ("10.9.0.1", "10.9.0.7", "198.51.100.9"):
        made.add_arp(f"arp request for {target}", target)
        made.add_arp(f"arp request to the router for {target}", target, to=LAN)
        made.add_arp(f"arp reply for {target}", target, operation=2)


def add_arp_senders(made):
    """Requests of senders that no host can be, with the number in the rest of the address where that has one."""
    for sender, net in (("own_lan", None), ("zero_net", "0.1"), ("loopback", "127.1"), ("multicast", "224.1"),
                        ("group", "239.1"), ("limited", None), ("link_local", "169.254"), ("reserved", "240.1")):
        host = made.host()
        made.add_arp(f"arp request from {sender}", OWN[0],
                     sender=net + host.removeprefix("10.20") if net else SOURCES[sender])
    for name, hardware in (("zero", "00:00:00:00:00:00"), ("group", "01:00:5e:00:00:01"), ("all", "ff:ff:ff:ff:ff:ff")):
        made.add_arp(f"arp request from hardware {name}", OWN[0], hardware=hardware)


def frames(whole):
    """[(name, frame)]; the number of a frame is its position, from 1. `whole`: all of them, else a part of some kinds."""
    made = Frames()
    add_addresses(made, whole)
    add_messages(made, whole)
    for add in (add_lives, add_echoes, add_options, add_lengths, add_stations, add_arps):
        add(made)
    add_random_options(made, 400 if whole else 40)
    add_arp_senders(made)
    return made.made
