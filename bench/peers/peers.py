#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catena beside programs of others that do the same work on the same frames, on the processor.

    bench/peers/peers.py --catena PROGRAM --out FILE.json [--peers FOLDER] [--groups frameworks,filters,tunnels,ids] [--sizes 64,512]

frameworks  DPDK's testpmd, which sends packets on as they are (io), with MAC addresses exchanged (macswap), and with
            addresses and ports exchanged (5tswap); DPDK's example l3fwd with the routes of a file; Catena without an NF,
            and with a router with that file
filters     Open vSwitch with DPDK and the rules of a file as OpenFlow, without state and with connection tracking; Catena's
            firewall with that file
tunnels     DPDK's example ipsec-secgw, and Catena's ipsec: one ESP tunnel for all flows, AES-128-CTR and HMAC-SHA1-96
ids         Suricata, as Debian configures it and without its application layers, reading a capture; Catena's nids with the
            same rules on the same capture

Frames are those of Catena's `replay`: 1,024 flows, one frame each. All programs have them from DPDK's net_pcap, which holds
them in memory and gives a copy of each (`infinite_rx`); what is sent is dropped. A copy of a long frame costs more than the
work that is compared. So rows of Catena with `replay` are beside them, which copies 64 bytes and which no other program has.

All groups but the last are measured on one core and on all. The port has a queue for each core. It divides nothing, so each
queue has a capture of its own with its part of the flows: a flow is on one core. Catena on all cores is a process for each
where its frames come from net_pcap, which it cannot divide, and where it has no NF; else one process with as many shards.
Speed and cores of several processes are of one window.

What is fastest by the median of TRIALS short trials, in turn, is measured, of TESTPMD_SETTINGS and the lists after it.
The ways take turns within each repeat. Cores used are processor seconds of the process (or processes) over those of the
window; all but Suricata wait in loops, so they use what they are given. Each repeat is kept once it is finished. What is in
FILE.json already, of the same commit, is not measured again; tools/render-bench makes a page of it. `--peers`: a folder that bench/peers/bundle has made; without it
programs are those installed here. A peer that is not there is left out, and a note says so.
"""

import argparse
import contextlib
import ipaddress
import json
import math
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common.catena_run import CatenaRun, measure_together  # noqa: E402
from common.results import Results, add_options, cpu_seconds  # noqa: E402
from common.rules import ALL_PORTS, read_rules  # noqa: E402

EXAMPLES = ROOT / "examples"
IDS_RULES = ROOT / "tests" / "data" / "oracles" / "nids" / "et150_perpacket.rules"
DPDK_DRIVERS = pathlib.Path("/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0")  # where DPDK looks by itself
FCS_BYTES = 4
FLOWS = 1024
TELEMETRY_BYTES = 1 << 16  # of an answer of DPDK, at most
PCAP_HEAD_BYTES = 24
PCAP_RECORD_BYTES = 16  # before each frame
MOST_CORES = 16  # net_pcap has no more queues, and a chain no more shards
WARM_UP_S = 1
TRIALS = 3     # of each setting
START_S = 60  # within which a program must have started
# DPDK without hugepages and NICs, beside other programs that use it. `--in-memory` contradicts `--no-huge` in 22.11.
EAL = ("--no-huge", "--no-shconf", "--no-telemetry", "--no-pci", "--log-level", "lib.eal:4")

# Of each, what is tried; the first is the program's default.
# testpmd: bursts of 16, 128 and 256 and caches of 0 were slower or the same where this was written; descriptors have no
# effect on net_pcap; more mbufs than needed are no slower. 1,024 frames are faster than 4,096: they stay in the cache.
TESTPMD_SETTINGS = (("burst 32", ("--burst=32",)), ("burst 64", ("--burst=64",)),
                    ("burst 64, cache 512", ("--burst=64", "--mbcache=512")),
                    ("burst 32, cache 512", ("--burst=32", "--mbcache=512")))
# l3fwd: which library looks up routes. Its bursts of 32 are fixed.
L3FWD_SETTINGS = (("lpm", ("--lookup=lpm",)), ("fib", ("--lookup=fib",)))
# ipsec-secgw: by librte_ipsec, or by code of its own.
SECGW_SETTINGS = (("own code", ()), ("librte_ipsec", ("-l",)))
# Open vSwitch: flows enter the exact-match cache one packet in 100, or at once. Without that cache it has a sixth of the
# speed. Debian's build has no AVX-512, and its other parsers of headers ("study") bring nothing.
OVS_SETTINGS = (("default", ()), ("exact matches at once", ("emc-insert-inv-prob=1",)),
                ("exact matches at once, signatures", ("emc-insert-inv-prob=1", "smc-enable=true")))
# Catena: a pool that stays in the cache is faster. Units of 64 and 128 packets in place of 256 were slower.
CATENA_SETTINGS = (("pool 16384", "pool_slots: 16384"), ("pool 4096", "pool_slots: 4096"), ("pool 2048", "pool_slots: 2048"))
# Suricata: packets that may wait between reader and workers. Checksums are not looked at, as Catena does not either, bounds
# of memory are high enough that nothing is given up, and only alerts are written. Larger tables of flows, flows that are
# there ahead, another detect.profile, and streams without `raw` or in chunks of one size were the same within the spread.
SURICATA_SETTINGS = (("1024 pending", ("max-pending-packets=1024",)), ("8192 pending", ("max-pending-packets=8192",)),
                     ("65000 pending", ("max-pending-packets=65000",)))
SURICATA_ALWAYS = ("unix-command.enabled=no", "outputs.1.eve-log.enabled=no",
                   "flow.memcap=4gb", "flow.hash-size=1048576", "stream.memcap=4gb", "stream.reassembly.memcap=8gb",
                   "detect.profile=high")
APP_LAYERS = ("telnet", "rfb", "mqtt", "krb5", "bittorrent-dht", "snmp", "ike", "tls", "dcerpc", "ftp", "rdp", "ssh",
              "http2", "smtp", "imap", "smb", "nfs", "tftp", "dns.tcp", "dns.udp", "http", "ntp", "quic", "dhcp", "sip")
IDS_PACKETS = 2_000_000  # of the capture, for each second of --seconds
SIDE_BY_SIDE = 64        # copies of the capture whose packets take turns, so that there is work for many threads

# The tunnel, which takes frames of all sizes whole.
TUNNEL = {"spi": 4096, "source": "192.0.2.1", "destination": "198.51.100.1", "salt": "a0a1a2a3",
          "encryption_key": "000102030405060708090a0b0c0d0e0f",
          "authentication_key": "101112131415161718191a1b1c1d1e1f20212223"}
TUNNEL_MTU = 2000
QUEUES_OF_CRYPTO = 8  # of one device of DPDK's crypto_aesni_mb

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: peers}}
spec:
  rx: {rx}
  tx: {tx}
  device: none
  shards: {shards}
  tuning: {{{tuning}}}
  nfs: [{nfs}]
"""


