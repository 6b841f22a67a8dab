# SPDX-License-Identifier: Apache-2.0
"""A router with nftables' masquerade in a network namespace, and the ends of its two links in another one.

Both are removed by tear_down(). OSError from set_up() and open_ends() where this machine does not let us make them.
"""
import ctypes
import os
import socket
import subprocess

CANNOT = 77
ROUTER = "catena-nat-r%d" % os.getpid()
ENDS = "catena-nat-e%d" % os.getpid()
ROUTER_MACS = {"in": "02:00:00:00:01:01", "out": "02:00:00:00:02:01"}
END_MACS = {"in": "02:00:00:00:01:02", "out": "02:00:00:00:02:02"}
RULES = """
table ip nat {
  chain postrouting {
    type nat hook postrouting priority 100;
    oifname "out" masquerade
  }
}
table ip filter {
  chain input {
    type filter hook input priority 0;
    iifname "out" meta l4proto tcp drop
  }
}
"""
SETTINGS = """
net.ipv4.ip_forward=1
net.ipv4.conf.all.rp_filter=0
net.ipv4.conf.default.rp_filter=0
net.ipv4.conf.in.rp_filter=0
net.ipv4.conf.out.rp_filter=0
"""


def run(command, **more):
    done = subprocess.run(command.split(), capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise OSError("%s: %s" % (command, done.stderr.strip()))


def in_router(command, **more):
    run("ip netns exec %s %s" % (ROUTER, command), **more)


def set_up(settings):
    """`settings`: sysctls of the router, beside those of every router."""
    run("ip netns add " + ROUTER)
    run("ip netns add " + ENDS)
    for link, address in (("in", "10.255.255.1/24"), ("out", "203.0.113.1/24")):
        run("ip link add %s netns %s address %s type veth peer name %s netns %s address %s"
            % (link, ROUTER, ROUTER_MACS[link], link, ENDS, END_MACS[link]))
        run("ip netns exec %s ip link set %s up" % (ENDS, link))
        in_router("ip link set %s up" % link)
        in_router("ip address add %s dev %s" % (address, link))
    for link, gateway, route in (("in", "10.255.255.254", "10.0.0.0/8"), ("out", "203.0.113.254", "default")):
        in_router("ip neighbour add %s lladdr %s dev %s nud permanent" % (gateway, END_MACS[link], link))
        in_router("ip route add %s via %s" % (route, gateway))
    in_router("nft -f -", input=RULES)
    in_router("sysctl -q " + " ".join((SETTINGS + settings).split()))


def tear_down():
    for name in (ROUTER, ENDS):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def raw_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def enter(name):
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/run/netns/" + name) as namespace:
        if libc.setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def open_table():
    """The connections that the router tracks, as an open file. The process moves into its namespace."""
    enter(ROUTER)
    return open("/proc/thread-self/net/nf_conntrack", encoding="ascii")


def open_ends():
    """A raw socket on each link's far end. The process moves into their namespace."""
    enter(ENDS)
    sockets = {}
    for link in ("in", "out"):
        sockets[link] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        sockets[link].bind((link, 0x0800))
    return sockets
