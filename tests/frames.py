# SPDX-License-Identifier: Apache-2.0
"""Frames and captures made without a library, for tests that need few of them."""

import struct


def capture(frames):
    """A capture of UDP datagrams, as text that `catena` reads."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    records = [struct.pack("<IIII", 1, number, len(frame), len(frame)) + frame for number, frame in enumerate(frames)]
    return header + b"".join(records)


def datagram(payload):
    udp = struct.pack(">HHHH", 1000, 2000, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    words = sum(struct.unpack(">10H", ip))
    checksum = ~(words % 0xFFFF) & 0xFFFF
    ip = ip[:10] + struct.pack(">H", checksum) + ip[12:]
    return b"\2\0\0\0\0\1" + b"\2\0\0\0\0\2" + b"\x08\0" + ip + udp