class NotThere(Exception):
    """A peer's program is not on this machine."""


# ---- what programs print

class PortStats(NamedTuple):
    """Of testpmd's `show port stats`; the speed is that since it was shown before."""
    rx_packets: int
    tx_packets: int
    rx_pps: int


def port_stats(text):
    """All that are in the text, in order."""
    found = re.findall(r"RX-packets:\s+(\d+)\s+RX-missed.*?TX-packets:\s+(\d+)\s+TX-errors.*?Rx-pps:\s+(\d+)", text,
                       re.DOTALL)
    return [PortStats(*map(int, one)) for one in found]


class PmdStats(NamedTuple):
    """Of all PMD threads in Open vSwitch's `dpif-netdev/pmd-stats-show`."""
    threads: int  # those that received something
    received: int
    failed: int   # packets for which there was no decision


def pmd_stats(text):
    received, failed, is_pmd = [], 0, False
    for line in text.splitlines():
        if not line.startswith(" "):
            is_pmd = line.startswith("pmd thread")
        elif is_pmd and (found := re.match(r"\s+(packets received|miss with failed upcall): (\d+)", line)):
            if found.group(1) == "packets received":
                received.append(int(found.group(2)))
            else:
                failed += int(found.group(2))
    return PmdStats(sum(1 for one in received if one), sum(received), failed)


