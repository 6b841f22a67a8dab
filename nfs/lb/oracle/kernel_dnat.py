# SPDX-License-Identifier: Apache-2.0
"""Lets the Linux kernel translate the packets: a router in a network namespace with nftables DNAT rules.

unshare --net kernel_dnat.py RULES.json IN.pcap OUT.pcap
RULES: [{"protocol": "tcp", "client": [address, port], "service": [address, port], "backend": [address, port]}]
A frame of IN whose destination is a service enters the router on the clients' side, any other one on the backends'. ICMP
errors have no ports: there the address decides.
OUT has each frame as it left the router on the other side. Exits with 77 where the kernel has no such router to give.
"""
import json
import os
import socket
import struct
import subprocess
import sys
import time

from frames import read_frames, write_frames

CANNOT = 77
ICMP = 1
TIMEOUT_S = 5
ROUTER_MAC = {"client0": "02:00:00:00:01:01", "backend0": "02:00:00:00:02:01"}
HOST_MAC = "02:00:00:00:00:99"


def run(*command, text=None):
    subprocess.run(command, check=True, capture_output=True, text=True, input=text)


def dotted(frame, at):
    return ".".join(str(byte) for byte in frame[at : at + 4])


class Router:
    """A process that holds the namespace; `client0` and `backend0` are this end of its two links."""

    def __init__(self, rules):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "60"])
        own = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + TIMEOUT_S
        while os.readlink("/proc/%d/ns/net" % self.holder.pid) == own:
            if time.monotonic() > deadline:
                raise OSError("no network namespace")
            time.sleep(0.01)
        self.inside("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
                    "net.ipv4.conf.default.rp_filter=0")
        # the links: every client and backend is a neighbour, at an address that never has to be asked for
        for link, hosts in (("client", {rule["client"][0] for rule in rules}),
                            ("backend", {rule["backend"][0] for rule in rules})):
            near, far = link + "0", link + "1"
            run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "address", ROUTER_MAC[near])
            run("ip", "link", "set", far, "netns", str(self.holder.pid))
            run("ip", "link", "set", near, "up")
            self.inside("ip", "link", "set", far, "up")
            for host in hosts:
                self.inside("ip", "route", "add", host + "/32", "dev", far)
                self.inside("ip", "neigh", "add", host, "lladdr", HOST_MAC, "dev", far, "nud", "permanent")
        self.inside("nft", "-f", "-", text=self.ruleset(rules))

    @staticmethod
    def ruleset(rules):
        lines = [
            "ip saddr %s %s sport %d ip daddr %s %s dport %d dnat to %s:%d"
            % (rule["client"][0], rule["protocol"], rule["client"][1], rule["service"][0], rule["protocol"],
               rule["service"][1], *rule["backend"])
            for rule in rules
        ]
        hook = "type nat hook prerouting priority -100;"
        return "table ip lb {\n chain prerouting {\n%s\n }\n}\n" % "\n".join([hook, *lines])

    def inside(self, *command, text=None):
        run("nsenter", "--target", str(self.holder.pid), "--net", *command, text=text)

    def close(self):
        self.holder.kill()
        self.holder.wait()


def open_link(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    link.bind((name, 0))
    link.settimeout(TIMEOUT_S)
    return link


def forwarded(frame, links, services):
    """The frame as the router sends it on; frames are told apart by their IP identification."""
    destination = dotted(frame, 30)
    if frame[23] == ICMP:
        to_backend = destination in {address for address, _ in services}
    else:
        to_backend = (destination, struct.unpack_from("!H", frame, 36)[0]) in services
    enters, leaves = ("client0", "backend0") if to_backend else ("backend0", "client0")
    links[enters].send(bytes.fromhex(ROUTER_MAC[enters].replace(":", "")) + frame[6:])
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        seen = links[leaves].recv(2048)
        if seen[12:14] == b"\x08\x00" and seen[18:20] == frame[18:20]:
            return seen
    raise TimeoutError("the router does not forward " + frame.hex())


def main():
    rules_path, source, target = sys.argv[1:]
    with open(rules_path) as file:
        rules = json.load(file)
    router = None
    try:
        try:
            router = Router(rules)
            links = {name: open_link(name) for name in ROUTER_MAC}
        except (OSError, subprocess.CalledProcessError) as error:
            print("no router here: %s %s" % (error, getattr(error, "stderr", None) or ""))
            return CANNOT
        services = {tuple(rule["service"]) for rule in rules}
        write_frames(target, [forwarded(frame, links, services) for frame in read_frames(source)])
        return 0
    finally:
        if router:
            router.close()


sys.exit(main())
