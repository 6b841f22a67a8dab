#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The router against Linux: the same frames through a kernel that forwards, in a network namespace, and through a chain.

    kernel_router.py CATENA [--record FILE]

What becomes of a frame must be the same: it is dropped, or leaves at the same side with the same bytes, or is answered
with the same bytes. DIFFERENT lists what differs on purpose, with the reason; a row of it without a difference fails.
--record writes the frames with Linux' answers, for linux_test.cpp of the router, and runs no chain.

Exits with 77 and the reason where no namespaces can be made.
"""

import argparse
import os
import pathlib
import platform
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

from router_frames import CLIENT, ICMP, LAN, OWN, SERVER, TCP, WAN, address, checksum, frames, mac

SKIPPED = 77
SETTINGS = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.lan.rp_filter=0",
            "net.ipv4.conf.wan.rp_filter=0", "net.ipv4.conf.all.accept_source_route=0",
            "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.lan.send_redirects=0", "net.ipv4.icmp_ratelimit=0",
            "net.ipv4.icmp_ratemask=0")
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
ROUTES = "10.9.0.0/24 0\n10.20.0.0/16 0\n198.51.100.0/24 1\n203.0.113.0/24 1\n"

# (names of frames, why the router differs from Linux there); the router's README says the same
DIFFERENT = (
    ("from lan_first .*|from .* to lan_first .*", "the first address of a network is a broadcast address, too (RFC 1812, 4.2.2.11)"),
    ("from .* to (zero_net|reserved|link_local) .*", "no host has such an address (RFC 1812, 5.3.7; RFC 3927, 7)"),
    ("(arp request )?from (zero_net|reserved|link_local).*", "no host has such an address (RFC 1812, 5.3.7; RFC 3927, 7)"),
    ("arp request from hardware .*", "an answer to it reaches all hosts of the link, and not the sender (RFC 1812, 3.3.2)"),
    ("from host to no_route ttl 1 .*|ttl [01] to no_route", "TTL is checked before the route (RFC 1812, 5.3.1)"),
    ("from other_side .*", "an answer leaves through the port of its packet"),
    ("icmp cut .* ttl 1|icmp cut to no_route .*", "no error about an ICMP message without its whole header"),
    ("protocol (2|6) to own_lan .*", "the router has neither IGMP nor TCP (RFC 1122, 3.2.2.1)"),
    ("icmp 13 to own_lan .*", "the router has no service but echo (RFC 1812, 4.3.3.8: optional)"),
    ("udp to .* surplus", "Linux quotes a packet up to the end of its UDP datagram"),
    ("option source_routes .*", "no error about a packet with a source route (RFC 1812, 4.3.2.6)"),
    ("option record_route_odd .*", "Linux does not answer where another entry fits in part"),
    ("option time_address(_last)? (to server ttl 64|about error|last fragment)",
     "Linux records the address of the input port with a timestamp, and that of the output port in a record route"),
    ("frame to (ff|01):.* echo", "no answer to a link-layer broadcast or multicast (RFC 1122, 3.3.6)"),
    ("option (record_route|record_route_part|most|time|time_part|time_address|time_of_both|record_route_and_time) echo .*",
     "Linux records itself twice: when the request comes and when the reply leaves"),
)


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


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
        for number, (name, own, far) in enumerate((("lan", LAN, CLIENT), ("wan", WAN, SERVER))):
            end = f"ckr{os.getpid()}n{number}"
            sh("ip", "link", "add", end, "address", far, "type", "veth", "peer", "name", name, "address", own,
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
        self.inside("ip", "neighbour", "add", "10.9.0.2", "lladdr", CLIENT, "dev", "lan", "nud", "permanent")
        self.inside("ip", "neighbour", "add", "198.51.100.2", "lladdr", SERVER, "dev", "wan", "nud", "permanent")
        self.inside("ip", "route", "add", "10.20.0.0/16", "via", "10.9.0.2")
        self.inside("ip", "route", "add", "203.0.113.0/24", "via", "198.51.100.2")
        for setting in SETTINGS:
            self.inside("sysctl", "-qw", setting)
        self.sockets = []
        for end in self.ends:
            far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            far.bind((end, 0))
            self.sockets.append(far)

    def inside(self, *words):
        sh("ip", "netns", "exec", self.name, *words)

    def send(self, sent):
        """[(side, frame)] of all frames that come out, side 0 is the client's."""
        out = []
        for frame in sent:
            self.sockets[0].send(frame)
            time.sleep(0.0002)  # the queue of the kernel's receiving side is short
            out += self.received(0)
        return out + self.received(0.5)

    def received(self, wait_s):
        out = []
        for side, far in enumerate(self.sockets):
            while True:
                try:
                    far.settimeout(wait_s)
                    data, where = far.recvfrom(4096)
                except (socket.timeout, BlockingIOError):
                    break
                if where[2] != socket.PACKET_OUTGOING:
                    out.append((side, data))
        return out

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def header_bytes(datagram):
    return (datagram[0] & 15) * 4