def port_packets(text, port):
    """(received, sent) of that port in Open vSwitch's `dpctl/show -s`."""
    found = re.search(rf"^\s+port \d+: {port} .*?RX packets:(\d+).*?TX packets:(\d+)", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise RuntimeError(f"Open vSwitch has no port {port}: {text}")
    return int(found.group(1)), int(found.group(2))


# ---- rules of a firewall as OpenFlow

def masked(ports):
    """The range as few pairs (value, mask); one without a mask for all."""
    if ports == ALL_PORTS:
        return [None]
    first, last = ports
    found = []
    while first <= last:
        size = 1
        while first % (2 * size) == 0 and first + 2 * size - 1 <= last:
            size *= 2
        found.append((first, 0x10000 - size))
        first += size
    return found


def matches(rule):
    """The rule's matches: a range of ports is several, and ports of any protocol are those of TCP and of UDP."""
    protocols = [rule.protocol]
    if rule.protocol is None and (rule.source_ports, rule.destination_ports) != (ALL_PORTS, ALL_PORTS):
        protocols = [6, 17]
    for protocol in protocols:
        for source in masked(rule.source_ports):
            for destination in masked(rule.destination_ports):
                words = ["ip"] if protocol is None else ["ip", f"nw_proto={protocol}"]
                for name, address in (("nw_src", rule.source), ("nw_dst", rule.destination)):
                    network = None if address == "any" else ipaddress.ip_network(address, strict=False)
                    if network and network.prefixlen:
                        words.append(f"{name}={network}")
                words += [f"{name}=0x{value[0]:x}/0x{value[1]:x}"
                          for name, value in (("tp_src", source), ("tp_dst", destination)) if value]
                yield ",".join(words)


def openflow(rules, has_state):
    """Lines for `ovs-ofctl add-flows`: the first rule that matches decides, and what none matches passes. With state the
    rules decide what begins a connection, which is marked, and packets of marked connections pass. None is ever
    `established`, as nobody answers here: without the mark each packet would be entered anew, a third slower."""
    allow = "ct(commit,exec(set_field:1->ct_mark)),in_port" if has_state else "in_port"
    table = f"table={1 if has_state else 0}"
    lines = []
    if has_state:
        lines = ["table=0,priority=1,ip,actions=ct(table=1)", f"{table},priority=65000,ct_mark=1,ip,actions=in_port"]
    for number, rule in enumerate(rules):
        lines += [f"{table},priority={60000 - number},{match},actions={allow if rule.allows else 'drop'}"
                  for match in matches(rule)]
    return [*lines, f"{table},priority=1,ip,actions={allow}"]


# ---- files of DPDK's examples

def l3fwd_routes(text):
    """Catena's routes for l3fwd, all to its only port. It has no route for everything, so that becomes two halves."""
    prefixes = (line.split("#")[0].split() for line in text.splitlines())
    halves = {"0.0.0.0/0": ("0.0.0.0/1", "128.0.0.0/1")}
    return "".join(f"R{one} 0\n" for words in prefixes if words for one in halves.get(words[0], (words[0],)))


def secgw_config():
    """TUNNEL for ipsec-secgw, which takes what comes from its port for packets to encrypt, unless told otherwise."""
    def octets(*names):
        return ":".join(f"{octet:02x}" for octet in bytes.fromhex("".join(TUNNEL[name] for name in names)))
    return (f"sp ipv4 out esp protect {TUNNEL['spi']} pri 1 src 0.0.0.0/0 dst 0.0.0.0/0 sport 0:65535 dport 0:65535\n"
            f"sa out {TUNNEL['spi']} cipher_algo aes-128-ctr cipher_key {octets('encryption_key', 'salt')} "
            f"auth_algo sha1-hmac auth_key {octets('authentication_key')} "
            f"mode ipv4-tunnel src {TUNNEL['source']} dst {TUNNEL['destination']}\n"
            f"rt ipv4 dst {TUNNEL['destination']}/32 port 0\n")


# ---- programs under way

def pcap_device(captures):
    """DPDK's net_pcap with a queue for each of the captures, which it repeats for ever."""
    return ",".join(["net_pcap0", *(f"rx_pcap={path}" for path in captures), "infinite_rx=1"])


def speed(packets_per_s, cores, wire_bytes, **more):
    """Of a way, in one run."""
    return {"packets_per_s": packets_per_s, "gbps": packets_per_s * wire_bytes * 8 / 1e9, "cores": cores,
            "ns_per_packet": cores / packets_per_s * 1e9, **more}


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(what, process=None, log=lambda: ""):
    limit = time.monotonic() + START_S
    while not what():
        if time.monotonic() > limit or (process and process.poll() is not None):
            raise RuntimeError(f"does not start: {log()}")
        time.sleep(0.01)


class Peers:
    """Where the peers' programs are, and what they need."""
    INSTALLED = {"ovs-vswitchd-dpdk": "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk",
                 "ovsdb-server": "/usr/sbin/ovsdb-server"}

    def __init__(self, folder):
        self.folder = folder

    def program(self, name):
        path = self.folder / name if self.folder else pathlib.Path(shutil.which(name) or self.INSTALLED.get(name, "none"))
        if not path.exists():
            raise NotThere(f"{name} is not {'in ' + str(self.folder) if self.folder else 'installed'}")
        return str(path)

    def data(self, name, installed):
        """A file that a program needs."""
        return str(self.folder / name if self.folder else pathlib.Path(installed))

    def drivers(self, *more):
        """Options that have DPDK load the folder's drivers. They are found as libraries are: by a path DPDK would take them
        from no folder that is inside one which others may write to."""
        if not self.folder:
            return []
        return [word for name in (*more, "librte_mempool_ring.so", "librte_net_pcap.so")
                for path in sorted((self.folder / "lib").glob(f"{name}.*")) for word in ("-d", path.name)]

    def catena_env(self):
        """In which Catena, which links no driver that it does not need, has net_pcap."""
        if not self.drivers():
            return None
        return {**os.environ, "LD_PRELOAD": self.drivers()[-1], "LD_LIBRARY_PATH": str(self.folder / "lib")}

    def rules(self):
        """The larger file where it is: in the folder, or with the test data from elsewhere."""
        data = pathlib.Path(os.environ.get("CATENA_TEST_DATA", ROOT.parent / "shared" / "data"))
        places = [data / "firewall" / "classbench_fw1_186.rules", EXAMPLES / "branch-office" / "fw.rules"]
        if self.folder:
            places.insert(0, self.folder / "data" / "classbench_fw1_186.rules")
        return next(path for path in places if path.exists())


class Testpmd:
    """DPDK's testpmd under way, which is spoken to as on a terminal: else it would write nothing before it ends."""

    def __init__(self, peers, words):
        self.main, terminal = os.openpty()
        self.process = subprocess.Popen([peers.program("dpdk-testpmd"), *words], stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.text = ""

    def __enter__(self):
        self.read_until(lambda: "testpmd> " in self.text)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, RuntimeError):  # it ends while it is read
            os.write(self.main, b"quit\n")
            self.read_until(lambda: self.process.poll() is not None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        end(self.process)
        os.close(self.main)

    def read_until(self, what):
        limit = time.monotonic() + START_S
        while not what():
            if time.monotonic() > limit:
                raise RuntimeError(f"testpmd does not answer: {self.text[-1000:]}")
            if select.select([self.main], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.main, 65536).decode(errors="replace")
                except OSError as error:
                    raise RuntimeError(f"testpmd has ended: {self.text[-1000:]}") from error

    def stats(self):
        count = len(port_stats(self.text))
        os.write(self.main, b"show port stats 0\n")
        self.read_until(lambda: len(port_stats(self.text)) > count)
        return port_stats(self.text)[-1]


class Example:
    """One of DPDK's examples under way, with a thread on each of the cores. It shows no counts: those of its port are asked
    of DPDK's telemetry, in a folder of its own."""

    def __init__(self, peers, program, folder, cores, words, drivers=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="example", dir=folder))
        self.log = self.folder / "log"
        eal = [*(word for word in EAL if word != "--no-telemetry"), "-m", "1024", "--file-prefix", "peers",
               *peers.drivers(*drivers)]
        lcores = ",".join(f"{number}@{core}" for number, core in enumerate(cores))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([peers.program(program), "--lcores", lcores, *eal, *words],
                                            env={**os.environ, "RUNTIME_DIRECTORY": str(self.folder)}, stdout=log, stderr=log)
        self.telemetry = None

    def __enter__(self):
        try:
            wait_until(self.has_started, self.process, self.text)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end(self.process)
        if self.telemetry:
            self.telemetry.close()
        shutil.rmtree(self.folder)

    def text(self):
        return self.log.read_text(errors="replace")[-2000:]

    def has_started(self):
        """Whether it has a port that has received packets."""
        if self.telemetry is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                connection.connect(str(next(self.folder.rglob("dpdk_telemetry.v2"))))
            except (StopIteration, ConnectionError):
                connection.close()
                return False
            connection.recv(TELEMETRY_BYTES)  # who it is
            self.telemetry = connection
        return self.stats()[0] > 0

    def stats(self):
        """Packets that the port has (received, sent); (0, 0) before there is one."""
        self.telemetry.send(b"/ethdev/stats,0")
        stats = json.loads(self.telemetry.recv(TELEMETRY_BYTES))["/ethdev/stats"] or {"ipackets": 0, "opackets": 0}
        return stats["ipackets"], stats["opackets"]


class Ovs:
    """An Open vSwitch of its own in a folder, with one bridge."""

    def __init__(self, peers, folder, settings):
        self.peers = peers
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ovs", dir=folder))
        self.env = {**os.environ, **{f"OVS_{what}DIR": str(self.folder) for what in ("RUN", "LOG", "DB", "SYSCONF")}}
        self.schema = peers.data("share/vswitch.ovsschema", "/usr/share/openvswitch/vswitch.ovsschema")
        self.settings = settings
        self.processes = []

    def run(self, program, *words):
        done = subprocess.run([self.peers.program(program), *words], env=self.env, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.strip()} {self.log()}")

    def log(self):
        path = self.folder / "vswitchd.log"
        return path.read_text(encoding="utf-8")[-2000:] if path.exists() else ""

    def set(self, *words):
        self.run("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", "--timeout=30", *words)

    def start(self, program, *words):
        with open(self.folder / "output", "ab") as output:
            self.processes.append(subprocess.Popen([self.peers.program(program), *words, "-vconsole:off"], env=self.env,
                                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output))

    def __enter__(self):
        try:
            self.run("ovsdb-tool", "create", f"{self.folder}/conf.db", self.schema)
            self.start("ovsdb-server", f"{self.folder}/conf.db", f"--remote=punix:{self.folder}/db.sock",
                       f"--unixctl={self.folder}/ovsdb.ctl")
            wait_until((self.folder / "db.sock").exists, self.processes[-1])
            # 3.1 adds --in-memory unless it finds --legacy-mem, which --no-huge means anyway
            extra = " ".join([*EAL, "--legacy-mem", "-m", "2048", "--file-prefix", self.folder.name, *self.peers.drivers()])
            others = [f"other_config:{setting}" for setting in self.settings]
            self.set("--no-wait", "init", "--", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                     f'other_config:dpdk-extra="{extra}"', *others)
            # a bridge has a tap device; where there are none, the kind of the datapath that is for tests does without
            more = [] if self.has_taps() else ["--enable-dummy"]
            self.start("ovs-vswitchd-dpdk", f"unix:{self.folder}/db.sock", f"--log-file={self.folder}/vswitchd.log",
                       f"--unixctl={self.folder}/vswitchd.ctl", *more)
            wait_until((self.folder / "vswitchd.ctl").exists, self.processes[-1], self.log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            end(process)
        shutil.rmtree(self.folder)

    @staticmethod
    def has_taps():
        try:
            os.close(os.open("/dev/net/tun", os.O_RDWR))
        except OSError:
            return False
        return True

    def forward(self, captures, flows, cores):
        """Begins to forward: a port with a queue for each of the cores, each with a thread and a capture."""
        mask = f"0x{sum(1 << core for core in cores):x}"
        device = pcap_device(captures)
        kind = "netdev" if self.has_taps() else "dummy"
        self.set("set", "Open_vSwitch", ".", f"other_config:pmd-cpu-mask={mask}", "--", "add-br", "br0", "--",
                 "set", "bridge", "br0", f"datapath_type={kind}", "fail-mode=secure")
        (self.folder / "flows").write_text("\n".join(flows) + "\n", encoding="utf-8")
        self.run("ovs-ofctl", "add-flows", f"unix:{self.folder}/br0.mgmt", f"{self.folder}/flows")
        self.set("add-port", "br0", "p0", "--", "set", "Interface", "p0", "type=dpdk", f'options:dpdk-devargs="{device}"',
                 f"options:n_rxq={len(cores)}")
        wait_until(lambda: pmd_stats(self.ask("dpif-netdev/pmd-stats-show")).threads == len(cores), self.processes[-1],
                   self.log)

    def ask(self, method, *params):
        """What `ovs-appctl` would print, without a process for it in the window that is measured."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(30)
            connection.connect(str(self.folder / "vswitchd.ctl"))
            connection.sendall(json.dumps({"method": method, "params": params, "id": 0}).encode())
            answer = b""
            while True:
                piece = connection.recv(65536)
                answer += piece
                try:
                    return json.loads(answer)["result"]
                except ValueError:
                    if not piece:
                        raise RuntimeError(f"{method}: {answer!r}") from None

    def look(self):
        """(time, processor seconds, PmdStats, what port p0 has received and sent)"""
        stats = pmd_stats(self.ask("dpif-netdev/pmd-stats-show"))
        now, used = time.monotonic(), cpu_seconds(self.processes[-1].pid)
        return now, used, stats, port_packets(self.ask("dpctl/show", "-s"), "p0")


# ---- what is measured

class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.peers = Peers(arguments.peers)
        self.all_cores = sorted(os.sched_getaffinity(0))[-MOST_CORES:]
        self.best = {}  # settings, by (program, frame size)
        self.files = {}

    def cores(self, count):
        """The last ones: what else the machine does is mostly on the first."""
        return self.all_cores[-count:]

    def catena(self, name, nfs, rx, *words, tx="null", shards=1, tuning=""):
        path = self.folder / f"{name}.yaml"
        path.write_text(CHAIN.format(rx=rx, tx=tx, shards=shards, tuning=tuning, nfs=nfs), encoding="utf-8")
        return CatenaRun([self.arguments.catena, "run", str(path), "--json", *words],
                         self.peers.catena_env() if "net_pcap" in rx else None)

    def frames(self, size, parts):
        """Captures with one frame of each flow, whose flows are divided among so many parts."""
        whole = self.folder / f"frames-{size}.pcap"
        if not whole.exists():
            self.catena("frames", "", f"{{replay: {{packet: {size - FCS_BYTES}, flows: {FLOWS}, count: {FLOWS}}}}}",
                        tx=f"{{pcap: {whole}}}").report()
        paths = [self.folder / f"frames-{size}-{part}-of-{parts}.pcap" for part in range(parts)]
        if not paths[0].exists():
            for path, content in zip(paths, divided(whole.read_bytes(), parts)):
                path.write_bytes(content)
        return paths

    def fastest(self, key, settings, measure):
        """That of the settings which is fastest by its median of TRIALS short trials, in turn, which is kept."""
        if key not in self.best:
            tried = [[] for _ in settings]
            for _ in range(TRIALS):
                for setting, rates in zip(settings, tried):
                    rates.append(measure(setting, 1)["packets_per_s"])
            medians = [statistics.median(rates) for rates in tried]
            self.best[key] = settings[medians.index(max(medians))]
            print(*key, ", ".join(f"{setting[0]}: {rate / 1e6:.2f} Mpps" for setting, rate in zip(settings, medians)), flush=True)
        return self.best[key]

    # -- testpmd

    def testpmd(self, mode, size, count):
        setting = self.fastest(("testpmd", size), TESTPMD_SETTINGS,
                               lambda setting, seconds: self.run_testpmd("macswap", size, 1, setting, seconds))
        return self.run_testpmd(mode, size, count, setting, self.arguments.seconds)

    def run_testpmd(self, mode, size, count, setting, seconds):
        name, words = setting
        cores = self.cores(count)
        # its first thread reads the terminal and needs no core to itself
        everywhere = ",".join(map(str, self.all_cores))
        threads = [f"0@({everywhere})", *(f"{number + 1}@{core}" for number, core in enumerate(cores))]
        device = pcap_device(self.frames(size, count))
        mbufs = count * (FLOWS + 2048) + 8192
        with Testpmd(self.peers, ["--lcores", ",".join(threads), *EAL, "-m", "1024", "--file-prefix", f"peers{os.getpid()}",
                                  *self.peers.drivers(), "--vdev", device, "--", "-i", "--auto-start",
                                  "--port-topology=loop", f"--forward-mode={mode}", f"--rxq={count}", f"--txq={count}",
                                  f"--nb-cores={count}", f"--total-num-mbufs={mbufs}", *words]) as program:
            time.sleep(WARM_UP_S)
            used, begin, before = cpu_seconds(program.process.pid), time.monotonic(), program.stats()
            time.sleep(seconds)
            used, took = cpu_seconds(program.process.pid) - used, time.monotonic() - begin
            after = program.stats()
        received, sent = after.rx_packets - before.rx_packets, after.tx_packets - before.tx_packets
        if received == 0 or sent < 0.99 * received:
            raise RuntimeError(f"testpmd received {received} and sent {sent}")
        return speed(after.rx_pps, used / took, size, settings=name)

    # -- examples of DPDK

    def run_example(self, program, size, count, seconds, words, vdevs=(), drivers=()):
        """(packets a second, cores, percent passed) of the program over frames of all queues."""
        devices = [word for device in (pcap_device(self.frames(size, count)), *vdevs) for word in ("--vdev", device)]
        config = ",".join(f"(0,{number},{number})" for number in range(count))
        with Example(self.peers, program, self.folder, self.cores(count),
                     [*devices, "--", "-p", "0x1", "-P", "--config", config, *words], drivers) as example:
            time.sleep(WARM_UP_S)
            used, begin, before = cpu_seconds(example.process.pid), time.monotonic(), example.stats()
            time.sleep(seconds)
            used, took = cpu_seconds(example.process.pid) - used, time.monotonic() - begin
            after = example.stats()
        received, sent = after[0] - before[0], after[1] - before[1]
        if received == 0 or sent < 0.99 * received:
            raise RuntimeError(f"{program} received {received} and sent {sent}")
        return received / took, used / took, 100 * sent / received

    def l3fwd(self, size, count):
        setting = self.fastest(("l3fwd", size), L3FWD_SETTINGS,
                               lambda setting, seconds: self.run_l3fwd(size, 1, setting, seconds))
        return self.run_l3fwd(size, count, setting, self.arguments.seconds)

    def run_l3fwd(self, size, count, setting, seconds):
        name, words = setting
        routes = self.folder / "l3fwd.v4"
        routes.write_text(l3fwd_routes((EXAMPLES / "branch-office" / "routes.txt").read_text(encoding="utf-8")), encoding="utf-8")
        unused = self.folder / "l3fwd.v6"  # it wants both
        unused.write_text("R2001:db8::/32 0\n", encoding="utf-8")
        rate, used, passed = self.run_example("dpdk-l3fwd", size, count, seconds, ["--parse-ptype", "--rule_ipv4", str(routes),
                                                                                  "--rule_ipv6", str(unused), *words])
        return speed(rate, used, size, settings=name, passed_percent=passed)

    def secgw(self, size, count):
        setting = self.fastest(("ipsec-secgw", size), SECGW_SETTINGS,
                               lambda setting, seconds: self.run_secgw(size, 1, setting, seconds))
        return self.run_secgw(size, count, setting, self.arguments.seconds)

    def run_secgw(self, size, count, setting, seconds):
        name, words = setting
        config = self.folder / "secgw.cfg"
        config.write_text(secgw_config(), encoding="utf-8")
        crypto = [f"crypto_aesni_mb{number}" for number in range(math.ceil(count / QUEUES_OF_CRYPTO))]
        rate, used, passed = self.run_example("dpdk-ipsec-secgw", size, count, seconds,
                                              ["-f", str(config), "--mtu", str(TUNNEL_MTU), *words], crypto,
                                              ["librte_crypto_ipsec_mb.so"])
        return speed(rate, used, size, settings=name, passed_percent=passed)

    # -- Open vSwitch

    def ovs(self, has_state, size, count):
        setting = self.fastest(("Open vSwitch", size, has_state), OVS_SETTINGS,
                               lambda setting, seconds: self.run_ovs(has_state, size, 1, setting, seconds))
        return self.run_ovs(has_state, size, count, setting, self.arguments.seconds)

    def run_ovs(self, has_state, size, count, setting, seconds):
        name, words = setting
        flows = openflow(read_rules(self.arguments.rules.read_text(encoding="utf-8")), has_state)
        with Ovs(self.peers, self.folder, words) as switch:
            switch.forward(self.frames(size, count), flows, self.cores(count))
            time.sleep(WARM_UP_S)
            begin, used_before, before, (received_before, sent_before) = switch.look()
            time.sleep(seconds)
            until, used_after, after, (received_after, sent_after) = switch.look()
        if after.failed != before.failed:
            raise RuntimeError(f"{after.failed - before.failed} packets without a decision")
        took = until - begin
        return speed((after.received - before.received) / took, (used_after - used_before) / took, size, settings=name,
                     passed_percent=100 * (sent_after - sent_before) / (received_after - received_before))

    # -- Catena over the same frames

    def chain(self, nf, source, size, count):
        """`source`: port or replay"""
        setting = self.fastest((f"catena, {nf}, {source}", size), CATENA_SETTINGS,
                               lambda setting, seconds: self.run_chain(nf, source, size, 1, setting, seconds))
        return self.run_chain(nf, source, size, count, setting, self.arguments.seconds)

    def run_chain(self, nf, source, size, count, setting, seconds):
        tunnel = self.folder / "sa.yaml"
        tunnel.write_text(json.dumps({"associations": [TUNNEL]}), encoding="utf-8")  # which is YAML, too
        nfs = {"none": "",
               "ipsec": f"{{name: vpn, type: ipsec, config: {{direction: encrypt, sa: {tunnel}, mtu: {TUNNEL_MTU}}}}}",
               "router": f"{{name: rt, type: router, config: {{routes: {EXAMPLES}/branch-office/routes.txt}}}}",
               "firewall": f"{{name: fw, type: firewall, config: {{rules: {self.arguments.rules}, default: allow}}}}"}[nf]
        name, tuning = setting
        cores = self.cores(count)
        # processes, if not one with as many shards: then each has its part of the flows, too
        groups = [[core] for core in cores] if source == "port" or not nfs else [cores]
        if source == "port":
            sources = [f'{{dpdk: "{pcap_device([part])}"}}' for part in self.frames(size, len(groups))]
        else:
            sources = [f"{{replay: {{packet: {size - FCS_BYTES}, flows: {FLOWS // len(groups)}}}}}"] * len(groups)
        runs = []
        try:
            for number, (group, rx) in enumerate(zip(groups, sources)):
                runs.append(self.catena(f"c{number}", nfs, rx, "--workers", str(len(group)), "--cores",
                                        ",".join(map(str, group)), shards=len(group), tuning=tuning))
            rate, used = measure_together(runs, seconds)
            for run in runs:
                run.process.send_signal(signal.SIGINT)
            reports = [run.report()[0] for run in runs]
        finally:
            for run in runs:
                end(run.process)
        passed = sum(report["tx"]["sent_packets"] for report in reports)
        return speed(rate, used, size, settings=name,
                     passed_percent=100 * passed / sum(report["rx"]["received_packets"] for report in reports))

    # -- Suricata and Catena over a capture

    def capture(self):
        """(path, packets, mean bytes of a frame) of what both read."""
        if "ids" not in self.files:
            path = self.folder / "ids.pcap"
            packets, size = write_copies(EXAMPLES / "branch-office.pcap", path, IDS_PACKETS * self.arguments.seconds)
            self.files["ids"] = (path, packets, size / packets)
        return self.files["ids"]

    def suricata(self, has_layers):
        setting = self.fastest(("Suricata", has_layers), SURICATA_SETTINGS,
                               lambda setting, _: self.run_suricata(has_layers, setting))
        return self.run_suricata(has_layers, setting)

    def run_suricata(self, has_layers, setting):
        name, words = setting
        path, packets, size = self.capture()
        logs = pathlib.Path(tempfile.mkdtemp(prefix="suricata", dir=self.folder))
        files = [f"{key}={self.peers.data(f'etc/{file}', f'/etc/suricata/{file}')}"
                 for key, file in (("classification-file", "classification.config"), ("threshold-file", "threshold.config"),
                                   ("reference-config-file", "reference.config"))]
        # it has as many workers as the machine has processors, times this
        ratio = f"threading.detect-thread-ratio={len(self.all_cores) / os.cpu_count():g}"
        off = [] if has_layers else [f"app-layer.protocols.{layer}.enabled=no" for layer in APP_LAYERS]
        sets = [word for setting in (*SURICATA_ALWAYS, *words, *files, *off, ratio) for word in ("--set", setting)]
        config = self.peers.data("etc/suricata.yaml", "/etc/suricata/suricata.yaml")
        process = subprocess.Popen([self.peers.program("suricata"), "-c", config, "-S", str(IDS_RULES), "-r", str(path),
                                    "--runmode", "autofp", "-k", "none", "-v", "-l", str(logs), *sets],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        log, begin, last = [], None, None
        for line in process.stdout:
            log.append(line)
            if "Engine started" in line:
                begin = (time.monotonic(), cpu_seconds(process.pid))
            elif "time elapsed" in line:  # all packets are done, and all flows
                last = time.monotonic()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text = "".join(log)
        read = re.search(r"read 1 file, (\d+) packets", text)
        alerts = re.search(r"Alerts: (\d+)", text)
        if process.returncode or begin is None or last is None or not read or not alerts or int(read.group(1)) != packets:
            raise RuntimeError(f"suricata: {text[-2000:]}")
        shutil.rmtree(logs)
        took = last - begin[0]
        return speed(packets / took, (usage.ru_utime + usage.ru_stime - begin[1]) / took, size + FCS_BYTES, settings=name,
                     alerts_percent=100 * int(alerts.group(1)) / packets)

    def nids(self):
        most = len(self.all_cores)
        shards = sorted(count for count in {1, 2, 4, 6, 8, 12, most - 2, most} if 0 < count <= most)
        setting = self.fastest(("catena, nids",), [(f"{count} shards", min(count, 16)) for count in shards],
                               lambda setting, _: self.run_nids(setting, 1))
        if "loops" not in self.files:  # so often that it takes as long as asked for; packets know nothing of those before
            packets = self.capture()[1]
            self.files["loops"] = math.ceil(self.arguments.seconds * self.run_nids(setting, 1)["packets_per_s"] / packets)
        return self.run_nids(setting, self.files["loops"])

    def run_nids(self, setting, loops):
        name, shards = setting
        path, packets, size = self.capture()
        nf = f"{{name: ids, type: nids, config: {{rules: {IDS_RULES}}}}}"
        run = self.catena("nids", nf, f"{{pcap: {path}, loops: {loops}}}", "--workers",
                          str(len(self.all_cores)), "--cores", ",".join(map(str, self.all_cores)), "--eve",
                          str(self.folder / "eve.json"), shards=shards, tuning="pool_slots: 16384")
        try:
            report, used = run.report()
        finally:
            end(run.process)
        if report["rx"]["received_packets"] != packets * loops or run.begin is None:
            raise RuntimeError(f"catena read {report['rx']['received_packets']} of {packets} packets, {loops} times")
        took = report["seconds"]
        return speed(packets * loops / took, (used - run.begin[1]) / took, size + FCS_BYTES, settings=name,
                     alerts_percent=100 * report["nfs"][0]["alerts"] / (packets * loops))


# ---- captures

def divided(capture, parts):
    """So many captures, each with every `parts`-th frame of the given one, from its own number on."""
    pieces = [[capture[:PCAP_HEAD_BYTES]] for _ in range(parts)]
    place, number = PCAP_HEAD_BYTES, 0
    while place < len(capture):
        end_of_frame = place + PCAP_RECORD_BYTES + struct.unpack_from("<I", capture, place + 8)[0]
        pieces[number % parts].append(capture[place:end_of_frame])
        place, number = end_of_frame, number + 1
    return [b"".join(piece) for piece in pieces]


def moved(address, number):
    """The address with its halves moved apart, the sum of which stays as it was, and with it all checksums. Groups and
    broadcast stay."""
    high, low = struct.unpack(">HH", address)
    if high >= 0xe000:
        return address
    step = number if high < 0xc000 else -number
    return struct.pack(">HH", high + step, (low - step) % 65535)


def write_copies(source, path, packets):
    """At least so many packets: copies of a capture of Ethernet frames, each with other IPv4 addresses, so that its flows
    are its own. SIDE_BY_SIDE of them at a time take turns, packet by packet; the next ones come later by the length of the
    capture. Returns (packets, bytes)."""
    content = source.read_bytes()
    if content[:4] != bytes.fromhex("d4c3b2a1"):
        raise RuntimeError(f"{source} is no capture in microseconds")
    records, place = [], 24
    while place < len(content):
        second, microsecond, captured, wire = struct.unpack_from("<IIII", content, place)
        records.append((second, microsecond, content[place + 16:place + 16 + captured], wire))
        place += 16 + captured
    length = math.ceil(records[-1][0] - records[0][0]) + 2
    block = bytearray()
    stamps, addresses = [], []  # (place, second), (place, pair of addresses, copy)
    for second, microsecond, frame, wire in records:
        is_ipv4 = frame[12:14] == b"\x08\x00" and len(frame) >= 34
        for copy in range(SIDE_BY_SIDE):
            stamps.append((len(block), second))
            if is_ipv4:
                addresses.append((len(block) + 16 + 26, frame[26:34], copy))
            block += struct.pack("<IIII", second, microsecond, len(frame), wire) + frame
    count = size = 0
    with open(path, "wb") as file:
        file.write(content[:24])
        group = 0
        while count < packets:
            pairs = {}
            for place, second in stamps:
                struct.pack_into("<I", block, place, second + group * length)
            for place, pair, copy in addresses:
                new = pairs.get((pair, copy))
                if new is None:
                    number = group * SIDE_BY_SIDE + copy
                    new = pairs[pair, copy] = moved(pair[:4], number) + moved(pair[4:], number)
                block[place:place + 8] = new
            file.write(block)
            count += len(stamps)
            size += len(block) - 16 * len(stamps)
            group += 1
    return count, size


# ---- the cells

def frameworks(bench, size, count):
    return [*((f"testpmd {mode}", "dpdk-testpmd", lambda mode=mode: bench.testpmd(mode, size, count))
              for mode in ("io", "macswap", "5tswap")),
            ("l3fwd", "dpdk-l3fwd", lambda: bench.l3fwd(size, count)),
            *((f"catena, {words}{', replay' if source == 'replay' else ''}", None,
               lambda nf=nf, source=source: bench.chain(nf, source, size, count))
              for source in ("port", "replay") for nf, words in (("none", "no NF"), ("router", "router")))]


def filters(bench, size, count):
    return [("Open vSwitch", "ovs-vswitchd-dpdk", lambda: bench.ovs(False, size, count)),
            ("Open vSwitch, ct", "ovs-vswitchd-dpdk", lambda: bench.ovs(True, size, count)),
            ("catena, firewall", None, lambda: bench.chain("firewall", "port", size, count)),
            ("catena, firewall, replay", None, lambda: bench.chain("firewall", "replay", size, count))]


def tunnels(bench, size, count):
    return [("ipsec-secgw", "dpdk-ipsec-secgw", lambda: bench.secgw(size, count)),
            ("catena, ipsec", None, lambda: bench.chain("ipsec", "port", size, count)),
            ("catena, ipsec, replay", None, lambda: bench.chain("ipsec", "replay", size, count))]


def ids(bench):
    return [("Suricata", "suricata", lambda: bench.suricata(True)),
            ("Suricata, no application layers", "suricata", lambda: bench.suricata(False)),
            ("catena, nids", None, bench.nids)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catena", default=str(ROOT / "build" / "src" / "apps" / "catena" / "catena"))
    parser.add_argument("--peers", type=pathlib.Path, help="folder of bench/peers/bundle")
    parser.add_argument("--groups", default="frameworks,filters,tunnels,ids")
    parser.add_argument("--sizes", default="64,512,1518", help="of frames, with FCS")
    parser.add_argument("--rules", type=pathlib.Path,
                        help="of the filters; default: 186 of ClassBench where they are, else the example's")
    add_options(parser, seconds=3)
    arguments = parser.parse_args()
    if arguments.peers:
        arguments.peers = arguments.peers.resolve()
        if (DPDK_DRIVERS / "librte_net_pcap.so").exists():
            parser.error(f"DPDK would load the drivers in {DPDK_DRIVERS} beside those of --peers; leave that out here")
    arguments.rules = (arguments.rules or Peers(arguments.peers).rules()).resolve()
    cores = min(MOST_CORES, len(os.sched_getaffinity(0)))
    results = Results("peers", arguments, {"warm_up_s": WARM_UP_S, "flows": FLOWS, "rules": arguments.rules.name})
    notes = results.json["notes"]
    with tempfile.TemporaryDirectory(prefix="peers") as folder:
        bench = Bench(arguments, pathlib.Path(folder))

        def measure(key, ways):
            there = []
            for way, program, work in ways:
                try:
                    if program:
                        bench.peers.program(program)
                    there.append((way, work))
                except NotThere as error:
                    note = f"{way} is left out: {error}"
                    if note not in notes:
                        notes.append(note)
            results.measure(key, there)

        for group, ways in (("frameworks", frameworks), ("filters", filters), ("tunnels", tunnels)):
            if group in arguments.groups.split(","):
                for size in map(int, arguments.sizes.split(",")):
                    for count in sorted({1, cores}):
                        measure({"group": group, "wire_bytes": size, "threads": count}, ways(bench, size, count))
        if "ids" in arguments.groups.split(","):
            measure({"group": "ids", "threads": cores}, ids(bench))
    return results.exit_status()


if __name__ == "__main__":
    sys.exit(main())
