# SPDX-License-Identifier: Apache-2.0
"""The NFs of the matrix: their configuration, the decision about each flow, and the traces of their state in the output.

Packets come from a generator, whose flows take turns: packet i is one of flow i modulo FLOWS, has i as its IPv4
identification, and a stamp of i / RATE seconds.
"""

import collections
import json
import re
import struct

FLOWS = 48
BYTES = 100
RATE = 2000
GENERATOR = f"{{generator: {{packet: {BYTES}, flows: {FLOWS}, rate: {RATE}}}}}"
TCP, UDP, ESP = 6, 17, 50
NS = 1_000_000_000


def address(number):
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))


class Frame:
    """The headers of an IPv4 packet without options, and its bytes after them."""

    def __init__(self, data):
        self.identification, self.ttl, self.protocol, self.source, self.destination = struct.unpack_from("!18xH2xBB2xII", data)
        self.source_port, self.destination_port = struct.unpack_from("!HH", data, 34)
        self.payload = data[34 + (20 if self.protocol == TCP else 8):]

    def ends(self):
        return self.source, self.source_port, self.destination, self.destination_port


def read_capture(path):
    """(stamp in ns, bytes) of each packet. A last packet that is not whole is left out."""
    data, at = path.read_bytes(), 24
    while at + 16 <= len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, at)
        if at + 16 + length > len(data):
            return
        yield seconds * NS + nanoseconds, data[at + 16:at + 16 + length]
        at += 16 + length


class Traces:
    """What the output of a run shows. `problems`: defects whatever was said before; `lost`: lost state."""

    def __init__(self):
        self.problems = []
        self.lost = []

    def expect(self, is_fine, problem):
        if not is_fine:
            self.problems.append(problem)


class Nf:
    """An NF under test; a subclass for each type. `folder` has the files of its chain, `flows` a frame of each flow."""

    NAME = "nut"
    tx = "{{pcap: {out}}}"
    prelude = None  # a configuration applied before the change

    def __init__(self, folder, flows, number):
        self.folder = folder
        self.flows = flows
        self.number = number  # of the cell, for names that no other chain of the service has
        self.write_files()

    def write_files(self):
        pass

    def configuration(self, is_changed):
        raise NotImplementedError

    def apply_options(self):
        """Of the first start."""
        return {}

    def base_configuration(self):
        """Of the first start."""
        return self.configuration(False)

    def verdict(self, flow):  # pylint: disable=unused-argument
        return "pass"

    def has_record(self, flow):  # pylint: disable=unused-argument
        """Whether the NF has a record line for a packet of the flow."""
        return True

    def translates(self, before, after):
        """Whether the packet `after` is an output of the NF for `before`."""
        return before.ends() == after.ends()

    def check_flows(self, outputs, traces):
        """`outputs`: for each flow, the set of ends() of its packets that left."""

    def check(self, run, traces):
        """What the output has besides the packets; `run`: see matrix_run.Run."""

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def device(self, out):
        return self.tx.format(out=out, number=self.number)


class Nat(Nf):
    """So few ports that the port of a flow depends on the earlier flows. Each of four shards has some to spare."""

    EXTERNAL, FIRST, LAST = 0xCB007101, 2000, 2063

    def configuration(self, is_changed):
        inside = "[10.0.0.0/8, 100.64.0.0/10]" if is_changed else "[10.0.0.0/8]"
        return f"{{inside: {inside}, external: {address(self.EXTERNAL)}, ports: {self.FIRST}-{self.LAST}}}"

    def translates(self, before, after):
        return (after.source, after.ends()[2:]) == (self.EXTERNAL, before.ends()[2:]) and \
            self.FIRST <= after.source_port <= self.LAST

    def check_flows(self, outputs, traces):
        owner = {}
        for flow, ends in outputs.items():
            if len(ends) > 1:
                traces.lost.append(f"flow {flow} has {len(ends)} external ports")
            for _, port, _, _ in ends:
                if owner.setdefault((self.flows[flow].protocol, port), flow) != flow:
                    traces.lost.append(f"two flows have external port {port}")


class Lb(Nf):
    """Each flow has a service of its own. A backend drains before the change: only state keeps its flows there."""

    BACKENDS = {"a": 0xC0000201, "b": 0xC0000202, "c": 0xC0000203, "d": 0xC0000204}

    def backends(self, *drained, more=()):
        names = ["a", "b", "c", *more]
        return ", ".join(f"{{name: {name}, address: {address(self.BACKENDS[name])}"
                         f"{', state: drain' if name in drained else ''}}}" for name in names)

    def services(self, backends):
        names = {TCP: "tcp", UDP: "udp"}
        services = {(flow.destination, flow.destination_port, names[flow.protocol]) for flow in self.flows}
        listed = ", ".join(f"{{address: {address(where)}, port: {port}, protocol: {protocol}, backends: [{backends}]}}"
                           for where, port, protocol in sorted(services))
        return f"{{table_size: 1009, services: [{listed}]}}"

    def base_configuration(self):
        return self.services(self.backends())

    def configuration(self, is_changed):
        return self.services(self.backends("c", more=("d",) if is_changed else ()))

    prelude = configuration

    def translates(self, before, after):
        return (before.source, before.source_port, before.destination_port) == \
            (after.source, after.source_port, after.destination_port) and after.destination in self.BACKENDS.values()

    def check_flows(self, outputs, traces):
        traces.lost += [f"flow {flow} has {len(ends)} backends" for flow, ends in outputs.items() if len(ends) > 1]


