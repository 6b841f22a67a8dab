#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kinds of trouble that public bug reports of similar programs describe, as whole runs: README.md is the list.

CATENA_BIN names the program. Expected values are of RFCs, or of the program that the README names; `protocols.tsv` is
what Suricata 7.0.10 wrote for the frames of test_names_of_protocols.
"""

import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["CATENA_BIN"]
HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 120

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: reports}}
spec:
  rx: {rx}
  tx: {{pcap: out.pcap}}
  device: {device}
  shards: {shards}
  nfs: [{nfs}]
"""
# NFs `on: gpu` run on the CPU without a device
PLACES = (("none", 1), ("opencl", 1), ("opencl", 3))

START = 1_700_000_000
INSIDE, SERVER, EXTERNAL, HOP = "10.0.0.5", "198.51.100.7", "203.0.113.1", "192.0.2.9"


# ---- frames


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source, destination, protocol, body, ttl=64):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, ttl, protocol, 0, socket.inet_aton(source),
                         socket.inet_aton(destination))
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + body


def pseudo_header(source, destination, protocol, length):
    return socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack(">HH", protocol, length)


def udp(source, destination, source_port, destination_port, payload=b""):
    text = struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    value = checksum(pseudo_header(source, destination, 17, len(text)) + text) or 0xFFFF
    return ipv4(source, destination, 17, text[:6] + struct.pack(">H", value) + text[8:])


def tcp(source, destination, source_port, destination_port, flags, payload=b""):
    """`flags`: the 12 bits after the data offset."""
    text = struct.pack(">HHIIHHHH", source_port, destination_port, 1, 0, 5 << 12 | flags, 65535, 0, 0) + payload
    value = checksum(pseudo_header(source, destination, 6, len(text)) + text)
    return ipv4(source, destination, 6, text[:16] + struct.pack(">H", value) + text[18:])


def icmp(source, destination, kind, rest, body, code=0):
    text = struct.pack(">BBH", kind, code, 0) + rest + body
    return ipv4(source, destination, 1, text[:2] + struct.pack(">H", checksum(text)) + text[4:])


def frame(datagram, destination=b"\x02\0\0\0\0\x01"):
    text = destination + b"\x02\0\0\0\0\x0a\x08\0" + datagram
    return text + bytes(max(0, 60 - len(text)))


def datagram_of(text):
    """Of a frame: its IPv4 datagram, without padding."""
    return text[14:14 + struct.unpack(">H", text[16:18])[0]]


def pcap_header():
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def record(seconds, microseconds, text):
    return struct.pack("<IIII", seconds, microseconds, len(text), len(text)) + text


def pcap(frames):
    """One frame each millisecond."""
    return pcap_header() + b"".join(record(START, 1000 * n, text) for n, text in enumerate(frames))


def read_pcap(path):
    """[(ns, frame)] as catena writes them."""
    text, at, frames = path.read_bytes(), 24, []
    while at < len(text):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", text, at)
        frames.append((seconds * 10**9 + nanoseconds, text[at + 16:at + 16 + captured]))
        at += 16 + captured
    return frames


