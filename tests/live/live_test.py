#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients and servers through a chain: three hosts in network namespaces, Catena on the one in the middle.

    client 10.9.0.2 --- lan [ Catena ] wan --- server 198.51.100.2

Needs root, iproute2, ethtool, ping, curl, iperf3 and nginx; skips with the reason where something is missing.
Environment: CATENA_BIN, the program.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
import unittest

CATENA = os.environ["CATENA_BIN"]
LIMIT_S = 240  # of what takes seconds on an idle machine
CLIENT_MAC, LAN_MAC = "02:00:00:00:09:02", "02:00:00:00:09:01"
SERVER_MAC, WAN_MAC = "02:00:00:00:51:02", "02:00:00:00:51:01"

CHAIN = """\
apiVersion: catena/v1
kind: Chain
metadata: {{name: live}}
spec:
  rx: {{dpdk: ["net_af_packet0,iface=lan", "net_af_packet1,iface=wan"]}}
  tx: {{dpdk: ["net_af_packet0,iface=lan", "net_af_packet1,iface=wan"]}}
  device: {device}
  on_unsupported: drop
  nfs:
{nf}
    - name: rt
      type: router
      config:
        routes: routes.txt
        ports:
          - {{port: 0, mac: "{lan}", next_hop_mac: "{client}"}}
          - {{port: 1, mac: "{wan}", next_hop_mac: "{server}"}}
"""
NAT = """\
    - name: nat
      type: nat
      on: {on}
      config:
        inside: [10.9.0.0/24]
        external: [203.0.113.1]
        inside_ports: [0]
"""
FIREWALL = """\
    - name: fw
      type: firewall
      on: {on}
      config: {{rules: all.rules, default: deny}}
"""
LB = """\
    - name: lb
      type: lb
      on: {on}
      config:
        services:
          - address: 203.0.113.10
            port: 80
            protocol: tcp
            backends: [{{name: web1, address: 198.51.100.11}}, {{name: web2, address: 198.51.100.12}}]
"""
MONITOR = """\
    - name: mon
      type: monitor
      on: {on}
      config: {{idle_timeout_s: 1, export: [{{format: json, file: flows.jsonl}}]}}
"""


