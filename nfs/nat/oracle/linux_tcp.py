# SPDX-License-Identifier: Apache-2.0
"""Which TCP connections the connection tracking of the Linux kernel keeps.

linux_tcp.py SEED COUNT FILE   writes COUNT random sequences, and what the kernel made of each, to FILE

FILE has a line for each step: "port N" starts the next sequence, a segment is "> PEER FLAGS SEQUENCE ACK WINDOW SCALE
BYTES" ("<" from the peer), and "alive 1" tells that the kernel knew a connection of this port after a quiet period,
longer than all time-outs but those of established and half-closed connections. Sequences run side by side, a round of
each at a time. Exits with status 77 and the reason where this machine does not let us make network namespaces.
"""
import random
import struct
import sys
import time

from masquerade import CANNOT, END_MACS, ROUTER_MACS, open_ends, open_table, raw_bytes, set_up, tear_down
from tcp_sequences import sequence

ROUNDS = 3
PEERS = 3
FIRST_PORT = 2000
QUIET_S = 3.5
SETTINGS = """
net.netfilter.nf_conntrack_tcp_loose=1
net.netfilter.nf_conntrack_tcp_timeout_syn_sent=2
net.netfilter.nf_conntrack_tcp_timeout_syn_recv=2
net.netfilter.nf_conntrack_tcp_timeout_established=3600
net.netfilter.nf_conntrack_tcp_timeout_fin_wait=3600
net.netfilter.nf_conntrack_tcp_timeout_close_wait=3600
net.netfilter.nf_conntrack_tcp_timeout_last_ack=2
net.netfilter.nf_conntrack_tcp_timeout_time_wait=2
net.netfilter.nf_conntrack_tcp_timeout_close=2
net.netfilter.nf_conntrack_tcp_timeout_max_retrans=3600
net.netfilter.nf_conntrack_tcp_timeout_unacknowledged=3600
net.netfilter.nf_conntrack_max=1000000
"""
HOST = bytes([10, 0, 0, 5])
EXTERNAL = bytes([203, 0, 113, 1])
BITS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(port, step):
    direction, peer, flags, seq, ack, window, scale, data = step
    peer_address = bytes([198, 51, 100, 1 + peer])
    source, destination = (HOST, peer_address) if direction == ">" else (peer_address, EXTERNAL)
    ports = (port, 80) if direction == ">" else (80, port)
    options = b"" if scale < 0 else bytes([1, 3, 3, scale])
    bits = sum(BITS[flag] for flag in flags)

    def segment(total):
        head = struct.pack("!HHIIBBHHH", *ports, seq, ack, (20 + len(options)) * 4, bits, window, total, 0)
        return head + options + b"x" * data

    length = 20 + len(options) + data
    total = checksum(source + destination + struct.pack("!BBH", 0, 6, length) + segment(0))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0, 64, 6, 0) + source + destination
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    link = "in" if direction == ">" else "out"
    return link, raw_bytes(ROUTER_MACS[link]) + raw_bytes(END_MACS[link]) + b"\x08\x00" + header + segment(total)


def tracked_ports(table):
    """The inside ports with a connection."""
    table.seek(0)
    ports = set()
    for line in table:
        fields = line.split()
        if "src=10.0.0.5" in fields:
            ports.add(int(next(field for field in fields if field.startswith("sport="))[6:]))
    return ports


def main():
    seed, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    try:
        set_up(SETTINGS)
        table = open_table()
        sockets = open_ends()
    except OSError as problem:
        print(problem)
        sys.exit(CANNOT)
    generator = random.Random(seed)
    lines = {FIRST_PORT + number: ["port %d" % (FIRST_PORT + number)] for number in range(count)}
    rounds = {port: list(sequence(generator, ROUNDS, PEERS)) for port in lines}
    for number in range(ROUNDS):
        for port, steps in rounds.items():
            for step in steps[number]:
                lines[port].append(" ".join(str(part) for part in step))
                link, raw = frame(port, step)
                sockets[link].send(raw)
        time.sleep(QUIET_S)
        alive = tracked_ports(table)
        for port, of_port in lines.items():
            of_port.append("alive %d" % (port in alive))
    with open(path, "w") as file:
        for of_port in lines.values():
            file.write("\n".join(of_port) + "\n")


try:
    main()
finally:
    tear_down()
