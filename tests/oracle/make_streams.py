#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes captures for tests, the same bytes for the same arguments.

    make_streams.py fixed OUT.pcap --bytes 512 [--count 1000] [--flows 64] [--seed 1]
    make_streams.py imix OUT.pcap [--count 1200] [--flows 64] [--seed 1]
    make_streams.py esp IN.pcap SA.yaml OUT.pcap

`--bytes` counts the frame as the wire does, with its four bytes of frame check sequence, which captures do not hold.
IMIX is 7 frames of 64 bytes, 4 of 594 and 1 of 1518 in each dozen. Half of the flows are TCP, half UDP.
`esp` carries every IPv4 packet of IN through the first association of SA.yaml (the file format of the ipsec network
function) whose selector has its protocol, encrypted by scapy; other frames are copied.
"""

import argparse
import random
import struct

import yaml
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter, RawPcapReader

FCS_BYTES = 4
IMIX_BYTES = [64] * 7 + [594] * 4 + [1518]
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}


def write(path, frames):
    with PcapWriter(path, linktype=1) as writer:
        writer.write_header(None)
        for number, frame in enumerate(frames):
            writer.write_packet(frame, sec=1_700_000_000 + number // 1000, usec=number % 1000 * 1000)


def make_flows(count, generator):
    """Ethernet, IPv4 and TCP or UDP headers of `count` flows."""
    flows = []
    for number in range(count):
        ip = IP(src=f"10.{generator.randrange(256)}.{generator.randrange(256)}.{generator.randrange(1, 255)}",
                dst=f"198.18.{generator.randrange(256)}.{generator.randrange(1, 255)}")
        ports = {"sport": generator.randrange(1024, 65536), "dport": generator.choice([53, 80, 443, 8080])}
        l4 = TCP(flags="A", **ports) if number % 2 == 0 else UDP(**ports)
        flows.append(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ip / l4)
    return flows


def stream(sizes, flow_count, seed):
    """One frame for each entry of `sizes`."""
    generator = random.Random(seed)
    flows = make_flows(flow_count, generator)
    for number, size in enumerate(sizes):
        packet = flows[generator.randrange(flow_count)].copy()
        packet[IP].id = number & 0xFFFF
        yield bytes(packet / Raw(generator.randbytes(size - FCS_BYTES - len(packet))))


class Tunnel:
    """One association of an SA file, with scapy doing the work."""

    def __init__(self, entry):
        udp = entry.get("udp_encapsulation")
        key = str(entry["encryption_key"]) + str(entry.get("salt", ""))
        self.protocol = PROTOCOLS.get(entry.get("selector", {}).get("protocol"))
        self.association = SecurityAssociation(
            ESP, spi=entry["spi"], crypt_algo="AES-CTR", crypt_key=bytes.fromhex(key), auth_algo="HMAC-SHA1-96",
            auth_key=bytes.fromhex(entry["authentication_key"]),
            tunnel_header=IP(src=entry["source"], dst=entry["destination"]),
            nat_t_header=UDP(sport=udp.get("source_port", 4500), dport=udp.get("destination_port", 4500))
            if udp is not None else None)

    def encrypt(self, datagram, sequence):
        iv = struct.pack("!Q", sequence)
        return bytes(self.association.encrypt(IP(datagram), seq_num=sequence, iv=iv))


def esp_stream(frames, tunnels):
    sequence = {tunnel: 0 for tunnel in tunnels}
    for frame in frames:
        at = 12
        while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        datagram = frame[at + 2:]
        is_ipv4 = frame[at:at + 2] == b"\x08\x00" and len(datagram) >= 20
        total = struct.unpack_from("!H", datagram, 2)[0] if is_ipv4 else 0
        tunnel = next((t for t in tunnels if is_ipv4 and t.protocol in (None, datagram[9])), None)
        if tunnel is None or not 20 <= total <= len(datagram):
            yield frame
            continue
        sequence[tunnel] += 1
        yield frame[:at + 2] + tunnel.encrypt(datagram[:total], sequence[tunnel])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, count in (("fixed", 1000), ("imix", 1200)):
        command = commands.add_parser(name)
        command.add_argument("out")
        command.add_argument("--count", type=int, default=count)
        command.add_argument("--flows", type=int, default=64)
        command.add_argument("--seed", type=int, default=1)
        if name == "fixed":
            command.add_argument("--bytes", type=int, required=True)
    esp = commands.add_parser("esp")
    esp.add_argument("input")
    esp.add_argument("sa")
    esp.add_argument("out")
    options = parser.parse_args()

    if options.command == "fixed":
        write(options.out, stream([options.bytes] * options.count, options.flows, options.seed))
    elif options.command == "imix":
        order = random.Random(options.seed)
        sizes = []
        while len(sizes) < options.count:
            sizes += order.sample(IMIX_BYTES, len(IMIX_BYTES))
        write(options.out, stream(sizes[:options.count], options.flows, options.seed))
    else:
        with open(options.sa, encoding="utf-8") as file:
            tunnels = [Tunnel(entry) for entry in yaml.safe_load(file)["associations"]]
        write(options.out, esp_stream((data for data, _ in RawPcapReader(options.input)), tunnels))


if __name__ == "__main__":
    main()