def missing():
    if os.geteuid() != 0:
        return "not root"
    for tool in ("ip", "ethtool", "ping", "curl", "iperf3", "nginx"):
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"{tool} is not installed"
    probe = subprocess.run(["ip", "netns", "add", "catena-probe"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        return f"no network namespaces here: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", "catena-probe"], check=False)
    return None


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def wait_for(condition, what, seconds=20):
    """A time limit that only a hang reaches."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen in {seconds} s")
        time.sleep(0.05)


REASON = missing()


@unittest.skipIf(REASON, REASON)
class Live(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="catena-live-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.name = f"catena{os.getpid()}"
        for host in ("client", "box", "server"):
            call("ip", "netns", "add", f"{self.name}-{host}")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", f"{self.name}-{host}"], check=False)
        self.link("client", "eth0", CLIENT_MAC, "lan", LAN_MAC)
        self.link("server", "eth0", SERVER_MAC, "wan", WAN_MAC)
        self.on("client", "ip", "address", "add", "10.9.0.2/24", "dev", "eth0")
        for address in ("198.51.100.2", "198.51.100.11", "198.51.100.12"):
            self.on("server", "ip", "address", "add", f"{address}/24", "dev", "eth0")
        # nobody answers ARP for the chain: its neighbours know its addresses
        self.route("client", "10.9.0.1", LAN_MAC)
        self.route("server", "198.51.100.1", WAN_MAC)
        (self.folder / "routes.txt").write_text("10.9.0.0/24 0\n198.51.100.0/24 1\n")

    def link(self, host, name, mac, box_name, box_mac):
        call("ip", "link", "add", box_name, "netns", f"{self.name}-box", "address", box_mac, "type", "veth",
             "peer", "name", name, "netns", f"{self.name}-{host}", "address", mac)
        for where, interface in ((host, name), ("box", box_name)):
            # frames as they would be on a wire: no checksums left to a NIC, no segments larger than the MTU
            self.on(where, "ethtool", "-K", interface, "tx", "off", "gso", "off", "tso", "off", "gro", "off")
            self.on(where, "ip", "link", "set", interface, "up")
        self.on(host, "ip", "link", "set", "lo", "up")

    def route(self, host, gateway, mac):
        self.on(host, "ip", "neighbour", "add", gateway, "lladdr", mac, "dev", "eth0")
        self.on(host, "ip", "route", "add", "default", "via", gateway)

    def on(self, host, *words, **options):
        return call("ip", "netns", "exec", f"{self.name}-{host}", *words, **options)

    def start(self, host, *words, **options):
        process = subprocess.Popen(["ip", "netns", "exec", f"{self.name}-{host}", *map(str, words)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)  # nginx has children that hold the pipes
        except ProcessLookupError:
            pass
        process.communicate()

    def write_chain(self, nf, on):
        chain = self.folder / "live.yaml"
        chain.write_text(CHAIN.format(nf=nf.format(on=on), device="opencl" if on == "gpu" else "none", lan=LAN_MAC,
                                      wan=WAN_MAC, client=CLIENT_MAC, server=SERVER_MAC))
        return chain

    def start_chain(self, nf, on):
        chain = self.write_chain(nf, on)
        process = self.start("box", CATENA, "run", chain, "--json")
        # the live line of the first second says that the ports are open
        for line in process.stderr:
            if " received " in line:
                return process
        raise AssertionError(f"the chain ended: {process.stdout.read()}")

    def stop_chain(self, process):
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, errors)
        report = json.loads(output)
        self.assertTrue(report["accounted"], report)
        return report

    def start_web(self, address, text):
        root = self.folder / text
        root.mkdir()
        (root / "index.html").write_text(text)
        (root / "large").write_bytes(os.urandom(3_000_000))
        config = root / "nginx.conf"
        config.write_text(textwrap.dedent(f"""\
            daemon off; pid {root}/pid; error_log {root}/error.log; user root; worker_processes 1;
            events {{}}
            http {{ access_log off; server {{ listen {address}:80; root {root}; }} }}
            """))
        self.start("server", "nginx", "-c", config, "-p", root)
        wait_for(lambda: (root / "pid").exists(), f"nginx on {address}")

    def curl(self, url, *options):
        return self.on("client", "curl", "--silent", "--show-error", "--fail", "--max-time", "30", *options, url)

    def nat(self, on):
        self.start_web("198.51.100.2", "through-nat")
        self.start("server", "iperf3", "--server", "--one-off", "--bind", "198.51.100.2")
        chain = self.start_chain(NAT, on)
        self.assertEqual(self.curl("http://198.51.100.2/"), "through-nat")
        target = self.folder / "large"
        self.curl("http://198.51.100.2/large", "--output", str(target))
        self.assertEqual(target.read_bytes(), (self.folder / "through-nat" / "large").read_bytes())
        result = json.loads(self.on("client", "iperf3", "--client", "198.51.100.2", "--time", "2", "--json"))
        self.assertGreater(result["end"]["sum_received"]["bytes"], 1_000_000)
        self.on("client", "ping", "-c", "3", "-W", "10", "198.51.100.2")
        report = self.stop_chain(chain)
        nat = report["nfs"][0]
        self.assertEqual(nat["on"], on)
        # two connections of curl, at least two of iperf3, one ping
        self.assertGreaterEqual(nat["statistics"]["mappings_created"], 5)
        self.assertEqual(nat["drops"].get("no_mapping", 0), 0)

    def test_curl_iperf3_and_ping_reach_a_server_through_nat_on_the_cpu(self):
        self.nat("cpu")

    def test_curl_iperf3_and_ping_reach_a_server_through_nat_on_a_device(self):
        self.nat("gpu")

    def test_nobody_notices_that_the_chain_becomes_another_one(self):
        self.start_web("198.51.100.2", "through-nat")
        (self.folder / "all.rules").write_text("allow any any any any any\n")
        chain = self.start_chain(NAT, "cpu")
        self.on("client", "ping", "-c", "1", "-W", "10", "198.51.100.2")
        ping = self.start("client", "ping", "-q", "-i", "0.002", "198.51.100.2")
        download = self.start("client", "curl", "--silent", "--show-error", "--fail", "--limit-rate", "400k",
                              "http://198.51.100.2/large", "--output", self.folder / "large")
        for shape, on in ((FIREWALL + NAT, "cpu"), (NAT, "gpu"), (NAT + FIREWALL, "cpu"), (NAT, "cpu")):
            self.write_chain(shape, on)
            chain.send_signal(signal.SIGHUP)
            line = next(line for line in chain.stderr if "live.yaml: " in line)
            self.assertIn("chain replaced", line)
            next(line for line in chain.stderr if re.match(r" +\d+ s  received", line))
        ping.send_signal(signal.SIGINT)
        output, _ = ping.communicate(timeout=LIMIT_S)
        sent, answered = map(int, re.search(r"(\d+) packets transmitted, (\d+) received", output).groups())
        self.assertGreater(sent, 100, "some at each of the four changes, however slow the machine is")
        self.assertLessEqual(sent - answered, 1, "but for one that was on its way at the end")
        _, errors = download.communicate(timeout=LIMIT_S)
        self.assertEqual((download.returncode, errors), (0, ""))
        self.assertEqual((self.folder / "large").read_bytes(), (self.folder / "through-nat" / "large").read_bytes())
        report = self.stop_chain(chain)
        self.assertEqual(report["nfs"][0]["drops"].get("no_mapping", 0), 0)

    def test_http_through_the_load_balancer_reaches_both_servers(self):
        self.start_web("198.51.100.11", "web1")
        self.start_web("198.51.100.12", "web2")
        chain = self.start_chain(LB, "cpu")
        answers = [self.curl("http://203.0.113.10/") for _ in range(40)]
        self.assertEqual(set(answers), {"web1", "web2"}, "one server in 40 has a chance of 2 in 10^12")
        report = self.stop_chain(chain)
        self.assertEqual(report["nfs"][0]["statistics"]["flows_created"], 40)

    def test_a_quiet_link_exports_its_flows(self):
        chain = self.start_chain(MONITOR, "cpu")
        self.on("client", "ping", "-c", "1", "-W", "10", "198.51.100.2")
        exported = self.folder / "flows.jsonl"

        def pings():
            lines = exported.read_text().splitlines() if exported.exists() else []
            return [flow for flow in map(json.loads, lines) if flow["protocol"] == 1]

        wait_for(lambda: len(pings()) == 2, "the export of both directions of a ping, with no packet after it")
        self.assertEqual({flow["end_reason"] for flow in pings()}, {"idle"})
        self.stop_chain(chain)


if __name__ == "__main__":
    unittest.main(verbosity=2)
