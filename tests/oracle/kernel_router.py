#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The router against Linux: the same frames through a kernel that forwards, in a network namespace, and through a chain.

    kernel_router.py CATENA

What leaves towards the server must be the same frames, and what comes back to the client the same answers, apart from
identification and DF of ICMP errors and padding of frames. Where the two differ on purpose is not asked here: 240/4 and 169.254/16 (Linux
forwards them), sources in 0/8 other than 0.0.0.0 (the same), TTL 1 without a route (Linux looks for the route first), other protocols to the router itself (it has
none), the first address of a network (Linux takes it for a host's).

Exits with 77 and the reason where no namespaces can be made.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from scapy.all import ARP, ICMP, IP, TCP, UDP, Ether, IPOption_NOP, Raw, rdpcap, wrpcap

CLIENT, LAN = "02:00:00:00:09:02", "02:00:00:00:09:01"
SERVER, WAN = "02:00:00:00:51:02", "02:00:00:00:51:01"
SKIPPED = 77

CHAIN = f"""\
apiVersion: catena/v1
kind: Chain
metadata: {{name: oracle}}
spec:
  rx: {{pcap: in.pcap}}
  tx: {{pcap: out.pcap}}
  device: DEVICE
  nfs:
    - name: rt
      type: router
      on: ON
      config:
        routes: routes.txt
        frames: own
        icmp_rate: 1000000
        ports:
          - {{port: 0, mac: "{LAN}", next_hop_mac: "{CLIENT}", address: 10.9.0.1/24}}
          - {{port: 1, mac: "{WAN}", next_hop_mac: "{SERVER}", address: 198.51.100.1/24}}
"""
ROUTES = "10.9.0.0/24 0\n198.51.100.0/24 1\n203.0.113.0/24 1\n"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def frames():
    """Frames to send, each with an identification of its own."""
    made = []

    def add(frame):
        frame[IP].id = len(made) + 1
        made.append(bytes(Ether(bytes(frame))))

    def ip(dst="198.51.100.2", src="10.9.0.2", **fields):
        return Ether(src=CLIENT, dst=LAN) / IP(src=src, dst=dst, **fields)

    udp = UDP(sport=1000, dport=2000) / Raw(b"a datagram")
    for ttl in (0, 1, 2, 64, 255):
        add(ip(ttl=ttl) / udp)
    for dst in ("198.51.100.2", "203.0.113.9", "203.0.113.255"):
        add(ip(dst) / udp)
        add(ip(dst) / TCP(sport=1, dport=80))
        add(ip(dst, tos=0x2A, flags="DF") / udp)
        add(ip(dst, flags="MF") / udp / Raw(b"1234567890123456789012"))
        add(ip(dst, frag=4, proto=17) / Raw(b"a later fragment"))
        add(ip(dst) / ICMP(type=8, id=5))
        add(ip(dst) / ICMP(type=3, code=1) / Raw(bytes(28)))
        add(ip(dst, proto=99) / Raw(b"an unknown protocol"))
        add(ip(dst, options=[IPOption_NOP()] * 4) / udp)
    for dst in ("8.8.8.8",):  # no route; Linux says so only a few times a second
        add(ip(dst) / udp)
        add(ip(dst) / udp / Raw(bytes(1200)))
        add(ip(dst, frag=4, proto=17) / Raw(b"a later fragment"))
        add(ip(dst) / ICMP(type=11) / Raw(bytes(28)))
        add(ip(dst) / ICMP(type=8, id=6))
    for fields in ({"frag": 4, "proto": 17}, {"flags": "MF"}, {"tos": 0x10}):  # at the end of their lives
        add(ip(ttl=1, **fields) / (Raw(b"a later fragment") if "frag" in fields else udp / Raw(bytes(14))))
    add(ip(ttl=1) / udp / Raw(bytes(1300)))
    add(ip(ttl=1) / ICMP(type=3, code=3) / Raw(bytes(28)))
    for src in ("0.0.0.0", "127.0.0.1", "127.255.0.9", "224.0.0.1", "239.1.2.3", "255.255.255.255"):
        add(ip(src=src) / udp)
        add(ip(src=src, ttl=1) / udp)
    for dst in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.1.2.3", "224.0.0.5", "239.1.2.3", "255.255.255.255",
                "198.51.100.255", "10.9.0.255"):
        add(ip(dst) / udp)
    for wrong in (0, 0x1234, 0xFFFF):
        add(ip(chksum=wrong) / udp)
        add(ip(chksum=wrong, options=[IPOption_NOP()] * 4) / udp)
        add(ip(chksum=wrong, ttl=1, options=[IPOption_NOP()] * 4) / udp)
        add(ip("8.8.8.8", chksum=wrong) / udp)
    for mac in (WAN, SERVER, CLIENT, "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:05", "02:00:00:00:09:03"):
        frame = ip() / udp
        frame[Ether].dst = mac
        if mac != WAN:  # the kernel takes a frame for the other interface as foreign; the router knows both as its own
            add(frame)
    for dst in ("10.9.0.1", "198.51.100.1"):
        add(ip(dst) / ICMP(type=8, id=9, seq=1) / Raw(b"ping"))
        add(ip(dst, ttl=1) / ICMP(type=8, id=9, seq=2) / Raw(b"ping at its end"))
        add(ip(dst, src="127.0.0.1") / ICMP(type=8, id=9, seq=3))
    add(ip() / udp / Raw(bytes(9)))
    padded = bytes(ip(id=len(made) + 1) / UDP(sport=1, dport=2))
    made.append(padded + bytes(60 - len(padded)))
    for wanted in ("10.9.0.1", "10.9.0.7"):
        made.append(bytes(Ether(src=CLIENT, dst="ff:ff:ff:ff:ff:ff") /
                          ARP(hwsrc=CLIENT, psrc="10.9.0.2", pdst=wanted)))
    made.append(bytes(Ether(src=CLIENT, dst=LAN) / ARP(hwsrc=CLIENT, psrc="10.9.0.2", pdst="10.9.0.1")))
    made.append(bytes(Ether(src=CLIENT, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=CLIENT, psrc="0.0.0.0", pdst="10.9.0.1")))
    return made


