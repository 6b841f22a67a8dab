# SPDX-License-Identifier: Apache-2.0
"""What the NAT of the Linux kernel makes of the sessions.

linux_nat.py FOLDER   writes in.pcap (what arrives) and expected.pcap (what left the kernel) into FOLDER

Two network namespaces, both removed at the end: a router with nftables' masquerade, and the ends of its two links, where
raw sockets send and receive. A router takes one off the TTL and writes MAC addresses, which a NAT alone does not: both are
put back. Exits with status 77 and the reason where this machine does not let us make such namespaces.
"""
import ctypes
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

from frames import write_frames
from sessions import sessions

CANNOT = 77
ROUTER = "catena-nat-r%d" % os.getpid()
ENDS = "catena-nat-e%d" % os.getpid()
ROUTER_MACS = {"in": "02:00:00:00:01:01", "out": "02:00:00:00:02:01"}
END_MACS = {"in": "02:00:00:00:01:02", "out": "02:00:00:00:02:02"}
RULES = """
table ip nat {
  chain postrouting {
    type nat hook postrouting priority 100;
    oifname "out" masquerade
  }
}
"""
# conntrack must not judge TCP sequence numbers: the sessions are no real connections
SETTINGS = """
net.ipv4.ip_forward=1
net.ipv4.conf.all.rp_filter=0
net.ipv4.conf.default.rp_filter=0
net.ipv4.conf.in.rp_filter=0
net.ipv4.conf.out.rp_filter=0
net.netfilter.nf_conntrack_tcp_be_liberal=1
net.netfilter.nf_conntrack_tcp_loose=1
"""


def run(command, **more):
    done = subprocess.run(command.split(), capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise OSError("%s: %s" % (command, done.stderr.strip()))


def in_router(command, **more):
    run("ip netns exec %s %s" % (ROUTER, command), **more)


def set_up():
    run("ip netns add " + ROUTER)
    run("ip netns add " + ENDS)
    for link, address in (("in", "10.255.255.1/24"), ("out", "203.0.113.1/24")):
        run("ip link add %s netns %s address %s type veth peer name %s netns %s address %s"
            % (link, ROUTER, ROUTER_MACS[link], link, ENDS, END_MACS[link]))
        run("ip netns exec %s ip link set %s up" % (ENDS, link))
        in_router("ip link set %s up" % link)
        in_router("ip address add %s dev %s" % (address, link))
    for link, gateway, route in (("in", "10.255.255.254", "10.0.0.0/8"), ("out", "203.0.113.254", "default")):
        in_router("ip neighbour add %s lladdr %s dev %s nud permanent" % (gateway, END_MACS[link], link))
        in_router("ip route add %s via %s" % (route, gateway))
    in_router("nft -f -", input=RULES)
    in_router("sysctl -q " + " ".join(SETTINGS.split()))


def tear_down():
    for name in (ROUTER, ENDS):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def raw_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def open_ends():
    """A raw socket on each link's far end. The process moves into their namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/run/netns/" + ENDS) as namespace:
        if libc.setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    sockets = {}
    for link in ("in", "out"):
        sockets[link] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        sockets[link].bind((link, 0x0800))
    return sockets


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
        set_up()
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