def block(kind, body, order="<"):
    """Of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(resolution=None, offset=None, order="<"):
    options = b"" if resolution is None else struct.pack(order + "HHB3x", 9, 1, resolution)
    options += b"" if offset is None else struct.pack(order + "HHq", 14, 8, offset)
    return block(1, struct.pack(order + "HHI", 1, 0, 0) + options + (bytes(4) if options else b""), order)


def packet_block(number, ticks, text, order="<"):
    return block(6, struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(text), len(text)) + text,
                 order)


# ---- IPFIX


def data_records(message):
    """(sequence number of the header, template, bytes) of each data record of an IPFIX message, and whether it has
    templates. Record lengths are those of nfs/monitor/README.md."""
    sequence, at, records, has_templates = struct.unpack(">I", message[8:12])[0], 16, [], False
    sizes = {256: 49, 257: 45}
    while at < len(message):
        kind, length = struct.unpack(">HH", message[at:at + 4])
        has_templates |= kind == 2
        for start in range(at + 4, at + length, sizes.get(kind, length)):
            if kind in sizes:
                records.append((sequence, kind, message[start:start + sizes[kind]]))
        at += length
    return records, has_templates


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        data = tempfile.TemporaryDirectory()
        cls.addClassCleanup(data.cleanup)
        cls.env = {**os.environ, "CATENA_DATA_DIR": data.name}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def chain(self, nfs="", rx="{pcap: in.pcap}", device="none", shards=1):
        (self.folder / "chain.yaml").write_text(CHAIN.format(rx=rx, device=device, shards=shards, nfs=nfs))

    def run_chain(self, nfs, capture, *arguments, status=0, **keys):
        """The finished run; its outputs are in the folder, without those of an earlier one."""
        for output in ("records", "eve", "flows", "ipfix"):
            (self.folder / output).unlink(missing_ok=True)
        if capture is not None:
            (self.folder / "in.pcap").write_bytes(capture)
        self.chain(nfs, **keys)
        done = subprocess.run([BIN, "run", "chain.yaml", "--record", "records", "--eve", "eve", *arguments],
                              cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def lines(self, name):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def frames(self):
        return read_pcap(self.folder / "out.pcap")

    def for_each_place(self, nfs, capture, result):
        """What result() gives after a run, the same for each place."""
        results = []
        for device, shards in PLACES:
            self.run_chain(nfs, capture, device=device, shards=shards)
            results.append(result())
        self.assertEqual(results[1:], [results[0]] * (len(results) - 1))
        return results[0]

    # ---- rules and alerts

    def test_names_of_protocols(self):
        """Collectors know the names of Suricata and discard alerts with others."""
        (self.folder / "ids.rules").write_text('alert ip any any -> any any (msg:"any"; sid:1;)\n')
        frames = [frame(ipv4("10.0.0.1", f"10.1.{n}.2", n, b"MARKER" + bytes(30))) for n in range(256)]
        names = self.for_each_place("{name: ids, type: nids, on: gpu, config: {rules: ids.rules}}", pcap(frames),
                                    lambda: [alert["proto"] for alert in self.lines("eve")])
        rows = [line.split("\t") for line in (HERE / "protocols.tsv").read_text().splitlines()]
        self.assertEqual(names, [name for _, name in rows])

    def test_ipv6_addresses_beside_ipv4_ones(self):
        """A network has addresses of both versions; rules for it count for IPv4 packets. Suricata 7.0.10 decided."""
        (self.folder / "ids.rules").write_text("".join(
            f'alert udp {source} any -> any any (msg:"{source}"; content:"x"; sid:{sid};)\n'
            for sid, source in enumerate(("$HOME_NET", "!$HOME_NET", "[192.0.2.0/24,2001:db8::/32]", "[fe80::1,::1]"), 1)))
        frames = [frame(udp(source, SERVER, 1000, 53, b"x")) for source in ("10.0.0.1", "10.1.0.1", "192.0.2.1")]
        alerts = self.for_each_place(
            '{name: ids, type: nids, on: gpu, config: {rules: ids.rules, '
            'variables: {HOME_NET: ["10.0.0.0/8", "fe80::/10"]}}}', pcap(frames),
            lambda: [(alert["pcap_cnt"], alert["alert"]["signature_id"]) for alert in self.lines("eve")])
        self.assertEqual(alerts, [(1, 1), (2, 1), (3, 2), (3, 3)])

    # ---- captures

    def test_stamps_after_2038(self):
        """The seconds of pcap are unsigned; RFC 3339 for the year."""
        text = frame(udp(INSIDE, SERVER, 1000, 53, b"x"))
        seconds = (2**31 - 1, 2**31, 2**32 - 1)
        (self.folder / "ids.rules").write_text('alert udp any any -> any any (msg:"x"; content:"x"; sid:1;)\n')
        self.run_chain("{name: ids, type: nids, config: {rules: ids.rules}}",
                       pcap_header() + b"".join(record(second, 0, text) for second in seconds))
        self.assertEqual([ns for ns, _ in self.frames()], [second * 10**9 for second in seconds])
        self.assertEqual([alert["timestamp"][:19] for alert in self.lines("eve")],
                         ["2038-01-19T03:14:07", "2038-01-19T03:14:08", "2106-02-07T06:28:15"])

    def test_more_than_a_second_of_microseconds(self):
        """No value may be lost or make a stamp of another form: they are carried."""
        text = frame(udp(INSIDE, SERVER, 1000, 53, b"x"))
        self.run_chain("", pcap_header() + record(100, 999999, text) + record(100, 1000000, text) +
                       record(100, 2500000, text))
        self.assertEqual([ns for ns, _ in self.frames()], [100_999_999_000, 101_000_000_000, 102_500_000_000])

    def test_stamps_of_each_interface_by_its_resolution(self):
        """Also powers of two, offsets, and a second section of the other byte order; tshark 4.0.17 agrees."""
        text = frame(udp(INSIDE, SERVER, 1000, 53, b"x"))
        self.run_chain("", section() + interface() + interface(9) + interface(0x80 | 20) + interface(6, -100) +
                       packet_block(1, START * 10**9 + 7, text) + packet_block(0, START * 10**6 + 8, text) +
                       packet_block(2, START << 20 | 1 << 19, text) + packet_block(3, (START + 101) * 10**6, text) +
                       section(">") + interface(3, order=">") + packet_block(0, START * 1000 + 2002, text, ">"))
        self.assertEqual([ns - START * 10**9 for ns, _ in self.frames()],
                         [7, 8000, 500_000_000, 1_000_000_000, 2_002_000_000])

    def test_passes_continue_the_time(self):
        """A capture that is read again does not go back in time."""
        frames = [frame(udp(INSIDE, SERVER, 1000, 53, bytes([n]))) for n in range(3)]
        flows = "{name: mon, type: monitor, config: {export: [{format: json, file: flows}]}}"
        self.run_chain(flows, pcap(frames), rx="{pcap: in.pcap, loops: 3}")
        stamps = [ns for ns, _ in self.frames()]
        self.assertEqual(stamps, sorted(stamps))
        self.assertEqual(len(stamps), 9)
        flow, = self.lines("flows")
        self.assertEqual((flow["packets"], flow["first_ns"], flow["last_ns"]), (9, stamps[0], stamps[-1]))

    def test_a_capture_that_ends_inside_a_frame(self):
        """Its writer was killed: the frames before count, the outputs are whole, and the status tells."""
        frames = [frame(udp(INSIDE, SERVER, 1000, 53, b"x")) for _ in range(300)]
        flows = "{name: mon, type: monitor, config: {export: [{format: json, file: flows}]}}"
        done = self.run_chain(flows, pcap(frames)[:-5], "--json", status=1)
        report = json.loads(done.stdout)
        self.assertIn("frame 300 cannot be read: the file ends inside it", done.stderr)
        self.assertEqual((report["tx"]["sent_packets"], report["accounted"]), (299, True))
        self.assertEqual(len(self.frames()), 299)
        self.assertEqual([flow["packets"] for flow in self.lines("flows")], [299])

    # ---- NAT and tunnels

    def translated_errors(self, *datagrams):
        """ICMP errors after NAT, which are the last frames."""
        self.run_chain("{name: n, type: nat, config: {inside: [10.0.0.0/8], external: [203.0.113.1]}}",
                       pcap([frame(datagram) for datagram in datagrams]))
        return [datagram_of(text) for _, text in self.frames()]

    def test_an_error_about_a_ping_through_nat(self):
        """Three checksums and an identifier of which the outer one counts as data (RFC 5508, REQ-4; RFC 1624)."""
        other = icmp("10.0.0.6", SERVER, 8, b"\x12\x34\0\x01", b"ping")
        request = icmp(INSIDE, SERVER, 8, b"\x12\x34\0\x01", b"ping")
        _, sent, error = self.translated_errors(
            other, request, icmp(HOP, EXTERNAL, 11, bytes(4), icmp(EXTERNAL, SERVER, 8, b"\x12\x36\0\x01", b"ping")))
        self.assertNotEqual(sent[24:26], b"\x12\x34")  # the other host has it
        self.assertEqual(sent[24:26], b"\x12\x36")
        self.assertEqual(error, icmp(HOP, INSIDE, 11, bytes(4), request))

    def test_short_and_extended_errors_through_nat(self):
        """RFC 792 quotes 8 bytes, where TCP has no checksum yet; RFC 4884 puts more after the quote."""
        segment, datagram = tcp(INSIDE, SERVER, 5001, 80, 2), udp(INSIDE, SERVER, 5000, 53, b"hello")
        labels = b"\x20\0\x5a\x5a\0\x08\x01\x01\0\x01\x02\x03"

        def extended(quote):
            return quote + bytes(128 - len(quote)) + labels

        results = self.translated_errors(
            segment, datagram, icmp(HOP, EXTERNAL, 3, b"\0\0\x05\0", tcp(EXTERNAL, SERVER, 5001, 80, 2)[:28], code=4),
            icmp(HOP, EXTERNAL, 11, b"\0\x20\0\0", extended(udp(EXTERNAL, SERVER, 5000, 53, b"hello"))))
        self.assertEqual(results[2:], [icmp(HOP, INSIDE, 3, b"\0\0\x05\0", segment[:28], code=4),
                                       icmp(HOP, INSIDE, 11, b"\0\x20\0\0", extended(datagram))])

    def test_what_shares_the_port_of_a_tunnel(self):
        """NAT-keepalives, which Ethernet pads, and IKE pass (RFC 3948, sections 2.2 and 2.3), from any port (2.1)."""
        (self.folder / "sa.yaml").write_text(
            "associations:\n  - {spi: 4096, source: 192.0.2.1, destination: 198.51.100.1, udp_encapsulation: {},\n"
            f"     encryption_key: '{'01' * 16}', salt: '{'02' * 4}', authentication_key: '{'03' * 20}'}}\n")
        gateway = "198.51.100.1"
        frames = [frame(udp("192.0.2.1", gateway, 4500, 4500, b"\xff")),
                  frame(udp("203.0.113.77", gateway, 61000, 4500, b"\xff")),
                  frame(udp("203.0.113.77", gateway, 61000, 4500, bytes(4) + b"i" * 28)),
                  frame(udp("192.0.2.1", gateway, 4500, 4500, b"\xff\xff")),
                  frame(udp("192.0.2.1", gateway, 4500, 4500, b"\0\0\x10\0" + bytes(3)))]
        passed = self.for_each_place("{name: v, type: ipsec, on: gpu, config: {direction: decrypt, sa: sa.yaml}}",
                                     pcap(frames), lambda: [text for _, text in self.frames()])
        self.assertEqual(passed, frames[:3])

    # ---- router

    def test_both_ends_of_a_31(self):
        """Neither address is a broadcast (RFC 3021, section 2.1)."""
        (self.folder / "routes").write_text("192.0.2.0/31 1\n192.0.2.4/30 2\n0.0.0.0/0 0\n")
        ports = ", ".join(f"{{port: {n}, mac: 02:00:00:00:00:01, next_hop_mac: 02:00:00:00:{n:02x}:02, address: {own}}}"
                          for n, own in enumerate(("10.9.0.1/24", "192.0.2.1/31", "192.0.2.5/30")))
        frames = [frame(udp("10.9.0.5", f"192.0.2.{host}", 1000, 53, b"x")) for host in (0, 1, 4, 7)]
        results = self.for_each_place(
            f"{{name: r, type: router, on: gpu, config: {{routes: routes, ports: [{ports}]}}}}", pcap(frames),
            lambda: [line.get("port", line.get("reason", line.get("reply"))) for line in self.lines("records")])
        self.assertEqual(results, [1, "port_unreachable", "broadcast", "broadcast"])

    # ---- flows

    def test_sequence_numbers_count_data_records(self):
        """And no templates, which each message has here (RFC 7011, section 3.1)."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:
            collector.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            collector.bind(("127.0.0.1", 0))
            frames = [frame(udp(INSIDE, f"198.51.{n >> 8}.{n & 255}", 1000, 53)) for n in range(300)]
            self.run_chain("{name: mon, type: monitor, config: {export: [{format: ipfix, template_refresh: 1, "
                           f"udp: '127.0.0.1:{collector.getsockname()[1]}'}}]}}}}", pcap(frames))
            expected = messages = 0
            while expected < len(frames):
                collector.settimeout(TIMEOUT_S)
                records, has_templates = data_records(collector.recv(65535))
                self.assertEqual({sequence for sequence, _, _ in records}, {expected})
                self.assertTrue(has_templates)
                expected += len(records)
                messages += 1
        self.assertEqual(expected, len(frames))
        self.assertGreater(messages, 10)

    def test_control_bits_of_tcp_as_they_were(self):
        """All 12 of a TCP header (RFC 7125), none of anything else."""
        frames = [frame(tcp(INSIDE, SERVER, 1000, 80, 0x002)), frame(tcp(INSIDE, SERVER, 1000, 80, 0x110)),
                  frame(tcp(INSIDE, SERVER, 1001, 80, 0xFFF)), frame(udp(INSIDE, SERVER, 1000, 80, b"\xff" * 12))]
        files = "{format: json, file: flows}, {format: ipfix, file: ipfix}"
        flags = self.for_each_place(
            f"{{name: mon, type: monitor, on: gpu, config: {{export: [{files}]}}}}", pcap(frames),
            lambda: (sorted((flow["protocol"], flow["sport"], flow["tcp_flags"]) for flow in self.lines("flows")),
                     sorted((text[12], struct.unpack(">H", text[8:10])[0], struct.unpack(">H", text[-2:])[0])
                            for _, _, text in data_records((self.folder / "ipfix").read_bytes())[0])))
        self.assertEqual(flags, ([(6, 1000, 0x112), (6, 1001, 0xFFF), (17, 1000, 0)],) * 2)

    # ---- reload

    def test_rules_behind_links_that_are_exchanged(self):
        """As in a mounted ConfigMap: the folder's link is replaced, no file changes."""
        for version, port in (("v1", 53), ("v2", 54)):
            (self.folder / version).mkdir()
            (self.folder / version / "fw.rules").write_text(f"deny udp any any any {port}\n")
        (self.folder / "data").symlink_to("v1")
        (self.folder / "fw.rules").symlink_to("data/fw.rules")
        os.mkfifo(self.folder / "fifo")
        self.chain("{name: fw, type: firewall, config: {rules: fw.rules, default: allow}}", rx="{pcap: fifo}")
        with subprocess.Popen([BIN, "run", "chain.yaml", "--record", "records"], cwd=self.folder, env=self.env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            with open(self.folder / "fifo", "wb", buffering=0) as fifo:
                frames = [frame(udp(INSIDE, SERVER, 1000, port)) for port in (53, 54)]
                fifo.write(pcap(frames))
                end = time.monotonic() + TIMEOUT_S
                while time.monotonic() < end and len(self.lines("records")) < len(frames):
                    time.sleep(0.01)
                (self.folder / "new").symlink_to("v2")
                os.rename(self.folder / "new", self.folder / "data")
                running.send_signal(signal.SIGHUP)
                for line in running.stderr:
                    if "changed: fw" in line:
                        break
                fifo.write(b"".join(record(START + 1, 0, text) for text in frames))
            running.stderr.read()
            self.assertEqual(running.wait(TIMEOUT_S), 0)
        self.assertEqual([(line["dport"], line["verdict"]) for line in self.lines("records")],
                         [(53, "drop"), (54, "pass"), (53, "pass"), (54, "drop")])


if __name__ == "__main__":
    unittest.main()
