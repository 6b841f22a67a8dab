#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What packets notice of a chain of another shape that takes over: takeover.py OUT.json REPEATS DEVICE; `catena` in PATH.

A firewall and a router, on the CPU and on a GPU, get 64-byte packets at a fixed rate; after a second the run is told by SIGHUP that
the file has a second firewall. The report is that of the chain that took over: its longest packet is one that waited for the first
chain to end. Beside it the same without a change, from the start with two firewalls.
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: takeover}}
spec:
  rx: {{replay: {{packet: 60, flows: 1024, rate: {rate}}}}}
  tx: null
  device: {device}
  nfs: [{nfs}]
"""
ROOT = pathlib.Path(__file__).resolve().parents[3]


def nf(name, on):
    return f"{{name: {name}, type: firewall, on: {on}, config: {{rules: fw.rules, default: allow}}}}"


def run(folder, on, device, rate, changes):
    one, two = nf("one", on), nf("two", on)
    router = f"{{name: rt, type: router, on: {on}, config: {{routes: routes.txt, ports: [{{port: 0, mac: \"02:00:00:00:00:01\", next_hop_mac: \"02:00:00:00:00:02\"}}]}}}}"
    both = CHAIN.format(rate=rate, device=device, nfs=f"{one}, {two}, {router}")
    file = folder / "chain.yaml"
    file.write_text(CHAIN.format(rate=rate, device=device, nfs=f"{one}, {router}") if changes else both)
    begin = time.monotonic()
    process = subprocess.Popen(["catena", "run", file, "--json", "--workers", "4"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = iter(process.stderr.readline, "")
    next(line for line in lines if "received" in line)
    row = {"on": on, "rate": rate, "change": changes}
    if changes:
        file.write_text(both)
        begin = time.monotonic()
        process.send_signal(signal.SIGHUP)
        line = next(line for line in lines if "live" in line or "chain.yaml: " in line)
        assert "goes on for this one" in line, line
        row["made_s"] = time.monotonic() - begin
        until = next(line for line in lines if "until now" in line)
        row["before"] = [int(number) for number in re.findall(r"(?:received|sent|dropped) (\d+)", until)]
        next(line for line in lines if "received" in line)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    row.update(accounted=report["accounted"], dropped=report["dropped_packets"], pps=report["packets_per_second"],
               offered=report["offered_packets_per_second"], latency_us=report["latency_us"])
    return row


def main():
    out, repeats, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "fw.rules").write_text("deny tcp 192.0.2.0/24 any any 1\n" * 8)
        (folder / "routes.txt").write_text("0.0.0.0/0 0\n")
        for on, rates in (("cpu", (200_000, 2_000_000)), ("gpu", (200_000, 2_000_000))):
            for rate in rates if device != "none" or on == "cpu" else ():
                for _ in range(repeats):
                    for changes in (False, True):
                        rows.append(run(folder, on, device, rate, changes))
                        print(json.dumps(rows[-1]), flush=True)
    pathlib.Path(out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
