# SPDX-License-Identifier: Apache-2.0
"""Lets scapy translate the packets and compute their checksums.

scapy_check.py BEFORE.pcap AFTER.pcap
Frame i of AFTER must be frame i of BEFORE with at most one end replaced and with the checksums that scapy computes;
a UDP checksum of 0 must stay 0.
"""
import sys

from scapy.all import IP, TCP, UDP, Ether

from frames import read_frames


def translated(before, after):
    """`before` with the addresses and ports of `after`, as scapy builds it."""
    packet, other = Ether(before), Ether(after)
    layer = TCP if TCP in packet else UDP
    ends = [(packet[IP].src, packet[layer].sport), (packet[IP].dst, packet[layer].dport)]
    new_ends = [(other[IP].src, other[layer].sport), (other[IP].dst, other[layer].dport)]
    if sum(old != new for old, new in zip(ends, new_ends)) != 1:
        raise ValueError("ends %s became %s" % (ends, new_ends))
    packet[IP].src, packet[IP].dst = other[IP].src, other[IP].dst
    packet[layer].sport, packet[layer].dport = other[layer].sport, other[layer].dport
    del packet[IP].chksum
    if layer is TCP or packet[UDP].chksum != 0:
        del packet[layer].chksum
    return bytes(packet)


def main():
    before, after = (read_frames(path) for path in sys.argv[1:])
    if len(before) != len(after):
        raise ValueError("%d frames became %d" % (len(before), len(after)))
    for number, (old, new) in enumerate(zip(before, after)):
        expected = translated(old, new)
        if new != expected:
            raise ValueError("frame %d is\n%s, not\n%s" % (number, new.hex(), expected.hex()))
    print("%d frames translated as scapy does" % len(after))


main()
