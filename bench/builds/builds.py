#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of Catena in turn, to find out whether a change of the code costs speed.

    bench/builds/builds.py --before PROGRAM --catena PROGRAM --out FILE.json [--repeats 5] [--seconds 3]
                           [--groups gpu,latency,cpu] [--device cuda]

gpu      firewall, IPsec, NIDS on the GPU and the router on the CPU (C4) at 64 and 1518 B in one shard; firewall, NIDS on
         the GPU and the router on the CPU at 64 B in four
latency  C4 at 10 and 100 Gbps of frames of 1,024 B
cpu      a chain without an NF, and C4 on the CPU, in one shard
Both builds must know the chain files below. Packets come from a replay and are discarded. Throughput is that of a window
after the first second; latency is that of the whole run. tools/render-bench makes a page of the results.
"""

import argparse
import pathlib
import signal
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common.catena_run import CatenaRun, check_load, measure_together  # noqa: E402
from common.results import Results, add_options  # noqa: E402

DATA = ROOT / "examples" / "branch-office"
NFS = {
    "fw": "{{name: fw, type: firewall, on: {on}, config: {{rules: {data}/fw.rules, default: allow}}}}",
    "vpn": "{{name: vpn, type: ipsec, on: {on}, config: {{direction: encrypt, sa: {data}/sa.yaml}}}}",
    "ids": "{{name: ids, type: nids, on: {on}, config: {{rules: {data}/ids.rules, variables: {{HOME_NET: 10.0.0.0/24}}}}}}",
    "rt": "{{name: rt, type: router, config: {{routes: {data}/routes.txt}}}}",
}
CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: builds}}
spec:
  rx: {{replay: {{packet: {frame}, flows: 1024, rate: {rate}}}}}
  tx: null
  shards: {shards}
  nfs: [{nfs}]
"""
FCS_BYTES = 4
OVERHEAD_BYTES = 20  # of a frame on the wire: preamble and gap
EMPTY, FNR, C4 = (), ("fw", "ids", "rt"), ("fw", "vpn", "ids", "rt")
# group, name, NFs, where, frame with FCS, shards, Gbps offered (0: as fast as it goes)
CELLS = (
    ("gpu", "C4", C4, "gpu", 64, 1, 0), ("gpu", "C4", C4, "gpu", 1518, 1, 0), ("gpu", "FNR", FNR, "gpu", 64, 4, 0),
    ("latency", "C4", C4, "gpu", 1024, 1, 10), ("latency", "C4", C4, "gpu", 1024, 1, 100),
    ("cpu", "empty", EMPTY, "cpu", 64, 1, 0), ("cpu", "C4", C4, "cpu", 64, 1, 0),
)
WORKERS = 8


def measure(program, folder, device, seconds, cell):
    """What one run gives."""
    _, _, names, where, size, shards, gbps = cell
    path = folder / "builds.yaml"
    rate = int(gbps * 1e9 / 8 / (size + OVERHEAD_BYTES))
    path.write_text(CHAIN.format(frame=size - FCS_BYTES, rate=rate, shards=shards,
                                 nfs=", ".join(NFS[name].format(on=where, data=DATA) for name in names)))
    words = [program, "run", str(path), "--json", "--workers", str(WORKERS)]
    run = CatenaRun([*words, *(["--device", device] if where == "gpu" else [])])
    run.wait_for_lines(2)
    packets_per_s, cores = measure_together([run], seconds)
    run.process.send_signal(signal.SIGINT)
    report, _ = run.report()
    check_load(packets_per_s, rate)
    if any(nf["on"] != where for nf in report["nfs"] if nf["name"] != "rt"):
        raise RuntimeError(f"an NF is not on the {where}: {report.get('device')}")
    return {"packets_per_s": packets_per_s, "process_cores": cores,
            **{f"{name}_us": report["latency_us"][name] for name in ("p50", "p95", "p99")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the program catena of the other build")
    parser.add_argument("--catena", default=str(ROOT / "build" / "src" / "apps" / "catena" / "catena"))
    parser.add_argument("--groups", default="gpu,latency,cpu")
    parser.add_argument("--device", default="cuda")
    add_options(parser, seconds=3)
    arguments = parser.parse_args()
    results = Results("builds", arguments, {"before": arguments.before})
    with tempfile.TemporaryDirectory(prefix="builds") as folder:
        for cell in CELLS:
            group, name, _, where, size, shards, gbps = cell
            if group not in arguments.groups.split(","):
                continue
            key = {"group": group, "chain": name, "on": where, "wire_bytes": size, "shards": shards, "gbps_offered": gbps}
            results.measure(key, [(way, lambda program=program, cell=cell: measure(
                program, pathlib.Path(folder), arguments.device, arguments.seconds, cell))
                for way, program in (("before", arguments.before), ("after", arguments.catena))])
    return results.exit_status()


if __name__ == "__main__":
    sys.exit(main())
