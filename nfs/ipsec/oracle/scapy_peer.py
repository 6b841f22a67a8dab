# SPDX-License-Identifier: Apache-2.0
"""The other end of the tunnel, played by scapy.

scapy_peer.py decrypt ASSOCIATIONS.json IN.pcap OUT.pcap   every frame must be ESP with a good ICV
scapy_peer.py encrypt ASSOCIATIONS.json IN.pcap OUT.pcap   frame i goes through association i modulo their number

scapy 2.5 knows extended sequence numbers for AEAD ciphers only. Where an association has them ("esn"), it encrypts without
an ICV, and the ICV is made here by RFC 4303 section 2.2.1: over the packet and the high half behind it.
"""
import hashlib
import hmac
import struct
import sys

from scapy.all import IP, UDP, Raw, conf
from scapy.layers.ipsec import ESP, SecurityAssociation

from esp_frames import load_associations, split_l2
from frames import read_frames, write_frames


conf.layers.filter([IP, ESP])  # what is inside a datagram is bytes: scapy must not rebuild it


def make_peer(association):
    return SecurityAssociation(
        ESP,
        spi=association["spi"],
        crypt_algo="AES-CTR",
        crypt_key=association["key"],
        auth_algo=None if "esn" in association else "HMAC-SHA1-96",
        auth_key=association["authentication_key"],
        tunnel_header=IP(src=association["source"], dst=association["destination"]),
    )


def extended_icv(association, esp, number):
    return hmac.new(association["authentication_key"], esp + struct.pack("!I", number >> 32), hashlib.sha1).digest()[:12]


def take_extended_icv_off(association, esp):
    """The packet without its ICV. Its number must be the association's next one, and so must its IV."""
    number = association["esn"]
    association["esn"] += 1
    if esp[4:8] != struct.pack("!I", number & 0xFFFFFFFF):
        raise ValueError("sequence number %s is not %d" % (esp[4:8].hex(), number))
    if esp[8:16] != struct.pack("!Q", number):
        raise ValueError("IV %s of packet %d" % (esp[8:16].hex(), number))
    if esp[-12:] != extended_icv(association, esp[:-12], number):
        raise ValueError("bad ICV of packet %d" % number)
    return esp[:-12]


def rfc1071(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def decrypt(associations, frames):
    peers = {a["spi"]: (a, make_peer(a)) for a in associations}
    out = []
    for number, frame in enumerate(frames):
        l2, datagram = split_l2(frame)
        if l2 + datagram != frame:
            raise ValueError("frame %d: bytes behind the outer datagram" % number)
        if rfc1071(datagram[:20]) != 0xFFFF:
            raise ValueError("frame %d: wrong outer header checksum" % number)
        esp = datagram[20:]
        udp = None
        if datagram[9] == 17:
            udp, esp = struct.unpack("!4H", esp[:8]), esp[8:]
            if udp[2] != len(datagram) - 20 or udp[3] != 0:
                raise ValueError("frame %d: UDP length %d, checksum %d" % (number, udp[2], udp[3]))
        elif datagram[9] != 50:
            raise ValueError("frame %d: protocol %d" % (number, datagram[9]))
        association, peer = peers[struct.unpack_from("!I", esp)[0]]
        outer = IP(datagram[:20])
        if (outer.src, outer.dst) != (association["source"], association["destination"]):
            raise ValueError("frame %d: tunnel %s to %s" % (number, outer.src, outer.dst))
        if (list(udp[:2]) if udp else None) != association["udp"]:
            raise ValueError("frame %d: UDP ports %s" % (number, udp))
        if "esn" in association:
            esp = take_extended_icv_off(association, esp)
        inner = peer.decrypt(IP(src=outer.src, dst=outer.dst, proto=50) / ESP(esp),
                             verify="esn" not in association)  # raises on a bad ICV
        out.append(l2 + inner.original)
    return out


def wrap_in_udp(packet, ports):
    """RFC 3948 section 2.1. Not scapy's nat_t_header: scapy 2.5 writes a UDP length of 8."""
    udp = UDP(sport=ports[0], dport=ports[1], chksum=0)
    return IP(src=packet.src, dst=packet.dst) / udp / Raw(bytes(packet.payload))


def encrypt_one(peer, association, datagram):
    if "esn" not in association:
        return peer.encrypt(IP(datagram))
    whole = association["esn"]
    association["esn"] += 1
    peer.seq_num = whole & 0xFFFFFFFF
    packet = peer.encrypt(IP(datagram), iv=struct.pack("!Q", whole))
    esp = bytes(packet[ESP])
    return IP(src=packet.src, dst=packet.dst, proto=50) / Raw(esp + extended_icv(association, esp, whole))


def encrypt(associations, frames):
    peers = [make_peer(a) for a in associations]
    out = []
    for number, frame in enumerate(frames):
        l2, datagram = split_l2(frame)
        association = associations[number % len(peers)]
        packet = encrypt_one(peers[number % len(peers)], association, datagram)
        ports = association["udp"]
        out.append(l2 + bytes(wrap_in_udp(packet, ports) if ports else packet))
    return out


def main():
    command, associations, source, target = sys.argv[1:]
    work = {"decrypt": decrypt, "encrypt": encrypt}[command]
    write_frames(target, work(load_associations(associations), read_frames(source)))


main()