def is_answer(datagram):
    """Whether a router's own ICMP message: an echo reply or an error, and not one of the frames sent."""
    return (datagram[9] == ICMP and datagram[12:16] in [address(own) for own in OWN] and
            datagram[8] == 64 and datagram[header_bytes(datagram)] in (0, 3, 11, 12, 14))


def number_of(frame):
    """The number of the frame that this one comes of; None for what the kernel says of itself."""
    if frame[12:14] == b"\x08\x06":  # a reply goes to the sender's address
        return None if frame[21] == 1 else struct.unpack("!H", frame[40:42])[0]
    if frame[12:14] != b"\x08\x00":
        return None
    datagram = frame[14:]
    if is_answer(datagram):
        message = datagram[header_bytes(datagram):]
        return struct.unpack("!H", message[4:6] if message[0] in (0, 14) else message[12:14])[0]
    if datagram[9] == TCP and datagram[12:16] in [address(own) for own in OWN]:
        return None  # a reset: the router has no TCP
    return struct.unpack("!H", datagram[4:6])[0]


def options_of(datagram):
    """[(position, option)] up to the end of the list or the first that is malformed."""
    at, end, found = 20, header_bytes(datagram), []
    while at < end and datagram[at] != 0:
        length = 1 if datagram[at] == 1 or at + 1 == end else datagram[at + 1]
        if length == 0:
            break
        found.append((at, datagram[at:at + length]))
        at += length
    return found


def kept_options(header):
    """Record route and timestamp: what an echo reply repeats (RFC 1812, 4.3.3.6)."""
    kept = b"".join(option for _, option in options_of(header) if option[0] in (7, 68))
    return kept + bytes(-len(kept) % 4)


def drops_options(sent):
    """Whether Linux leaves out options when it answers: the bytes of its answer are then its own."""
    return kept_options(sent[14:14 + header_bytes(sent[14:])]) != sent[34:14 + header_bytes(sent[14:])]


