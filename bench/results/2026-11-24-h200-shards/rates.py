#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rates.py CATENA FOLDER REPEATS CELL...: packets a second of chains, in turn.

CELL: NAME:COUNT:WORKERS[:PROCESSES]; COUNT 0: for three seconds; WORKERS 0: Catena's choice. Processes are on a core each,
and so are the workers of a chain on the CPU.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time


def command(catena, chain, workers, core):
    cores = ["--cores", core] if core else []
    return [catena, "run", chain, "--json"] + (["--workers", workers] if workers != "0" else []) + cores


def measure(catena, folder, cell):
    name, count, workers, *processes = cell.split(":")
    alone = not processes
    chain = os.path.join(folder, f"now-{name}.yaml")
    with open(os.path.join(folder, name + ".yaml"), encoding="ascii") as text, open(chain, "w", encoding="ascii") as now:
        now.write(text.read().replace("COUNT", count))
    pinned = f"0-{int(workers) - 1}" if alone and workers != "0" and "none" in name else ""
    running = [
        subprocess.Popen(command(catena, chain, workers, pinned if alone else str(i)), stdout=subprocess.PIPE, text=True)
        for i in range(1 if alone else int(processes[0]))
    ]
    if count == "0":
        time.sleep(3.5)
        for process in running:
            process.send_signal(signal.SIGINT)
    rate = 0
    stages = {}
    for process in running:
        report = json.loads(process.communicate()[0])
        rate += report["rx"]["received_packets"] / report["seconds"] / 1e6
        stages = {stage["name"]: round(stage["busy_seconds"], 2) for stage in report["stages"]}
    print(f"{cell} {rate:.2f} Mpps, busy seconds {stages}", flush=True)
    return rate


def main():
    catena, folder, repeats, *cells = sys.argv[1:]
    rates = {cell: [] for cell in cells}
    for _ in range(int(repeats)):
        for cell in cells:
            rates[cell].append(measure(catena, folder, cell))
    for cell, of_cell in rates.items():
        print(f"{cell:40} median {statistics.median(of_cell):.2f}  {min(of_cell):.2f} .. {max(of_cell):.2f} Mpps")


if __name__ == "__main__":
    main()