class Kernel:
    """A namespace whose kernel forwards; this process sits at the far ends of its two links."""

    def __init__(self):
        self.name = f"catena-kr{os.getpid()}"
        sh("ip", "netns", "add", self.name)
        try:
            self.set_up()
        except Exception:
            self.close()
            raise

    def set_up(self):
        self.ends = []
        for number, (name, mac, far) in enumerate((("lan", LAN, CLIENT), ("wan", WAN, SERVER))):
            end = f"ckr{os.getpid()}n{number}"
            sh("ip", "link", "add", end, "address", far, "type", "veth", "peer", "name", name, "address", mac,
               "netns", self.name)
            for switch in ("rx", "tx", "gso", "gro", "tso"):
                subprocess.run(["ethtool", "-K", end, switch, "off"], capture_output=True, check=False)
            self.inside("ethtool", "-K", name, "tx", "off")
            path = f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6"
            if os.path.exists(path):
                pathlib.Path(path).write_text("1")
            sh("ip", "link", "set", end, "up", "arp", "off")
            self.inside("ip", "link", "set", name, "up")
            self.ends.append(end)
        self.inside("ip", "address", "add", "10.9.0.1/24", "dev", "lan")
        self.inside("ip", "address", "add", "198.51.100.1/24", "dev", "wan")
        self.inside("ip", "neighbour", "add", "10.9.0.2", "lladdr", CLIENT, "dev", "lan")
        self.inside("ip", "neighbour", "add", "198.51.100.2", "lladdr", SERVER, "dev", "wan")
        self.inside("ip", "route", "add", "203.0.113.0/24", "via", "198.51.100.2")
        for setting in ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.lan.rp_filter=0",
                        "net.ipv4.icmp_ratelimit=0", "net.ipv4.icmp_ratemask=0"):
            self.inside("sysctl", "-qw", setting)
        self.sockets = []
        for end in self.ends:
            far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            far.bind((end, 0))
            far.settimeout(0.5)
            self.sockets.append(far)

    def inside(self, *words):
        sh("ip", "netns", "exec", self.name, *words)

    def send(self, sent):
        """The frames that come out: towards the client, towards the server."""
        out = ([], [])
        for frame in sent:
            self.sockets[0].send(frame)
            time.sleep(0.002)
        for number, far in enumerate(self.sockets):
            while True:
                try:
                    data, address = far.recvfrom(4096)
                except socket.timeout:
                    break
                if address[2] != socket.PACKET_OUTGOING:
                    out[number].append(data)
        return out

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def catena(program, sent, device, on):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wrpcap(str(folder / "in.pcap"), [Ether(frame) for frame in sent])
        (folder / "routes.txt").write_text(ROUTES)
        (folder / "chain.yaml").write_text(CHAIN.replace("DEVICE", device).replace("ON", on))
        subprocess.run([program, "run", "chain.yaml"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        out = ([], [])
        for frame in rdpcap(str(folder / "out.pcap")):
            out[1 if frame.dst == SERVER else 0].append(bytes(frame))
        return out


def comparable(frame):
    """A frame as it is compared; None for what the kernel says of itself (ARP for hosts that are not there)."""
    packet = Ether(frame)
    if packet.haslayer(ARP):
        return None if packet[ARP].op == 1 else frame[:42]
    if not packet.haslayer(IP):
        return None
    frame = frame[:14 + packet[IP].len]  # Linux leaves padding out, a router need not
    if packet[IP].proto == 1 and packet[IP].src in ("10.9.0.1", "198.51.100.1"):
        # what a router says itself has an identification of its own: without it, the flags and the checksum
        return frame[:18] + frame[22:24] + frame[26:]
    return frame


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    try:
        kernel = Kernel()
    except (RuntimeError, OSError) as error:
        print(f"SKIPPED: no kernel to compare with: {error}")
        return SKIPPED
    sent = frames()
    try:
        expected = kernel.send(sent)
    finally:
        kernel.close()
    expected = [[seen for seen in map(comparable, side) if seen is not None] for side in expected]
    # a kernel that answers and forwards at all: what it says is the expectation
    assert len(expected[0]) > 10 and len(expected[1]) > 25, [len(side) for side in expected]
    failed = 0
    for device, on in (("none", "cpu"), ("opencl", "gpu")):
        actual = [[seen for seen in map(comparable, side) if seen is not None]
                  for side in catena(program, sent, device, on)]
        for side, where in enumerate(("client", "server")):
            for ours, more in ((expected, actual), (actual, expected)):
                for frame in ours[side]:
                    if frame not in more[side]:
                        failed += 1
                        print(f"{on}: towards the {where} {'only the kernel' if ours is expected else 'only catena'} "
                              f"sends {Ether(frame).summary()}: {frame[:80].hex()}")
            if len(actual[side]) != len(expected[side]):
                failed += 1
                print(f"{on}: {len(actual[side])} frames towards the {where}, {len(expected[side])} of the kernel")
    print(f"{len(sent)} frames: {len(expected[1])} forwarded, {len(expected[0])} answers")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