class Ipsec(Nf):
    """Four associations. With a device as tx their numbers continue after a restart."""

    tx = '{{dpdk: "net_pcap{number},tx_pcap={out}"}}'
    SELECTORS = ("destination: 172.16.0.0/12, protocol: tcp", "destination: 172.16.0.0/12, protocol: udp", "protocol: tcp",
                 "protocol: udp")

    def first_spi(self):
        return 4096 + 16 * self.number

    def apply_options(self):
        return {"new_keys": [self.first_spi() + at for at in range(len(self.SELECTORS))]}

    def write_files(self):
        text = "associations:\n"
        for at, selector in enumerate(self.SELECTORS):
            spi = self.first_spi() + at
            text += (f"  - {{spi: {spi}, source: 192.0.2.1, destination: 198.51.100.1, encryption_key: \"{spi:040x}\", "
                     f"authentication_key: \"{spi:040x}\", selector: {{{selector}}}}}\n")
        self.write("sa.yaml", text)

    def configuration(self, is_changed):
        return f"{{direction: encrypt, sa: sa.yaml{', mtu: 1400' if is_changed else ''}}}"

    def check(self, run, traces):
        numbers = collections.defaultdict(list)  # by SPI, in the order of the packets
        for record in sorted(run.records(), key=lambda record: record["packet"]):
            if "seq" in record:
                numbers[record["spi"]].append(record["seq"])
        first = {spi: of_spi[0] for spi, of_spi in numbers.items()}
        for spi, of_spi in numbers.items():
            traces.expect(of_spi == list(range(of_spi[0], of_spi[0] + len(of_spi))),
                          f"numbers of SPI {spi} are not consecutive")
        left = collections.defaultdict(list)
        for _, data in read_capture(run.capture()):
            spi, number = struct.unpack_from("!II", data, 34)
            left[spi].append(number)
        traces.expect(left == numbers, "the numbers of the packets are not the recorded ones")
        used = sum(number - 1 for number in first.values())
        if run.is_new:
            traces.expect(used >= run.sent_before, f"numbers are used twice: {run.sent_before} were used, {first} are first")
        else:
            traces.expect(set(first.values()) == {1}, f"first numbers are {first}")


class Monitor(Nf):
    def has_record(self, flow):
        return False

    def configuration(self, is_changed):
        return f"{{top: {5 if is_changed else 10}, export: [{{format: json, file: flows.jsonl}}]}}"

    def check(self, run, traces):
        counts = collections.defaultdict(list)
        for line in (self.folder / "flows.jsonl").read_text().splitlines():
            flow = json.loads(line)
            counts[flow["src"], flow["sport"], flow["protocol"]].append(flow["packets"])
        for number, flow in enumerate(self.flows):
            packets = sum(len(range(number, received, FLOWS)) for received in (run.received_before, run.received))
            counted = counts.pop((address(flow.source), flow.source_port, flow.protocol), [])
            traces.expect(sum(counted) == packets, f"flow {number} has {packets} packets, and {counted} are exported")
            if len(counted) > 1 + (run.received_before > 0):
                traces.lost.append(f"flow {number} is exported {len(counted)} times")
        traces.expect(not counts, f"flows without packets are exported: {list(counts)}")


class Firewall(Nf):
    def write_files(self):
        rules = "deny udp any any any 53\ndeny tcp any any any 443\n"
        self.write("nut.rules", rules)
        self.write("changed.rules", "deny tcp 192.0.2.1 any any any\n" + rules)

    def configuration(self, is_changed):
        return f"{{rules: {'changed' if is_changed else 'nut'}.rules, default: allow}}"

    def verdict(self, flow):
        denied = {(UDP, 53), (TCP, 443)}
        return "drop" if (self.flows[flow].protocol, self.flows[flow].destination_port) in denied else "pass"


class Nids(Nf):
    """Each third flow has one of the strings."""

    def strings(self):
        return [flow.payload[:16] for flow in self.flows[::3]]

    def write_files(self):
        text = b"".join(string + b"\n" for string in self.strings())
        (self.folder / "strings").write_bytes(text)
        (self.folder / "changed").write_bytes(text + b"0, in no packet\n")

    def configuration(self, is_changed):
        return f"{{strings: {'changed' if is_changed else 'strings'}}}"

    def alerts(self, flow):
        return sum(string in self.flows[flow].payload for string in self.strings())

    def verdict(self, flow):
        return "alert" if self.alerts(flow) else "pass"

    def has_record(self, flow):
        return self.alerts(flow) > 0

    def check(self, run, traces):
        alerts = []
        for line in (self.folder / "eve").read_text().splitlines():
            hours, minutes, seconds = re.search(r'"timestamp":"1970-01-01T(\d+):(\d+):([\d.]+)\+', line).groups()
            alerts.append(round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * RATE))
        wanted = [packet for packet in range(run.received) for _ in range(self.alerts(packet % FLOWS))]
        traces.expect(sorted(alerts) == wanted, "alerts of EVE are lost or doubled")


class Router(Nf):
    def write_files(self):
        routes = "172.16.0.0/12 1\n192.168.0.0/17 2\n"
        self.write("routes", routes)
        self.write("changed", routes + "198.51.100.0/24 3\n")

    def configuration(self, is_changed):
        return f"{{routes: {'changed' if is_changed else 'routes'}}}"

    def verdict(self, flow):
        return "drop" if self.flows[flow].destination >> 15 == 0xC0A88000 >> 15 else "pass"

    def translates(self, before, after):
        return super().translates(before, after) and after.ttl == before.ttl - 1


TYPES = {"nat": Nat, "lb": Lb, "ipsec": Ipsec, "monitor": Monitor, "firewall": Firewall, "nids": Nids, "router": Router}
