# SPDX-License-Identifier: Apache-2.0
"""What the oracles share: captures as plain bytes, and the associations that the tests write as JSON."""
import json
import struct


def read_frames(path):
    """Frames of a little-endian microsecond pcap file, as the tests write it."""
    with open(path, "rb") as file:
        data = file.read()
    frames, at = [], 24
    while at < len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    return frames


def write_frames(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


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
    """[{"spi", "source", "destination", "key" (AES key and salt), "authentication_key", "udp": [source, destination]}]"""
    with open(path) as file:
        associations = json.load(file)
    for association in associations:
        association["key"] = bytes.fromhex(association["key"])
        association["authentication_key"] = bytes.fromhex(association["authentication_key"])
    return associations
