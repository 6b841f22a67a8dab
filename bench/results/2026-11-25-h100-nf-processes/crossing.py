#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NFs in processes before and after ADR 0034, and neighbours that share one: crossing.py CATENA_BEFORE CATENA DEVICE OUTPUT REPEATS SECONDS_IN_ALL

Two chains of four NFs in one service (sharing.py has them), on the GPU; the ways take turns within each repeat."""
import json, pathlib, statistics, sys, tempfile, time, types
sys.path.insert(0, "bench/gnet")
import sharing as s
before, now, device, output, repeats, limit = *sys.argv[1:5], int(sys.argv[5]), float(sys.argv[6])
BEGIN = time.monotonic()
WAYS = (("chain's process", now, "none"), ("a process each, whole frames (before)", before, "process"),
        ("a process each", now, "process"), ("one process for the four", now, "{group: all}"))
results = {"machine": s.machine(), "device": s.output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
           "commit": s.output_of("git", "rev-parse", "HEAD"), "cells": {}}
with tempfile.TemporaryDirectory(prefix="cross", dir="/tmp") as folder:
    for repeat in range(-1, repeats):
        for size in (64, 1518, 512):
            for way, program, isolation in WAYS:
                if time.monotonic() - BEGIN > limit:
                    continue
                if repeat < 0 and size != 64:
                    continue  # kernels are compiled for any size
                bench = s.Bench(types.SimpleNamespace(catena=program, device=device, seconds=1), pathlib.Path(folder))
                try:
                    value = bench.run_service(2, size, 0, 4, isolation=isolation)
                except Exception as error:
                    print("FAILED", way, size, error, (pathlib.Path(folder) / "serve.log").read_text()[-800:], flush=True)
                    continue
                if repeat >= 0:
                    results["cells"].setdefault(f"{size} B", {}).setdefault(way, []).append(value)
                print(repeat, size, way, f"{value[0] / 1e6:.2f} Mpps, p50 {value[1]:.0f} us, +{time.monotonic() - BEGIN:.0f} s", flush=True)
    pathlib.Path(output).write_text(json.dumps(results, indent=1) + "\n")
for size, ways in results["cells"].items():
    first = ways["chain's process"]
    for way, values in ways.items():
        packets = [v[0] / 1e6 for v in values]
        ratio = statistics.median(a[0] / b[0] for a, b in zip(values, first))
        print(f"| {size} | {way} | {s.spread(packets)} | {s.spread([v[1] / 1000 for v in values])} | {ratio:.2f} |")
