#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which frames a router of the Linux kernel drops by a rule over ports, without connection tracking.

unshare --net nft_ports.py IN.pcap OUT.json PORT
IN: Ethernet frames; of those that carry IPv4 without a VLAN tag each has its own IPv4 identification. OUT has the numbers
of those that the router forwards, without the rule (`tcp dport PORT drop` and the same of UDP) and with it:
{"without": [0, 2], "with": [2]}. Exits with 77 where the kernel has no such router to give.
"""
import json
import socket
import struct
import subprocess
import sys

from frames import read_frames

CANNOT = 77
TIMEOUT_S = 20
ROUTER_MAC, HOST_MAC = "02:00:00:00:01:01", "02:00:00:00:00:99"
SERVER = "203.0.113.10"
MARKER_ID = 0xFFFF


def run(*command, text=None):
    subprocess.run(command, check=True, capture_output=True, text=True, input=text)


def set_up():
    """`in0` and `out0` are the router's; what comes out of it arrives at `out1`. No end has IPv6, which would speak."""
    for name, mac in (("in", ROUTER_MAC), ("out", "02:00:00:00:02:01")):
        run("ip", "link", "add", name + "0", "address", mac, "type", "veth", "peer", "name", name + "1")
        for end in (name + "0", name + "1"):
            run("sysctl", "-qw", "net.ipv6.conf.%s.disable_ipv6=1" % end)
            run("ip", "link", "set", end, "up")
    run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.in0.rp_filter=0")
    run("ip", "address", "add", "10.255.255.1/8", "dev", "in0")
    run("ip", "address", "add", "203.0.113.1/24", "dev", "out0")
    run("ip", "neigh", "add", SERVER, "lladdr", HOST_MAC, "dev", "out0", "nud", "permanent")
    return {end: open_link(end) for end in ("in1", "out1")}


def open_link(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    link.bind((name, 0x0800))
    link.settimeout(TIMEOUT_S)
    return link


def header_checksum(header):
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def marker():
    """UDP to another port, which nothing stops."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, MARKER_ID, 0, 64, 17, 0)
    ends = bytes([10, 0, 0, 2]) + socket.inet_aton(SERVER)
    checksum = struct.pack("!H", header_checksum(head + ends))
    return b"\x08\x00" + head[:10] + checksum + ends + struct.pack("!HHHH", 9, 9, 8, 0)


def forwarded(links, frames):
    """Numbers of the frames that leave, each of which does so before the marker that is sent after it."""
    numbers = []
    to_router = bytes.fromhex((ROUTER_MAC + HOST_MAC).replace(":", ""))
    for number, frame in enumerate(frames):
        if frame[12:14] != b"\x08\x00":
            continue
        links["in1"].send(to_router + frame[12:])
        links["in1"].send(to_router + marker())
        while True:
            seen = struct.unpack_from("!H", links["out1"].recv(2048), 18)[0]
            if seen == MARKER_ID:
                break
            if seen == struct.unpack_from("!H", frame, 18)[0]:
                numbers.append(number)
    return numbers


def main():
    source, target, port = sys.argv[1:]
    try:
        links = set_up()
        run("nft", "add table ip t")
        run("nft", "add chain ip t f { type filter hook forward priority 0; }")
    except (OSError, subprocess.CalledProcessError) as error:
        print("no router here: %s %s" % (error, getattr(error, "stderr", None) or ""))
        return CANNOT
    frames = read_frames(source)
    result = {"without": forwarded(links, frames)}
    for protocol in ("tcp", "udp"):
        run("nft", "add rule ip t f %s dport %s drop" % (protocol, port))
    result["with"] = forwarded(links, frames)
    with open(target, "w") as file:
        json.dump(result, file)
    return 0


sys.exit(main())
