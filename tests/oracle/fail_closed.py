#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends frames of every odd kind through a firewall that denies all, and through an encrypting IPsec gateway.

    fail_closed.py CATENA [--device none] [--captures FOLDER]

The frames: those that scapy makes here (IPv6, LLC/SNAP, three VLAN tags, MPLS, PPPoE, tunnels, lengths that lie,
options, fragments, every header cut at every byte), and the captures in FOLDER, made to break other programs. Of the
firewall nothing may come out but control frames that concern one link, of the gateway these and ESP between the ends of
the tunnel. scapy judges which frame is which. `link_local: drop` must stop the control frames too, and what
`on_unsupported: pass` lets through is what the NFs count as such.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from frames import read_frames, write_frames
from scapy.all import (ARP, ICMP, IP, IPOption, IPv6, LLC, SNAP, STP, TCP, UDP, Dot1AD, Dot1Q, Dot3, Ether,
                       ICMPv6ND_NS, Raw, load_contrib)
from scapy.error import Scapy_Exception
from scapy.layers.ppp import PPP, PPPoE
from scapy.utils import RawPcapNgReader, RawPcapReader

load_contrib("mpls")
from scapy.contrib.mpls import MPLS  # noqa: E402

LONGEST = 1792
SOURCE, TARGET = "10.1.0.1", "10.2.0.1"
TUNNEL = ("192.0.2.1", "198.51.100.1")
RESERVED = tuple(bytes.fromhex(f"0180c20000{last:02x}") for last in range(16))
CISCO = (bytes.fromhex("01000ccccccc"), bytes.fromhex("01000ccccccd"))
CARRIERS = tuple(bytes.fromhex(word) for word in ("0800", "86dd", "8847", "8848", "8863", "8864"))
FILES = {
    "fw.rules": "allow tcp 192.0.2.254 192.0.2.254 1 1   # nobody\n",
    "sa.yaml": f"""associations:
  - spi: 4096
    source: {TUNNEL[0]}
    destination: {TUNNEL[1]}
    encryption_key: 000102030405060708090a0b0c0d0e0ff0f1f2f3
    authentication_key: 303132333435363738393a3b3c3d3e3f40414243
""",
}
NFS = {
    "firewall": "{name: nf, type: firewall, on: %s, config: {rules: fw.rules, default: deny}}",
    "ipsec": "{name: nf, type: ipsec, on: %s, config: {direction: encrypt, sa: sa.yaml, mtu: 1500}}",
}


def control_frames():
    """Frames that concern one link."""
    own = {"src": "02:00:00:00:00:01"}
    yield Ether(dst="ff:ff:ff:ff:ff:ff", **own) / ARP(psrc=SOURCE, pdst=TARGET)
    yield Ether(dst="02:00:00:00:00:02", **own) / ARP(op=2, psrc=SOURCE, pdst=TARGET)
    yield Ether(dst="ff:ff:ff:ff:ff:ff", **own) / Dot1Q(vlan=7) / ARP(psrc=SOURCE, pdst=TARGET)
    yield Dot3(dst="01:80:c2:00:00:00", **own) / LLC() / STP()
    yield Ether(dst="01:80:c2:00:00:0e", type=0x88CC, **own) / Raw(bytes.fromhex("0207040200000000010402050106020078") + bytes(2))
    yield Ether(dst="01:80:c2:00:00:02", type=0x8809, **own) / Raw(bytes(110))
    yield Ether(dst="01:80:c2:00:00:01", type=0x8808, **own) / Raw(bytes.fromhex("0001ffff"))
    yield Ether(dst="01:80:c2:00:00:03", type=0x888E, **own) / Raw(bytes.fromhex("01010000"))
    yield Dot3(dst="01:00:0c:cc:cc:cc", **own) / LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0x0C, code=0x2000) / Raw(b"\x02\xb4")


