# SPDX-License-Identifier: Apache-2.0
"""Lets tshark decrypt what the NF encrypted.

tshark_check.py ASSOCIATIONS.json ENCRYPTED.pcap ORIGINAL.pcap
Every packet must be ESP with a good ICV, next header 4, padding 1 2 3, and the inner header of the original.
"""
import os
import struct
import subprocess
import sys
import tempfile

from esp_frames import load_associations, split_l2
from frames import read_frames

FIELDS = ["esp.icv_good", "esp.protocol", "esp.pad_len", "esp.pad", "ip.id", "ip.len", "ip.src", "ip.dst", "ip.ttl"]

TUNNEL_PROTOCOLS = {"frame", "eth", "ethertype", "vlan", "ip", "udp", "udpencap", "esp", "data"}


def table_of(association):
    row = [
        "IPv4",
        association["source"],
        association["destination"],
        "0x%08x" % association["spi"],
        "AES-CTR [RFC3686]",
        "0x" + association["key"].hex(),
        "HMAC-SHA-1-96 [RFC2404]",
        "0x" + association["authentication_key"].hex(),
    ]
    return "uat:esp_sa:" + ",".join('"%s"' % field for field in row)


def only_tunnels(folder):
    """A profile in which nothing is dissected but the tunnel: what goes through it is of no interest here."""
    listing = subprocess.run(["tshark", "-G", "protocols"], check=True, capture_output=True, text=True).stdout
    names = {line.split("\t")[2] for line in listing.splitlines()}
    with open(os.path.join(folder, "disabled_protos"), "w") as file:
        file.write("\n".join(sorted(names - TUNNEL_PROTOCOLS)) + "\n")


def run_tshark(associations, path):
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"]
    command += ["-o", "esp.enable_encryption_decode:TRUE", "-o", "esp.enable_authentication_check:TRUE"]
    for association in associations:
        command += ["-o", table_of(association)]
    for field in FIELDS:
        command += ["-e", field]
    with tempfile.TemporaryDirectory() as folder:
        only_tunnels(folder)
        environment = dict(os.environ, WIRESHARK_CONFIG_DIR=folder)
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return [line.split(";") for line in output.splitlines()]


def dotted(address):
    return ".".join(str(byte) for byte in address)


def main():
    associations, encrypted, original = sys.argv[1:]
    rows = run_tshark(load_associations(associations), encrypted)
    frames = read_frames(original)
    if len(rows) != len(frames):
        raise ValueError("tshark shows %d packets of %d" % (len(rows), len(frames)))
    for number, (row, frame) in enumerate(zip(rows, frames)):
        shown = dict(zip(FIELDS, row))
        datagram = split_l2(frame)[1]
        pad = -(len(datagram) + 2) % 4
        expected = {
            "esp.protocol": "0x04",
            "esp.pad_len": str(pad),
            "esp.pad": bytes(range(1, pad + 1)).hex(),
        }
        inner = {
            "ip.id": struct.unpack_from("!H", datagram, 4)[0],
            "ip.len": len(datagram),
            "ip.src": dotted(datagram[12:16]),
            "ip.dst": dotted(datagram[16:20]),
            "ip.ttl": datagram[8],
        }
        for field, value in inner.items():
            values = shown[field].split(",")  # outer, inner
            second = values[1] if len(values) > 1 else ""
            found = int(second, 0) if isinstance(value, int) and second else second
            if found != value:
                raise ValueError("packet %d: inner %s is %s, not %s" % (number, field, second, value))
        for field, value in expected.items():
            if shown[field].replace(":", "") != value:
                raise ValueError("packet %d: %s is %s, not %s" % (number, field, shown[field], value))
        if shown["esp.icv_good"] not in ("1", "True"):
            raise ValueError("packet %d: bad ICV" % number)
    print("%d packets with a good ICV" % len(rows))


main()