def comparable(frame, sent):
    """A frame as it is compared, without padding. An answer has an identification, DF and a checksum of its own. The
    options of an echo reply: without those that do nothing. An error: Linux repeats options there, and quotes a packet
    with its own timestamp and address in it already; a router quotes what it got."""
    if frame[12:14] != b"\x08\x00":
        return frame[:42]
    datagram = frame[14:14 + struct.unpack("!H", frame[16:18])[0]]
    if not is_answer(datagram):
        return frame[:14] + datagram
    header, message = datagram[:header_bytes(datagram)], datagram[header_bytes(datagram):]
    opts = b""
    if message[0] == 0:
        opts = kept_options(header)
    elif message[8] != 0x45:
        message = message[:8] + sent[14:][:len(message) - 8]
        message = message[:2] + bytes(2) + message[4:]
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    header = (bytes([0x45 + len(opts) // 4, header[1]]) + struct.pack("!H", 20 + len(opts) + len(message)) + bytes(4) +
              header[8:10] + bytes(2) + header[12:20] + opts)
    return frame[:14] + header + message


def by_number(out, sent):
    """{number: [(side, comparable frame)]}"""
    result = {}
    for side, frame in out:
        number = number_of(frame)
        if number is not None:
            result.setdefault(number, []).append((side, comparable(frame, sent[number - 1])))
    return result


def stamp_of(sent, out):
    """The time that Linux has put into the packet's timestamp option, in milliseconds since midnight UT; 0 without."""
    own = [address(text) for text in OWN]
    for _, frame in out:
        datagram = frame[14:] if frame[12:14] == b"\x08\x00" else b"\0"
        for at, option in options_of(datagram):
            for word in range(4, len(option) - 3 if option[0] == 68 else 0, 4):
                stamp = option[word:word + 4]
                if stamp not in own and stamp != sent[14 + at + word:18 + at + word]:
                    return struct.unpack("!I", stamp)[0]
    return 0


def write_capture(path, sent, stamps):
    """A day for each frame, at the time that Linux had."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for day, (frame, stamp) in enumerate(zip(sent, stamps)):
            file.write(struct.pack("<IIII", (day + 1) * 86400 + stamp // 1000, stamp % 1000 * 1000, len(frame),
                                   len(frame)) + frame)


def read_capture(path):
    data, at = path.read_bytes(), 24
    while at < len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + captured]
        at += 16 + captured


def catena(program, sent, stamps, device, on):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_capture(folder / "in.pcap", sent, stamps)
        (folder / "routes.txt").write_text(ROUTES)
        (folder / "chain.yaml").write_text(CHAIN.replace("DEVICE", device).replace("ON", on))
        subprocess.run([program, "run", "chain.yaml"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return [(1 if frame[:6] == mac(SERVER) else 0, frame) for frame in read_capture(folder / "out.pcap")]


def text(outputs):
    """In words of the recorded file."""
    return " ".join(f"{('lan', 'wan')[side]}:{frame.hex()}" for side, frame in outputs) or "drop"


def record(path, named, expected, stamps):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# What Linux {platform.release().split('-')[0]} makes of frames, recorded by "
                   "tests/oracle/kernel_router.py --record.\n# NAME | TIME | FRAME | drop, or SIDE:FRAME as it left. "
                   "TIME: milliseconds since midnight.\n# Settings: " + " ".join(SETTINGS) + "\n")
        for number, (name, frame) in enumerate(named, 1):
            if reason_of(name) is None and (" echo" not in name or not drops_options(frame)):
                file.write(f"{name} | {stamps[number - 1]} | {frame.hex()} | {text(expected.get(number, []))}\n")


def reason_of(name):
    return next((reason for pattern, reason in DIFFERENT if re.fullmatch(pattern, name)), None)


def compare(named, expected, actual, where):
    """The number of frames with another fate than in Linux."""
    failed = 0
    differing = set()
    for number, (name, frame) in enumerate(named, 1):
        linux, ours = text(expected.get(number, [])), text(actual.get(number, []))
        if linux == ours:
            continue
        reason = reason_of(name)
        differing.add(reason)
        if reason is None:
            failed += 1
            print(f"{where}: {name}: {frame.hex()}\n  linux  {linux}\n  catena {ours}")
    for pattern, reason in DIFFERENT:
        if reason not in differing:
            failed += 1
            print(f"{where}: no difference: {pattern}: {reason}")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("catena", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.catena.resolve()
    try:
        kernel = Kernel()
    except (RuntimeError, OSError) as error:
        print(f"SKIPPED: no kernel to compare with: {error}")
        return SKIPPED
    named = frames(whole=not arguments.record)
    sent = [frame for _, frame in named]
    try:
        expected = by_number(kernel.send(sent), sent)
        # Linux looks for broadcast addresses among the sources only with rp_filter 1
        broadcasts = [number for number, (name, _) in enumerate(named, 1) if re.match("from (lan|wan)_broadcast", name)]
        kernel.inside("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1")
        strict = by_number(kernel.send([sent[number - 1] for number in broadcasts]), sent)
        expected.update({number: strict.get(number, []) for number in broadcasts})
    finally:
        kernel.close()
    stamps = [stamp_of(frame, expected.get(number, [])) for number, frame in enumerate(sent, 1)]
    sides = [sum(side == wanted for outputs in expected.values() for side, _ in outputs) for wanted in (0, 1)]
    # a kernel that answers and forwards at all
    assert min(sides) > 100, sides
    if arguments.record:
        record(arguments.record, named, expected, stamps)
        return 0
    failed = 0
    for device, on in (("none", "cpu"), ("opencl", "gpu")):
        failed += compare(named, expected, by_number(catena(program, sent, stamps, device, on), sent), on)
    print(f"{len(sent)} frames: Linux sends {sides[0]} to the client and {sides[1]} to the server")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
