# SPDX-License-Identifier: Apache-2.0
"""Traffic around a NAT, built by scapy: hosts in 10.0.0.0/8 behind 203.0.113.1, every source port free, so that it stays.

Each session is an outbound packet, its answer, and the ICMP errors that either may cause. scapy computes all checksums,
those of quoted datagrams too: a quote is cut out of the datagram as it was on that side.
"""
import random

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw

EXTERNAL = "203.0.113.1"
ROUTER_OUTSIDE = "192.0.2.33"
ROUTER_INSIDE = "10.255.0.1"


def frame(datagram):
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / datagram)


def payload():
    return Raw(bytes(random.randrange(256) for _ in range(random.randrange(60))))


def datagram(kind, host, server, port, server_port, body, outbound):
    """One packet of a session, with `host` as the inside or the external address."""
    source, destination = (host, server) if outbound else (server, host)
    ip = IP(src=source, dst=destination, id=port, ttl=63, tos=port & 0xFC)
    if kind == "echo":
        return ip / ICMP(type=8 if outbound else 0, id=port, seq=server_port) / body
    ports = {"sport": port, "dport": server_port} if outbound else {"sport": server_port, "dport": port}
    if kind == "tcp":
        return ip / TCP(seq=port * 7, ack=3, flags="PA", options=[("NOP", None), ("NOP", None)], **ports) / body
    if kind == "udp0":
        return ip / UDP(chksum=0, **ports) / body
    return ip / UDP(**ports) / body


ERRORS = [
    {"type": 3, "code": 1},
    {"type": 3, "code": 3},
    {"type": 3, "code": 4, "nexthopmtu": 1400},
    {"type": 11, "code": 0},
    {"type": 12, "code": 0, "ptr": 9},
]


def error(sender, quoted_datagram, destination, fields, quoted_bytes):
    quote = bytes(quoted_datagram)[: 20 + quoted_bytes]
    return IP(src=sender, dst=destination, id=99) / ICMP(**fields) / Raw(quote)


def sessions(count):
    """Yields (whether the frame comes from inside, the frame, what must leave on the other side)."""
    for number in range(count):
        kind = random.choice(["udp", "udp0", "tcp", "echo"])
        host = "10.%d.%d.%d" % (random.randrange(250), random.randrange(256), 1 + random.randrange(250))
        server = "198.51.%d.%d" % (random.randrange(256), 1 + random.randrange(250))
        port, server_port = 2000 + number, random.randrange(1, 65536)
        there, back = payload(), payload()
        fields = random.choice(ERRORS)
        quoted = random.choice([8, 20, 28, 60])

        sent = datagram(kind, host, server, port, server_port, there, True)
        sent_outside = datagram(kind, EXTERNAL, server, port, server_port, there, True)
        yield True, frame(sent), frame(sent_outside)
        answer = datagram(kind, EXTERNAL, server, port, server_port, back, False)
        answer_inside = datagram(kind, host, server, port, server_port, back, False)
        yield False, frame(answer), frame(answer_inside)

        # somebody outside could not deliver what was sent
        for sender in (server, ROUTER_OUTSIDE):
            before = error(sender, sent_outside, EXTERNAL, fields, quoted)
            yield False, frame(before), frame(error(sender, sent, host, fields, quoted))
        # the host, or a router in front of it, could not deliver the answer
        for sender in (host, ROUTER_INSIDE):
            before = error(sender, answer_inside, server, fields, quoted)
            yield True, frame(before), frame(error(EXTERNAL, answer, server, fields, quoted))
