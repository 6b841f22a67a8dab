# SPDX-License-Identifier: Apache-2.0
"""Captures as plain bytes, for the oracles of the NFs (nfs/*/oracle/): little-endian microsecond pcap files of Ethernet
frames, as the tests write and read them. A script that is run by hand finds this file through PYTHONPATH.
"""
import struct


def read_frames(path):
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
