#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the packets of two captures byte for byte; times are compared with --times.

    check_pcap_equal.py [--times] EXPECTED ACTUAL

Exits 1 after naming the first packets that differ, where, and what they are.
"""

import argparse
import itertools
import sys

import scapy.layers.inet  # noqa: F401  teaches Ether what is inside
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

MAX_SHOWN = 5


def read(path, with_times):
    """[(bytes, time)] of a pcap or pcapng file."""
    return [(data, time_of(meta) if with_times else None) for data, meta in RawPcapReader(path)]


def time_of(meta):
    if hasattr(meta, "sec"):
        return meta.sec, meta.usec
    return meta.tshigh << 32 | meta.tslow


def around(data, at):
    """Sixteen bytes of `data` near `at`, the one at `at` in brackets."""
    begin = max(0, at - 8)
    return " ".join(f"[{data[i]:02x}]" if i == at else f"{data[i]:02x}" for i in range(begin, min(len(data), begin + 16)))


def describe(number, expected, actual):
    """Why packet `number` differs, as lines."""
    if expected is None or actual is None:
        side, data = ("only in ACTUAL", actual[0]) if expected is None else ("only in EXPECTED", expected[0])
        return [f"packet {number}: {side}, {len(data)} bytes: {Ether(data).summary()}"]
    (left, left_time), (right, right_time) = expected, actual
    if left == right:
        return [f"packet {number}: time {right_time}, expected {left_time}"]
    at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    differing = sum(a != b for a, b in zip(left, right))
    return [
        f"packet {number}: {differing} bytes differ, the first at {at}; {len(right)} bytes long, expected {len(left)}",
        f"  expected {around(left, at)}   {Ether(left).summary()}",
        f"  actual   {around(right, at)}   {Ether(right).summary()}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("expected")
    parser.add_argument("actual")
    options = parser.parse_args()
    expected, actual = read(options.expected, options.times), read(options.actual, options.times)
    pairs = enumerate(itertools.zip_longest(expected, actual))
    different = [(number, left, right) for number, (left, right) in pairs if left != right]
    for number, left, right in different[:MAX_SHOWN]:
        print("\n".join(describe(number, left, right)))
    if different:
        sys.exit(f"{len(different)} packets differ; {options.expected} has {len(expected)}, {options.actual} {len(actual)}")
    print(f"{len(expected)} packets, the same bytes")


if __name__ == "__main__":
    main()
