#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a change of a running chain costs who sends to it, seen by a sender in another process.

    bench/change/change.py --catena PROGRAM --out FILE.json [--device cuda] [--repeats 5] [--seconds 4]

A program of its own, bench/change/sender.cpp, sends 64-byte packets at a fixed rate into a shared-memory interface (memif)
whose ring has 4,096 places, as a NIC's has. A `catena run`, whose chain is firewall and router, takes them from there. Its
file is changed once a second, and it is told by SIGHUP:

none      nothing is changed
rules     the firewall gets one more rule: the router goes on as it is
chain     the chain gets a second firewall, or loses it: the others go on as they are

The sender keeps its schedule, as a wire does: a packet that is due and finds the ring full is lost, and is what a change
costs. The ring is full after 4,096 / rate seconds in which no packet is taken. The longest pause is the age of the oldest
packet in the full ring, so one that does not fill the ring is not seen (0). Where the sender itself was late by more than
that time, it has filled the ring by itself: `sender_late_us`. The ways take turns within each repeat. What the ring took
must have been received, to the packet, or the cell is an error. What is in FILE.json already, of the same commit, is not
measured again; tools/render-bench makes a page of it.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common.catena_run import CatenaRun  # noqa: E402
from common.results import Results, add_options  # noqa: E402

DATA = ROOT / "examples" / "branch-office"
RING = 12  # log2 of its places
WARM_UP_S = 1
WAYS = ("none", "rules", "chain")
RING_DEVICE = "net_memif0,role={role},rsize={ring},socket={folder}/memif.sock,socket-abstract=no"
CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: gateway}}
spec:
  rx: {{dpdk: "{device_of_ring}"}}
  tx: null
  device: {device}
  nfs:
    - {{name: fw, type: firewall, on: {on}, config: {{rules: {folder}/rules, default: allow}}}}
{more}    - {{name: rt, type: router, on: {on}, config: {{routes: {data}/routes.txt}}}}
"""
SECOND = "    - {{name: fw2, type: firewall, on: {on}, config: {{rules: {data}/fw.rules, default: allow}}}}\n"


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder

    def write(self, name, text):
        """In place of the file of that name, as an editor does."""
        beside = self.folder / f"{name}.new"
        beside.write_text(text)
        beside.replace(self.folder / name)

    def write_chain(self, on, has_second):
        more = SECOND.format(on=on, data=DATA) if has_second else ""
        self.write("chain.yaml", CHAIN.format(device_of_ring=self.ring("server"), folder=self.folder, data=DATA, on=on, more=more,
                                              device=self.arguments.device if on == "gpu" else "none"))

    def write_rules(self, count):
        rules = (DATA / "fw.rules").read_text()
        self.write("rules", rules + "".join(f"deny udp 192.0.2.{i}/32 any any any\n" for i in range(count)))

    def ring(self, role):
        """The interface of the chain (server) or of the sender (client)."""
        return RING_DEVICE.format(role=role, ring=RING, folder=self.folder)

    def start_chain(self):
        run = CatenaRun([self.arguments.catena, "run", self.folder / "chain.yaml", "--json", "--workers", "4"])
        run.wait_until((self.folder / "memif.sock").exists)
        return run

    def measure(self, on, rate, way):
        self.write_rules(0)
        self.write_chain(on, False)
        changed = sender = None
        try:
            changed = self.start_chain()
            sender = Sender(self.arguments.sender, self.ring("client"), rate)
            time.sleep(WARM_UP_S)
            for number in range(self.arguments.seconds):
                if way != "none":
                    if way == "rules":
                        self.write_rules(number + 1)
                    else:
                        self.write_chain(on, number % 2 == 0)
                    changed.process.send_signal(signal.SIGHUP)
                    changed.wait_for("chain replaced", number + 1)
                time.sleep(1)
            sent = sender.end()
            return accounts(sent, end(changed))
        finally:
            for run in (changed, sender):
                if run is not None and run.process.poll() is None:
                    run.process.kill()
                    run.process.wait()


class Sender:
    """bench/change/sender.cpp under way, from when it has opened the ring."""

    def __init__(self, program, device, rate):
        self.process = subprocess.Popen([program, device, str(rate), str(1 << RING), str(WARM_UP_S)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if line == "started\n":
                return
        raise RuntimeError(f"the sender does not start: {''.join(lines)}")

    def end(self):
        """What it has counted."""
        self.process.send_signal(signal.SIGINT)
        output, errors = self.process.communicate(timeout=30)
        if self.process.returncode:
            raise RuntimeError(f"the sender failed: {errors}")
        return json.loads(output)


def end(run):
    run.process.send_signal(signal.SIGINT)
    return run.report()[0]


def accounts(sent, last):
    """Of one run: what was due, what found the ring full, what the chains at the other end took. Raises where a packet that
    the ring took is missing."""
    received = last["rx"]["received_packets"]
    if received != sent["taken"]:
        raise RuntimeError(f"the ring took {sent['taken']} packets, and {received} were received")
    return {"offered": sent["offered"], "lost": sent["lost"], "longest_pause_us": sent["longest_pause_us"],
            "sender_late_us": sent["longest_late_us"], "dropped_inside": last["dropped_packets"],
            "longest_us": last["latency_us"]["max"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catena", default=str(ROOT / "build" / "src" / "apps" / "catena" / "catena"))
    parser.add_argument("--sender", default=str(ROOT / "build" / "bench" / "catena-bench-sender"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--on", default="cpu,gpu")
    parser.add_argument("--rates", default="200000,2000000", help="packets a second")
    add_options(parser, seconds=4)
    arguments = parser.parse_args()
    results = Results("change", arguments, {"warm_up_s": WARM_UP_S, "ring": 1 << RING})
    with tempfile.TemporaryDirectory(prefix="change") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        for on in arguments.on.split(","):
            for rate in map(int, arguments.rates.split(",")):
                results.measure({"group": "change", "nf": on, "packets": rate},
                                [(way, lambda way=way, on=on, rate=rate: bench.measure(on, rate, way)) for way in WAYS])
    return results.exit_status()


if __name__ == "__main__":
    sys.exit(main())
