#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified nginx on Catena's TCP stack beside the kernel's TCP, as in section V of the HAVS paper.

    bench/havs/nginx.py --catena PROGRAM --out FILE.json [--groups files,new,many,response,loss] [--repeats 10] [--seconds 3]

Everything is on one core: nginx with one worker, the stack and the client (wrk, or ab), so requests a second show what a request costs
in all. The kernel's rows have nginx in a network namespace of its own behind a veth pair with all offloads, sendfile and
`tcp_nopush`, once with CUBIC and once with BBR where the kernel has it. The stack's rows are `catena stack run` over a TAP. Ways take
turns within each repeat. `busy` are cores that all processes took.

`--sizes` and `--lost` restrict the groups to some of their rows, as the blocks of tools/bench-set do.

files     wrk, keep-alive, 64 connections, bodies of 1 to 256 KiB (figures 8 and 9)
small     the same with 64 to 512 B (figure 14)
many      1 KiB with 64 and with 1,024 connections
new       ab with a new connection for each request
response  ab, one connection, keep-alive: median response (figure 10)
loss      1 MiB, 8 connections; packets of the server are lost on their way into the client's machine, at random (nftables)
"""

import argparse
import itertools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common.results import Cores, Results, add_options  # noqa: E402

STACK, KERNEL, HOST = "10.123.0.2", "10.124.0.2", "10.124.0.1"
PORT = 8080
NAMESPACE = "havs"
START_S = 30
GROUPS = ["files", "small", "many", "new", "response", "loss"]
SIZES = {"files": [1024, 4096, 16384, 65536, 131072, 262144], "small": [64, 128, 256, 512],
         "response": [64, 1024, 16384, 65536]}  # of bodies in bytes, by group
LOST = [0, 1, 10]  # packets of 1,000
LARGE = 1 << 20  # bytes, for the group loss
CONF = """daemon off;
user root;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  open_file_cache max=1000;
  server {{ listen {port} reuseport backlog=4096; root {folder}/www; }}
}}
"""
STACK_WAYS = {
    "stack, cpu": ["--copy", "cpu"],
    "stack, reference": ["--copy", "reference"],
    "stack, full by streaming stores": ["--copy", "full", "--engine", "cpu-stream", "--threshold", "16384"],
}


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Server:
    """nginx at an address, until the end of `with`."""

    def __init__(self, words, address, environment=None):
        self.words, self.address, self.environment = words, address, environment

    def __enter__(self):
        self.process = subprocess.Popen(self.words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + START_S
        while subprocess.run(["curl", "-sf", "-o", "/dev/null", "--max-time", "1", f"http://{self.address}:{PORT}/1024"],
                             check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                raise RuntimeError(f"nginx does not serve: {self.process.communicate()[1][-500:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError("nginx does not end") from None


class Loss:
    """Drops `per_mille` of the packets that come from the servers, until the end of `with`."""

    def __init__(self, per_mille):
        self.per_mille = per_mille

    def __enter__(self):
        self.__exit__()
        if self.per_mille > 0:
            run("nft", f"add table inet {NAMESPACE};"
                       f"add chain inet {NAMESPACE} loss {{ type filter hook prerouting priority raw; }};"
                       f"add rule inet {NAMESPACE} loss ip saddr {{ {STACK}, {KERNEL} }}"
                       f" numgen random mod 1000 < {self.per_mille} drop")

    def __exit__(self, *_):
        subprocess.run(["nft", "delete", "table", "inet", NAMESPACE], check=False, capture_output=True)


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        (folder / "www").mkdir()
        for size in {1024, LARGE, *itertools.chain(*SIZES.values()), *(arguments.sizes or [])}:
            (folder / "www" / str(size)).write_bytes(random.Random(size).randbytes(size))
        (folder / "nginx.conf").write_text(CONF.format(folder=folder, port=PORT))
        self.nginx = ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]

    def server(self, way):
        if way.startswith("stack"):
            return Server([self.arguments.catena, "stack", "run", *STACK_WAYS[way], "--", *self.nginx], STACK)
        control = way.partition(", ")[2]
        # by the route: a namespace may not choose each algorithm as its default
        run("ip", "-n", NAMESPACE, "route", "replace", "10.124.0.0/24", "dev", "havs1", "src", KERNEL, "congctl", control)
        return Server(["ip", "netns", "exec", NAMESPACE, *self.nginx], KERNEL)

    def ways(self):
        known = run("sysctl", "-n", "net.ipv4.tcp_available_congestion_control").split()
        return [f"kernel, {name}" for name in ("cubic", "bbr") if name in known] + list(STACK_WAYS)

    def wrk(self, way, size, connections):
        with self.server(way) as server:
            cores = Cores([os.getpid()])
            said = run("wrk", "-t1", f"-c{connections}", f"-d{self.arguments.seconds}s", "--latency", "--timeout", "20s",
                       f"http://{server.address}:{PORT}/{size}")
            busy = cores.taken()
        if "Socket errors" in said or "Non-2xx" in said:
            raise RuntimeError(f"{way}: {said}")
        unit = {"us": 1, "ms": 1e3, "s": 1e6}
        median, name = re.search(r"50%\s+([\d.]+)(us|ms|s)", said).groups()
        return {"requests_per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1)),
                "median_us": float(median) * unit[name], "busy": busy}

    def ab(self, way, size, options):
        with self.server(way) as server:
            said = run("ab", "-q", *options, "-t", str(self.arguments.seconds), "-n", "10000000",
                       f"http://{server.address}:{PORT}/{size}")
        if int(re.search(r"Failed requests:\s+(\d+)", said).group(1)) > 0:
            raise RuntimeError(f"{way}: {said}")
        return {"requests_per_s": float(re.search(r"Requests per second:\s+([\d.]+)", said).group(1)),
                "mean_us": 1e3 * float(re.search(r"Time per request:\s+([\d.]+) \[ms\] \(mean\)", said).group(1))}

    def measure(self, results, group):
        def each(work):
            return [(way, lambda way=way: work(way)) for way in self.ways()]

        if group in ("files", "small"):
            for size in self.arguments.sizes or SIZES[group]:
                results.measure({"group": group, "body_bytes": size, "connections": 64},
                                each(lambda way, size=size: self.wrk(way, size, 64)))
        elif group == "many":
            for connections in (64, 1024):
                results.measure({"group": group, "body_bytes": 1024, "connections": connections},
                                each(lambda way, connections=connections: self.wrk(way, 1024, connections)))
        elif group == "loss":
            for lost in self.arguments.lost:
                with Loss(lost):
                    results.measure({"group": group, "body_bytes": LARGE, "connections": 8, "lost_per_mille": lost},
                                    each(lambda way: self.wrk(way, LARGE, 8)))
        elif group == "new":
            results.measure({"group": group, "body_bytes": 1024, "connections": 16},
                            each(lambda way: self.ab(way, 1024, ["-c", "16"])))
        else:
            for size in self.arguments.sizes or SIZES[group]:
                results.measure({"group": group, "body_bytes": size, "connections": 1},
                                each(lambda way, size=size: self.ab(way, size, ["-k", "-c", "1"])))


def make_network():
    subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False, capture_output=True)
    run("ip", "netns", "add", NAMESPACE)
    run("ip", "link", "add", "havs0", "type", "veth", "peer", "name", "havs1", "netns", NAMESPACE)
    run("ip", "address", "add", f"{HOST}/24", "dev", "havs0")
    run("ip", "link", "set", "havs0", "up")
    for words in (["address", "add", f"{KERNEL}/24", "dev", "havs1"], ["link", "set", "havs1", "up"], ["link", "set", "lo", "up"]):
        run("ip", "-n", NAMESPACE, *words)


def numbers(text):
    """Of a list with commas."""
    return [int(number) for number in text.split(",")]


def options():
    """The parser of the program's own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, 3)
    parser.add_argument("--catena", default="catena")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--sizes", type=numbers, help="bytes of bodies of the groups files, small and response")
    parser.add_argument("--lost", type=numbers, default=LOST, help="packets of 1,000 that the group loss loses")
    parser.add_argument("--cpu", type=int, default=0, help="the core of all processes")
    return parser


def main():
    arguments = options().parse_args()
    os.sched_setaffinity(0, {arguments.cpu})
    make_network()
    try:
        with tempfile.TemporaryDirectory() as name:
            results = Results("havs-nginx", arguments, {"cpu": arguments.cpu})
            bench = Bench(arguments, pathlib.Path(name))
            for group in arguments.groups.split(","):
                if group not in GROUPS:
                    sys.exit(f"no group {group}; there are {', '.join(GROUPS)}")
                bench.measure(results, group)
    finally:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False)


if __name__ == "__main__":
    main()