def odd_frames():
    """Frames that carry something a firewall is there to see, most in a way that ours cannot."""
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    segment = TCP(sport=4000, dport=22) / Raw(b"GET /")
    ipv4, ipv6 = IP(src=SOURCE, dst=TARGET) / segment, IPv6(src="2001:db8::1", dst="2001:db8::2") / segment
    yield ether / ipv6
    yield ether / Dot1Q(vlan=1) / ipv6
    yield Ether(src=ether.src, dst="33:33:ff:00:00:01") / IPv6(dst="ff02::1:ff00:1") / ICMPv6ND_NS(tgt="fe80::1")
    for inner in (ipv4, ipv6):
        kind = 0x0800 if IP in inner else 0x86DD
        for destination in ("02:00:00:00:00:02", "01:80:c2:00:00:00", "01:80:c2:00:00:0e", "01:00:0c:cc:cc:cc"):
            yield Dot3(src=ether.src, dst=destination) / LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(code=kind) / inner
            yield Ether(src=ether.src, dst=destination) / inner
            yield Ether(src=ether.src, dst=destination, type=0x8847) / MPLS(label=16, s=1, ttl=64) / inner
        yield ether / Dot1AD(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / inner
        yield ether / MPLS(label=16, s=0, ttl=64) / MPLS(label=17, s=1, ttl=64) / inner
        yield ether / PPPoE(sessionid=1) / PPP(proto=0x0021 if IP in inner else 0x0057) / inner
        yield ether / IP(src=SOURCE, dst=TARGET, proto=4 if IP in inner else 41) / inner
        yield ether / IP(src=SOURCE, dst=TARGET, proto=47) / Raw(b"\0\0" + kind.to_bytes(2, "big")) / inner
        yield ether / IP(src=SOURCE, dst=TARGET) / UDP(sport=4000, dport=4789) / Raw(bytes.fromhex("0800000000000100")) / ether / inner
    yield ether / IP(src=SOURCE, dst=TARGET, options=[IPOption(b"\x83\x07\x04\xc0\x00\x02\x01")]) / segment
    yield ether / IP(src=SOURCE, dst=TARGET, options=[IPOption(b"\x01")] * 40) / segment
    yield ether / IP(src=SOURCE, dst=TARGET) / ICMP() / Raw(b"ping")
    yield ether / IP(src=SOURCE, dst=TARGET, proto=132) / Raw(bytes(12))
    for field in ({"len": 0}, {"len": 19}, {"len": 21}, {"len": 2000}, {"len": 65535}, {"ihl": 4}, {"ihl": 15}, {"version": 6},
                  {"version": 0}, {"frag": 1}, {"frag": 100}, {"flags": "MF"}, {"flags": "MF", "frag": 1},
                  {"proto": 255}, {"ttl": 0}, {"chksum": 1}):
        yield ether / IP(src=SOURCE, dst=TARGET, **field) / segment
        yield ether / Dot1Q(vlan=1) / IP(src=SOURCE, dst=TARGET, **field) / UDP(sport=53, dport=53, len=4) / Raw(b"x" * 30)
    for length in (0, 5, 7, 9, 65535):
        yield ether / IP(src=SOURCE, dst=TARGET) / UDP(sport=53, dport=53, len=length) / Raw(b"x" * 30)
    for offset in (0, 4, 15):
        yield ether / IP(src=SOURCE, dst=TARGET) / TCP(sport=4000, dport=22, dataofs=offset) / Raw(b"x" * 8)
    yield ether / ARP(ptype=0x86DD, plen=16) / Raw(bytes(24))
    yield ether / ARP(hwtype=6)
    yield Ether(src=ether.src, dst=ether.dst, type=0x8035) / Raw(bytes(28))
    yield Ether(src=ether.src, dst=ether.dst, type=0x88CC) / Raw(bytes(46))
    yield Ether(src=ether.src, dst="01:80:c2:00:00:10", type=0x88CC) / Raw(bytes(46))


def synthetic():
    """Every frame above, and the odd ones cut at every byte of their headers."""
    for packet in (*control_frames(), *odd_frames()):
        yield bytes(packet)
    for packet in odd_frames():
        frame = bytes(packet)
        yield from (frame[:length] for length in range(1, min(len(frame), 90)))


def captured(folder):
    for path in sorted(folder.iterdir()):
        for reader in (RawPcapReader, RawPcapNgReader):
            try:
                yield from (data for data, _ in reader(str(path)) if 0 < len(data) <= LONGEST)
                break
            except (Scapy_Exception, EOFError, ValueError, TypeError, IndexError):
                continue  # the other format, or damaged; what came before the damage is used


def is_control(frame):
    """Whether a frame concerns one link: by its addresses, and by what scapy finds in it."""
    if len(frame) < 14:
        return False
    packet = inner = Ether(frame)
    while isinstance(inner, (Ether, Dot1Q, Dot1AD)):
        inner = inner.payload
    if isinstance(inner, ARP):
        return (inner.hwtype, inner.ptype, inner.hwlen, inner.plen) == (1, 0x0800, 6, 4)
    return frame[:6] in RESERVED + CISCO and frame[12:14] not in CARRIERS and not any(layer in packet for layer in (IP, IPv6, MPLS, PPPoE))


def is_esp(frame):
    """Whether it is ESP in the tunnel, for which the outer header is parsed here by hand."""
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8", b"\x91\x00", b"\x92\x00"):
        at += 4
    datagram = frame[at + 2:]
    ends = tuple(".".join(map(str, datagram[i:i + 4])) for i in (12, 16))
    return frame[at:at + 2] == b"\x08\x00" and datagram[:1] == b"\x45" and datagram[9] == 50 and ends == TUNNEL


class Chain:
    def __init__(self, catena, device, folder):
        self.catena, self.device, self.folder = catena, device, folder
        for name, text in FILES.items():
            (folder / name).write_text(text)

    def run(self, nf, keys=""):
        """The frames that leave, and what the report says of the NF."""
        on = "cpu" if self.device == "none" else "gpu"
        (self.folder / "chain.yaml").write_text(
            "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: odd}\nspec:\n  rx: {pcap: in.pcap}\n"
            f"  tx: {{pcap: out.pcap}}\n  device: {self.device}\n{keys}  nfs:\n    - {NFS[nf] % on}\n")
        run = subprocess.run([self.catena, "run", self.folder / "chain.yaml", "--json"], capture_output=True, text=True,
                             check=False)
        if run.returncode != 0:
            sys.exit(f"catena ended with status {run.returncode}\n{run.stderr}")
        report = json.loads(run.stdout)
        assert report["accounted"] and report["nfs"][0]["on"] == on, report
        return read_frames(self.folder / "out.pcap"), report["nfs"][0]


def is_too_long(frame):
    """What IPsec answers the sender of a packet that no tunnel can carry whole [RFC 1191]."""
    packet = Ether(frame)
    return packet.haslayer(ICMP) and (packet[ICMP].type, packet[ICMP].code) == (3, 4)


def judge(chain, frames, must_leave):
    write_frames(chain.folder / "in.pcap", frames)
    kinds = {"firewall": (is_control,), "ipsec": (is_control, is_esp, is_too_long)}
    for nf, allowed in kinds.items():
        left, counts = chain.run(nf)
        wrong = [frame for frame in left if not any(kind(frame) for kind in allowed)]
        assert not wrong, f"{nf} let out {len(wrong)} frames, the first one {wrong[0].hex()}: {Ether(wrong[0])!r}"
        missing = [frame for frame in must_leave if frame not in left]
        assert not missing, f"{nf} did not let out {missing[0].hex()}"
        control = sum(map(is_control, left))
        assert counts["link_local_packets"] == control > 0, f"{nf}: {control} control frames left, {counts}"
        assert counts["drops"]["unsupported"] == counts["unsupported_packets"] > 0, counts

        left, strict = chain.run(nf, "  link_local: drop\n")
        assert strict["drops"]["link_local"] == control, strict
        assert not any(map(is_control, left)), f"{nf} let out control frames in spite of link_local: drop"
        left, lax = chain.run(nf, "  on_unsupported: pass\n")
        assert "unsupported" not in lax["drops"], lax
        assert lax["unsupported_packets"] == counts["unsupported_packets"], lax
        print(f"{nf}: of {len(frames)} frames {control} control frames left; drops {counts['drops']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catena")
    parser.add_argument("--device", default="none")
    parser.add_argument("--captures", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        chain = Chain(options.catena, options.device, pathlib.Path(name))
        judge(chain, list(synthetic()), [bytes(packet) for packet in control_frames()])
        if options.captures and options.captures.is_dir():
            frames = list(captured(options.captures))
            assert len(frames) > 1000, f"{len(frames)} frames in {options.captures}"
            judge(chain, frames, [])
        else:
            print("without the captures that broke other programs: they are not beside the checkout")


if __name__ == "__main__":
    main()
