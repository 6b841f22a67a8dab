# SPDX-License-Identifier: Apache-2.0
"""A collector that is scapy reads IPFIX messages.

scapy_ipfix.py FLOWS.ipfix FLOWS.jsonl
FLOWS.ipfix holds messages one after another. Its records must be those of FLOWS.jsonl, in the same order, and the
sequence number of each message the number of records before it.
"""
import json
import struct
import sys

from scapy.fields import ShortField
from scapy.layers.netflow import (
    NetflowDataflowsetV9,
    NetflowHeader,
    NetflowHeaderV10,
    NetflowV9TemplateFieldDecoders,
    netflowv9_defragment,
)

# scapy 2.5 reads tcpControlBits (6) as one byte, whatever length the template gives
NetflowV9TemplateFieldDecoders[6] = ShortField

REASONS = {"idle": 1, "active": 2, "forced_end": 4, "lack_of_resources": 5}


def split_messages(path):
    with open(path, "rb") as file:
        data = file.read()
    messages, at = [], 0
    while at < len(data):
        version, length = struct.unpack_from("!HH", data, at)
        if version != 10 or length > 1400 or at + length > len(data):
            raise ValueError("byte %d: version %d, length %d" % (at, version, length))
        messages.append(data[at : at + length])
        at += length
    return messages


def number(value):
    return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)


def field(record, *names):
    """The first of these fields that scapy gave the record; None if it has none of them."""
    for name in names:
        if name in record.fields:
            return record.fields[name]
    return None


def as_tuple(record):
    icmp = field(record, "ICMP_TYPE")
    return (
        field(record, "IPV4_SRC_ADDR", "sourceIPv4Address"),
        field(record, "IPV4_DST_ADDR", "destinationIPv4Address"),
        0 if icmp is not None else number(field(record, "L4_SRC_PORT", "sourceTransportPort")),
        number(icmp if icmp is not None else field(record, "L4_DST_PORT", "destinationTransportPort")),
        number(field(record, "PROTOCOL", "protocolIdentifier")),
        number(field(record, "TOS", "ipClassOfService")),
        number(field(record, "IN_PKTS", "packetDeltaCount")),
        number(field(record, "IN_BYTES", "octetDeltaCount")),
        number(field(record, "flowStartMilliseconds")),
        number(field(record, "flowEndMilliseconds")),
        0 if icmp is not None else number(field(record, "TCP_FLAGS", "tcpControlBits")),
        number(field(record, "flowEndReason")),
    )


def expected(line):
    flow = json.loads(line)
    names = ["src", "dst", "sport", "dport", "protocol", "tos", "packets", "bytes"]
    times = (flow["first_ns"] // 10**6, flow["last_ns"] // 10**6)
    return tuple(flow[name] for name in names) + times + (flow["tcp_flags"], REASONS[flow["end_reason"]])


def main():
    ipfix, jsonl = sys.argv[1:]
    packets = [NetflowHeader(message) for message in split_messages(ipfix)]
    records = []
    for packet in netflowv9_defragment(packets):
        if packet[NetflowHeaderV10].flowSequence != len(records):
            raise ValueError("sequence %d after %d records" % (packet[NetflowHeaderV10].flowSequence, len(records)))
        layer = packet
        while layer:
            if isinstance(layer, NetflowDataflowsetV9):
                records += [as_tuple(record) for record in layer.records]
            layer = layer.payload
    with open(jsonl) as file:
        wanted = [expected(line) for line in file]
    if len(records) != len(wanted):
        raise ValueError("%d records, not %d" % (len(records), len(wanted)))
    for at, (record, want) in enumerate(zip(records, wanted)):
        if record != want:
            raise ValueError("record %d is\n%s, not\n%s" % (at, record, want))
    print("%d records" % len(records))


main()
