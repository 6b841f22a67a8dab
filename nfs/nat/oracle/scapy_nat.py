# SPDX-License-Identifier: Apache-2.0
"""Traffic around a NAT as scapy builds it, and what must become of it.

scapy_nat.py FOLDER   writes in.pcap (what arrives) and expected.pcap (what must leave) into FOLDER

Hosts in 10.0.0.0/8 stand behind 203.0.113.1, and every source port is free, so it stays. Each session is an outbound
packet, its answer, and the ICMP errors that either may cause. scapy computes all checksums, those of quoted datagrams
too: a quote is cut out of the datagram as it was on that side.
"""
import os
import random
import sys

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw

from frames import write_frames

EXTERNAL = "203.0.113.1"
ROUTER_OUTSIDE = "192.0.2.33"
ROUTER_INSIDE = "10.255.0.1"

random.seed(20)


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


def main():
    arriving, expected = [], []

    def add(before, after):
        arriving.append(frame(before))
        expected.append(frame(after))

    for number in range(400):
        kind = random.choice(["udp", "udp0", "tcp", "echo"])
        host = "10.%d.%d.%d" % (random.randrange(256), random.randrange(256), 1 + random.randrange(250))
        server = "198.51.%d.%d" % (random.randrange(256), random.randrange(256))
        port, server_port = 2000 + number, random.randrange(1, 65536)
        there, back = payload(), payload()
        fields = random.choice(ERRORS)
        quoted = random.choice([8, 20, 28, 60])

        sent = datagram(kind, host, server, port, server_port, there, True)
        sent_outside = datagram(kind, EXTERNAL, server, port, server_port, there, True)
        add(sent, sent_outside)
        answer = datagram(kind, EXTERNAL, server, port, server_port, back, False)
        answer_inside = datagram(kind, host, server, port, server_port, back, False)
        add(answer, answer_inside)

        # somebody outside could not deliver what was sent
        for sender in (server, ROUTER_OUTSIDE):
            add(error(sender, sent_outside, EXTERNAL, fields, quoted), error(sender, sent, host, fields, quoted))
        # the host, or a router in front of it, could not deliver the answer
        for sender in (host, ROUTER_INSIDE):
            add(error(sender, answer_inside, server, fields, quoted), error(EXTERNAL, answer, server, fields, quoted))

    write_frames(os.path.join(sys.argv[1], "in.pcap"), arriving)
    write_frames(os.path.join(sys.argv[1], "expected.pcap"), expected)
    print("%d frames" % len(arriving))


main()
