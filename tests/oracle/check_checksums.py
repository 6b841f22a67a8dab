#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every IPv4, TCP and UDP checksum of a capture with scapy's arithmetic.

    check_checksums.py OUTPUT [--input INPUT]

A checksum that was wrong already in a packet of INPUT with the same IPv4 identification, protocol and length may be
wrong in OUTPUT. Left out: fragments and packets cut short by the capture (their TCP or UDP checksum), UDP's zero.
Exits 1 if a checksum is wrong, and if OUTPUT has no IPv4 packet.
"""

import argparse
import collections
import struct
import sys

from scapy.layers.inet import IP, in4_pseudoheader
from scapy.utils import RawPcapReader, checksum

NAMES = {6: "TCP", 17: "UDP"}
CHECKSUM_AT = {6: 16, 17: 6}
SHOWN = 10


def datagram_of(frame):
    """The IPv4 datagram in an Ethernet frame behind up to two VLAN tags, or None."""
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    data = frame[at + 2:]
    if frame[at:at + 2] != b"\x08\x00" or len(data) < 20 or data[0] >> 4 != 4:
        return None
    header, total = (data[0] & 15) * 4, struct.unpack_from("!H", data, 2)[0]
    return data[:total] if 20 <= header <= total and header <= len(data) else None


def wrong_layers(datagram):
    """Names of the layers whose checksum is wrong."""
    wrong = []
    header_bytes = (datagram[0] & 15) * 4
    if checksum(datagram[:header_bytes]) != 0:
        wrong.append("IPv4")
    protocol, payload = datagram[9], datagram[header_bytes:]
    is_fragment = struct.unpack_from("!H", datagram, 6)[0] & 0x3FFF != 0
    is_cut = len(datagram) < struct.unpack_from("!H", datagram, 2)[0]
    if protocol not in NAMES or is_fragment or is_cut or len(payload) < CHECKSUM_AT[protocol] + 2:
        return wrong
    at = CHECKSUM_AT[protocol]
    if protocol == 17:
        length = struct.unpack_from("!H", payload, 4)[0]
        if payload[at:at + 2] == b"\0\0" or not 8 <= length <= len(payload):
            return wrong
        payload = payload[:length]
    pseudo_header = in4_pseudoheader(protocol, IP(datagram[:header_bytes]), len(payload))
    if checksum(pseudo_header + payload) != 0:
        wrong.append(NAMES[protocol])
    return wrong


def identity(datagram):
    """What stays of a packet when its addresses, ports and TTL are rewritten."""
    return datagram[2:6], datagram[9]


def datagrams(path):
    for number, (frame, _) in enumerate(RawPcapReader(path)):
        datagram = datagram_of(frame)
        if datagram is not None:
            yield number, datagram


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--input")
    options = parser.parse_args()
    excused = collections.Counter()
    for _, datagram in datagrams(options.input) if options.input else ():
        excused.update((layer, identity(datagram)) for layer in wrong_layers(datagram))
    seen, wrong = 0, []
    for number, datagram in datagrams(options.output):
        seen += 1
        for layer in wrong_layers(datagram):
            key = (layer, identity(datagram))
            if excused[key] > 0:
                excused[key] -= 1
            else:
                wrong.append(f"packet {number}: wrong {layer} checksum: {IP(datagram).summary()}")
    for line in wrong[:SHOWN]:
        print(line)
    if wrong or not seen:
        sys.exit(f"{options.output}: {len(wrong)} wrong checksums in {seen} IPv4 packets")
    print(f"{seen} IPv4 packets, every checksum right or wrong before")


if __name__ == "__main__":
    main()
