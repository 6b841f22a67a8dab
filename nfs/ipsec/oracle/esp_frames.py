# SPDX-License-Identifier: Apache-2.0
"""What the oracles share: frames taken apart, and the associations that the tests write as JSON."""
import json
import struct


def split_l2(frame):
    """(Ethernet header with its VLAN tags, IPv4 datagram without Ethernet padding)"""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    if frame[at : at + 2] != b"\x08\x00":
        raise ValueError("not IPv4: " + frame.hex())
    at += 2
    return frame[:at], frame[at : at + struct.unpack_from("!H", frame, at + 2)[0]]


def load_associations(path):
    """[{"spi", "source", "destination", "key" (AES key and salt), "authentication_key", "udp": [source, destination],
    "esn": first sequence number of 64 bits, where numbers are extended}]"""
    with open(path) as file:
        associations = json.load(file)
    for association in associations:
        association["key"] = bytes.fromhex(association["key"])
        association["authentication_key"] = bytes.fromhex(association["authentication_key"])
    return associations
