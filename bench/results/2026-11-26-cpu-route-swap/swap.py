#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Swaps a full route table under traffic, as often as asked for: swap.py CATENA FOLDER SWAPS

FOLDER has a.txt and b.txt, two tables for `router`; the chain file is written there.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {name: full}
spec:
  rx: {replay: {packet: 60, flows: 4096, rate: 200000}}
  tx: null
  device: none
  nfs: [{name: rt, type: router, config: {routes: routes.txt}}]
"""


def main():
    catena, folder, swaps = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    (folder / "chain.yaml").write_text(CHAIN)
    shutil.copy(folder / "a.txt", folder / "routes.txt")
    run = subprocess.Popen([catena, "run", "chain.yaml", "--json", "--workers", "1"], cwd=folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    threading.Thread(target=lambda: lines.extend((time.monotonic(), line) for line in run.stderr), daemon=True).start()
    time.sleep(6)
    for swap in range(swaps):
        shutil.copy(folder / f"{'ba'[swap % 2]}.txt", folder / "next")
        os.rename(folder / "next", folder / "routes.txt")
        seen = len(lines)
        begin = time.monotonic()
        run.send_signal(signal.SIGHUP)
        while not (said := [when for when, line in lines[seen:] if "changed" in line]):
            time.sleep(0.005)
        print(f"swap {said[0] - begin:.2f} s")
        time.sleep(2)
    run.send_signal(signal.SIGINT)
    report = json.loads(run.stdout.read())
    run.wait()
    print(report["latency_us"], report["rx"]["received_packets"], report["tx"]["sent_packets"], report["accounted"])


main()
