# SPDX-License-Identifier: Apache-2.0
"""What the NAT of the Linux kernel makes of the sessions.

linux_nat.py FOLDER   writes in.pcap (what arrives) and expected.pcap (what left the kernel) into FOLDER

Two network namespaces, both removed at the end: a router with nftables' masquerade, and the ends of its two links, where
raw sockets send and receive. A router takes one off the TTL and writes MAC addresses, which a NAT alone does not: both are
put back. Exits with status 77 and the reason where this machine does not let us make such namespaces.
"""
import os
import random
import select
import socket
import struct
import sys
import time

from frames import write_frames
from masquerade import CANNOT, END_MACS, ROUTER_MACS, open_ends, raw_bytes, set_up, tear_down
from sessions import sessions

# conntrack must not judge TCP sequence numbers: the sessions are no real connections
SETTINGS = """
net.netfilter.nf_conntrack_tcp_be_liberal=1
net.netfilter.nf_conntrack_tcp_loose=1
"""


def header_checksum(header):
    total = sum(struct.unpack("!10H", header[:10] + b"\0\0" + header[12:20]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def before_the_hop(frame, macs):
    """The frame as it would be had no router taken one off its TTL and written its own MAC addresses."""
    header = bytearray(frame[14:34])
    if struct.unpack_from("!H", header, 10)[0] != header_checksum(bytes(header)):
        raise ValueError("wrong IPv4 header checksum: " + frame.hex())
    header[8] += 1
    struct.pack_into("!H", header, 10, header_checksum(bytes(header)))
    length = struct.unpack_from("!H", header, 2)[0]
    return macs + frame[12:14] + bytes(header) + frame[34 : 14 + length]


def exchange(sockets, from_inside, frame):
    """Sends the frame into the router and returns what comes out on its other side."""
    link, other = ("in", "out") if from_inside else ("out", "in")
    sockets[link].send(raw_bytes(ROUTER_MACS[link]) + raw_bytes(END_MACS[link]) + frame[12:])
    until = time.monotonic() + 3
    while time.monotonic() < until:
        if select.select([sockets[other]], [], [], 0.2)[0]:
            received, address = sockets[other].recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING and received[6:12] == raw_bytes(ROUTER_MACS[other]):
                return before_the_hop(received, frame[:12])
    raise RuntimeError("the kernel forwarded nothing for " + frame.hex())


def main():
    random.seed(21)
    try:
        set_up(SETTINGS)
        sockets = open_ends()
    except OSError as problem:
        print(problem)
        sys.exit(CANNOT)
    rows = [(before, exchange(sockets, from_inside, before)) for from_inside, before, _ in sessions(100)]
    write_frames(os.path.join(sys.argv[1], "in.pcap"), [before for before, _ in rows])
    write_frames(os.path.join(sys.argv[1], "expected.pcap"), [after for _, after in rows])


try:
    main()
finally:
    tear_down()
